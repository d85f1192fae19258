"""Assumed pods: each assumption ends once, frees its node, and is counted."""

import asyncio
import weakref
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from extender.api.kinds.pod import Pod
from extender.cache.cache import Cache
from extender.extender_api.best_node import assumptions as assumptions_module
from extender.extender_api.best_node.assumptions import EVENTS, Assumptions
from tests.build import make_cluster, make_node, make_pod
from tests.unit.client.virtual_time import current_loop, run

WEB = make_pod("web", requests={"cpu": "1"})
UNSCHEDULED = {"type": "PodScheduled", "status": "False", "reason": "SchedulerError", "message": "binding rejected"}


class Fixture:
    """A cache of two nodes and the pending pod `web`, its assumptions, and the counted events."""

    def __init__(self, *objects: Any, timeout_seconds: float = 60.0) -> None:
        self.cache = make_cluster(make_node("n1"), make_node("n2"), *objects)
        self.events: list[str] = []
        self.watch_fails = False
        self.assumptions = Assumptions(self.cache, timeout_seconds, self.events.append, lambda: self.watch_fails)

    def assume(self, pod: Pod = WEB, node_name: str = "n1") -> bool:
        return self.assumptions.assume(pod, pod, node_name)

    def update(self, pod: Pod) -> None:
        """Apply a change of an assumed or bound pod, as the watch does."""
        self.cache.add_or_update_pod(pod)
        self.assumptions.on_pod_change(pod)

    def delete(self, pod: Pod) -> None:
        self.cache.remove_pod(pod.metadata.uid)
        self.assumptions.on_pod_delete(pod)

    def pod_counts(self) -> list[int]:
        """Return the number of pods on each node."""
        counts: list[int] = self.cache.snapshot().view().pod_count.tolist()
        return counts

    def pending_names(self) -> list[str]:
        return [pod.metadata.name for pod in self.cache.pending_pods.values()]


def check(inspect: Callable[[Fixture], None], *objects: Any, **more: Any) -> None:
    """Call *inspect* in an event loop in virtual time."""

    async def main() -> None:
        inspect(Fixture(*objects, **more))

    run(main())


def on_node(pod: Pod, node_name: str) -> Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node_name))


def test_an_assumed_pod_is_counted_on_its_node_until_the_watch_shows_it_there() -> None:
    def inspect(fixture: Fixture) -> None:
        assert fixture.assume()
        assert fixture.pod_counts() == [1, 0]
        assert len(fixture.assumptions) == 1
        fixture.update(on_node(WEB, "n1"))
        assert fixture.pod_counts() == [1, 0]
        assert not fixture.cache.is_assumed(WEB.metadata.uid)
        assert len(fixture.assumptions) == 0
        assert fixture.events == ["chosen", "assumed", "confirmed"]

    check(inspect, WEB)


def test_a_pod_that_the_watch_shows_on_another_node_is_counted_there() -> None:
    def inspect(fixture: Fixture) -> None:
        fixture.assume()
        fixture.update(on_node(WEB, "n2"))
        assert fixture.pod_counts() == [0, 1]
        assert fixture.events == ["chosen", "assumed", "superseded"]

    check(inspect, WEB)


def test_an_assumption_expires_at_its_deadline_and_the_pod_is_pending_again() -> None:
    async def main() -> None:
        fixture = Fixture(WEB, make_pod("db"), timeout_seconds=30.0)
        start_time = current_loop().time()
        fixture.assume()
        await asyncio.sleep(10)
        fixture.assume(make_pod("db"), "n2")
        await asyncio.sleep(19.9)
        assert fixture.pod_counts() == [1, 1]
        await asyncio.sleep(0.2)
        assert fixture.pod_counts() == [0, 1]
        await asyncio.sleep(9.7)
        assert fixture.pod_counts() == [0, 1]
        await asyncio.sleep(0.4)
        assert fixture.pod_counts() == [0, 0]
        assert round(current_loop().time() - start_time, 1) == 40.2
        assert fixture.pending_names() == ["web", "db"]
        assert fixture.events == ["chosen", "assumed", "chosen", "assumed", "expired", "expired"]

    run(main())


def test_no_assumption_expires_while_the_watch_fails() -> None:
    """The pod may be bound, and the event of its binding may be missing."""

    async def main() -> None:
        fixture = Fixture(WEB, make_pod("db"), timeout_seconds=30.0)
        fixture.assume()
        fixture.assume(make_pod("db"), "n2")
        fixture.watch_fails = True
        await asyncio.sleep(300.0)
        fixture.assumptions.on_request(make_pod("other"))
        assert fixture.pod_counts() == [1, 1]
        fixture.watch_fails = False
        fixture.update(on_node(WEB, "n1"))
        await asyncio.sleep(1.1)
        assert fixture.pod_counts() == [1, 0]
        assert fixture.events == ["chosen", "assumed", "chosen", "assumed", "confirmed", "expired"]

    run(main())


