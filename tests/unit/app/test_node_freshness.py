"""Freshness of a node: while the watch of nodes fails, the node is awaited or read before a binding."""

import asyncio
from typing import Any

import msgspec
import pytest

from extender.api.kinds.node import Node
from extender.app.node_freshness import MAX_AGE_SECONDS, RECOVERY_SECONDS, WAIT_SECONDS, NodeFreshness
from extender.client.errors import ApiError, ForbiddenError
from tests.build import make_cluster, make_node

NODE = make_node("n1", labels={"zone": "a"})


class FakeReflector:
    """A reflector whose watch fails from time 0 until *recovery_time*; with recovery_time=-inf it never failed."""

    def __init__(self, clock: "FakeClock", recovery_time: float) -> None:
        self.clock, self.recovery_time = clock, recovery_time

    @property
    def last_error(self) -> str:
        return "nodes: no response" if self.clock.time < self.recovery_time else ""

    @property
    def recovered_at(self) -> float:
        return self.recovery_time if self.clock.time >= self.recovery_time else float("-inf")

    def compute_staleness(self, now: float) -> float:
        return now


class FakeClock:
    """A clock that only sleeps advance."""

    def __init__(self, time: float) -> None:
        self.time = time

    def monotonic(self) -> float:
        return self.time

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.time += seconds


class FakeReader:
    """Returns a node, or raises an error."""

    def __init__(self, result: Node | ApiError) -> None:
        self.result = result
        self.count = 0

    async def get(self, *_: str) -> bytes:
        self.count += 1
        if isinstance(self.result, ApiError):
            raise self.result
        return msgspec.json.encode(self.result)


def find_problem(time: float, recovery_time: float, result: Node | ApiError = NODE) -> tuple[str, int, float]:
    """Return the problem of node n1, the number of reads, and the seconds that the check took."""
    clock, reader = FakeClock(time), FakeReader(result)
    reflector: Any = FakeReflector(clock, recovery_time)
    freshness = NodeFreshness(lambda: reflector, reader, make_cluster(NODE), clock, clock.sleep)  # type: ignore[arg-type]
    problem = asyncio.run(freshness.find_problem("n1"))
    return problem, reader.count, clock.time - time


CORDONED = msgspec.structs.replace(NODE, spec=msgspec.structs.replace(NODE.spec, unschedulable=True))
NEWER = msgspec.structs.replace(NODE, metadata=msgspec.structs.replace(NODE.metadata, resource_version="99"))


def test_a_node_is_used_at_once_while_the_watch_works_or_failed_just_now() -> None:
    assert find_problem(100, recovery_time=float("-inf")) == ("", 0, 0)
    assert find_problem(100, recovery_time=100 - RECOVERY_SECONDS) == ("", 0, 0)
    assert find_problem(MAX_AGE_SECONDS, recovery_time=1000) == ("", 0, 0)


def test_a_node_that_changed_during_an_outage_is_a_problem_although_the_watch_works_again() -> None:
    assert (
        find_problem(100, recovery_time=102, result=CORDONED)[0] == "node n1 changed while nodes could not be watched"
    )


def test_a_node_is_read_just_after_the_watch_works_again_because_its_events_may_not_have_arrived() -> None:
    changed = "node n1 changed while nodes could not be watched"
    for seconds in (0.0, RECOVERY_SECONDS - 0.1):
        assert find_problem(100 + seconds, recovery_time=100) == ("", 1, 0)
        assert find_problem(100 + seconds, recovery_time=100, result=CORDONED) == (changed, 1, 0)


def test_a_binding_waits_for_the_watch_and_reads_the_node() -> None:
    problem, reads, seconds = find_problem(100, recovery_time=102)
    assert (problem, reads) == ("", 1)
    assert 2 <= seconds < 2.2


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        (NODE, ""),
        (NEWER, ""),
        (CORDONED, "node n1 changed while nodes could not be watched"),
        (ForbiddenError("no"), "node n1 may have changed and cannot be read: no"),
    ],
    ids=["it is unchanged", "only its version changed", "it was cordoned", "it cannot be read"],
)
def test_a_node_is_read_if_the_watch_still_fails(result: Node | ApiError, problem: str) -> None:
    found_problem, reads, seconds = find_problem(100, recovery_time=1000, result=result)
    assert (found_problem, reads) == (problem, 1)
    assert WAIT_SECONDS <= seconds < WAIT_SECONDS + 0.2
