"""The search for devices with bounds selects the devices that a full search selects.

Source: dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go, allocator.allocateOne
(1.37).
"""

from random import Random
from typing import Any

import pytest

from extender.dra.search_bounds import SearchBounds
from tests.unit.dra.test_allocator import allocate_case


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
    monkeypatch.setattr(SearchBounds, "may_complete", lambda *_: True)
    assert results == [allocate_case(case) for case in cases]
    assert sum(isinstance(result, list) for result in results) > 20
    assert results.count(None) > 20
