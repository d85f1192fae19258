"""Makes one random scenario from a seed and a number, in the format of the recorded scenarios."""

from collections.abc import Mapping
from random import Random
from typing import Any, Final

from tests.oracle.generator.builder import ClusterBuilder
from tests.oracle.generator.composite_pod_groups import add_composite_pod_groups
from tests.oracle.generator.configuration import make_configuration
from tests.oracle.generator.cycles import add_cycles
from tests.oracle.generator.device_gates import add_gated_device_fields
from tests.oracle.generator.devices import add_devices
from tests.oracle.generator.events import make_events
from tests.oracle.generator.extended_resources import add_scored_extended_resources
from tests.oracle.generator.extension_points import change_extension_points, change_group_plugins
from tests.oracle.generator.group_claims import add_group_claims
from tests.oracle.generator.node_resources import add_node_resources
from tests.oracle.generator.nodes import add_nodes
from tests.oracle.generator.pod_groups import add_pod_groups
from tests.oracle.generator.pods import add_budgets, add_pods, add_services
from tests.oracle.generator.rare_devices import add_rare_device_fields
from tests.oracle.generator.rare_objects import add_rare_object_fields
from tests.oracle.generator.rare_pods import add_rare_pod_fields
from tests.oracle.generator.rare_setup import make_rare_configuration, select_gates
from tests.oracle.generator.rare_states import add_rare_states
from tests.oracle.generator.rare_storage import add_rare_storage_fields
from tests.oracle.generator.resources import add_deferred_resizes
from tests.oracle.generator.start_times import add_equal_start_times
from tests.oracle.generator.unusual_values import add_unusual_values
from tests.oracle.generator.volumes import add_storage

CATEGORIES: Final[Mapping[str, Mapping[str, float]]] = {
    "resources": {"resources": 1, "resize": 0.4, "priority": 0.2},
    "taints": {"tolerations": 0.9, "taints": 1, "resources": 0.1},
    "nodeaffinity": {"nodeaffinity": 0.95, "config": 0.3},
    "ports": {"ports": 0.95, "resources": 0.2, "priority": 0.2},
    "images": {"images": 0.95, "resources": 0.3},
    "interpodaffinity": {"interpodaffinity": 0.8, "config": 0.15, "priority": 0.1},
    "spread": {
        "spread": 0.8, "services": 0.5, "nodeaffinity": 0.2, "taints": 0.4, "tolerations": 0.2, "terminating": 0.15,
        "config": 0.15,
    },
    "volumes": {"volumes": 0.85, "priority": 0.1, "storage": 1},
    "preemption": {
        "priority": 0.9, "tight": 1, "budgets": 1, "nominated": 0.15, "terminating": 0.1, "interpodaffinity": 0.1,
        "spread": 0.1, "ports": 0.1,
    },
    "dra": {"devices": 0.85, "slices": 1, "priority": 0.2},
    "drabeta": {"devices": 0.85, "slices": 1, "beta": 1, "resources": 0.4, "priority": 0.2},
    "config": {
        "config": 1, "resources": 0.6, "images": 0.3, "nodeaffinity": 0.3, "interpodaffinity": 0.3, "spread": 0.3,
        "taints": 0.5, "tolerations": 0.3,
    },
    "gates": {"gates": 0.3, "features": 0.7, "nominated": 0.4, "priority": 0.4, "terminating": 0.1},
    "mixed": {
        "resources": 0.4, "resize": 0.1, "tolerations": 0.3, "taints": 0.5, "nodeaffinity": 0.25, "ports": 0.15,
        "images": 0.2, "interpodaffinity": 0.2, "spread": 0.25, "services": 0.3, "volumes": 0.2, "storage": 1,
        "devices": 0.15, "slices": 1, "beta": 0.5, "priority": 0.4, "budgets": 0.5, "nominated": 0.1,
        "terminating": 0.08, "gates": 0.05, "features": 0.2, "config": 0.3,
    },
    "resizes": {
        "resources": 0.8, "resize": 1, "priority": 0.8, "tight": 0.8, "budgets": 0.6, "taints": 0.2, "tolerations": 0.1,
        "ports": 0.1, "interpodaffinity": 0.15, "spread": 0.15, "nodeaffinity": 0.15, "terminating": 0.1,
        "volumes": 0.1, "storage": 0.4,
    },
    "podgroups": {
        "groups": 1, "resources": 0.4, "tolerations": 0.2, "taints": 0.3, "nodeaffinity": 0.15, "ports": 0.1,
        "interpodaffinity": 0.15, "spread": 0.15, "volumes": 0.08, "storage": 0.5, "devices": 0.08, "slices": 0.5,
        "priority": 0.3, "gates": 0.03, "terminating": 0.05, "tight": 0.4,
    },
    "podgrouppreemption": {
        "groups": 1, "priority": 0.9, "tight": 1, "budgets": 0.6, "nominated": 0.05, "terminating": 0.08, "ports": 0.1,
        "interpodaffinity": 0.1, "spread": 0.1,
    },
    "compositegroups": {
        "groups": 1, "resources": 0.4, "tolerations": 0.2, "taints": 0.3, "nodeaffinity": 0.15, "ports": 0.1,
        "interpodaffinity": 0.1, "spread": 0.1, "volumes": 0.05, "storage": 0.5, "devices": 0.08, "slices": 0.5,
        "priority": 0.5, "gates": 0.02, "terminating": 0.05, "tight": 0.6, "budgets": 0.2,
    },
}  # fmt: skip
"""The probability of each group of fields, by category; a group is used in a cluster, then in each of its pods."""
UNRECORDED_CATEGORIES: Final = frozenset(("resizes",))
"""The categories without recorded scenarios and without pod groups."""

