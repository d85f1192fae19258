"""Pods that wait after Permit, in fake time."""

from extender.framework.status import SUCCESS, Code, Status
from extender.framework.waiting_pods import WaitingPods, WaitingPodSignal, make_rejections
from tests.build import make_cluster, make_pod

POD_INFO = make_cluster().snapshot().make_pod_info(make_pod("web"))


def test_the_last_plugin_that_allows_a_pod_ends_its_wait() -> None:
    pods = WaitingPods()
    pod = pods.add(POD_INFO, "n1", {"A": 10, "B": 20}, now=100)

    pod.allow("A")
    assert pods.pop_decided_pods(now=101) == []

    pod.allow("B")
    assert [decided.status for decided in pods.pop_decided_pods(now=101)] == [SUCCESS]
    assert len(pods) == 0


def test_a_pod_is_rejected_after_its_timeout() -> None:
    """Source: pkg/scheduler/framework/runtime/waiting_pods_map.go, newWaitingPod (1.36)."""
    pods = WaitingPods()
    pods.add(POD_INFO, "n1", {"A": 90, "B": 300}, now=100)

    assert pods.pop_decided_pods(now=189) == []
    (decided,) = pods.pop_decided_pods(now=190)
    assert decided.status == Status(
        Code.UNSCHEDULABLE, ("rejected due to timeout after waiting 1m30s at plugin A",), "A"
    )


def test_the_first_status_is_final() -> None:
    pods = WaitingPods()
    pod = pods.add(POD_INFO, "n1", {"A": 10}, now=0)

    assert pod.reject("A", "removed")
    assert not pod.preempt("DefaultPreemption", "preempted")
    pod.allow("A")

    assert pod.status == Status(Code.UNSCHEDULABLE, ("removed",), "A")


def test_a_preempted_pod_fails_with_an_error() -> None:
    pod = WaitingPods().add(POD_INFO, "n1", {"A": 10}, now=0)

    pod.preempt("DefaultPreemption", "preempted")

    assert pod.status == Status(Code.ERROR, ("waiting on permit for pod: preempted",), "DefaultPreemption")


def test_waiting_pods_are_found_by_uid() -> None:
    pods = WaitingPods()
    pods.add(POD_INFO, "n1", {"A": 10}, now=0)

    assert [pod.node_name for pod in pods] == ["n1"]
    assert pods.get(POD_INFO.uid) is not None
    assert pods.get("other") is None


def test_signals_decide_in_their_order_and_skip_pods_that_do_not_wait() -> None:
    """Source: pkg/scheduler/framework/runtime/waiting_pods_map.go, waitingPod.Allow, waitingPod.Reject (1.36)."""
    pods = WaitingPods()
    other_pod_info = make_cluster().snapshot().make_pod_info(make_pod("other"))
    allowed = pods.add(POD_INFO, "n1", {"A": 10}, now=0)
    rejected = pods.add(other_pod_info, "n1", {"A": 10, "B": 10}, now=0)

    pods.send(
        [
            WaitingPodSignal("A", POD_INFO.uid),
            *make_rejections("B", {POD_INFO.uid: "too late", "unknown": "nobody"}),
            WaitingPodSignal("A", other_pod_info.uid),
            *make_rejections("B", {other_pod_info.uid: "in time"}),
            WaitingPodSignal("B", other_pod_info.uid),
        ]
    )

    assert (allowed.status, rejected.status) == (SUCCESS, Status(Code.UNSCHEDULABLE, ("in time",), "B"))
