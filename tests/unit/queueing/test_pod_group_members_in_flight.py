"""Members of a pod group that is in flight in part, in fake time. The queues are those of kube-scheduler 1.37.2.

Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.deletePodGroupMember, PriorityQueue.Activate,
PriorityQueue.AddAttemptedPodGroupIfNeeded, PriorityQueue.collectEntitiesToEvaluate,
PriorityQueue.runPreEnqueuePlugins (1.37).
"""

from typing import Any

import pytest

from extender.config.releases import RELEASE_1_37
from extender.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, EventResource
from extender.framework.status import SUCCESS, Status, unschedulable_status
from extender.queueing.pod_group_queue import PodGroupQueue
from extender.queueing.queued_entities import QueuedPodGroupInfo
from tests.build import make_pod
from tests.pod_group_builders import make_group_member, make_pod_group
from tests.unit.queueing.builders import NODE_ADD, NodeAddPlugin, QueueHarness, make_pod_info

MEMBER, LATE_MEMBER = make_group_member("member"), make_group_member("late")
REJECTED = unschedulable_status("pod group is unschedulable")


def make_harness(**more: Any) -> QueueHarness:
    harness = QueueHarness(gates={"GenericWorkload": True, **more.pop("gates", {})}, release=RELEASE_1_37, **more)
    harness.queue.update_pod_group(None, make_pod_group("ring"), 100)
    return harness


def pop_group(harness: QueueHarness) -> QueuedPodGroupInfo:
    entity = harness.queue.pop()
    assert isinstance(entity, QueuedPodGroupInfo)
    return entity


def end_attempt(harness: QueueHarness, group: QueuedPodGroupInfo, status: Status, now: float) -> None:
    assert isinstance(harness.queue, PodGroupQueue)
    harness.queue.add_attempted_pod_group(group, status, now)


def bind_member_and_reject_late_member(harness: QueueHarness) -> None:
    """Leave *MEMBER* in flight, and *LATE_MEMBER* in the backoff queue until 103."""
    harness.queue.add(make_pod_info(MEMBER), 100)
    group = pop_group(harness)
    harness.queue.add(make_pod_info(LATE_MEMBER), 101)
    end_attempt(harness, group, REJECTED, 102)
    assert list_queues(harness) == {"backoff": 1}


def list_queues(harness: QueueHarness) -> dict[str, int]:
    return {queue: count for queue, count in harness.queue.count_pending_pods().items() if count}


@pytest.mark.parametrize(("now", "queue"), [(103.5, "backoff"), (104.5, "active")])
def test_a_bound_member_queues_the_others_again_if_their_backoff_has_ended(now: float, queue: str) -> None:
    harness = make_harness()
    bind_member_and_reject_late_member(harness)
    harness.queue.delete(MEMBER, now)
    assert list_queues(harness) == {queue: 1}


def test_a_bound_member_without_other_members_changes_nothing() -> None:
    harness = make_harness()
    harness.queue.add(make_pod_info(MEMBER), 100)
    harness.queue.add(make_pod_info(make_pod("plain")), 100)
    end_attempt(harness, pop_group(harness), SUCCESS, 101)
    harness.queue.delete(MEMBER, 102)
    assert list_queues(harness) == {"active": 1}


def test_activating_a_member_in_flight_activates_the_others() -> None:
    harness = make_harness()
    bind_member_and_reject_late_member(harness)
    harness.queue.activate([MEMBER], 102)
    assert list_queues(harness) == {"active": 1}
    assert harness.queue.in_flight_events.count_by_label() == {}


def test_an_activated_member_in_flight_gets_an_event_if_its_group_is_not_queued() -> None:
    harness = make_harness()
    harness.queue.add(make_pod_info(MEMBER), 100)
    pop_group(harness)
    harness.queue.activate([MEMBER], 101)
    assert harness.queue.in_flight_events.count_by_label() == {"ForceActivate": 1}


def test_a_recreated_member_does_not_keep_the_position_of_its_group() -> None:
    harness = make_harness()
    harness.queue.add(make_pod_info(MEMBER), 100)
    group = pop_group(harness)
    harness.queue.delete(MEMBER, 101)
    harness.queue.add(make_pod_info(make_group_member("member", metadata={"uid": "recreated"})), 102)
    harness.queue.done(MEMBER.metadata.uid)
    end_attempt(harness, group, SUCCESS, 103)
    assert pop_group(harness).timestamp == 103


def test_a_group_stays_gated_by_a_member_that_was_gated_later() -> None:
    harness = make_harness()
    harness.gated.add("b")
    for name in ("a", "b"):
        harness.queue.add(make_pod_info(make_group_member(name)), 100)
    harness.gated.add("a")
    harness.queue.move_all_to_active_or_backoff_queue(NODE_ADD, 101)
    entity = harness.queue.find_entity("default/a")
    assert isinstance(entity, QueuedPodGroupInfo)
    harness.gated.remove("b")
    count = harness.pre_enqueue_count
    harness.queue.move_all_to_active_or_backoff_queue(NODE_ADD, 102)
    assert (entity.gating_plugin, harness.pre_enqueue_count - count) == ("NodeAdd", 2)
    assert [(pod.gating_plugin, pod.unschedulable_plugins) for pod in entity.pods] == [
        ("NodeAdd", {"NodeAdd"}),
        ("", {"NodeAdd"}),
    ]


class NarrowPlugin(NodeAddPlugin):
    """A filter for which new nodes concern only the pod `member`."""

    def events_to_register(self) -> tuple[ClusterEventWithHint, ...]:
        return (
            ClusterEventWithHint(
                EventResource.NODE,
                ActionType.ADD,
                pre_hint=lambda _event: lambda pod: pod.pod.metadata.name == "member",
            ),
        )


@pytest.mark.parametrize(("checked", "queue"), [("member", "active"), ("late", "gated")])
def test_the_pre_check_is_for_the_member_that_an_event_concerns(checked: str, queue: str) -> None:
    harness = make_harness(gates={"SchedulerPreQueueingHints": True}, node_add_plugin=NarrowPlugin("NodeAdd"))
    harness.gated.add("member")
    for pod in (MEMBER, LATE_MEMBER):
        harness.queue.add(make_pod_info(pod), 100)
    harness.gated.clear()
    event = ClusterEvent(EventResource.NODE, ActionType.ADD)
    harness.queue.move_all_to_active_or_backoff_queue(event, 101, lambda pod: pod.pod_info.pod.metadata.name == checked)
    assert list_queues(harness) == {queue: 2}
