"""The allocator with the cases of tests/cases/devices: the devices that claims get on a node, or the error.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.PreFilter,
DynamicResources.Filter, DynamicResources.PostFilter;
pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go, DynamicResources.filterExtendedResources;
dynamic-resource-allocation/cel/compile.go, newCompiler;
dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go, Allocator.Allocate (1.36).
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from extender.config.releases import RELEASE_1_36, RELEASE_1_37, RELEASES
from extender.dra import allocator as allocator_module
from extender.dra.allocation_search import AllocationSearch
from extender.dra.errors import AllocationError, AllocationTimeoutError, NodeAllocationError
from tests.build import make_cluster, make_node
from tests.unit.dra.builders import (
    format_allocation,
    make_allocated_claim,
    make_allocator,
    make_claim,
    make_cluster_with_devices,
    make_device_class,
    make_slice,
)

CASES = Path(__file__).resolve().parents[2] / "cases" / "devices"


def load_cases() -> Iterator[Any]:
    for path in sorted(CASES.glob("*.yaml")):
        for name, case in yaml.safe_load(path.read_text()).items():
            yield pytest.param(case, id=f"{path.stem}: {name}")


def allocate_case(case: Mapping[str, Any]) -> Any:
    cluster = make_cluster_with_devices(case).snapshot()
    allocator = make_allocator(case.get("gates"), RELEASES[case.get("release", RELEASE_1_36.version)])
    allocator.sync(cluster)
    constraints = case.get("constraints", ())
    claims = [make_claim(f"c{n}", raw, constraints=constraints) for n, raw in enumerate(case["claims"])]
    try:
        return format_allocation(allocator.allocate(allocator.prepare(claims), cluster.nodes[0]))
    except (AllocationError, NodeAllocationError) as error:
        return str(error)


@pytest.mark.parametrize("case", list(load_cases()))
def test_claims_are_allocated_as_in_the_case(case: Mapping[str, Any]) -> None:
    assert case.keys() <= {"release", "gates", "labels", "slices", "classes", "taken", "constraints", "claims", "want"}
    assert allocate_case(case) == case["want"]


TWO_DEVICES: dict[str, Any] = {"slices": [{"devices": {"a": {}, "b": {}}}]}


def test_a_cached_result_is_valid_until_a_device_of_the_pool_is_allocated() -> None:
    cache = make_cluster_with_devices(TWO_DEVICES)
    allocator = make_allocator()
    claim = make_claim("c", {"r": {}})
    for devices, want in (((), "a"), (("a",), "b"), (("a", "b"), None)):
        if devices:
            cache.add_or_update_object(make_allocated_claim("other", devices))
        with cache.read() as cluster:
            allocator.sync(cluster)
            allocation = format_allocation(allocator.allocate(allocator.prepare([claim]), cluster.nodes[0]))
        assert allocation == (None if want is None else [[f"r: {want}"]])


def test_nodes_with_the_same_network_devices_share_the_result_of_one_search(monkeypatch: pytest.MonkeyPatch) -> None:
    searched_nodes: list[str] = []

    class RecordedSearch(AllocationSearch):
        def allocate(self) -> bool:
            searched_nodes.append(self._node.metadata.name)
            return super().allocate()

    monkeypatch.setattr(allocator_module, "AllocationSearch", RecordedSearch)
    cache = make_cluster_with_devices(TWO_DEVICES)
    cache.add_or_update_node(make_node("m"))
    allocator = make_allocator()
    for taken, want in (((), [["r: a"]]), (("a",), [["r: b"]])):
        if taken:
            cache.add_or_update_object(make_allocated_claim("other", taken))
        with cache.read() as cluster:
            allocator.sync(cluster)
            claims = allocator.prepare([make_claim("c", {"r": {}})])
            assert [format_allocation(allocator.allocate(claims, node)) for node in cluster.nodes] == [want, want]
    assert searched_nodes == ["n", "n"]


DIFFERENT_BY_NODE = {
    "each device selects its nodes": (
        {"slices": [{"by_device": True, "devices": {"a": {"nodeName": "n"}, "b": {"nodeName": "m"}, "c": {}}}]},
        [[["r: a"]], [["r: b"]]],
    ),
    "a device skips operations, and only one node declares that it may": (
        {
            "slices": [{"skips": ["NodePrepareResources"], "devices": {"a": {}}}],
            "features": ["DRAOptionalNodeOperations"],
        },
        [[["r: a"]], None],
    ),
}


@pytest.mark.parametrize(("case", "want"), DIFFERENT_BY_NODE.values(), ids=DIFFERENT_BY_NODE)
def test_nodes_with_the_same_pool_get_different_devices(case: Mapping[str, Any], want: list[Any]) -> None:
    cache = make_cluster_with_devices(case)
    cache.add_or_update_node(make_node("m"))
    gates = {"DRAOptionalNodeOperations": True}
    allocator = make_allocator(gates, RELEASE_1_37)
    with cache.read() as cluster:
        allocator.sync(cluster)
        claims = allocator.prepare([make_claim("c", {"r": {}})])
        assert [format_allocation(allocator.allocate(claims, node)) for node in cluster.nodes] == want


@pytest.mark.parametrize("by_device", [False, True])
def test_the_pools_and_results_of_removed_nodes_are_forgotten(by_device: bool) -> None:
    """The slices of devices for all nodes stay for months, while nodes are replaced."""
    devices = {"a": {"allNodes": True}, "b": {"allNodes": True}} if by_device else {"a": {}, "b": {}}
    raw_slice = {"devices": devices, **({"by_device": True} if by_device else {})}
    cache = make_cluster_with_devices({"slices": [raw_slice]})
    allocator = make_allocator()
    claim = make_claim("c", {"r": {}})
    for number in range(1100):
        cache.add_or_update_node(make_node(f"n{number}"))
        with cache.read() as cluster:
            allocator.sync(cluster)
            claims = allocator.prepare([claim])
            assert allocator.allocate(claims, cluster.nodes[1]) is not None
        cache.remove_node(f"n{number}")
    assert allocator.slice_index.node_count < 100
    assert allocator.node_groups.count < 100
    assert len(allocator._caches[claims.signature].results) < 200


def test_prepared_claims_do_not_use_results_for_earlier_groups_of_nodes() -> None:
    """Preemption for a pod group filters with the states of members that were prepared before later members."""
    cache = make_cluster(make_node("n1"), make_node("n2"), make_device_class("gpu"))
    n1, n2 = cache.snapshot().nodes
    for name in ("n1", "n2"):
        cache.add_or_update_object(make_slice({"pool": name, "node": name, "devices": {f"gpu-{name}": {}}}))
    allocator = make_allocator()
    claims = allocator.prepare([make_claim("c", {"r": {}})])
    for node, device in ((n1, "gpu-n1"), (n2, "gpu-n2"), (n1, "gpu-n1")):
        cache.add_or_update_object(make_slice({"pool": "other"}))
        allocator.sync(cache.snapshot())
        assert format_allocation(allocator.allocate(claims, node)) == [[f"r: {device}"]]


def test_a_deleted_claim_frees_its_device() -> None:
    cache = make_cluster_with_devices({**TWO_DEVICES, "taken": ["a"]})
    allocator = make_allocator()
    allocator.sync(cache.snapshot())
    cache.remove_object(type(make_claim("c", {})), "default/taken-0")
    cluster = cache.snapshot()
    allocator.sync(cluster)
    allocation = allocator.allocate(allocator.prepare([make_claim("c", {"r": {}})]), cluster.nodes[0])
    assert format_allocation(allocation) == [["r: a"]]


def test_an_in_flight_device_is_allocated_until_it_is_removed() -> None:
    cluster = make_cluster_with_devices(TWO_DEVICES).snapshot()
    allocator = make_allocator()
    allocator.sync(cluster)
    results = make_allocated_claim("other", ["a"]).status.allocation
    assert results is not None
    claims = allocator.prepare([make_claim("c", {"r": {}})])

    allocator.allocated_devices.add_in_flight("uid-other", results)
    assert format_allocation(allocator.allocate(claims, cluster.nodes[0])) == [["r: b"]]

    assert allocator.allocated_devices.remove_in_flight("uid-other")
    assert format_allocation(allocator.allocate(claims, cluster.nodes[0])) == [["r: a"]]
    assert not allocator.allocated_devices.remove_in_flight("uid-other")


def test_an_in_flight_allocation_that_is_written_counts_once() -> None:
    cache = make_cluster_with_devices(TWO_DEVICES)
    allocator = make_allocator()
    allocator.sync(cache.snapshot())
    claim = make_allocated_claim("other", ["a"])
    assert claim.status.allocation is not None
    allocator.allocated_devices.add_in_flight(claim.metadata.uid, claim.status.allocation)
    cache.add_or_update_object(claim)
    allocator.sync(cache.snapshot())
    assert not allocator.allocated_devices.is_in_flight(claim.metadata.uid)
    cache.remove_object(type(claim), "default/other")
    allocator.sync(cache.snapshot())
    assert not allocator.allocated_devices.is_allocated(("gpu.example.com", "pool", "a"))


class JumpingClock:
    """A clock that advances by a second at each reading."""

    def __init__(self) -> None:
        self.time = 0.0

    def monotonic(self) -> float:
        self.time += 1
        return self.time

    def now(self) -> float:
        return 0.0


def test_a_search_ends_at_its_timeout() -> None:
    cluster = make_cluster_with_devices({"slices": [{"devices": {f"d{n}": {} for n in range(20)}}]}).snapshot()
    allocator = make_allocator()
    allocator._clock = JumpingClock()
    allocator.sync(cluster)
    claims = allocator.prepare([make_claim("c", {"r": {"count": 12}})])
    with pytest.raises(AllocationTimeoutError):
        allocator.allocate(claims, cluster.nodes[0], allocator.make_timeout_check(5))
    assert allocator.allocate(claims, cluster.nodes[0]) is not None


def test_a_search_ends_at_its_timeout_between_two_evaluations_of_selectors() -> None:
    """An evaluation may take a tenth of a second, so those on all devices of a node may exceed the timeout."""
    cluster = make_cluster_with_devices({"slices": [{"devices": {f"d{n}": {} for n in range(20)}}]}).snapshot()
    allocator = make_allocator()
    allocator._clock = JumpingClock()
    allocator.sync(cluster)
    claims = allocator.prepare([make_claim("c", {"r": {"selectors": ["device.driver == 'other'"]}})])
    with pytest.raises(AllocationTimeoutError):
        allocator.allocate(claims, cluster.nodes[0], allocator.make_timeout_check(5))
    assert allocator.allocate(claims, cluster.nodes[0]) is None
