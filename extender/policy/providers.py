"""The algorithm providers: named sets of predicates and priorities. Source: C013, C068 to C071."""

from collections.abc import Mapping
from typing import Final

from extender.config.faults import ConfigError, Fault
from extender.config.nearest import hint
from extender.policy.model import Policy, PredicatePolicy, PriorityPolicy

# As of the last releases that had providers. Earlier ones had CheckNodeCondition and the pressure predicates, for which
# nodes got taints in 1.17, and no EvenPodsSpread.
_PREDICATES: Final = (
    "CheckNodeUnschedulable",
    "GeneralPredicates",
    "NoDiskConflict",
    "PodToleratesNodeTaints",
    "MaxEBSVolumeCount",
    "MaxGCEPDVolumeCount",
    "MaxCSIVolumeCountPred",
    "MaxAzureDiskVolumeCount",
    "CheckVolumeBinding",
    "NoVolumeZoneConflict",
    "EvenPodsSpread",
    "MatchInterPodAffinity",
)
_PRIORITIES: Final[Mapping[str, int]] = {
    "SelectorSpreadPriority": 1,
    "InterPodAffinityPriority": 1,
    "LeastRequestedPriority": 1,
    "BalancedResourceAllocation": 1,
    "NodePreferAvoidPodsPriority": 10000,
    "NodeAffinityPriority": 1,
    "TaintTolerationPriority": 1,
    "ImageLocalityPriority": 1,
    "EvenPodsSpreadPriority": 2,
}


def _policy(priorities: Mapping[str, int]) -> Policy:
    return Policy(
        predicates=tuple(PredicatePolicy(name) for name in _PREDICATES),
        priorities=tuple(PriorityPolicy(name, weight) for name, weight in priorities.items()),
    )


def _with_most_requested() -> Mapping[str, int]:
    """For clusters that are to be shrunk: full nodes first."""
    other = {"LeastRequestedPriority": "MostRequestedPriority"}
    return {other.get(name, name): weight for name, weight in _PRIORITIES.items()}


DEFAULT_PROVIDER: Final = "DefaultProvider"

PROVIDERS: Final[Mapping[str, Policy]] = {
    "ClusterAutoscalerProvider": _policy(_with_most_requested()),
    DEFAULT_PROVIDER: _policy(_PRIORITIES),
}
"""Each provider as the Policy that asks for what it asks for."""


def provider(name: str) -> Policy:
    """The provider *name*.

    Raises:
        ConfigError: there is none of that name. Source: C010, C070.
    """
    found = PROVIDERS.get(name)
    if found is None:
        known = " | ".join(PROVIDERS)
        reason = f'algorithm provider "{name}" is not registered: want {known}{hint(name, PROVIDERS)}'
        raise ConfigError([Fault("", f'couldn\'t create scheduler using provider "{name}": {reason}')])
    return found