def test_a_process_that_was_stopped_expires_overdue_assumptions_before_its_next_choice() -> None:
    async def main() -> None:
        fixture = Fixture(WEB, timeout_seconds=30.0)
        fixture.assume()
        current_loop().suspend(31.0)
        fixture.assumptions.on_request(make_pod("other"))
        assert fixture.pod_counts() == [0, 0]
        assert fixture.events == ["chosen", "assumed", "expired"]

    run(main())


def test_a_new_request_about_the_pod_ends_its_assumption() -> None:
    def inspect(fixture: Fixture) -> None:
        fixture.assume()
        fixture.assumptions.on_request(WEB)
        assert fixture.pod_counts() == [0, 0]
        fixture.assume(node_name="n2")
        assert fixture.pod_counts() == [0, 1]
        fixture.assume(node_name="n1")
        assert fixture.pod_counts() == [1, 0]
        assert fixture.events == [
            "chosen", "assumed", "superseded", "chosen", "assumed", "chosen", "superseded", "assumed"
        ]  # fmt: skip

    check(inspect, WEB)


def test_a_failed_attempt_ends_the_assumption() -> None:
    def inspect(fixture: Fixture) -> None:
        fixture.assume()
        fixture.update(make_pod("web", requests={"cpu": "1"}, status={"conditions": [UNSCHEDULED]}))
        assert fixture.pod_counts() == [0, 0]
        assert fixture.cache.pending_pods[WEB.metadata.uid].status.conditions[0].reason == "SchedulerError"
        assert fixture.events == ["chosen", "assumed", "unscheduled"]

    check(inspect, WEB)


def test_the_condition_of_an_earlier_attempt_does_not_end_the_assumption() -> None:
    def inspect(fixture: Fixture) -> None:
        retried = make_pod("web", status={"conditions": [UNSCHEDULED]})
        fixture.assume(retried)
        fixture.update(make_pod("web", labels={"new": "label"}, status={"conditions": [UNSCHEDULED]}))
        assert fixture.pod_counts() == [1, 0]
        later = {**UNSCHEDULED, "message": "binding rejected again"}
        fixture.update(make_pod("web", status={"conditions": [later]}))
        assert fixture.pod_counts() == [0, 0]
        assert fixture.events == ["chosen", "assumed", "unscheduled"]

    check(inspect, WEB)


def test_the_condition_true_does_not_end_the_assumption() -> None:
    def inspect(fixture: Fixture) -> None:
        fixture.assume()
        fixture.update(make_pod("web", status={"conditions": [{"type": "PodScheduled", "status": "True"}]}))
        assert fixture.pod_counts() == [1, 0]

    check(inspect, WEB)


def test_a_deleted_pod_frees_its_node() -> None:
    def inspect(fixture: Fixture) -> None:
        fixture.assume()
        fixture.delete(WEB)
        assert fixture.pod_counts() == [0, 0]
        assert fixture.pending_names() == []
        assert fixture.events == ["chosen", "assumed", "deleted"]

    check(inspect, WEB)


def test_a_pod_that_is_being_deleted_frees_its_node() -> None:
    def inspect(fixture: Fixture) -> None:
        fixture.assume()
        fixture.update(make_pod("web", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}))
        assert fixture.pod_counts() == [0, 0]
        assert fixture.events == ["chosen", "assumed", "deleted"]

    check(inspect, WEB)


def test_a_deleted_pod_is_not_assumed_again() -> None:
    """kube-scheduler may ask about a pod before its own watch shows the deletion; then its binding fails."""

    def inspect(fixture: Fixture) -> None:
        fixture.delete(WEB)
        assert not fixture.assume()
        assert fixture.pod_counts() == [0, 0]
        assert fixture.assume(make_pod("web", metadata={"uid": "recreated"}))
        assert fixture.pod_counts() == [1, 0]
        assert fixture.events == ["chosen", "chosen", "assumed"]

    check(inspect, WEB)


def test_a_pod_that_waits_for_its_finalizers_is_not_assumed() -> None:
    def inspect(fixture: Fixture) -> None:
        assert not fixture.assume()
        assert fixture.pod_counts() == [0, 0]

    check(inspect, make_pod("web", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}))


def test_only_the_last_deleted_pods_are_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    pods = [make_pod(f"pod-{number}") for number in range(3)]

    def inspect(fixture: Fixture) -> None:
        for pod in pods:
            fixture.delete(pod)
        fixture.delete(on_node(WEB, "n1"))
        assert [fixture.assume(pod) for pod in (*pods, WEB)] == [True, False, False, True]

    monkeypatch.setattr(assumptions_module, "MAX_DELETED_PODS", 2)
    check(inspect)


def test_an_assumption_on_a_deleted_node_ends_as_any_other() -> None:
    async def main() -> None:
        fixture = Fixture(WEB)
        fixture.assume()
        fixture.cache.remove_node("n1")
        await asyncio.sleep(61)
        assert fixture.events == ["chosen", "assumed", "expired"]
        assert dict(fixture.cache.assigned_pods) == {}
        fixture.cache.add_or_update_node(make_node("n1"))
        assert sum(fixture.pod_counts()) == 0

    run(main())


