"""Devices in the place of an extended resource, counted for scores. Source: B042."""

import pytest

from extender.config.gates import FeatureGates
from extender.framework.scored_devices import ScoredDevices
from extender.framework.scored_resources import ResourceSpec, scored_resources
from tests.build import a_cluster, a_node, a_pod
from tests.unit.allocation.worlds import a_class, a_slice, allocated_claim

GPU = "example.com/gpu"
FAST = 'device.attributes["gpu.example.com"].speed > 1'


def counted(*expressions: str, slices: list[dict[str, object]], gates: dict[str, bool] | None = None) -> object:
    """Capacity and what is taken of it, on a node without the resource and on one with three of it, one in use."""
    state = a_cluster(
        a_node("n"),
        a_node("own", allocatable={GPU: "3"}),
        a_pod("user", node="own", requests={GPU: "1"}),
        a_class("gpu", *expressions, extendedResourceName=GPU),
        *map(a_slice, slices),
        allocated_claim("taken", ["d0"]),
    )
    snapshot = state.snapshot()
    specs = [ResourceSpec(GPU)]
    plain = scored_resources(specs, [1], snapshot.vocabulary.resources, nonzero=True)
    (resource,) = ScoredDevices(FeatureGates(gates), specs).instead(plain, snapshot)
    view = snapshot.view()
    return resource.capacity(view).tolist(), resource.taken(view).tolist()


THREE = {"devices": {"d0": {"speed": 2}, "d1": {"speed": 2}, "d2": {"speed": 1}}}


@pytest.mark.parametrize(
    ("expressions", "slices", "want"),
    [
        pytest.param([], [{"node": "n", **THREE}], ([3, 3], [1, 1]), id="all devices of the node, those taken apart"),
        pytest.param([FAST], [{"node": "n", **THREE}], ([2, 3], [1, 1]), id="only devices of the class"),
        pytest.param([], [{"node": "other", **THREE}], ([0, 3], [0, 1]), id="no devices of other nodes"),
        pytest.param([], [{"count": 2, **THREE}], ([3, 3], [1, 1]), id="as upstream also those of incomplete pools"),
        pytest.param(
            [],
            [{"by_device": True, "devices": {"d0": {"allNodes": True}, "d1": {"nodeName": "own"}, "d2": {}}}],
            ([1, 3], [1, 1]),
            id="devices that say themselves where they are",
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
    assert counted(*expressions, slices=slices) == want


def test_nothing_is_counted_while_the_gate_is_off() -> None:
    assert counted(slices=[{"node": "n", **THREE}], gates={"DRAExtendedResource": False}) == ([0, 3], [0, 1])
