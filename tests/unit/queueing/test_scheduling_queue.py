"""Moves of pods between the queues, in fake time."""

from typing import Any

import pytest

from extender.config.releases import RELEASE_1_37
from extender.framework.events import ActionType, ClusterEvent, EventResource, QueueingHint
from extender.framework.status import Code
from extender.queueing.entity_queues import QueueSettings
from extender.queueing.pod_group_queue import make_scheduling_queue
from extender.queueing.queued_entities import QueuedPodInfo
from tests.build import make_pod
from tests.unit.cycle.fakes import make_profile
from tests.unit.queueing.builders import NODE_ADD, POD_DELETE, QueueHarness, make_pod_info

WEB = make_pod("web")


def test_pods_are_popped_by_priority_then_by_timestamp() -> None:
    harness = QueueHarness()
    for name, priority, now in (("old", 0, 1), ("young", 0, 2), ("urgent", 9, 3)):
        harness.queue.add(make_pod_info(make_pod(name, priority=priority)), now)

    names = [pod.key.removeprefix("default/") for _ in range(3) if (pod := harness.queue.pop())]

    assert names == ["urgent", "old", "young"]
    assert harness.queue.pop() is None


def test_a_rejected_pod_waits_for_an_event_that_its_plugin_registered_for() -> None:
    harness = QueueHarness()
    harness.add_and_reject(WEB, "NodeAdd")
    assert harness.queue_of(WEB) == "unschedulable"

    harness.queue.move_all_to_active_or_backoff_queue(POD_DELETE, 101)
    assert harness.queue_of(WEB) == "unschedulable"

    harness.queue.move_all_to_active_or_backoff_queue(NODE_ADD, 101)
    assert harness.queue_of(WEB) == "backoff"


def test_after_its_backoff_an_event_moves_a_pod_to_active_q() -> None:
    harness = QueueHarness()
    harness.add_and_reject(WEB, "NodeAdd")

    harness.queue.move_all_to_active_or_backoff_queue(NODE_ADD, 102)

    assert harness.queue_of(WEB) == "active"


def test_any_event_requeues_a_pod_of_a_plugin_without_registered_events() -> None:
    harness = QueueHarness()
    harness.add_and_reject(WEB, "AnyEvent")

    harness.queue.move_all_to_active_or_backoff_queue(POD_DELETE, 102)

    assert harness.queue_of(WEB) == "active"


@pytest.mark.parametrize(
    ("hint", "queue"),
    [
        (lambda pod, event: QueueingHint.SKIP, "unschedulable"),
        (lambda pod, event: QueueingHint.QUEUE, "active"),
        (lambda pod, event: 1 / 0, "active"),
    ],
    ids=["QueueSkip", "Queue", "a failing hint counts as Queue"],
)
def test_the_queueing_hint_decides(hint: Any, queue: str) -> None:
    """Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.isPodWorthRequeuing (1.36)."""
    harness = QueueHarness()
    harness.node_add_plugin.hint = staticmethod(hint)
    harness.queue = make_scheduling_queue(
        {"default-scheduler": make_profile(harness.node_add_plugin)}, harness.run_pre_enqueue, QueueSettings()
    )
    harness.add_and_reject(WEB, "NodeAdd")

    harness.queue.move_all_to_active_or_backoff_queue(NODE_ADD, 102)

    assert harness.queue_of(WEB) == queue


def test_events_while_a_pod_is_in_flight_count_when_it_is_requeued() -> None:
    """Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.determineSchedulingHintForInFlightPod
    (1.36).
    """
    harness = QueueHarness()
    pod = harness.add_and_pop(WEB)
    harness.queue.move_all_to_active_or_backoff_queue(NODE_ADD, 100.5)
    pod.unschedulable_plugins = frozenset({"NodeAdd"})

    harness.queue.add_unschedulable_if_not_present(pod, 101)

    assert harness.queue_of(WEB) == "backoff"
    assert len(harness.queue.in_flight_events) == 0
    assert harness.queue.in_flight_events.count_by_label().total() == 0


