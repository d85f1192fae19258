"""The plugins that implement each predicate and priority, and the order of the predicates."""

from collections.abc import Mapping
from typing import Final

GENERAL_PREDICATES_PLUGINS: Final = ("NodeResourcesFit", "NodeName", "NodePorts", "NodeAffinity")

LABEL_PRESENCE_PREDICATE: Final = "CheckNodeLabelPresence"
SERVICE_AFFINITY_PREDICATE: Final = "CheckServiceAffinity"

PLUGINS_BY_PREDICATE: Final[Mapping[str, tuple[str, ...]]] = {
    "CheckNodeCondition": ("CheckNodeCondition",),
    "CheckNodeUnschedulable": ("NodeUnschedulable",),
    "GeneralPredicates": GENERAL_PREDICATES_PLUGINS,
    "HostName": ("NodeName",),
    "PodFitsHostPorts": ("NodePorts",),
    "MatchNodeSelector": ("NodeAffinity",),
    "PodFitsResources": ("NodeResourcesFit",),
    "NoDiskConflict": ("VolumeRestrictions",),
    "PodToleratesNodeTaints": ("TaintToleration",),
    # The mandatory PodToleratesNodeTaints rejects all nodes that this predicate rejects.
    "PodToleratesNodeNoExecuteTaints": ("TaintToleration",),
    LABEL_PRESENCE_PREDICATE: ("NodeLabel",),
    SERVICE_AFFINITY_PREDICATE: ("ServiceAffinity",),
    "MaxEBSVolumeCount": ("EBSLimits",),
    "MaxGCEPDVolumeCount": ("GCEPDLimits",),
    "MaxCSIVolumeCountPred": ("NodeVolumeLimits",),
    "MaxAzureDiskVolumeCount": ("AzureDiskLimits",),
    "MaxCinderVolumeCount": ("CinderLimits",),
    "CheckVolumeBinding": ("VolumeBinding",),
    "NoVolumeZoneConflict": ("VolumeZone",),
    "EvenPodsSpread": ("PodTopologySpread",),
    "CheckNodeMemoryPressure": ("CheckNodeMemoryPressure",),
    "CheckNodePIDPressure": ("CheckNodePIDPressure",),
    "CheckNodeDiskPressure": ("CheckNodeDiskPressure",),
    "MatchInterPodAffinity": ("InterPodAffinity",),
}
"""The plugins by predicate, in the execution order of the predicates.

Source: pkg/scheduler/algorithm/predicates/predicates.go, predicatesOrdering, CheckNodeConditionPredicate,
CheckNodeUnschedulablePredicate; pkg/scheduler/algorithm/predicates/csi_volume_predicate.go,
CSIMaxVolumeLimitChecker.attachableLimitPredicate (1.14); pkg/scheduler/framework/plugins/nodevolumelimits/non_csi.go,
getMaxEBSVolume, defaultMaxGCEPDVolumes, defaultMaxAzureDiskVolumes;
pkg/scheduler/framework/plugins/legacy_registry.go, EvenPodsSpreadPred (1.21).
"""

PREDICATE_ALIASES: Final[Mapping[str, str]] = {"PodFitsPorts": "PodFitsHostPorts", "PodFitsHost": "HostName"}
"""The current name of each deprecated predicate name.

Source: pkg/scheduler/algorithm/predicates/predicates.go, PodFitsHost, PodFitsHostPorts (1.14).
"""

MANDATORY_PREDICATES: Final = ("PodToleratesNodeTaints", "CheckNodeUnschedulable")
"""The predicates that are always enabled.

Source: pkg/scheduler/framework/plugins/legacy_registry.go, NewLegacyRegistry (1.21).
"""

