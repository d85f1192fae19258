"""Members of pod groups in the scheduling queue, in fake time."""

from extender.api.kinds.pod import Pod
from extender.framework.events import ClusterEvent
from tests.build import make_pod
from tests.pod_group_builders import make_group_member
from tests.unit.queueing.builders import NODE_ADD, POD_DELETE, QueueHarness, make_pod_info

WEB = make_group_member("web")


def make_harness() -> QueueHarness:
    return QueueHarness(gates={"GenericWorkload": True})


def pop_all(harness: QueueHarness) -> list[str]:
    """Pop all pods, and return their names."""
    return [pod.key.removeprefix("default/") for _ in range(9) if (pod := harness.queue.pop())]


def test_a_specific_pod_is_popped_from_any_queue() -> None:
    """Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.PopSpecificPod (1.36)."""
    harness = make_harness()
    active, unschedulable, backing_off = make_pod("active"), make_pod("unschedulable"), make_pod("backing-off")
    harness.add_and_reject(unschedulable, "NodeAdd")
    harness.add_and_reject(backing_off, "NodeAdd")
    harness.queue.move_all_to_active_or_backoff_queue(NODE_ADD, 100)
    harness.add_and_reject(unschedulable, "NodeAdd")
    harness.queue.add(make_pod_info(active), 100)

    queued_pods = [
        harness.queue.pop_specific_pod(make_pod_info(pod), 101) for pod in (active, unschedulable, backing_off)
    ]

    assert [pod is not None and pod.uid in harness.queue.in_flight_events for pod in queued_pods] == [True] * 3
    assert sum(harness.queue.count_pending_pods().values()) == 0


def test_popping_a_specific_pod_counts_as_an_attempt() -> None:
    """Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.PopSpecificPod (1.36)."""
    harness = make_harness()
    harness.add_and_reject(WEB, "NodeAdd")
    queued_pod = harness.queue.pop_specific_pod(make_pod_info(WEB), 101)
    assert queued_pod is not None
    assert queued_pod.attempts == 2


def test_a_specific_pod_that_is_in_flight_or_gated_is_not_popped() -> None:
    """The PreEnqueue plugins run again."""
    harness = make_harness()
    harness.add_and_pop(WEB)
    assert harness.queue.pop_specific_pod(make_pod_info(WEB), 101) is None
    gated = make_pod("gated")
    harness.gated.add("gated")
    harness.queue.add(make_pod_info(gated), 100)
    assert harness.queue.pop_specific_pod(make_pod_info(gated), 101) is None
    assert harness.queue.count_pending_pods()["gated"] == 1


def test_a_rejected_member_backs_off_without_an_event() -> None:
    """Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.AddUnschedulableIfNotPresent (1.36)."""
    harness = make_harness()
    harness.add_and_reject(WEB, "NodeAdd")
    assert harness.queue_of(WEB) == "backoff"

    harness.queue.flush_backoff_q_completed(101.9)
    assert harness.queue_of(WEB) == "backoff"
    harness.queue.flush_backoff_q_completed(102)
    assert harness.queue_of(WEB) == "active"


def test_with_the_gate_off_a_rejected_member_waits_for_an_event() -> None:
    harness = QueueHarness()
    harness.add_and_reject(WEB, "NodeAdd")
    assert harness.queue_of(WEB) == "unschedulable"


def test_a_rejected_member_is_popped_from_backoff_q_only_after_an_event() -> None:
    """Source: pkg/scheduler/backend/queue/active_queue.go, activeQueue.unlockedPop (1.36)."""
    harness = make_harness()
    harness.add_and_reject(WEB, "NodeAdd")
    assert pop_all(harness) == []

    harness.queue.move_all_to_active_or_backoff_queue(POD_DELETE, 100)

    assert pop_all(harness) == ["web"]


def test_a_member_that_an_event_moves_to_backoff_q_is_popped_before_the_next_event() -> None:
    """It was gated after its attempt, because it waited for the eviction of its victims.

    Source: pkg/scheduler/backend/queue/active_queue.go, activeQueue.unlockedPop (1.36).
    """
    harness = make_harness()
    queued_pod = harness.add_and_pop(WEB)
    queued_pod.unschedulable_plugins = frozenset({"NodeAdd"})
    harness.gated.add("web")
    harness.queue.add_unschedulable_if_not_present(queued_pod, 100)
    assert harness.queue_of(WEB) == "gated"

    harness.gated.clear()
    harness.queue.move_all_to_active_or_backoff_queue(NODE_ADD, 100)

    assert harness.queue_of(WEB) == "backoff"
    assert pop_all(harness) == ["web"]


def test_a_member_that_no_plugin_rejected_is_not_popped_from_backoff_q() -> None:
    """It counts as one with an error."""
    harness = make_harness()
    harness.add_and_reject(WEB)
    harness.queue.move_all_to_active_or_backoff_queue(NODE_ADD, 100)
    assert pop_all(harness) == []
    assert harness.queue_of(WEB) == "backoff"


def test_an_updated_member_in_backoff_q_is_queued_once() -> None:
    harness = make_harness()
    harness.add_and_reject(WEB, "NodeAdd")
    updated: Pod = make_group_member("web", priority=3)

    harness.queue.update(make_pod_info(updated), [ClusterEvent(NODE_ADD.resource, NODE_ADD.action)], 100)

    assert harness.queue.count_pending_pods()["backoff"] == 1
    harness.queue.delete(WEB, 100)
    assert sum(harness.queue.count_pending_pods().values()) == 0


def test_a_member_with_a_later_error_is_not_released_with_the_rejected_ones() -> None:
    harness = make_harness()
    harness.add_and_reject(WEB, "NodeAdd")
    queued_pod = harness.queue.pop_specific_pod(make_pod_info(WEB), 100)
    assert queued_pod is not None
    queued_pod.unschedulable_plugins = frozenset()
    harness.queue.add_unschedulable_if_not_present(queued_pod, 100)

    harness.queue.move_all_to_active_or_backoff_queue(NODE_ADD, 100)

    assert pop_all(harness) == []