def test_events_before_a_pod_was_popped_do_not_count() -> None:
    harness = QueueHarness()
    other = harness.add_and_pop(make_pod("other"))
    harness.queue.move_all_to_active_or_backoff_queue(NODE_ADD, 100)
    pod = harness.add_and_pop(WEB)
    pod.unschedulable_plugins = frozenset({"NodeAdd"})

    harness.queue.add_unschedulable_if_not_present(pod, 101)

    assert harness.queue_of(WEB) == "unschedulable"
    harness.queue.done(other.uid)
    assert harness.queue.in_flight_events.count_by_label().total() == 0


def test_a_pod_with_an_error_backs_off() -> None:
    harness = QueueHarness()
    pod = harness.add_and_pop(WEB)

    harness.queue.add_unschedulable_if_not_present(pod, 100)

    assert harness.queue_of(WEB) == "backoff"
    assert not harness.queue.can_pop
    harness.queue.flush_backoff_q_completed(102)
    assert harness.queue_of(WEB) == "active"


def test_an_event_of_a_pending_plugin_skips_the_backoff() -> None:
    """Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.isPodWorthRequeuing (1.36)."""
    harness = QueueHarness()
    harness.add_and_reject(WEB, "AnyEvent", pending=frozenset({"NodeAdd"}))

    harness.queue.move_all_to_active_or_backoff_queue(NODE_ADD, 100.1)

    assert harness.queue_of(WEB) == "active"


def test_pods_are_popped_from_backoff_q_when_active_q_is_empty() -> None:
    """Source: pkg/scheduler/backend/queue/active_queue.go, activeQueue.unlockedPop (1.36)."""
    harness = QueueHarness()
    harness.add_and_reject(WEB, "NodeAdd")
    harness.queue.move_all_to_active_or_backoff_queue(NODE_ADD, 100.1)

    assert harness.queue.can_pop
    pod = harness.queue.pop()

    assert pod is not None
    assert pod.attempts == 2
    assert ("active", "PopFromBackoffQ") in harness.moves


def test_a_gated_pod_is_unschedulable_until_an_event_of_its_gating_plugin() -> None:
    harness = QueueHarness(gated={"web"})
    harness.queue.add(make_pod_info(WEB), 100)
    assert harness.queue_of(WEB) == "gated"
    harness.queue.move_all_to_active_or_backoff_queue(POD_DELETE, 101)
    assert harness.queue_of(WEB) == "gated"

    harness.gated.clear()
    harness.queue.move_all_to_active_or_backoff_queue(NODE_ADD, 102)

    assert harness.queue_of(WEB) == "active"


def test_a_pod_that_missed_an_event_while_it_was_gated_is_retried() -> None:
    harness = QueueHarness(gated={"web"})
    harness.queue.add(make_pod_info(WEB), 100)
    harness.queue.move_all_to_active_or_backoff_queue(NODE_ADD, 101)
    assert harness.queue_of(WEB) == "gated"

    harness.gated.clear()
    harness.queue.retry_gated_pod(WEB.key, 102)

    assert harness.queue_of(WEB) == "active"


def test_a_gated_pod_that_missed_no_event_is_not_retried() -> None:
    harness = QueueHarness(gated={"web"})
    harness.queue.add(make_pod_info(WEB), 100)

    harness.gated.clear()
    harness.queue.retry_gated_pod(WEB.key, 102)

    assert harness.queue_of(WEB) == "gated"


def test_a_pod_that_is_gated_after_an_attempt_with_events_is_retried() -> None:
    harness = QueueHarness()
    harness.queue.add(make_pod_info(WEB), 100)
    pod = harness.queue.pop()
    assert isinstance(pod, QueuedPodInfo)
    pod.unschedulable_plugins = frozenset({"NodeAdd"})
    harness.queue.move_all_to_active_or_backoff_queue(NODE_ADD, 101)
    harness.gated.add("web")
    harness.queue.add_unschedulable_if_not_present(pod, 101)
    assert harness.queue_of(WEB) == "gated"

    harness.gated.clear()
    harness.queue.retry_gated_pod(WEB.key, 103)

    assert harness.queue_of(WEB) == "active"


def test_a_pod_that_is_gated_after_an_attempt_without_events_is_not_retried() -> None:
    harness = QueueHarness()
    harness.queue.add(make_pod_info(WEB), 100)
    pod = harness.queue.pop()
    assert isinstance(pod, QueuedPodInfo)
    harness.gated.add("web")
    harness.queue.add_unschedulable_if_not_present(pod, 101)  # an error, so that the pod would back off
    assert harness.queue_of(WEB) == "gated"

    harness.gated.clear()
    harness.queue.retry_gated_pod(WEB.key, 103)

    assert harness.queue_of(WEB) == "gated"


