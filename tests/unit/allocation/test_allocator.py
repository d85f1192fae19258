"""Runs the cases of tests/cases/devices: which devices claims get on a node, or why none. Source: B111 to B124."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from extender.allocation.faults import AllocationError, AllocationTimeoutError, NodeUnfitError
from tests.unit.allocation.worlds import a_claim, a_world, allocated_claim, an_allocator, told

CASES = Path(__file__).resolve().parents[2] / "cases" / "devices"


def cases() -> Iterator[Any]:
    for path in sorted(CASES.glob("*.yaml")):
        for sentence, case in yaml.safe_load(path.read_text()).items():
            yield pytest.param(case, id=f"{path.stem}: {sentence}")


def answer(case: Mapping[str, Any]) -> Any:
    cluster = a_world(case).snapshot()
    allocator = an_allocator(case.get("gates"))
    allocator.catch_up(cluster)
    constraints = case.get("constraints", ())
    claims = [a_claim(f"c{n}", raw, constraints=constraints) for n, raw in enumerate(case["claims"])]
    try:
        return told(allocator.allocate(allocator.asked(claims), cluster.nodes[0], 0))
    except (AllocationError, NodeUnfitError) as fault:
        return str(fault)


@pytest.mark.parametrize("case", list(cases()))
def test_claims_get_the_devices_that_the_case_says(case: Mapping[str, Any]) -> None:
    assert case.keys() <= {"gates", "labels", "slices", "classes", "taken", "constraints", "claims", "want"}
    assert answer(case) == case["want"]


TWO = {"slices": [{"devices": {"a": {}, "b": {}}}]}


def test_what_was_found_holds_until_a_device_of_the_pool_is_taken() -> None:
    state = a_world(TWO)
    allocator = an_allocator()
    claim = a_claim("c", {"r": {}})
    for taken, want in (((), "a"), (("a",), "b"), (("a", "b"), None)):
        if taken:
            state.put_object(allocated_claim("other", taken))
        cluster = state.snapshot()
        allocator.catch_up(cluster)
        found = told(allocator.allocate(allocator.asked([claim]), cluster.nodes[0], 0))
        assert found == (None if want is None else [[f"r: {want}"]])
        del cluster


def test_a_claim_that_is_dropped_frees_its_device() -> None:
    state = a_world({**TWO, "taken": ["a"]})
    allocator = an_allocator()
    allocator.catch_up(state.snapshot())
    state.drop_object(type(a_claim("c", {})), "default/taken-0")
    cluster = state.snapshot()
    allocator.catch_up(cluster)
    found = allocator.allocate(allocator.asked([a_claim("c", {"r": {}})]), cluster.nodes[0], 0)
    assert told(found) == [["r: a"]]


def test_a_promised_device_is_taken_until_the_promise_is_released() -> None:
    cluster = a_world(TWO).snapshot()
    allocator = an_allocator()
    allocator.catch_up(cluster)
    results = allocated_claim("other", ["a"]).status.allocation
    assert results is not None
    asked = allocator.asked([a_claim("c", {"r": {}})])

    allocator.allocated.promise("uid-other", results.devices.results)
    assert told(allocator.allocate(asked, cluster.nodes[0], 0)) == [["r: b"]]

    assert allocator.allocated.release("uid-other")
    assert told(allocator.allocate(asked, cluster.nodes[0], 0)) == [["r: a"]]
    assert not allocator.allocated.release("uid-other")


def test_a_promise_that_is_written_down_counts_once() -> None:
    state = a_world(TWO)
    allocator = an_allocator()
    allocator.catch_up(state.snapshot())
    claim = allocated_claim("other", ["a"])
    assert claim.status.allocation is not None
    allocator.allocated.promise(claim.metadata.uid, claim.status.allocation.devices.results)
    state.put_object(claim)
    allocator.catch_up(state.snapshot())
    assert not allocator.allocated.is_in_flight(claim.metadata.uid)
    state.drop_object(type(claim), "default/other")
    allocator.catch_up(state.snapshot())
    assert not allocator.allocated.takes(("gpu.example.com", "pool", "a"))


class Late:
    """A clock that jumps a second whenever it is read."""

    def __init__(self) -> None:
        self.time = 0.0

    def monotonic(self) -> float:
        self.time += 1
        return self.time

    def now(self) -> float:
        return 0.0


def test_a_search_ends_when_its_time_is_over() -> None:
    cluster = a_world({"slices": [{"devices": {f"d{n}": {} for n in range(20)}}]}).snapshot()
    allocator = an_allocator()
    allocator._clock = Late()
    allocator.catch_up(cluster)
    asked = allocator.asked([a_claim("c", {"r": {"count": 12}})])
    with pytest.raises(AllocationTimeoutError):
        allocator.allocate(asked, cluster.nodes[0], 5)
    assert allocator.allocate(asked, cluster.nodes[0], 0) is not None