PLUGIN_BY_PRIORITY: Final[Mapping[str, str]] = {
    "SelectorSpreadPriority": "SelectorSpread",
    "InterPodAffinityPriority": "InterPodAffinity",
    "LeastRequestedPriority": "NodeResourcesLeastAllocated",
    "MostRequestedPriority": "NodeResourcesMostAllocated",
    "BalancedResourceAllocation": "NodeResourcesBalancedAllocation",
    "RequestedToCapacityRatioPriority": "RequestedToCapacityRatio",
    "NodePreferAvoidPodsPriority": "NodePreferAvoidPods",
    "NodeAffinityPriority": "NodeAffinity",
    "TaintTolerationPriority": "TaintToleration",
    "ImageLocalityPriority": "ImageLocality",
    "ResourceLimitsPriority": "NodeResourceLimits",
    "EvenPodsSpreadPriority": "PodTopologySpread",
}
"""The plugin that implements each priority.

Source: pkg/scheduler/framework/plugins/selectorspread/selector_spread.go, SelectorSpread.NormalizeScore;
pkg/scheduler/framework/plugins/legacy_registry.go, LegacyRegistry.ProcessPriorityPolicy, EvenPodsSpreadPriority
(1.21); pkg/scheduler/algorithm/priorities/interpod_affinity.go, InterPodAffinity.CalculateInterPodAffinityPriority
(1.14); pkg/scheduler/framework/plugins/noderesources/least_allocated.go, leastRequestedScore;
pkg/scheduler/framework/plugins/noderesources/most_allocated.go, mostRequestedScore (1.21);
pkg/scheduler/algorithm/priorities/balanced_resource_allocation.go, balancedResourceScorer (1.14);
pkg/scheduler/framework/plugins/noderesources/requested_to_capacity_ratio.go,
buildRequestedToCapacityRatioScorerFunction;
pkg/scheduler/framework/plugins/nodepreferavoidpods/node_prefer_avoid_pods.go, NodePreferAvoidPods.Score (1.21);
pkg/scheduler/algorithm/priorities/node_affinity.go, CalculateNodeAffinityPriorityMap;
pkg/scheduler/algorithm/priorities/taint_toleration.go, ComputeTaintTolerationPriorityMap;
pkg/scheduler/algorithm/priorities/image_locality.go, calculatePriority;
pkg/scheduler/algorithm/priorities/resource_limits.go, ResourceLimitsPriorityMap (1.14).
"""

EQUAL_PRIORITY: Final = "EqualPriority"
"""The priority that gives all nodes the same score, which needs no plugin.

Source: pkg/scheduler/core/generic_scheduler.go, EqualPriorityMap (1.14).
"""

PRIORITY_ALIASES: Final[Mapping[str, str]] = {"ServiceSpreadingPriority": "SelectorSpreadPriority"}
"""The current name of each deprecated priority name.

Source: pkg/scheduler/framework/plugins/legacy_registry.go, LegacyRegistry.ProcessPriorityPolicy (1.21).
"""

NODE_LABEL_PLUGIN: Final = "NodeLabel"
SERVICE_AFFINITY_PLUGIN: Final = "ServiceAffinity"
CAPACITY_RATIO_PLUGIN: Final = "RequestedToCapacityRatio"

BEHAVIOR_DIFFERENCES: Final[Mapping[str, str]] = {
    "BalancedResourceAllocation": "NodeResourcesBalancedAllocation has the score formula of 1.36",
    "ImageLocalityPriority": "ImageLocality also counts init containers and image volumes, and the maximum size is "
    "1000 MB per container",
    "InterPodAffinityPriority": "InterPodAffinity normalizes scores between the lowest and the highest sum, even if "
    "both are above or below 0",
    "ServiceSpreadingPriority": "SelectorSpread counts the pods that services and controllers select, as releases from "
    "1.18 did under this name",
    "NoVolumeZoneConflict": "VolumeZone also checks the labels topology.kubernetes.io/zone and "
    "topology.kubernetes.io/region",
    "MaxCSIVolumeCountPred": "NodeVolumeLimits reads limits from CSINode objects only",
    "CheckVolumeBinding": "VolumeBinding also checks the capacity that CSI drivers publish",
    "PodToleratesNodeNoExecuteTaints": "the mandatory PodToleratesNodeTaints rejects the same nodes",
}
"""The difference between a predicate or priority and the plugin that implements it now, by predicate or priority."""

FILTER_AND_SCORE_PLUGINS: Final = (
    "NodeResourcesFit",
    "NodeAffinity",
    "TaintToleration",
    "NodeLabel",
    "ServiceAffinity",
    "VolumeBinding",
    "PodTopologySpread",
    "InterPodAffinity",
)
"""The plugins that implement both Filter and Score. A Policy can request one without the other."""
