"""The extension points: one Protocol each. Those about pod groups are in `group_points`.

A plugin is a plain class with a `name` and the methods of the points it stands at.

Plugins see compiled pods, snapshots and views of nodes; they have no client, no clock and no logger. What a plugin
works out once for a pod (in PreFilter or PreScore) it returns as `notes` and is handed back in every later call of the
same cycle. Source: A053 to A078.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, ClassVar, Protocol, TypeAlias, runtime_checkable

from extender.cluster.arrays import IntArray
from extender.cluster.batches import PodBatch
from extender.cluster.pods import PlacedPod, PodQuery
from extender.cluster.snapshot import NodeView, Snapshot
from extender.framework.changes import Registration
from extender.framework.verdict import Rejection, Status, error
from extender.objects.pod import Pod


class Reads(Enum):
    """What a plugin's answer about one node is made from beside the pod: if it changes, a kept answer is stale."""

    NODE = auto()
    """The node object alone."""
    PODS = auto()
    """The node object and the pods on that node."""
    NODES = auto()
    """All node objects, whatever pods are on them."""


class Named(Protocol):
    """A plugin of any kind."""

    name: ClassVar[str]


class PreEnqueue(Named, Protocol):
    """Asked before a pod may enter the active queue; cheap, no node in sight. Source: A053."""

    def pre_enqueue(self, pod: PodQuery, cluster: Snapshot) -> Status | None:
        """None lets the pod in; a status keeps it out until an event of this plugin. Nothing is written to the pod."""


@dataclass(frozen=True, slots=True)
class Queued:
    """A pod in the queue. `since` is when it was put there last, in seconds (B009)."""

    pod: PodQuery
    since: float


class QueueSort(Named, Protocol):
    """Orders the active queue; exactly one in a profile, the same in all. Source: A054."""

    def sort_key(self, queued: Queued) -> tuple[float, ...]:
        """Pods with smaller keys are scheduled first."""


@dataclass(frozen=True, slots=True)
class PreFiltered:
    """The answer of PreFilter.

    Attributes:
        status: None lets the pod pass. UNRESOLVABLE and ERROR end the round, UNSCHEDULABLE lets the others finish.
        nodes: the names of the only nodes that can do; None means all.
        notes: handed to `filter`, `add_pod`, `remove_pod`, `reserve`, `pre_bind`.
        skip: `filter` is not called for this pod.
    """

    status: Status | None = None
    nodes: frozenset[str] | None = None
    notes: Any = None
    skip: bool = False


PASS = PreFiltered()
SKIP = PreFiltered(skip=True)


class PreFilter(Named, Protocol):
    """Asked once a cycle, before any node. Source: A055 to A059."""

    def pre_filter(self, pod: PodQuery, cluster: Snapshot) -> PreFiltered:
        """Work out what `filter` needs, narrow the nodes down, or turn the pod away as a whole."""


@runtime_checkable
class KeptPreFilter(Protocol):
    """A PreFilter whose answer about some pods follows from their shape alone, so that it can be kept for all of it."""

    def pre_filter_kept(self, pod: PodQuery) -> bool:
        """Whether the answer follows from `pod.shape`, whatever the cluster is like.

        It is kept if it has no status and leaves all nodes; nobody may write to its `notes` then. The first pod of a
        shape, and the two after it, are asked about all the same, unless `kept_for_kin` is a true attribute of the
        plugin: then such an answer follows from `pod.spec` without the amounts of resources in it, and is kept for
        pods of many shapes, see `extender.cluster.kin`.
        """


@runtime_checkable
class PreFilterExtensions(Protocol):
    """A PreFilter plugin whose notes must follow when pods are imagined on or off a node. Source: A060."""

    def clone(self, notes: Any) -> Any:
        """A copy of *notes* that may be changed."""

    def add_pod(self, pod: PodQuery, other: PlacedPod, row: int, cluster: Snapshot, notes: Any) -> None:
        """Change *notes* as if *other* were on *row*."""

    def remove_pod(self, pod: PodQuery, other: PlacedPod, row: int, cluster: Snapshot, notes: Any) -> None:
        """Change *notes* as if *other* were not on *row*."""


