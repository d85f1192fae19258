"""Filter: the timeout on all nodes together, and the searches of later pods."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from extender.config.feature_gates import FeatureGates
from extender.dra.allocator import Allocator
from extender.framework.plugin_args import PluginArgs
from extender.plugins.dynamic_resources.args import DynamicResourcesArgs
from extender.plugins.dynamic_resources.plugin import DynamicResources
from tests.build import make_cluster, make_node, make_pod, make_pod_info
from tests.unit.dra.builders import format_allocation, make_claim, make_device_class, make_slice
from tests.unit.dra.test_allocator import JumpingClock


def test_the_timeout_is_for_all_nodes_and_the_next_attempt_continues_after_the_searched_nodes() -> None:
    """The searches on four nodes read the clock five times each, and only two of them end within ten seconds."""
    names = [f"n{number}" for number in range(4)]
    devices: dict[str, dict[str, str]] = {f"d{number}": {} for number in range(8)}
    cache = make_cluster(
        *map(make_node, names),
        *(make_slice({"node": name, "pool": name, "devices": devices}) for name in names),
        make_device_class("gpu"),
        make_claim("c", {"r": {"count": 2}}),
    )
    plugin = DynamicResources(PluginArgs(DynamicResourcesArgs("10s", "10m0s"), FeatureGates()))
    plugin._allocator._clock = JumpingClock()
    pod = make_pod_info(make_pod(spec={"resourceClaims": [{"name": "x", "resourceClaimName": "c"}]}), cache)
    snapshot = cache.snapshot()

    def find_rejected_nodes() -> list[str]:
        state = plugin.pre_filter(pod, snapshot).state
        rejections = plugin.filter(pod, snapshot.view(), state)
        assert all("timed out trying to allocate devices" in rejection.reason.text for rejection in rejections)
        return [names[row] for rejection in rejections for row in rejection.nodes.nonzero()[0]]

    assert find_rejected_nodes() == ["n2", "n3"]
    assert find_rejected_nodes() == []


@pytest.mark.parametrize(
    ("own_pools", "want"), [(True, [20, 0, 1]), (False, [1, 0, 1])], ids=["devices of nodes", "network devices"]
)
def test_a_later_pod_with_an_equal_claim_needs_searches_only_for_changed_devices(
    own_pools: bool, want: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[str] = []
    allocate = Allocator.allocate

    def count_and_allocate(allocator: Allocator, claims: Any, node: Any, *args: Any) -> Any:
        searched.append(node.metadata.name)
        return allocate(allocator, claims, node, *args)

    monkeypatch.setattr(Allocator, "allocate", count_and_allocate)
    names = [f"n{number}" for number in range(20)]
    slices: list[Mapping[str, Any]] = [{"node": name, "pool": name} for name in names] if own_pools else [{"pool": "p"}]
    cache = make_cluster(
        *map(make_node, names),
        *(make_slice({**raw, "devices": {"a": {}, "b": {}}}) for raw in slices),
        make_device_class("gpu"),
        *(make_claim(f"c{number}", {"r": {}}) for number in range(3)),
    )
    plugin = DynamicResources(PluginArgs(DynamicResourcesArgs("10s", "10m0s"), FeatureGates()))
    snapshot = cache.snapshot()
    counts = []
    for number in range(3):
        spec = {"resourceClaims": [{"name": "x", "resourceClaimName": f"c{number}"}]}
        pod = make_pod_info(make_pod(f"pod-{number}", spec=spec), cache)
        state = plugin.pre_filter(pod, snapshot).state
        searched.clear()
        assert not plugin.filter(pod, snapshot.view(), state)
        counts.append(len(searched))
        if number == 1:
            assert plugin.reserve(pod, "n7", snapshot, state) is None
    assert counts == want


@pytest.mark.parametrize("count", [1, 150], ids=["one node", "many nodes"])
def test_a_later_call_replaces_the_devices_that_filter_found(count: int) -> None:
    """Preemption for a pod group filters and reserves several times with the same states."""
    names = [f"n{number}" for number in range(200)]
    cache = make_cluster(
        *map(make_node, names),
        *(make_slice({"node": name, "pool": name, "devices": {"a": {}, "b": {}}}) for name in names),
        make_device_class("gpu"),
        *(make_claim(name, {"r": {}}) for name in ("c0", "c1", "c2")),
    )
    plugin = DynamicResources(PluginArgs(DynamicResourcesArgs("0s", "10m0s"), FeatureGates()))
    snapshot, pods, states = cache.snapshot(), [], []
    for number in range(3):
        spec = {"resourceClaims": [{"name": "x", "resourceClaimName": f"c{number}"}]}
        pods.append(make_pod_info(make_pod(f"pod-{number}", spec=spec), cache))
        states.append(plugin.pre_filter(pods[-1], snapshot).state)
    state = states[1]

    def find_devices(row_count: int) -> list[Any]:
        rows = np.arange(row_count)
        assert not plugin.filter(pods[1], snapshot.view(rows), state)
        return [format_allocation(state.find_allocation(names[row])) for row in rows.tolist()]

    for first_count in (200, count):
        assert find_devices(first_count) == [[["r: a"]]] * first_count
        plugin.filter(pods[0], snapshot.view(), states[0])
        assert plugin.reserve(pods[0], "n0", snapshot, states[0]) is None
        plugin.filter(pods[2], snapshot.view(), states[2])
        assert find_devices(count) == [[["r: b"]]] + [[["r: a"]]] * (count - 1)
        plugin.unreserve(pods[0], "n0", states[0])


def test_many_dry_runs_on_one_node_store_one_result() -> None:
    cache = make_cluster(
        make_node("n1"), make_node("n2"), make_slice({"devices": {"a": {}}}), make_device_class("gpu"),
        make_claim("c", {"r": {}}),
    )  # fmt: skip
    plugin = DynamicResources(PluginArgs(DynamicResourcesArgs("0s", "10m0s"), FeatureGates()))
    pod = make_pod_info(make_pod(spec={"resourceClaims": [{"name": "x", "resourceClaimName": "c"}]}), cache)
    snapshot = cache.snapshot()
    state = plugin.pre_filter(pod, snapshot).state
    for _ in range(100):
        assert not plugin.filter(pod, snapshot.view(np.array([1])), state)
    assert len(state.node_allocations) + len(state.cached_allocations) == 1
