"""A profile: the plugin instances of each extension point, and settings."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from extender.api.requests import is_resize_deferred
from extender.cache.pod_info import PodInfo
from extender.config.feature_gates import FeatureGates
from extender.config.releases import Release
from extender.framework.binding_points import AssumeExtensions, Bind, Permit, PostBind, PreBind, Reserve
from extender.framework.extension_points import (
    BatchPreFilterExtensions,
    Filter,
    PostFilter,
    PreEnqueue,
    PreFilter,
    PreFilterExtensions,
    PreScore,
    QueueSort,
    Score,
)
from extender.framework.pod_group_points import PlacementFeasible, PlacementGenerate, PlacementScore, PodGroupPostFilter

_IGNORING_PLUGINS: Final = frozenset(
    {
        "DynamicResources",
        "InterPodAffinity",
        "NodeAffinity",
        "NodeDeclaredFeatures",
        "NodePorts",
        "NodeUnschedulable",
        "NodeVolumeLimits",
        "PodTopologySpread",
        "TaintToleration",
        "VolumeBinding",
        "VolumeRestrictions",
        "VolumeZone",
    }
)
"""The in-tree filters that ignore a pod whose in-place resize is deferred, because the pod stays on its node.

Source: pkg/scheduler/framework/plugins/nodeports/node_ports.go, NodePorts.PreFilter;
pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go, NodeAffinity.PreFilter (1.37).
"""


@dataclass(frozen=True, slots=True)
class WeightedScore:
    """A score plugin with its weight in the profile, at least 1.

    Source: pkg/scheduler/framework/runtime/framework.go, getValidScoreWeights (1.36).
    """

    plugin: Score
    weight: int


@dataclass(frozen=True, slots=True)
class WeightedPlacementScore:
    """A placement score plugin with its weight in the profile, at least 1.

    Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.podGroupSchedulingPlacementAlgorithm (1.36).
    """

    plugin: PlacementScore
    weight: int


@dataclass(frozen=True, slots=True)
class Profile:
    """The plugins for the pods of one scheduler name, and its settings.

    Each field with a name such as `filter_plugins` has the plugins of one extension point, in execution order.

    Attributes:
        scheduler_name: the `spec.schedulerName` of the pods that use the profile.
        queue_sort: the plugin that orders the active queue.
        percentage_of_nodes_to_score: the search for feasible nodes stops when it has found this percentage of the
            nodes. With None or 0, all feasible nodes are found and scored.
        assume_extensions: the plugins in `reserve_plugins` that modify the assumed pod.
        plugins: all plugins of the profile, by name.
        check_all_filters: whether messages have the reasons of all plugins that reject a node, and not only the reasons
            of the first such plugin.
        pod_group_post_filter_plugins: the plugins that run for a pod group that cannot be scheduled.
        placement_feasible_plugins: the plugins that decide after each member whether a pod group can be scheduled.
        gates: the feature gates of the emulated release.
        pre_filter_extensions: the plugins in `pre_filter_plugins` with `PreFilterExtensions`.
        batch_extension_names: the names of those of them with `BatchPreFilterExtensions`.
        pre_filter_state_readers: the name of each Score plugin that gets the state of PreFilter, because it has no
            PreScore or has the attribute `scores_from_pre_filter`; and whether its PreScore runs.

    Source: pkg/scheduler/schedule_one.go, Scheduler.numFeasibleNodesToFind (1.36);
    pkg/scheduler/schedule_one_podgroup.go, Scheduler.podGroupSchedulingPlacementAlgorithm (1.37).
    """

    scheduler_name: str
    queue_sort: QueueSort
    percentage_of_nodes_to_score: int | None = None
    pre_enqueue_plugins: tuple[PreEnqueue, ...] = ()
    pre_filter_plugins: tuple[PreFilter, ...] = ()
    filter_plugins: tuple[Filter, ...] = ()
    post_filter_plugins: tuple[PostFilter[Any], ...] = ()
    pre_score_plugins: tuple[PreScore, ...] = ()
    score_plugins: tuple[WeightedScore, ...] = ()
    reserve_plugins: tuple[Reserve, ...] = ()
    permit_plugins: tuple[Permit, ...] = ()
    pre_bind_plugins: tuple[PreBind, ...] = ()
    bind_plugins: tuple[Bind, ...] = ()
    post_bind_plugins: tuple[PostBind, ...] = ()
    placement_generate_plugins: tuple[PlacementGenerate, ...] = ()
    placement_score_plugins: tuple[WeightedPlacementScore, ...] = ()
    placement_feasible_plugins: tuple[PlacementFeasible, ...] = ()
    pod_group_post_filter_plugins: tuple[PodGroupPostFilter[Any], ...] = ()
    assume_extensions: tuple[AssumeExtensions, ...] = ()
    plugins: Mapping[str, Any] = field(default_factory=dict)
    check_all_filters: bool = False
    gates: FeatureGates = field(default_factory=FeatureGates)
    pre_filter_extensions: tuple[Any, ...] = field(init=False, repr=False, compare=False)
    batch_extension_names: frozenset[str] = field(init=False, repr=False, compare=False)
    pre_filter_state_readers: tuple[tuple[str, bool], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Derive the last three fields once, because each decision needs them: a check of a protocol is slow."""
        extensions = tuple(plugin for plugin in self.pre_filter_plugins if isinstance(plugin, PreFilterExtensions))
        object.__setattr__(self, "pre_filter_extensions", extensions)
        batch_names = frozenset(plugin.name for plugin in extensions if isinstance(plugin, BatchPreFilterExtensions))
        object.__setattr__(self, "batch_extension_names", batch_names)
        pre_score_names = {plugin.name for plugin in self.pre_score_plugins}
        readers = tuple(
            (entry.plugin.name, entry.plugin.name in pre_score_names)
            for entry in self.score_plugins
            if not hasattr(entry.plugin, "pre_score") or getattr(entry.plugin, "scores_from_pre_filter", False)
        )
        object.__setattr__(self, "pre_filter_state_readers", readers)

    @property
    def release(self) -> Release:
        """The emulated release, with the scheduling rules that no feature gate guards."""
        return self.gates.release

    @property
    def resize_preemption(self) -> bool:
        """Whether pods on nodes whose resize is deferred are scheduled again, so that they preempt others."""
        return "InPlacePodVerticalScalingSchedulerPreemption" in self.gates

    def select_pre_filter_plugins(self, pod: PodInfo) -> tuple[tuple[PreFilter, ...], frozenset[str]]:
        """Return the PreFilter plugins that run for *pod*, and the names of the filters that ignore it.

        No filter ignores the pod unless it is on a node and its resize is deferred.
        """
        if not (self.resize_preemption and is_resize_deferred(pod.pod)):
            return self.pre_filter_plugins, frozenset()
        plugins = tuple(plugin for plugin in self.pre_filter_plugins if plugin.name not in _IGNORING_PLUGINS)
        return plugins, _IGNORING_PLUGINS