def test_a_pod_that_the_watch_never_showed_leaves_no_pending_pod() -> None:
    async def main() -> None:
        fixture = Fixture()
        fixture.assume()
        await asyncio.sleep(61)
        assert fixture.pending_names() == []
        assert fixture.pod_counts() == [0, 0]
        fixture.assume()
        fixture.update(WEB)
        await asyncio.sleep(61)
        assert fixture.pending_names() == ["web"]

    run(main())


def test_the_newest_version_of_the_pod_becomes_pending_again() -> None:
    def inspect(fixture: Fixture) -> None:
        fixture.assume()
        fixture.update(make_pod("web", labels={"version": "2"}))
        fixture.assumptions.on_request(WEB)
        assert fixture.cache.pending_pods[WEB.metadata.uid].metadata.labels == {"version": "2"}

    check(inspect, WEB)


def test_a_nomination_returns_with_the_pending_pod() -> None:
    nominated = make_pod("web", status={"nominatedNodeName": "n2"})

    def nominated_node(fixture: Fixture) -> str:
        return fixture.cache.find_nominated_node(WEB.metadata.uid)

    def inspect(fixture: Fixture) -> None:
        fixture.cache.nominate(nominated, "n2")
        fixture.assume(nominated)
        assert nominated_node(fixture) == ""
        fixture.assumptions.on_request(nominated)
        assert nominated_node(fixture) == "n2"
        fixture.assume(nominated)
        fixture.update(make_pod("web", status={"nominatedNodeName": ""}))
        fixture.assumptions.on_request(nominated)
        assert nominated_node(fixture) == ""

    check(inspect, nominated)


def test_a_pod_that_is_on_a_node_is_not_assumed() -> None:
    def inspect(fixture: Fixture) -> None:
        assert not fixture.assume(node_name="n2")
        assert fixture.pod_counts() == [1, 0]
        assert len(fixture.assumptions) == 0
        assert fixture.events == ["chosen"]

    check(inspect, on_node(WEB, "n1"))


def test_a_pod_that_bind_assumed_stays_assumed() -> None:
    def inspect(fixture: Fixture) -> None:
        fixture.cache.assume(WEB, "n2")
        assert not fixture.assume()
        fixture.assumptions.on_request(WEB)
        fixture.update(make_pod("web", status={"conditions": [UNSCHEDULED]}))
        assert fixture.pod_counts() == [0, 1]

    check(inspect, WEB)


def test_the_number_of_assumptions_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    def inspect(fixture: Fixture) -> None:
        for number in range(4):
            fixture.assume(make_pod(f"pod-{number}"), "n2")
        assert fixture.pod_counts() == [0, 3]
        assert len(fixture.assumptions) == 3
        assert fixture.events.count("expired") == 1

    monkeypatch.setattr(assumptions_module, "MAX_ASSUMPTIONS", 3)
    check(inspect)


def test_a_pod_that_is_pending_again_is_as_the_watch_shows_it_not_as_the_request_did() -> None:
    def inspect(fixture: Fixture) -> None:
        fixture.assume(make_pod("web", labels={"of": "the request"}))
        fixture.assumptions.supersede(WEB.metadata.uid)
        assert [*fixture.cache.pending_pods.values()] == [WEB]

    check(inspect, WEB)


def test_one_timer_serves_all_assumptions(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        fixture, deadlines = Fixture(), list[float]()
        loop = current_loop()
        monkeypatch.setattr(loop, "call_at", lambda deadline, _callback: deadlines.append(deadline) or object())
        for name in ("a", "b", "c"):
            fixture.assume(make_pod(name))
        assert deadlines == [loop.time() + 60.0]

    run(main())


def test_a_thousand_assumptions_of_every_end_leave_no_pod_and_no_timer() -> None:
    async def main() -> None:
        pods = [make_pod(f"pod-{number}") for number in range(1000)]
        fixture = Fixture(*pods)
        for number, pod in enumerate(pods):
            fixture.assume(pod, ("n1", "n2")[number % 2])
            match number % 6:
                case 0:
                    fixture.delete(pod)
                case 1:
                    fixture.update(make_pod(pod.metadata.name, status={"conditions": [UNSCHEDULED]}))
                case 2:
                    fixture.assumptions.on_request(pod)
                case 3:
                    fixture.update(on_node(pod, "n2"))
                    fixture.delete(on_node(pod, "n2"))
                case 4:
                    fixture.update(on_node(pod, "n2"))
                    fixture.delete(on_node(pod, "n2"))
        await asyncio.sleep(61)
        assert len(fixture.assumptions) == 0
        assert fixture.pod_counts() == [0, 0]
        assert dict(fixture.cache.assigned_pods) == {}
        assert set(fixture.events) == {*EVENTS}
        assert {event: fixture.events.count(event) for event in ("assumed", "expired", "confirmed")} == {
            "assumed": 1000, "expired": 166, "confirmed": 167
        }  # fmt: skip
        reference = weakref.ref(fixture.assumptions)
        fixture.assumptions = Assumptions(Cache())
        assert reference() is None  # no timer refers to it

    run(main())
