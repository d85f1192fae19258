"""The search for devices ends soon if there are too few of them.

Source: dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go, allocator.allocateOne
(1.37).
"""

from collections.abc import Mapping
from typing import Any

import pytest

from extender.config.releases import RELEASE_1_37
from extender.dra.allocation_search import AllocationSearch
from extender.dra.device_requests import NormalizedRequest
from extender.dra.resource_slices import DeviceId
from tests.unit.dra.builders import make_allocator, make_claim, make_cluster_with_devices
from tests.unit.dra.test_allocator import JumpingClock, allocate_case

GPUS = {f"gpu-{number:02}": {"numa": number // 7, "root": number % 7} for number in range(64)}
NICS = {f"nic-{number}": {"root": number, "nic": True} for number in range(3)}
GPU = {"selectors": ['!has(device.attributes["gpu.example.com"].nic)']}
NIC = {"selectors": ['has(device.attributes["gpu.example.com"].nic)']}
FIRST_AVAILABLE = {"firstAvailable": {"all": {"allocationMode": "All", **NIC}, "three": {"count": 3, **NIC}}}
PARTITIONS = {
    f"part-{number:02}": {
        "consumesCounters": [{"counterSet": "card", "counters": {"slots": {"value": str(1 + number // 12)}}}]
    }
    for number in range(24)
}
CARD = [{"name": "card", "counters": {"slots": {"value": "7"}}}]
PAIRS = [{"matchAttribute": "gpu.example.com/root", "requests": [f"g{n}", f"n{n}"]} for n in range(4)]


@pytest.mark.parametrize(
    ("case", "step_count"),
    [
        pytest.param({"claims": [{"r": {"count": 32}}], "gpus": 20}, 30, id="32 of 20 devices"),
        pytest.param({"claims": [{"r": {"count": 8}}], "constraints": [{"matchAttribute": "gpu.example.com/numa"}]},
                     100, id="eight devices with equal values, of which there are seven"),
        pytest.param({"claims": [{"r": {"count": 8}}], "constraints": [{"distinctAttribute": "gpu.example.com/root"}]},
                     100, id="eight devices with different values, of which there are seven"),
        pytest.param({"claims": [{"g": {"count": 4}, "n": {"count": 4, **NIC}}]}, 100, id="a later request"),
        pytest.param({"claims": [{"g": {"count": 4}}, {"n": {"count": 4, **NIC}}]}, 100, id="a later claim"),
        pytest.param({"claims": [{"a": {"count": 8}, "b": {"count": 8}}, {"c": {"count": 5}}], "gpus": 20}, 50,
                     id="21 devices in three requests, of which there are 20"),
        pytest.param({"claims": [{**{f"g{n}": GPU for n in range(4)}, **{f"n{n}": NIC for n in range(4)}}],
                      "constraints": PAIRS, "gpus": 8}, 1000, id="four pairs, of which there are three"),
        pytest.param({"claims": [{"g": {"count": 4}, "n": {"allocationMode": "All", **NIC}}], "taken": ["nic-1"],
                      "evaluations": 67}, 20,
                     id="a later request for all devices, of which one is in use"),
        pytest.param({"claims": [{"g": {"count": 4}, "n": {"allocationMode": "All", "selectors": ["false"]}}],
                      "evaluations": 67}, 20, id="a later request for all devices, of which there are none"),
        pytest.param({"claims": [{"g": {"count": 4, **GPU}, "n": FIRST_AVAILABLE}], "taken": ["nic-1"],
                      "evaluations": 3 * 67}, 20, id="a later request with subrequests"),
        pytest.param({"claims": [{"r": {"count": 8}}], "devices": PARTITIONS}, 20,
                     id="eight partitions of a card with counters for seven"),
    ],
)  # fmt: skip
def test_a_search_for_too_many_devices_ends_soon(case: Mapping[str, Any], step_count: int) -> None:
    devices = dict(list(GPUS.items())[: case.get("gpus", len(GPUS))])
    devices |= NICS if "nic" in str(case["claims"]) else {}
    pool = {"pool": "pool", "count": 2}
    slices = [{**pool, "devices": case.get("devices", devices)}, {**pool, "name": "counters", "counters": CARD}]
    cluster = make_cluster_with_devices({"slices": slices, "taken": case.get("taken", ())}).snapshot()
    allocator = make_allocator(release=RELEASE_1_37)
    allocator._clock = JumpingClock()  # it advances by a second at each step, and before each evaluation
    allocator.sync(cluster)
    claims = [make_claim(f"c{n}", raw, constraints=case.get("constraints", ())) for n, raw in enumerate(case["claims"])]
    timed_out = allocator.make_timeout_check(step_count + case.get("evaluations", 0))
    assert allocator.allocate(allocator.prepare(claims), cluster.nodes[0], timed_out) is None


def test_a_search_that_finds_devices_after_many_others_rarely_checks_for_too_few(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """32 requests for devices with a common value, which half of 64 devices have; kube-scheduler tries 2,048 devices.

    Source: test/integration/scheduler_perf/dra/listattributes/performance-config.yaml (1.37).
    """
    devices = {f"gpu-{number:02}": {"root": min(number, 32)} for number in range(64)}
    examined: list[DeviceId] = []
    is_in_use = AllocationSearch._is_in_use

    def record(search: AllocationSearch, device_id: DeviceId, request: NormalizedRequest, claim_index: int) -> bool:
        examined.append(device_id)
        return is_in_use(search, device_id, request, claim_index)

    monkeypatch.setattr(AllocationSearch, "_is_in_use", record)
    result = allocate_case(
        {
            "slices": [{"devices": devices}],
            "claims": [{f"r{number:02}": {"count": 1} for number in range(32)}],
            "constraints": [{"matchAttribute": "gpu.example.com/root"}],
        }
    )
    assert isinstance(result, list)
    assert len(examined) < 20_000