@runtime_checkable
class ApartFilter(Protocol):
    """A filter that can be asked about many nodes at once, each as if pods had come to or left that node alone.

    For plugins with `PreFilterExtensions`, which otherwise are asked about one node at a time, with notes of its own.
    """

    def filter_apart(
        self, pod: PodQuery, nodes: NodeView, notes: Any, others: PodBatch, by: IntArray
    ) -> Sequence[Rejection]:
        """As `filter`; for each node *notes*, left as they are, count as if changed by the *others* on its row.

        *by* has one entry a pod of *others*: 1 came, -1 left, 0 neither.
        """


class Filter(Named, Protocol):
    """Says which nodes cannot take the pod. Source: A061."""

    def filter(self, pod: PodQuery, nodes: NodeView, notes: Any) -> Sequence[Rejection]:
        """Groups of refused nodes; an empty sequence refuses none. Masks have one entry a node of the view."""


@runtime_checkable
class KeptFilter(Protocol):
    """A filter whose answer about a node follows from that node and a key of the pod, so that it can be kept."""

    filter_reads: ClassVar[Reads]

    def filter_key(self, pod: PodQuery) -> Hashable | None:
        """What the answer depends on beside the node; None: do not keep this one.

        `notes` must follow from the key as well.
        """


@dataclass(frozen=True, slots=True)
class PostFiltered:
    """The answer of PostFilter.

    Attributes:
        status: SUCCESS: room can be made. UNSCHEDULABLE: the next plugin is asked. Anything else ends the round.
        nominated: the node the pod shall wait for; None leaves its nomination alone, the empty name clears it.
        detail: what the caller needs to act on the answer (victims, claims to release).
    """

    status: Status
    nominated: str | None = None
    detail: Any = None


class PostFilter(Named, Protocol):
    """Asked when no node can take the pod. Source: A062."""

    def post_filter(self, pod: PodQuery, cluster: Snapshot, attempt: Any) -> PostFiltered:
        """What could be done. *attempt* is a `decide.rescue.Attempt`: what was refused, with means to ask what if."""


@dataclass(frozen=True, slots=True)
class PreScored:
    """The answer of PreScore. `skip`: `score` is not called. A status ends the attempt as an error. Source: A063."""

    notes: Any = None
    skip: bool = False
    status: Status | None = None


SKIP_SCORE = PreScored(skip=True)


class PreScore(Named, Protocol):
    """Asked once a cycle with the feasible nodes."""

    def pre_score(self, pod: PodQuery, nodes: NodeView) -> PreScored:
        """Work out what `score` needs."""


@runtime_checkable
class KeptPreScore(Protocol):
    """A PreScore whose answer about some pods follows from their shape alone, so that it can be kept for all of it."""

    def pre_score_kept(self, pod: PodQuery) -> bool:
        """Whether the answer follows from `pod.shape`, whatever the cluster is like; see `KeptPreFilter`."""


class Score(Named, Protocol):
    """Rates feasible nodes. Source: A064."""

    def score(self, pod: PodQuery, nodes: NodeView, notes: Any) -> IntArray:
        """One int64 a node of the view; of any size if the plugin normalizes, else 0 to 100."""


@runtime_checkable
class KeptScore(Protocol):
    """A score that depends on the node and a key of the pod only, so that raw scores can be kept between cycles."""

    score_reads: ClassVar[Reads]

    def score_key(self, pod: PodQuery) -> Hashable | None:
        """What the raw score depends on beside the node; None: do not keep this one."""


@runtime_checkable
class NormalizeScore(Protocol):
    """Brings raw scores of all feasible nodes to 0..100. Source: A065, A066."""

    def normalize(self, pod: PodQuery, raw: IntArray, nodes: NodeView, notes: Any) -> IntArray:
        """Scores from 0 to 100, int64, in the order of *raw*; *raw* itself is not changed."""


class Reserve(Named, Protocol):
    """Told that the pod goes to a node, before it is bound. Source: A068."""

    def reserve(self, pod: PodQuery, node: str, cluster: Snapshot, notes: Any) -> Status | None:
        """Set aside what the pod needs there; a status undoes the reservations of all plugins."""

    def unreserve(self, pod: PodQuery, node: str, notes: Any) -> "Sequence[Write] | None":
        """Take back what `reserve` did, if anything; answers with the API calls that undo those of `pre_bind`.

        Called in reverse order, never fails, and no call that fails stops the next.
        """


