"""The writes of a plan of evictions, on a fake server. tests/controlplane/test_rebalance_apply.py has a real one."""

import asyncio
from typing import cast

import msgspec
import pytest

from extender.analysis.recorded_cluster import Recording
from extender.app.cluster_reader import ClusterReader
from extender.app.plan_executor import ExecutionOptions, PlanExecutor
from extender.client.errors import ApiError, ForbiddenError, UnreachableError
from extender.client.transport import Request, Transport
from extender.planning.rebalance.plan import Action, Change, Proof, Step


class FakeTransport:
    """Carries out patches of nodes, and loses the response of call number *lost*. The node *locked* stays cordoned."""

    def __init__(self, *, lost: int, locked: str = "") -> None:
        self.cordoned: list[str] = []
        self.call_count = 0
        self._lost, self._locked = lost, locked

    async def call(self, request: Request) -> bytes:
        self.call_count += 1
        node = request.path.rpartition("/")[2]
        if msgspec.json.decode(request.body or b"")["spec"]["unschedulable"]:
            self.cordoned.append(node)
        elif node == self._locked:
            raise ForbiddenError("no")
        else:
            self.cordoned.remove(node)
        if self.call_count == self._lost:
            raise UnreachableError("no response in time", maybe_sent=True)
        return b"{}"


@pytest.fixture(autouse=True)
def no_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    async def read_kinds(*_: object) -> Recording:
        return Recording()

    monkeypatch.setattr(ClusterReader, "read_kinds", read_kinds)


def execute(transport: FakeTransport, *changes: Change) -> list[str]:
    """Make the changes until a response is lost, and return the reports."""
    reports: list[str] = []
    options = ExecutionOptions(
        lambda recording, remaining: Proof(tuple(map(Step, remaining))), reports.append, timeout=60
    )
    with pytest.raises(ApiError, match=r"^no response in time$"):
        asyncio.run(PlanExecutor(cast("Transport", transport), "the cluster", options).run(changes))
    return reports


def test_a_node_is_uncordoned_although_the_response_of_its_cordon_was_lost() -> None:
    transport = FakeTransport(lost=1)

    reports = execute(transport, Change(Action.CORDON, "n1"), Change(Action.UNCORDON, "n1"))

    assert transport.cordoned == []
    assert reports == ["step 1 of 2, cordon n1", "uncordon n1, because the plan is not finished"]


def test_a_node_that_cannot_be_uncordoned_is_reported_and_the_others_are_uncordoned() -> None:
    transport = FakeTransport(lost=2, locked="n1")

    reports = execute(transport, *(Change(Action.CORDON, name) for name in ("n1", "n2", "n3")))

    assert transport.cordoned == ["n1"]
    assert reports == [
        "step 1 of 3, cordon n1",
        "step 2 of 3, cordon n2",
        "node n1 stays cordoned: no; run: kubectl uncordon n1",
        "uncordon n2, because the plan is not finished",
    ]
