"""The devices that Filter finds with cached results equal those that it finds without any."""

from random import Random
from typing import Any

import numpy as np
import pytest

from extender.cache.cache import Cache
from extender.config.feature_gates import FeatureGates
from extender.framework.plugin_args import PluginArgs
from extender.plugins.dynamic_resources.args import DynamicResourcesArgs
from extender.plugins.dynamic_resources.plugin import DynamicResources
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


def find_devices(plugin: DynamicResources, cache: Cache, number: int, rows: np.ndarray | None) -> Any:
    """Return the rejections by reason, and the devices found on the other nodes."""
    spec = {"resourceClaims": [{"name": "x", "resourceClaimName": f"claim-{number}"}]}
    pod = make_pod_info(make_pod(f"pod-{number}", spec=spec), cache)
    with cache.read() as snapshot:
        result = plugin.pre_filter(pod, snapshot)
        assert result.status is None
        nodes = snapshot.view(rows)
        rejections = {each.reason: each.nodes.tolist() for each in plugin.filter(pod, nodes, result.state)}
        rejected = np.any([*rejections.values(), [False] * len(nodes)], axis=0).tolist()
        names = [name for name, is_rejected in zip(nodes.names, rejected, strict=True) if not is_rejected]
        devices = [format_allocation(result.state.find_allocation(name)) for name in names]
    assert None not in devices
    return rejections, dict(zip(names, devices, strict=True))


@pytest.mark.parametrize("seed", range(80))
def test_devices_with_cached_results_equal_those_of_a_new_plugin(seed: int) -> None:
    rng = Random(seed)
    nodes, slices = [f"n{number}" for number in range(6)], [f"s{number}" for number in range(6)]
    cache = make_cluster(
        *(make_node(name, labels={"group": rng.choice("ab")}) for name in nodes),
        *(make_random_slice(rng, name, nodes) for name in slices),
        make_device_class("gpu"),
        make_claim("claim-0", {"r": {}}),
        make_claim("claim-1", {"r": {"count": 2}}),
        make_claim("claim-2", {"r": {"selectors": ['device.attributes["gpu.example.com"].model == "x"']}}),
        make_claim("claim-3", {"r": {"allocationMode": "All"}}),
    )
    plugin = make_plugin(node_resources=seed % 4 == 0)
    for _ in range(40):
        if rng.random() < 0.7:
            change(rng, cache, nodes, slices)
        number, size = rng.randint(0, 3), len(cache.names)
        rows = np.array(sorted(rng.sample(range(size), rng.randint(1, size)))) if rng.random() < 0.3 else None
        fresh = find_devices(make_plugin(node_resources=seed % 4 == 0), cache, number, rows)
        assert find_devices(plugin, cache, number, rows) == fresh