@runtime_checkable
class Assuming(Named, Protocol):
    """A Reserve plugin that knows better than a pod what it takes of its node. Source: A022."""

    def assumed(self, pod: Pod, node: str, notes: Any) -> Pod:
        """*pod* as it counts on *node* from now on."""


@dataclass(frozen=True, slots=True)
class Permission:
    """The answer of Permit. Source: A069.

    Attributes:
        status: None allows; WAIT waits; anything else rejects.
        timeout: seconds to wait, 900 at most.
        allows: uids of pods waiting on this plugin that it lets go as well.
        activates: pods in the queue that should be tried now. Source: B131.
    """

    status: Status | None = None
    timeout: float = 0.0
    allows: tuple[str, ...] = ()
    activates: tuple[Pod, ...] = ()


ALLOW = Permission()


class Permit(Named, Protocol):
    """Last word before binding."""

    def permit(self, pod: PodQuery, node: str, cluster: Snapshot, notes: Any) -> Permission:
        """Allow, reject, or let the pod wait for others; in *cluster* the pod is on the node already."""


@dataclass(frozen=True, slots=True)
class Write:
    """One call to the API server that a plugin wants made: the core plans, the edge carries out.

    Attributes:
        verb: `create`, `update`, `patch`, `delete` or `bind`.
        kind: of the object, `PersistentVolumeClaim`.
        namespace, name: of the object; namespace is empty for what has none.
        body: what to send, builtins.
        subresource: `status`, `binding` or empty.
        strategic: a patch is a strategic merge patch; that of a pod's status is one anyhow.
    """

    verb: str
    kind: str
    namespace: str
    name: str
    body: Mapping[str, Any]
    subresource: str = ""
    strategic: bool = False


_LATE = error("context deadline exceeded")

Question: TypeAlias = Callable[[Snapshot], Status | None]
"""Whether something has come about in a cluster: None: not yet; else how it ended."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What PreBind or Bind wants done.

    Attributes:
        writes: in order; the first that fails ends the binding.
        wait_for: asked after the writes each time the cluster changes, until it answers with a status (success goes
            on) or `timeout` seconds passed; None: there is nothing to wait for.
        timeout: seconds.
        late: what is said when time runs out.
        announced: reason and note of an event about the pod, told before the wait.
        devices: allocated ones that the wait is about, for figures: the driver, and whether it has to get ready itself.
    """

    writes: tuple[Write, ...] = ()
    wait_for: Question | None = None
    timeout: float = 0.0
    late: Status = _LATE
    announced: tuple[str, str] | None = None
    devices: tuple[tuple[str, bool], ...] = ()


@runtime_checkable
class PreBindPreFlight(Protocol):
    """Says beforehand whether PreBind would do anything. Source: A027, A032."""

    def pre_bind_pre_flight(self, pod: PodQuery, node: str, notes: Any) -> "PreFlight | Status":
        """A `PreFlight`, or SKIP as a status: nothing to do, and not beside others."""


@dataclass(frozen=True, slots=True)
class PreFlight:
    """What PreBind will do.

    Attributes:
        parallel: it may run beside its neighbours that say so too.
        skip: it has nothing to do.
    """

    parallel: bool = False
    skip: bool = False


class PreBind(Named, Protocol):
    """What must be done before the pod can run on the node. Source: A072."""

    def pre_bind(self, pod: PodQuery, node: str, cluster: Snapshot, notes: Any) -> Plan | Status:
        """The API calls to make, or a status that ends the binding."""


class Bind(Named, Protocol):
    """How the pod is put on the node; the first plugin that does not skip decides. Source: A034, A035."""

    def bind(self, pod: PodQuery, node: str) -> Plan | Status:
        """The API calls that bind the pod; SKIP passes it on."""


class PostBind(Named, Protocol):
    """Told that the pod was bound. Source: A073."""

    def post_bind(self, pod: PodQuery, node: str, notes: Any) -> None:
        """For information only."""


@runtime_checkable
class EnqueueExtensions(Protocol):
    """Says which events may make a pod schedulable that this plugin rejected. Source: A074."""

    def events(self) -> Sequence[Registration]:
        """Events with their hints; empty: no event wakes the pod."""
