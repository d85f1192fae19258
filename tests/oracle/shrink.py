"""Shrinks a scenario: removes objects and fields as long as the answers still differ in the same way."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any, Final

Scenario = dict[str, Any]
Path = tuple[str | int, ...]

_OPTIONAL_FIELDS: Final = frozenset(
    [
        "activeDeadlineSeconds",
        "adminAccess",
        "affinity",
        "allocatedResources",
        "allowedTopologies",
        "allowMultipleAllocations",
        "annotations",
        "bindingConditions",
        "bindingFailureConditions",
        "bindsToNode",
        "capacity",
        "conditions",
        "config",
        "constraints",
        "consumesCounters",
        "containerStatuses",
        "declaredFeatures",
        "disruptionMode",
        "events",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "ephemeral-storage",
        "finalizers",
        "hostIP",
        "hostNetwork",
        "hostPort",
        "hostUsers",
        "images",
        "initContainers",
        "labels",
        "limits",
        "mask",
        "matchExpressions",
        "matchFields",
        "matchLabelKeys",
        "matchLabels",
        "maximumVolumeSize",
        "minDomains",
        "mismatchLabelKeys",
        "namespaceSelector",
        "namespaces",
        "nodeAffinity",
        "nodeAffinityPolicy",
        "nodeSelector",
        "nodeTaintsPolicy",
        "nominatedNodeName",
        "overhead",
        "ownerReferences",
        "plugins",
        "pluginConfig",
        "parentCompositePodGroupName",
        "podAffinity",
        "podAntiAffinity",
        "ports",
        "preemptionPolicy",
        "preferredDuringSchedulingIgnoredDuringExecution",
        "priority",
        "requestPolicy",
        "requests",
        "requiredDuringSchedulingIgnoredDuringExecution",
        "reservedFor",
        "resourceClaimStatuses",
        "resourceClaims",
        "resources",
        "runtimeClassName",
        "schedulingConstraints",
        "schedulingGates",
        "schedulingGroup",
        "selectors",
        "sharedCounters",
        "taints",
        "tolerations",
        "tolerationSeconds",
        "topologySpreadConstraints",
        "unschedulable",
        "volumes",
        "ignoredResources",
        "ignoredResourceGroups",
        "score",
        "filter",
        "multiPoint",
    ]
)
"""Fields that are valid without a value."""

_MAPS: Final = frozenset(
    ("labels", "annotations", "requests", "limits", "allocatable", "nodeSelector", "attributes", "featureGates")
)
"""Fields whose entries may be removed one by one; `pods`, without which a node fits no pod, and names excepted."""

_REQUIRED_ENTRIES: Final = frozenset(("pods", "kubernetes.io/hostname", "kubernetes.io/metadata.name"))

_LISTS: Final = _OPTIONAL_FIELDS | frozenset(
    ("containers", "devices", "requests", "nodeSelectorTerms", "drivers", "firstAvailable")
)
"""Lists from which elements may be removed as long as one is left."""


def shrink(scenario: Scenario, still_differs: Callable[[Scenario], bool], most_checks: int = 1500) -> Scenario:
    """Return the smallest scenario found within *most_checks* calls of *still_differs*.

    Args:
        scenario: a scenario for which *still_differs* returns True.
        still_differs: whether a smaller scenario still shows the difference.
        most_checks: the limit of calls.
    """
    checks = _Checks(still_differs, most_checks)
    scenario = _remove_items(scenario, checks)
    is_smaller = True
    while is_smaller and checks.are_left():
        smaller = _remove_items(_remove_fields(scenario, checks), checks)
        is_smaller, scenario = smaller != scenario, smaller
    return scenario


class _Checks:
    """Counts the calls of a predicate; after the last one no scenario passes."""

    def __init__(self, still_differs: Callable[[Scenario], bool], most: int) -> None:
        self._still_differs = still_differs
        self._left = most

    def are_left(self) -> bool:
        return self._left > 0

    def passes(self, scenario: Scenario) -> bool:
        self._left -= 1
        return self._left >= 0 and self._still_differs(scenario)


def _remove_items(scenario: Scenario, checks: _Checks) -> Scenario:
    """Remove objects: first in large blocks, at last one by one."""
    size = max(1, len(scenario["items"]) // 2)
    while True:
        start = 0
        while start < len(scenario["items"]) and checks.are_left():
            items = scenario["items"]
            smaller = {**scenario, "items": items[:start] + items[start + size :]}
            if checks.passes(smaller):
                scenario = smaller
            else:
                start += size
        if size == 1 or not checks.are_left():
            return scenario
        size //= 2


def _remove_fields(scenario: Scenario, checks: _Checks) -> Scenario:
    """Remove each optional field, and each element of a list, that the difference does not need."""
    tried: set[str] = set()
    while checks.are_left():
        path = next((path for path in _removable_paths(scenario) if repr(path) not in tried), None)
        if path is None:
            break
        smaller = _without(scenario, path)
        if checks.passes(smaller):
            scenario = smaller
            if isinstance(path[-1], int):
                # The later elements have moved: try them again.
                tried = {text for text in tried if not text.startswith(repr(path[:-1])[:-1])}
        else:
            tried.add(repr(path))
    return scenario


def _removable_paths(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the paths of what may be removed, outer ones first."""
    if isinstance(value, dict):
        for key in value:
            if key in _OPTIONAL_FIELDS or (path and path[-1] in _MAPS and key not in _REQUIRED_ENTRIES):
                yield (*path, key)
        for key, inner in value.items():
            yield from _removable_paths(inner, (*path, key))
    elif isinstance(value, list):
        if path and path[-1] in _LISTS and len(value) > 1:
            yield from ((*path, index) for index in range(len(value)))
        for index, inner in enumerate(value):
            yield from _removable_paths(inner, (*path, index))


def _without(scenario: Scenario, path: Path) -> Scenario:
    smaller = deepcopy(scenario)
    parent: Any = smaller
    for step in path[:-1]:
        parent = parent[step]
    del parent[path[-1]]
    return smaller
