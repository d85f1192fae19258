"""Which plugins stand for each predicate and each priority, and in which order predicates run.

Source: C019, C024 to C048, C051 to C066.
"""

from collections.abc import Mapping
from typing import Final

GENERAL: Final = ("NodeResourcesFit", "NodeName", "NodePorts", "NodeAffinity")

LABEL_PRESENCE: Final = "CheckNodeLabelPresence"
SERVICE_AFFINITY: Final = "CheckServiceAffinity"

PREDICATES: Final[Mapping[str, tuple[str, ...]]] = {
    "CheckNodeCondition": ("CheckNodeCondition",),
    "CheckNodeUnschedulable": ("NodeUnschedulable",),
    "GeneralPredicates": GENERAL,
    "HostName": ("NodeName",),
    "PodFitsHostPorts": ("NodePorts",),
    "MatchNodeSelector": ("NodeAffinity",),
    "PodFitsResources": ("NodeResourcesFit",),
    "NoDiskConflict": ("VolumeRestrictions",),
    "PodToleratesNodeTaints": ("TaintToleration",),
    # What it refuses, the mandatory PodToleratesNodeTaints refuses too.
    "PodToleratesNodeNoExecuteTaints": ("TaintToleration",),
    LABEL_PRESENCE: ("NodeLabel",),
    SERVICE_AFFINITY: ("ServiceAffinity",),
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
"""Plugins by predicate, in the order in which predicates run. Source: C019."""

PREDICATE_ALIASES: Final[Mapping[str, str]] = {"PodFitsPorts": "PodFitsHostPorts", "PodFitsHost": "HostName"}
"""Names of the first releases. Source: C027, C028."""

MANDATORY: Final = ("PodToleratesNodeTaints", "CheckNodeUnschedulable")
"""What is asked for whatever a Policy says. Source: C050."""

PRIORITIES: Final[Mapping[str, str]] = {
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
"""Plugins by priority. Source: C052 to C064."""

EQUAL: Final = "EqualPriority"
"""The priority that rates all nodes alike; no plugin is needed for that. Source: C051."""

PRIORITY_ALIASES: Final[Mapping[str, str]] = {"ServiceSpreadingPriority": "SelectorSpreadPriority"}
"""Names of the first releases. Source: C053."""

LABEL_PREFERENCE: Final = "NodeLabel"
SERVICE_ANTI_AFFINITY: Final = "ServiceAffinity"
CAPACITY_RATIO: Final = "RequestedToCapacityRatio"

DIFFERS: Final[Mapping[str, str]] = {
    "BalancedResourceAllocation": "NodeResourcesBalancedAllocation rates by the formula of 1.36, not by the old one",
    "ImageLocalityPriority": "ImageLocality counts init containers and image volumes too, and a size of 1000 MB for "
    "each container is the most that counts",
    "InterPodAffinityPriority": "InterPodAffinity spreads scores between the least and the greatest sum, even where "
    "both are above or below 0",
    "ServiceSpreadingPriority": "SelectorSpread counts the pods that services and controllers select, as releases from "
    "1.18 did under this name",
    "NoVolumeZoneConflict": "VolumeZone looks at the labels topology.kubernetes.io/zone and region too",
    "MaxCSIVolumeCountPred": "NodeVolumeLimits reads limits from CSINode objects only",
    "CheckVolumeBinding": "VolumeBinding looks at the capacity that CSI drivers publish too",
    "PodToleratesNodeNoExecuteTaints": "the mandatory PodToleratesNodeTaints refuses all that this predicate refuses",
}
"""What a plugin of today does differently from the predicate or priority it stands for."""

TWO_SIDED: Final = (
    "NodeResourcesFit",
    "NodeAffinity",
    "TaintToleration",
    "NodeLabel",
    "ServiceAffinity",
    "VolumeBinding",
    "PodTopologySpread",
    "InterPodAffinity",
)
"""Plugins that can filter and score; a Policy may want one of the two only."""
