"""The devices that Filter finds with cached results equal those that it finds without any."""

from random import Random
from typing import Any

import numpy as np
import pytest

from extender.api.kinds.devices import ResourceClaim
from extender.cache.cache import Cache
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import NodeView
from extender.config.feature_gates import FeatureGates
from extender.framework.plugin_args import PluginArgs
from extender.plugins.dynamic_resources.args import DynamicResourcesArgs
from extender.plugins.dynamic_resources.plugin import DynamicResources
from extender.plugins.dynamic_resources.state import StateData
from tests.build import make_cluster, make_node, make_pod, make_pod_info
from tests.unit.dra.builders import format_allocation, make_allocated_claim, make_claim, make_device_class, make_slice

SELECTOR = {
    "nodeSelectorTerms": [{"matchExpressions": [{"key": "group", "operator": "In", "values": ["a"]}]}],
}
INVALID_SELECTOR = {
    "nodeSelectorTerms": [{"matchExpressions": [{"key": "group", "operator": "Gt", "values": ["a", "b"]}]}],
}


def make_random_slice(rng: Random, name: str, nodes: list[str]) -> Any:
    """Make the only slice of a pool for one node, for all nodes, for nodes with a label, or for nodes by device."""
    devices: dict[str, dict[str, Any]] = {
        f"d{number}": {"model": rng.choice("xy")} for number in range(rng.randint(1, 3))
    }
    raw: dict[str, Any] = {"name": name, "pool": name, "devices": devices}
    kind = rng.random()
    if kind < 0.5:
        raw["node"] = rng.choice(nodes)
    elif kind < 0.6:
        raw["selector"] = SELECTOR if rng.random() < 0.9 else INVALID_SELECTOR
    elif kind < 0.75:
        raw["by_device"] = True
        for device in devices.values():
            key, value = rng.choice([("nodeName", rng.choice(nodes)), ("nodeSelector", SELECTOR), ("allNodes", True)])
            device[key] = value
    if rng.random() < 0.1:
        raw["count"] = 2  # incomplete
    return make_slice(raw)


def change(rng: Random, cache: Cache, nodes: list[str], slices: list[str]) -> None:
    """Change a node, an allocation, or a slice."""
    kind = rng.random()
    if kind < 0.3:
        cache.add_or_update_node(make_node(rng.choice(nodes), labels={"group": rng.choice("ab")}))
    elif kind < 0.35 and len(cache.names) > 1:
        cache.remove_node(rng.choice(sorted(cache.names)))
    elif kind < 0.4:
        cache.add_or_update_object(make_random_slice(rng, rng.choice(slices), nodes))
    else:
        devices = [{"pool": rng.choice(slices), "device": f"d{rng.randint(0, 2)}"} for _ in range(rng.randint(0, 2))]
        cache.add_or_update_object(make_allocated_claim(f"taken-{rng.randint(0, 5)}", devices))


def make_plugin(*, node_resources: bool) -> DynamicResources:
    gates = FeatureGates({"DRANodeAllocatableResources": node_resources})
    return DynamicResources(PluginArgs(DynamicResourcesArgs("0s", "10m0s"), gates))


def make_claiming_pod(cache: Cache, number: int) -> PodInfo:
    spec = {"resourceClaims": [{"name": "x", "resourceClaimName": f"claim-{number}"}]}
    return make_pod_info(make_pod(f"pod-{number}", spec=spec), cache)


def filter_nodes(plugin: DynamicResources, pod: PodInfo, nodes: NodeView, state: StateData) -> Any:
    """Return the rejections by reason, and the devices found on the other nodes."""
    rejections = {each.reason: each.nodes.tolist() for each in plugin.filter(pod, nodes, state)}
    rejected = np.any([*rejections.values(), [False] * len(nodes)], axis=0).tolist()
    names = [name for name, is_rejected in zip(nodes.names, rejected, strict=True) if not is_rejected]
    devices = [format_allocation(state.find_allocation(name)) for name in names]
    assert None not in devices
    return rejections, dict(zip(names, devices, strict=True))


