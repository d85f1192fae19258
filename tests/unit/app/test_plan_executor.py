"""The writes of a plan of evictions, on a fake server. tests/controlplane/test_rebalance_apply.py has a real one."""

import asyncio

import msgspec
import pytest

from extender.analysis.recorded_cluster import Recording
from extender.app.cluster_reader import ClusterReader
from extender.app.plan_executor import ExecutionOptions, PlanExecutor
from extender.client.errors import ApiError, UnreachableError
from extender.client.transport import Request
from extender.planning.rebalance.plan import Action, Change, Proof, Step


class FakeTransport:
    """Carries out patches of nodes, and loses the response of the first one."""

    def __init__(self) -> None:
        self.cordoned: list[str] = []
        self.call_count = 0

    async def call(self, request: Request) -> bytes:
        self.call_count += 1
        node = request.path.rpartition("/")[2]
        if msgspec.json.decode(request.body)["spec"]["unschedulable"]:
            self.cordoned.append(node)
        else:
            self.cordoned.remove(node)
        if self.call_count == 1:
            raise UnreachableError("no response in time", maybe_sent=True)
        return b"{}"


def test_a_node_is_uncordoned_although_the_response_of_its_cordon_was_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    async def read_kinds(*_: object) -> Recording:
        return Recording()

    monkeypatch.setattr(ClusterReader, "read_kinds", read_kinds)
    reports: list[str] = []
    cordon = Change(Action.CORDON, "n1")
    options = ExecutionOptions(lambda recording, changes: Proof((Step(cordon),)), reports.append, timeout=60)
    transport = FakeTransport()

    with pytest.raises(ApiError, match=r"^no response in time$"):
        asyncio.run(PlanExecutor(transport, "the cluster", options).run([cordon, Change(Action.UNCORDON, "n1")]))

    assert transport.cordoned == []
    assert reports == ["step 1 of 2, cordon n1", "uncordon n1, because the plan is not finished"]
