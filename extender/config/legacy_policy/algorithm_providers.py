"""The algorithm providers: named sets of predicates and priorities.

Source: pkg/scheduler/factory.go, Configurator.createFromConfig (1.21);
pkg/scheduler/algorithmprovider/defaults/defaults.go, defaultPredicates (1.14);
pkg/scheduler/algorithmprovider/registry.go, getClusterAutoscalerConfig, ListAlgorithmProviders, getDefaultConfig
(1.19).
"""

from collections.abc import Mapping
from typing import Final

from extender.config.did_you_mean import did_you_mean
from extender.config.errors import ConfigError, FieldError
from extender.config.legacy_policy.policy_document import Policy, PredicatePolicy, PriorityPolicy

# The lists are those of the last releases with algorithm providers. Earlier releases had no EvenPodsSpread. Releases
# before 1.17 also had CheckNodeCondition and the pressure predicates, which node taints replaced.
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


def _build_policy(priorities: Mapping[str, int]) -> Policy:
    return Policy(
        predicates=tuple(PredicatePolicy(name) for name in _PREDICATES),
        priorities=tuple(PriorityPolicy(name, weight) for name, weight in priorities.items()),
    )


def _build_most_requested_priorities() -> Mapping[str, int]:
    """Return the priorities of ClusterAutoscalerProvider, which prefers nodes with many requested resources."""
    replacements = {"LeastRequestedPriority": "MostRequestedPriority"}
    return {replacements.get(name, name): weight for name, weight in _PRIORITIES.items()}


DEFAULT_PROVIDER: Final = "DefaultProvider"

ALGORITHM_PROVIDERS: Final[Mapping[str, Policy]] = {
    "ClusterAutoscalerProvider": _build_policy(_build_most_requested_priorities()),
    DEFAULT_PROVIDER: _build_policy(_PRIORITIES),
}
"""The equivalent Policy of each algorithm provider, by provider name."""


def get_provider(name: str) -> Policy:
    """Return the Policy of the provider *name*.

    Raises:
        ConfigError: the provider is unknown.

    Source: pkg/scheduler/scheduler.go, New; pkg/scheduler/algorithmprovider/registry.go, ListAlgorithmProviders
    (1.21).
    """
    policy = ALGORITHM_PROVIDERS.get(name)
    if policy is None:
        hint = " | ".join(ALGORITHM_PROVIDERS) + did_you_mean(name, ALGORITHM_PROVIDERS)
        reason = f'algorithm provider "{name}" is not registered: want {hint}'
        raise ConfigError([FieldError("", f'couldn\'t create scheduler using provider "{name}": {reason}')])
    return policy
