"""The search for devices ends soon if there are too few, and otherwise selects the devices that a full search selects.

Source: dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go, allocator.allocateOne
(1.37).
"""

from collections.abc import Mapping
from random import Random
from typing import Any

import pytest

from extender.config.releases import RELEASE_1_37
from extender.dra.allocation_search import AllocationSearch
from tests.unit.dra.builders import make_allocator, make_claim, make_cluster_with_devices
from tests.unit.dra.test_allocator import JumpingClock, allocate_case

GPUS = {f"gpu-{number:02}": {"numa": number // 7, "root": number % 7} for number in range(64)}
NICS = {f"nic-{number}": {"root": number, "nic": True} for number in range(3)}
GPU = {"selectors": ['!has(device.attributes["gpu.example.com"].nic)']}
NIC = {"selectors": ['has(device.attributes["gpu.example.com"].nic)']}
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
    ],
)  # fmt: skip
def test_a_search_for_too_many_devices_ends_soon(case: Mapping[str, Any], step_count: int) -> None:
    gpus = dict(list(GPUS.items())[: case.get("gpus", len(GPUS))])
    slices = [{"pool": "gpus", "devices": gpus}, {"pool": "nics", "devices": NICS}]
    slices = slices[: 1 + ("nic" in str(case["claims"]))]
    cluster = make_cluster_with_devices({"slices": slices}).snapshot()
    allocator = make_allocator(release=RELEASE_1_37)
    allocator._clock = JumpingClock()  # it advances by a second at each step
    allocator.sync(cluster)
    claims = [make_claim(f"c{n}", raw, constraints=case.get("constraints", ())) for n, raw in enumerate(case["claims"])]
    timed_out = allocator.make_timeout_check(step_count)
    assert allocator.allocate(allocator.prepare(claims), cluster.nodes[0], timed_out) is None


def make_random_case(rng: Random) -> dict[str, Any]:
    devices: dict[str, dict[str, Any]] = {}
    for number in range(rng.randint(2, 5)):
        device: dict[str, Any] = {name: rng.randint(0, 2) for name in ("numa", "root") if rng.random() < 0.9}
        if rng.random() < 0.2:
            device |= {"allowMultipleAllocations": True, "capacity": {"memory": rng.choice(("4", "9"))}}
        if rng.random() < 0.3:
            counters = {"slots": {"value": str(rng.randint(1, 3))}}
            device["consumesCounters"] = [{"counterSet": "card", "counters": counters}]
        devices[f"d{number}"] = device
    card = {"name": "card", "counters": {"slots": {"value": "4"}}}
    pool = {"pool": "pool", "count": 2}
    slices = [{**pool, "name": "a", "devices": devices}, {**pool, "name": "b", "counters": [card]}]
    claims = [{f"r{n}": make_random_request(rng) for n in range(rng.randint(1, 3))} for _ in range(rng.randint(1, 2))]
    constraints = [
        {rng.choice(("matchAttribute", "distinctAttribute")): "gpu.example.com/" + rng.choice(("numa", "root")),
         "requests": rng.sample(("r0", "r1", "r2"), rng.randint(0, 2))}
        for _ in range(rng.randint(0, 2))
    ]  # fmt: skip
    release = rng.choice(("1.36", "1.37"))
    return {"slices": slices, "claims": claims, "constraints": constraints, "release": release}


def make_random_request(rng: Random) -> dict[str, Any]:
    if rng.random() < 0.2:
        return {"firstAvailable": {"s0": {"count": 3}, "s1": {"count": rng.randint(1, 2)}}}
    request: dict[str, Any] = {"count": rng.choice((1, 1, 2, 3))}
    if rng.random() < 0.1:
        request = {"allocationMode": "All"}
    elif rng.random() < 0.1:
        request["adminAccess"] = True
    elif rng.random() < 0.2:
        request["capacity"] = {"requests": {"memory": "3"}}
    if rng.random() < 0.3:
        request["selectors"] = ['device.attributes["gpu.example.com"].?numa.orValue(0) < 2']
    return request


def test_a_search_that_ends_early_has_the_result_of_a_full_search(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = Random(1)
    cases = [make_random_case(rng) for _ in range(150)]
    results = [allocate_case(case) for case in cases]
    monkeypatch.setattr(AllocationSearch, "_may_complete", lambda *_: True)
    assert results == [allocate_case(case) for case in cases]
    assert sum(isinstance(result, list) for result in results) > 20
    assert results.count(None) > 20