GROUP_CATEGORIES: Final = frozenset(("podgroups", "podgrouppreemption", "compositegroups"))
"""The categories with pod groups."""

_PENDING_PODS: Final = {"compositegroups": (7, 16)}
"""The fewest and the most pending pods, by category."""

_CHANGES: Final = 0.4
"""The probability of changes, for which the queueing hints are compared."""

_CYCLES: Final = 0.2
"""The probability of whole scheduling cycles, with several profiles and with HTTP extenders."""

_CHOICES: Final = ("rare", "unusual", "states", "start times")
"""What has a source of choices of its own."""

_NODE_OPTIONS: Final = ("taints", "images", "features", "tight")


def make_scenario(seed: str, number: int, version: str = "1.36") -> dict[str, Any]:
    """Return scenario *number* of a seed; it does not depend on other numbers. Categories take turns.

    Only scenarios with pod groups or beta fields of devices depend on *version*, the Kubernetes minor, which selects
    their gates and API version.
    """
    category = list(CATEGORIES)[number % len(CATEGORIES)]
    chances = CATEGORIES[category]
    builder = ClusterBuilder(Random(f"{seed}/{number}"))
    scheduler = "custom-scheduler" if "config" in chances and builder.chance(0.3) else "default-scheduler"
    builder.add_namespaces()
    options = {name for name in _NODE_OPTIONS if builder.chance(chances.get(name, 0.0))}
    options |= {"images"} & chances.keys()
    if category == "resources" and builder.chance(0.5):
        options.add("tight")
    node_count = 0 if builder.chance(0.003) else builder.rng.randint(1, 60 if builder.chance(0.005) else 8)
    add_nodes(builder, node_count, frozenset(options))
    if builder.nodes and builder.chance(chances.get("storage", 0.0)):
        add_storage(builder)
    if builder.nodes and builder.chance(chances.get("slices", 0.0)):
        add_devices(builder, beta=builder.chance(chances.get("beta", 0.0)))
    uses = {group: chance for group, chance in chances.items() if builder.chance(min(1.0, chance * 2 + 0.1))}
    if not builder.nodes:
        uses = {group: chance for group, chance in uses.items() if group not in ("volumes", "devices")}
    with_groups = "groups" in chances
    pending = builder.rng.randint(*_PENDING_PODS.get(category, (3, 12) if with_groups else (2, 6)))
    add_pods(builder, builder.rng.randint(0, 3 * node_count), pending, uses, scheduler)
    if builder.chance(chances.get("budgets", 0.0)):
        add_budgets(builder)
    if builder.chance(chances.get("services", 0.0)):
        add_services(builder)
    rare, unusual, states, times = (Random(f"{seed}/{number}/{name}") for name in _CHOICES)
    _add_rare_fields(builder, rare, unusual, version)
    _add_states(builder, states, times, with_groups=with_groups, version=version)
    scenario: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "List",
        "metadata": {"name": f"{category}-{seed}-{number}", "category": category},
        "items": builder.items,
    }
    if scheduler != "default-scheduler" or builder.chance(chances.get("config", 0.0)):
        scenario["config"] = make_configuration(builder, scheduler)
    gates = _add_gated_fields(builder, category, version)
    if gates is not None:
        scenario["featureGates"] = gates
    scenario = _add_rare_settings(scenario, ClusterBuilder(rare), scheduler, version)
    _add_extended_resources(scenario, ClusterBuilder(Random(f"{seed}/{number}/extended resources")), scheduler)
    if rare.random() < _CHANGES:
        scenario["events"] = make_events(ClusterBuilder(rare), builder.items, version)
    return _add_cycles(scenario, ClusterBuilder(Random(f"{seed}/{number}/cycles")), scheduler)