def find_devices(plugin: DynamicResources, cache: Cache, number: int, rows: np.ndarray | None) -> Any:
    pod = make_claiming_pod(cache, number)
    with cache.read() as snapshot:
        result = plugin.pre_filter(pod, snapshot)
        assert result.status is None
        return filter_nodes(plugin, pod, snapshot.view(rows), result.state)


def make_random_cluster(rng: Random, nodes: list[str], slices: list[str], *claims: ResourceClaim) -> Cache:
    return make_cluster(
        *(make_node(name, labels={"group": rng.choice("ab")}) for name in nodes),
        *(make_random_slice(rng, name, nodes) for name in slices),
        make_device_class("gpu"),
        *claims,
    )


def draw_rows(rng: Random, size: int) -> np.ndarray:
    return np.array(sorted(rng.sample(range(size), rng.randint(1, size))))


@pytest.mark.parametrize("seed", range(80))
def test_devices_with_cached_results_equal_those_of_a_new_plugin(seed: int) -> None:
    rng = Random(seed)
    nodes, slices = [f"n{number}" for number in range(6)], [f"s{number}" for number in range(6)]
    cache = make_random_cluster(
        rng, nodes, slices,
        make_claim("claim-0", {"r": {}}),
        make_claim("claim-1", {"r": {"count": 2}}),
        make_claim("claim-2", {"r": {"selectors": ['device.attributes["gpu.example.com"].model == "x"']}}),
        make_claim("claim-3", {"r": {"allocationMode": "All"}}),
    )  # fmt: skip
    plugin = make_plugin(node_resources=seed % 4 == 0)
    for _ in range(40):
        if rng.random() < 0.7:
            change(rng, cache, nodes, slices)
        number, size = rng.randint(0, 3), len(cache.names)
        rows = draw_rows(rng, size) if rng.random() < 0.3 else None
        fresh = find_devices(make_plugin(node_resources=seed % 4 == 0), cache, number, rows)
        assert find_devices(plugin, cache, number, rows) == fresh


@pytest.mark.parametrize("seed", range(60))
def test_devices_of_states_that_are_filtered_several_times_equal_those_of_a_new_plugin(seed: int) -> None:
    """As in preemption for pod groups: pods with equal claims are reserved and filtered again in any order."""
    rng = Random(seed)
    nodes, slices = [f"n{number}" for number in range(6)], [f"s{number}" for number in range(6)]
    claims = [make_claim(f"claim-{number}", {"r": {"count": max(number - 1, 1)}}) for number in range(4)]
    cache = make_random_cluster(rng, nodes, slices, *claims)
    plugin = make_plugin(node_resources=seed % 4 == 0)
    pods = [make_claiming_pod(cache, number) for number in range(4)]
    with cache.read() as snapshot:
        states = [plugin.pre_filter(pod, snapshot).state for pod in pods]
        node_names: list[str] = [""] * len(pods)
        for _ in range(40):
            number = rng.randrange(len(pods))
            pod, state = pods[number], states[number]
            if node_names[number]:
                plugin.unreserve(pod, node_names[number], state)
                node_names[number] = ""
            new_plugin = make_plugin(node_resources=seed % 4 == 0)
            new_state = new_plugin.pre_filter(pod, snapshot).state
            for other, node_name in enumerate(node_names):
                for allocation in states[other].allocation_results.values() if node_name else ():
                    new_plugin._allocator.allocated_devices.add_in_flight(f"uid-claim-{other}", allocation)
            view = snapshot.view(draw_rows(rng, len(nodes)) if rng.random() < 0.7 else None)
            found = filter_nodes(plugin, pod, view, state)
            assert found == filter_nodes(new_plugin, pod, view, new_state)
            if found[1] and rng.random() < 0.5:
                node_names[number] = rng.choice(sorted(found[1]))
                assert plugin.reserve(pod, node_names[number], snapshot, state) is None