def test_a_gated_pod_is_not_requeued_by_the_timeout() -> None:
    """Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.movePodsToActiveOrBackoffQueue (1.36)."""
    harness = QueueHarness(gated={"web"})
    harness.queue.add(make_pod_info(WEB), 100)
    harness.gated.clear()

    harness.queue.flush_unschedulable_pods_leftover(1000)

    assert harness.queue_of(WEB) == "gated"


def test_since_1_37_the_timeout_evaluates_gated_pods_again() -> None:
    """Source: pkg/scheduler/backend/queue/scheduling_queue.go, flushUnschedulableEntitiesLeftover (1.37)."""
    harness = QueueHarness(gated={"web"}, release=RELEASE_1_37)
    harness.queue.add(make_pod_info(WEB), 100)
    pod = harness.queue.get_pod(WEB.key)
    assert pod is not None
    assert harness.moves == [("unschedulable", "UnscheduledPodAdd")]

    harness.queue.flush_unschedulable_pods_leftover(401)
    assert harness.queue_of(WEB) == "gated"
    assert not pod.was_flushed_from_unschedulable

    harness.gated.clear()
    harness.queue.flush_unschedulable_pods_leftover(700)
    assert harness.queue_of(WEB) == "gated"  # the age counts from the last flush

    harness.queue.flush_unschedulable_pods_leftover(702)
    assert harness.queue_of(WEB) == "active"
    assert pod.was_flushed_from_unschedulable


def test_a_pod_that_was_unschedulable_for_too_long_is_requeued() -> None:
    """Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.flushUnschedulablePodsLeftover (1.36)."""
    harness = QueueHarness()
    pod = harness.add_and_reject(WEB, "NodeAdd")

    harness.queue.flush_unschedulable_pods_leftover(400)
    assert harness.queue_of(WEB) == "unschedulable"

    harness.queue.flush_unschedulable_pods_leftover(400.1)
    assert harness.queue_of(WEB) == "active"
    assert pod.was_flushed_from_unschedulable


def test_an_activated_pod_moves_to_active_q() -> None:
    harness = QueueHarness()
    harness.add_and_reject(WEB, "NodeAdd")

    harness.queue.activate([WEB], 100)

    assert harness.queue_of(WEB) == "active"


def test_a_pod_activated_in_flight_is_requeued_to_backoff_q() -> None:
    """Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.Activate (1.36)."""
    harness = QueueHarness()
    pod, other = harness.add_and_pop(WEB), harness.add_and_pop(make_pod("other"))
    harness.queue.activate([WEB], 100)
    pod.unschedulable_plugins = other.unschedulable_plugins = frozenset({"NodeAdd"})

    harness.queue.add_unschedulable_if_not_present(pod, 100)
    harness.queue.add_unschedulable_if_not_present(other, 100)

    assert harness.queue.count_pending_pods() == {"active": 0, "backoff": 1, "unschedulable": 1, "gated": 0}


def test_an_update_of_an_unschedulable_pod_requeues_it_if_its_plugin_registered_for_it() -> None:
    harness = QueueHarness()
    harness.add_and_reject(WEB, "AnyEvent")
    event = ClusterEvent(EventResource.TARGET_POD, ActionType.UPDATE_POD_LABEL, old=WEB, new=WEB)

    harness.queue.update(make_pod_info(make_pod("web", labels={"a": "b"})), [event], 102)

    assert harness.queue_of(WEB) == "active"


def test_an_updated_priority_changes_the_order() -> None:
    harness = QueueHarness()
    for name in ("web", "db"):
        harness.queue.add(make_pod_info(make_pod(name)), 1)

    harness.queue.update(make_pod_info(make_pod("db", priority=5)), [], 2)

    first = harness.queue.pop()
    assert first is not None
    assert first.key == "default/db"


def test_an_update_of_an_unknown_pod_adds_it() -> None:
    """Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.Update (1.36)."""
    harness = QueueHarness()

    harness.queue.update(make_pod_info(WEB), [], 100)

    assert harness.queue_of(WEB) == "active"


