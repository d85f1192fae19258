"""The extension points up to Score, one Protocol each, and EnqueueExtensions.

`binding_points` has those from Reserve to PostBind, and `pod_group_points` those of pod groups.

A plugin is a plain class with a `name` and the methods of its extension points. It has no API client, clock or logger.
PreFilter and PreScore return `state`, which is passed to all later methods of the plugin in the same scheduling cycle.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

from extender.api.read_only import ReadOnlyDict
from extender.cache.pod_batch import PodBatch
from extender.cache.pod_info import AssignedPodInfo, PodInfo
from extender.cache.snapshot import NodeView, Snapshot
from extender.cache.tables.arrays import IntArray
from extender.framework.events import ClusterEventWithHint
from extender.framework.status import Rejection, Status


class DependsOn(Enum):
    """The inputs of a plugin's result for a node, besides the pod. If an input changes, a cached result is invalid."""

    NODE = auto()
    """The node object only."""
    NODE_AND_PODS = auto()
    """The node object and the pods on that node."""
    ALL_NODES = auto()
    """All node objects, but no pods."""


class NamedPlugin(Protocol):
    """A plugin at any extension point."""

    name: ClassVar[str]


class PreEnqueue(NamedPlugin, Protocol):
    """Checks a pod before it enters the active queue. The check must be cheap.

    Source: kube-scheduler/framework/interface.go, PreEnqueuePlugin (1.36).
    """

    def pre_enqueue(self, pod: PodInfo, snapshot: Snapshot) -> Status | None:
        """Return None to admit the pod, or a status to gate it until an event that this plugin registered for."""


@dataclass(frozen=True, slots=True)
class QueueSortEntry:
    """A queued pod or pod group, as passed to QueueSort plugins.

    Attributes:
        pod: the queued pod, or the first member of the queued group.
        timestamp, priority: when the pod or group was last added to the queue, in seconds, and its priority.

    Source: pkg/scheduler/framework/types.go, QueuedPodInfo (1.36).
    """

    pod: PodInfo
    timestamp: float
    priority: int


class QueueSort(NamedPlugin, Protocol):
    """Orders the active queue; all profiles share one QueueSort plugin.

    Source: kube-scheduler/framework/interface.go, QueueSortPlugin (1.36).
    """

    def sort_key(self, entry: QueueSortEntry) -> tuple[float, ...]:
        """Return the sort key of *entry*; pods with smaller keys are scheduled first."""


@dataclass(frozen=True, slots=True)
class PreFilterResult:
    """The result of PreFilter.

    Attributes:
        status: None if the pod passes, else a rejection or an error. The next plugins run after None or UNSCHEDULABLE.
        node_names: the only nodes to filter; None means all.
        state: the state passed to `filter`, `add_pod`, `remove_pod`, `reserve`, `pre_bind`.
        skip: whether `filter` is skipped for this pod.
    """

    status: Status | None = None
    node_names: frozenset[str] | None = None
    state: Any = None
    skip: bool = False


PASS = PreFilterResult()
SKIP = PreFilterResult(skip=True)


