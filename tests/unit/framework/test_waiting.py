"""Pods that Permit told to wait, in fake time."""

from extender.framework.verdict import SUCCESS, Code, Status
from extender.framework.waiting import WaitingPods
from tests.build import a_cluster, a_pod

QUERY = a_cluster().snapshot().query(a_pod("web"))


def test_the_last_plugin_to_allow_lets_the_pod_go() -> None:
    pods = WaitingPods()
    pod = pods.add(QUERY, "n1", {"A": 10, "B": 20}, now=100)

    pod.allow("A")
    assert pods.settled(now=101) == []

    pod.allow("B")
    assert [done.outcome for done in pods.settled(now=101)] == [SUCCESS]
    assert len(pods) == 0


def test_a_pod_whose_time_runs_out_is_rejected() -> None:
    """Source: A071."""
    pods = WaitingPods()
    pods.add(QUERY, "n1", {"A": 90, "B": 300}, now=100)

    assert pods.next_deadline() == 190
    assert pods.settled(now=189) == []
    (done,) = pods.settled(now=190)
    assert done.outcome == Status(Code.UNSCHEDULABLE, ("rejected due to timeout after waiting 1m30s at plugin A",), "A")


def test_the_first_outcome_stays() -> None:
    pods = WaitingPods()
    pod = pods.add(QUERY, "n1", {"A": 10}, now=0)

    assert pod.reject("A", "removed")
    assert not pod.preempt("DefaultPreemption", "preempted")
    pod.allow("A")

    assert pod.outcome == Status(Code.UNSCHEDULABLE, ("removed",), "A")


def test_a_preempted_pod_fails_with_an_error() -> None:
    pod = WaitingPods().add(QUERY, "n1", {"A": 10}, now=0)

    pod.preempt("DefaultPreemption", "preempted")

    assert pod.outcome == Status(Code.ERROR, ("waiting on permit for pod: preempted",), "DefaultPreemption")


def test_a_plugin_finds_waiting_pods_by_uid() -> None:
    pods = WaitingPods()
    pods.add(QUERY, "n1", {"A": 10}, now=0)

    assert [pod.node for pod in pods] == ["n1"]
    assert pods.get(QUERY.uid) is not None
    assert pods.get("other") is None
    assert WaitingPods().next_deadline() is None