def test_a_deleted_pod_is_in_no_queue() -> None:
    harness = QueueHarness()
    harness.add_and_reject(WEB, "NodeAdd")

    harness.queue.delete(WEB, 100)
    harness.queue.move_all_to_active_or_backoff_queue(NODE_ADD, 102)

    assert harness.queue_of(WEB) == "none"


def test_a_pod_in_flight_is_not_popped_twice() -> None:
    """Source: pkg/scheduler/backend/queue/active_queue.go, activeQueue.unlockedMovePodToInFlight (1.36)."""
    harness = QueueHarness()
    harness.add_and_pop(WEB)
    harness.queue.add(make_pod_info(WEB), 101)

    assert harness.queue.pop() is None


def test_rejections_and_errors_are_counted_separately() -> None:
    """A rejection resets the count of errors, an error does not reset that of rejections."""
    harness = QueueHarness()
    pod = harness.add_and_reject(WEB, "NodeAdd")
    assert (pod.unschedulable_count, pod.consecutive_error_count, pod.backoff_count) == (1, 0, 1)

    harness.queue.move_all_to_active_or_backoff_queue(NODE_ADD, 110)
    assert harness.queue.pop() is pod
    pod.unschedulable_plugins = frozenset()
    harness.queue.add_unschedulable_if_not_present(pod, 110)
    assert (pod.unschedulable_count, pod.consecutive_error_count, pod.backoff_count) == (1, 1, 1)

    harness.queue.flush_backoff_q_completed(120)
    assert harness.queue.pop() is pod
    pod.unschedulable_plugins = frozenset({"NodeAdd"})
    harness.queue.add_unschedulable_if_not_present(pod, 120)
    assert (pod.unschedulable_count, pod.consecutive_error_count, pod.backoff_count) == (2, 0, 2)


def test_an_event_that_no_plugin_registered_for_moves_no_pod() -> None:
    harness = QueueHarness()
    harness.queue = make_scheduling_queue(
        {"default-scheduler": make_profile(harness.node_add_plugin)}, harness.run_pre_enqueue, QueueSettings()
    )
    harness.add_and_reject(WEB, "NodeAdd")
    harness.moves.clear()

    harness.queue.move_all_to_active_or_backoff_queue(ClusterEvent(EventResource.STORAGE_CLASS, ActionType.ADD), 102)

    assert harness.moves == []
    assert Code.UNRESOLVABLE.label == "UnschedulableAndUnresolvable"


def test_all_queues_of_pods_are_counted_since_1_37() -> None:
    """Source: pkg/scheduler/metrics/metrics.go, pendingPods (1.37)."""
    queue = QueueHarness(release=RELEASE_1_37).queue
    queues = ["active", "backoff", "gated", "incomplete", "pending", "unschedulable"]
    assert sorted(queue.count_pending_pods()) == queues


@pytest.mark.parametrize(
    ("rejectors", "queue"),
    [
        pytest.param(frozenset({"NodeAdd"}), "unschedulable", id="rejected: the strategy is SKIP"),
        pytest.param(frozenset(), "backoff", id="an error: the strategy is AFTER_BACKOFF"),
    ],
)
def test_an_entity_in_the_queue_of_its_strategy_is_not_counted(rejectors: frozenset[str], queue: str) -> None:
    """As upstream: the pod counts as incoming, the entity does not."""
    harness = QueueHarness(release=RELEASE_1_37)
    queued_pod = harness.add_and_pop(WEB)
    assert harness.counted_entities == [("active", "UnscheduledPodAdd", "pod")]
    queued_pod.unschedulable_plugins = rejectors
    harness.queue.add_unschedulable_if_not_present(queued_pod, 100)
    assert harness.moves == [("active", "UnscheduledPodAdd"), (queue, "ScheduleAttemptFailure")]
    assert harness.counted_entities == [("active", "UnscheduledPodAdd", "pod")]


def test_an_entity_that_moves_to_another_queue_is_counted() -> None:
    harness = QueueHarness()
    harness.add_and_reject(WEB, "NodeAdd")
    harness.counted_entities.clear()
    harness.queue.move_all_to_active_or_backoff_queue(NODE_ADD, 200)
    assert harness.counted_entities == [("active", "NodeAdd", "pod")]
