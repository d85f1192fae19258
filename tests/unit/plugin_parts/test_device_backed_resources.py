"""Devices that back an extended resource, counted for scores.

Source: pkg/scheduler/framework/plugins/noderesources/resource_allocation.go,
resourceAllocationScorer.calculateDRAResourceTotals (1.36).
"""

from typing import Any

import pytest

from extender.api.kinds.devices import DeviceClass
from extender.config.feature_gates import FeatureGates
from extender.dra.features import Features
from extender.dra.resource_slices import SliceDevice
from extender.framework.plugin_args import PluginArgs
from extender.plugin_parts.device_backed_resources import DeviceBackedResourceBuilder, DeviceCounter
from extender.plugin_parts.scored_resources import ResourceSpec, build_scored_resources
from tests.build import make_cluster, make_node, make_pod
from tests.unit.dra.builders import make_allocated_claim, make_allocator, make_device_class, make_slice

GPU = "example.com/gpu"
FAST = 'device.attributes["gpu.example.com"].speed > 1'


def count_devices(
    *expressions: str,
    slices: list[dict[str, object]],
    gates: dict[str, bool] | None = None,
    shared_state: dict[str, Any] | None = None,
) -> object:
    """Return the allocatable and the requested amounts of two nodes.

    The node `n` lacks the resource. The node `own` has three, and a pod requests one of them.
    """
    cache = make_cluster(
        make_node("n"),
        make_node("own", allocatable={GPU: "3"}),
        make_pod("user", node="own", requests={GPU: "1"}),
        make_device_class("gpu", *expressions, extendedResourceName=GPU),
        *map(make_slice, slices),
        make_allocated_claim("taken", ["d0"]),
    )
    snapshot = cache.snapshot()
    specs = [ResourceSpec(GPU)]
    plain = build_scored_resources(specs, [1], snapshot.symbols.resources, nonzero=True)
    args: PluginArgs[None] = PluginArgs(None, FeatureGates(gates), shared_state=shared_state or {})
    (resource,) = DeviceBackedResourceBuilder(args, specs).replace_device_backed(plain, snapshot)
    view = snapshot.view()
    return resource.allocatable(view).tolist(), resource.requested(view).tolist()


THREE = {"devices": {"d0": {"speed": 2}, "d1": {"speed": 2}, "d2": {"speed": 1}}}


@pytest.mark.parametrize(
    ("expressions", "slices", "want"),
    [
        pytest.param(
            [], [{"node": "n", **THREE}], ([3, 3], [1, 1]), id="all devices of the node, and the allocated ones"
        ),
        pytest.param([FAST], [{"node": "n", **THREE}], ([2, 3], [1, 1]), id="only devices of the class"),
        pytest.param([], [{"node": "other", **THREE}], ([0, 3], [0, 1]), id="no devices of other nodes"),
        pytest.param([], [{"count": 2, **THREE}], ([3, 3], [1, 1]), id="as upstream also those of incomplete pools"),
        pytest.param(
            [],
            [{"by_device": True, "devices": {"d0": {"allNodes": True}, "d1": {"nodeName": "own"}, "d2": {}}}],
            ([1, 3], [1, 1]),
            id="devices with their own node",
        ),
        pytest.param(
            ['device.attributes["gpu.example.com"].nosuch == 1'],
            [{"node": "n", **THREE}],
            ([0, 3], [0, 1]),
            id="none where a selector fails",
        ),
    ],
)
def test_devices_are_counted(expressions: list[str], slices: list[dict[str, object]], want: object) -> None:
    assert count_devices(*expressions, slices=slices) == want


def test_no_devices_are_counted_while_the_gate_is_off() -> None:
    assert count_devices(slices=[{"node": "n", **THREE}], gates={"DRAExtendedResource": False}) == ([0, 3], [0, 1])


def test_devices_of_an_allocation_that_is_not_written_yet_are_allocated() -> None:
    """Source: pkg/scheduler/framework/plugins/dynamicresources/dra_manager.go, claimTracker (1.37)."""
    allocator = make_allocator()
    allocation = make_allocated_claim("in-flight", ["d2"]).status.allocation
    assert allocation is not None
    allocator.allocated_devices.add_in_flight("uid-in-flight", allocation)
    shared_state = {"DynamicResources": allocator}
    assert count_devices(slices=[{"node": "n", **THREE}], shared_state=shared_state) == ([3, 3], [2, 1])


def test_counting_devices_does_not_make_other_plugins_believe_that_dynamic_resources_is_enabled() -> None:
    """GpuShare reports an error if the state has no allocator."""
    shared_state: dict[str, Any] = {"VolumeBinding of default-scheduler": object()}
    assert count_devices(slices=[{"node": "n", **THREE}], shared_state=shared_state) == ([3, 3], [1, 1])
    assert set(shared_state) == {"VolumeBinding of default-scheduler"}


def test_the_counts_of_removed_device_classes_are_forgotten() -> None:
    cache, gates = make_cluster(make_node("n"), make_slice({"node": "n", **THREE})), FeatureGates()
    counter = DeviceCounter(Features(gates), {"DynamicResources": make_allocator()})
    for number in range(3):
        device_class = make_device_class(f"gpu-{number}", extendedResourceName=GPU)
        cache.add_or_update_object(device_class)
        with cache.read() as snapshot:
            assert counter.count_devices(device_class, snapshot).total.tolist() == [3]
        cache.remove_object(DeviceClass, f"gpu-{number}")
    assert list(counter._cache) == ["gpu-2"]


def test_the_selectors_of_a_class_are_evaluated_once_for_many_allocations(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluated: list[str] = []
    matches_expression = SliceDevice.matches_expression

    def record_and_match(device: SliceDevice, *args: Any, **options: Any) -> bool:
        evaluated.append(device.device.name)
        return matches_expression(device, *args, **options)

    monkeypatch.setattr(SliceDevice, "matches_expression", record_and_match)
    device_class = make_device_class("gpu", FAST, extendedResourceName=GPU)
    cache = make_cluster(make_node("n"), make_slice({"node": "n", **THREE}), device_class)
    counter = DeviceCounter(Features(FeatureGates()), {"DynamicResources": make_allocator()})
    for taken, want in (([], 0), (["d0"], 1), (["d0", "d1", "d2"], 2)):
        cache.add_or_update_object(make_allocated_claim("taken", taken))
        with cache.read() as snapshot:
            counts = counter.count_devices(device_class, snapshot)
        assert (counts.total.tolist(), counts.allocated.tolist()) == ([2], [want])
    assert evaluated == ["d0", "d1", "d2"]