def _add_cycles(scenario: dict[str, Any], builder: ClusterBuilder, scheduler: str) -> dict[str, Any]:
    """Add whole scheduling cycles to some scenarios without pod groups; return the scenario."""
    if scenario["metadata"]["category"] not in GROUP_CATEGORIES and builder.chance(_CYCLES):
        add_cycles(builder, scenario, scheduler)
    return scenario


def _add_states(builder: ClusterBuilder, states: Random, times: Random, *, with_groups: bool, version: str) -> None:
    """Add rare states and equally important pods to some scenarios. Sort all objects as an API server does.

    It orders equal victims. Scenarios with groups get no rare states, whose terminating pods are no victims.
    In 1.36, the order of equal victims of a pod group is random, so scenarios with groups get no equal pods.
    """
    if not with_groups and states.random() < 0.33:
        builder.rng, ordinary = states, builder.rng
        add_rare_states(builder)
        builder.rng = ordinary
    if not (with_groups and version == "1.36"):
        add_equal_start_times(builder, times)
    builder.items.sort(key=_get_key)


def _get_key(item: dict[str, Any]) -> tuple[str, str, str]:
    return item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"]


def _add_gated_fields(builder: ClusterBuilder, category: str, version: str) -> dict[str, bool] | None:
    """Add the fields that feature gates of a category guard, and return the gates; None if there are none."""
    if category in GROUP_CATEGORIES:
        is_composite = category == "compositegroups" and version != "1.36"
        gates = add_composite_pod_groups(builder) if is_composite else add_pod_groups(builder, version)
        has_devices = any(item["kind"] == "DeviceClass" for item in builder.items)
        if has_devices and version != "1.36" and builder.chance(0.5):
            gates.update(add_group_claims(builder))
        return gates
    if category == "drabeta" and version == "1.37" and builder.chance(0.5):
        return add_node_resources(builder) if builder.chance(0.3) else add_gated_device_fields(builder)
    if category == "resizes" and version != "1.36":
        return add_deferred_resizes(builder)
    return None


def _add_rare_fields(builder: ClusterBuilder, rare: Random, unusual: Random, version: str) -> None:
    """Add rare fields to the objects of half of the scenarios, and unusual values to some, by choices of their own."""
    if rare.random() < 0.5:
        builder.rng, ordinary = rare, builder.rng
        add_rare_pod_fields(builder)
        add_rare_storage_fields(builder)
        add_rare_device_fields(builder, version)
        if builder.chance(0.3):
            add_rare_object_fields(builder, version)
        builder.rng = ordinary
    if unusual.random() < 0.3:
        builder.rng, ordinary = unusual, builder.rng
        add_unusual_values(builder)
        builder.rng = ordinary


def _add_extended_resources(scenario: dict[str, Any], builder: ClusterBuilder, scheduler: str) -> None:
    """Add scored extended resources to some scenarios with devices, unless devices take resources of nodes."""
    gates: dict[str, bool] = scenario.get("featureGates", {})
    is_about_devices = scenario["metadata"]["category"] in ("dra", "drabeta")
    if is_about_devices and builder.chance(0.15) and not gates.get("DRANodeAllocatableResources"):
        add_scored_extended_resources(builder, scenario, scheduler)


def _have_own_hostnames(items: list[dict[str, Any]]) -> bool:
    labels = [item["metadata"].get("labels", {}) for item in items if item["kind"] == "Node"]
    return len({each.get("kubernetes.io/hostname") for each in labels} - {None}) == len(labels)


def _add_rare_settings(
    scenario: dict[str, Any], builder: ClusterBuilder, scheduler: str, version: str
) -> dict[str, Any]:
    """Add feature gates and a rare configuration to some scenarios; return the scenario.

    A scenario with pod groups keeps its gates, and its configuration is about the plugins for pod groups.
    """
    if scenario["metadata"]["category"] in GROUP_CATEGORIES:
        if builder.chance(0.3):
            scenario["config"] = make_configuration(builder, scheduler)
            change_group_plugins(builder, scenario["config"]["profiles"][0], version)
        return scenario
    if builder.chance(0.2):
        gates = {**select_gates(builder, version), **scenario.get("featureGates", {})}
        if gates.get("DRADeviceCompatibilityGroups"):
            gates.pop("DRAPartitionableDevices", None)  # the one needs the other
        if not _have_own_hostnames(scenario["items"]):
            gates.pop("InterPodAffinityHostnameFastPath", None)  # which has no effect here
        scenario["featureGates"] = gates
    if builder.chance(0.15):
        scores_capacity = scenario.get("featureGates", {}).get("StorageCapacityScoring", version != "1.36")
        scenario["config"] = make_rare_configuration(builder, scheduler, scores_capacity=scores_capacity)
        if builder.chance(0.5):
            change_extension_points(builder, scenario["config"]["profiles"][0])
    return scenario