class PreFilter(NamedPlugin, Protocol):
    """Runs once per scheduling cycle, before Filter.

    Source: kube-scheduler/framework/interface.go, PreFilterPlugin; pkg/scheduler/framework/runtime/framework.go,
    frameworkImpl.RunPreFilterPlugins; pkg/scheduler/schedule_one.go, Scheduler.findNodesThatFitPod (1.36).
    """

    def pre_filter(self, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:
        """Compute state for `filter`, restrict the nodes, or reject the pod."""


@runtime_checkable
class CacheablePreFilter(Protocol):
    """A PreFilter plugin with results that depend only on the pod's signature, and are cached by signature."""

    def pre_filter_is_cacheable(self, pod: PodInfo) -> bool:
        """Return whether the result for *pod* depends only on its signature, and not on the cluster.

        If true, a result without a status and without `node_names` is cached; its `state` must not be modified. The
        plugin still runs for the first three pods of a signature. If the result depends only on `pod.spec`, and not on
        the requested amounts in it, the attribute `cacheable_for_spec_class` may be true. The result is then cached for
        all pods of a `SpecClass`.
        """


@runtime_checkable
class PreFilterExtensions(Protocol):
    """A PreFilter plugin whose state can be updated for pods that are hypothetically added or removed.

    If the class attribute `pod_changes_are_reversible` is true, the state after a pod was added and removed equals the
    one before, so a dry run may leave out both changes.

    Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunPreFilterExtensionAddPod (1.36).
    """

    def clone(self, state: Any) -> Any:
        """Return a copy of *state* that may be modified."""

    def add_pod(self, pod: PodInfo, pod_to_add: AssignedPodInfo, row: int, snapshot: Snapshot, state: Any) -> None:
        """Update *state* as if *pod_to_add* were on the node in *row*."""

    def remove_pod(
        self, pod: PodInfo, pod_to_remove: AssignedPodInfo, row: int, snapshot: Snapshot, state: Any
    ) -> None:
        """Update *state* as if *pod_to_remove* were not on the node in *row*."""


@runtime_checkable
class BatchPreFilterExtensions(Protocol):
    """`PreFilterExtensions` that also update one state for dry runs of many nodes, each with its own pods.

    Without `apply_pod_changes`, each node has a clone of the state, and the filter is called once per node.
    """

    def apply_pod_changes(
        self, pod: PodInfo, changed_pods: PodBatch, deltas: IntArray, snapshot: Snapshot, state: Any
    ) -> Any:
        """Return a copy of *state* for `filter`: each node is checked as if only the pods of its row had changed.

        *deltas* are 1 for added, -1 for removed, 0 for unchanged pods. Do not modify *state*.
        """


class Filter(NamedPlugin, Protocol):
    """Rejects nodes that cannot run the pod. If `remembers_filtered_nodes` is true, it gets no rejected nodes.

    Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunFilterPlugins (1.36).
    """

    def filter(self, pod: PodInfo, nodes: NodeView, state: Any) -> Sequence[Rejection]:
        """Return one rejection for each reason; empty if all nodes pass. A rejection's mask has one entry per node."""


@runtime_checkable
class CacheableFilter(Protocol):
    """A filter whose result for a node depends only on the node and a key of the pod, and is cached by this key."""

    filter_depends_on: ClassVar[DependsOn]

    def filter_cache_key(self, pod: PodInfo) -> Hashable | None:
        """Return a key made of all inputs of the result except the node; None if the result must not be cached.

        The plugin's PreFilter `state` must depend only on this key too.
        """


@dataclass(frozen=True, slots=True)
class PostFilterResult:
    """The result of PostFilter.

    Attributes:
        status: SUCCESS if the pod can be made schedulable. After UNSCHEDULABLE the next plugin runs. Any other code
            ends PostFilter.
        nominated_node_name: the node nominated for the pod; None leaves the nomination unchanged, "" clears it.
        plan: the plan for the scheduler to execute, such as a `PreemptionPlan`; None if there is none.
        uids_to_reject: the uids of pods that wait on Permit and that this plugin rejects now, each with the message of
            its rejection, for example the other pods of a gang. A pod that does not wait is ignored.
    """

    status: Status
    nominated_node_name: str | None = None
    plan: Any = None
    uids_to_reject: Mapping[str, str] = field(default_factory=ReadOnlyDict, hash=False)


AttemptT_contra = TypeVar("AttemptT_contra", contravariant=True)


class PostFilter(NamedPlugin, Protocol[AttemptT_contra]):
    """Runs when no node can run the pod. Plugins take an `extender.plugin.FailedAttempt` as *attempt*.

    Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunPostFilterPlugins (1.36).
    """

    def post_filter(self, pod: PodInfo, snapshot: Snapshot, attempt: AttemptT_contra) -> PostFilterResult:
        """Try to make the pod schedulable. *attempt* has the rejections and the inputs of dry runs."""


@dataclass(frozen=True, slots=True)
class PreScoreResult:
    """The result of PreScore.

    Attributes:
        state: the state passed to `score` and `normalize_score`.
        skip: whether `score` is skipped for this pod.
        status: an error, which ends the attempt; else None.

    Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunPreScorePlugins (1.36).
    """

    state: Any = None
    skip: bool = False
    status: Status | None = None


SKIP_SCORE = PreScoreResult(skip=True)


class PreScore(NamedPlugin, Protocol):
    """Runs once per scheduling cycle with the feasible nodes, before Score."""

    def pre_score(self, pod: PodInfo, nodes: NodeView) -> PreScoreResult:
        """Compute state for `score`."""


@runtime_checkable
class CacheablePreScore(Protocol):
    """A PreScore plugin with results that depend only on the pod's signature, and are cached by signature."""

    def pre_score_is_cacheable(self, pod: PodInfo) -> bool:
        """Return whether the result for *pod* depends only on its signature; see `CacheablePreFilter`."""


class Score(NamedPlugin, Protocol):
    """Scores feasible nodes. With `scores_from_pre_filter` or without PreScore, it gets the state of PreFilter.

    Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunScorePlugins (1.36).
    """

    def score(self, pod: PodInfo, nodes: NodeView, state: Any) -> IntArray:
        """Return one int64 score for each node of the view: 0 to 100, or any number if the plugin normalizes scores."""


@runtime_checkable
class CacheableScore(Protocol):
    """A score plugin whose raw score depends only on the node and a key of the pod, and is cached by this key."""

    score_depends_on: ClassVar[DependsOn]

    def score_cache_key(self, pod: PodInfo) -> Hashable | None:
        """Return a key made of all inputs of the raw score except the node; None if the score must not be cached."""


@runtime_checkable
class NormalizeScore(Protocol):
    """A score plugin whose raw scores are normalized to 0..100 over all feasible nodes.

    Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunScorePlugins (1.36).
    """

    def normalize_score(self, pod: PodInfo, scores: IntArray, nodes: NodeView, state: Any) -> IntArray:
        """Return scores from 0 to 100, int64, in the order of the raw *scores*, which are not modified."""


@runtime_checkable
class EnqueueExtensions(Protocol):
    """A plugin that registers for events. Such an event may make a pod schedulable that the plugin rejected.

    Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.fillEnqueueExtensions (1.36).
    """

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return the events with their queueing hints; if empty, no event requeues the pod."""
