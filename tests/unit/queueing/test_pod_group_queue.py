"""Pod groups as entities of the scheduling queue, in fake time.

Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.addPodGroupMember,
PriorityQueue.AddAttemptedPodGroupIfNeeded (1.37).
"""

from typing import Any

import pytest

from extender.api.kinds.pod import Pod
from extender.config.releases import RELEASE_1_37
from extender.framework.status import SUCCESS, Status, error_status, unschedulable_status
from extender.queueing.entity_queues import QueueSettings
from extender.queueing.pod_group_queue import PodGroupQueue
from extender.queueing.queued_entities import QueuedPodGroupInfo
from tests.build import make_pod
from tests.pod_group_builders import make_child_group, make_composite_group, make_group_member, make_pod_group
from tests.unit.queueing.builders import NODE_ADD, QueueHarness, make_pod_info

RING = make_pod_group("ring", min_count=2, priority=5)
REJECTED = unschedulable_status("pod group is unschedulable")


def make_harness(*groups: Any, **settings: float) -> QueueHarness:
    harness = QueueHarness(settings=QueueSettings(**settings), gates={"GenericWorkload": True}, release=RELEASE_1_37)
    assert isinstance(harness.queue, PodGroupQueue)
    for group in groups:
        harness.queue.update_pod_group(None, group, 100)
    return harness


def add(harness: QueueHarness, names: str, now: float = 100, **more: Any) -> list[Pod]:
    """Add members of the group, one per letter."""
    pods = [make_group_member(name, **more) for name in names]
    for pod in pods:
        harness.queue.add(make_pod_info(pod), now)
    return pods


def pop_group(harness: QueueHarness) -> QueuedPodGroupInfo:
    entity = harness.queue.pop()
    assert isinstance(entity, QueuedPodGroupInfo)
    return entity


def names(entity: Any) -> str:
    return "".join(pod.pod_info.pod.metadata.name for pod in entity.pods)


def end_attempt(harness: QueueHarness, group: QueuedPodGroupInfo, status: Status, failed: str, now: float) -> None:
    """Return the members *failed* to the queue, and end the attempt."""
    assert isinstance(harness.queue, PodGroupQueue)
    for member in list(group.members):
        if member.pod_info.pod.metadata.name in failed:
            member.unschedulable_plugins = frozenset({"NodeAdd"})
            harness.queue.add_unschedulable_if_not_present(member, now)
        else:
            harness.queue.done(member.uid)
    harness.queue.add_attempted_pod_group(group, status, now)


def counts(harness: QueueHarness) -> dict[str, int]:
    return {queue: count for queue, count in harness.queue.count_pending_pods().items() if count}


def test_a_group_is_popped_once_with_all_its_members() -> None:
    harness = make_harness(RING)
    pods = add(harness, "ab")
    assert counts(harness) == {"active": 2}
    assert harness.queue.count_entities()["active", "podgroup"] == 1
    assert harness.counted_entities == [("active", "UnscheduledPodAdd", "podgroup")]
    group = pop_group(harness)
    assert (group.group_key, names(group), group.attempts) == (("default", "ring", False), "ab", 1)
    assert [pod.metadata.uid in harness.queue.in_flight_events for pod in pods] == [True, True]
    assert harness.queue.pop() is None


def test_the_priority_of_the_group_orders_it_among_pods() -> None:
    harness = make_harness(RING)
    for name, priority in (("low", 4), ("high", 6)):
        harness.queue.add(make_pod_info(make_pod(name, priority=priority)), 99)
    add(harness, "a")
    popped = [harness.queue.pop() for _ in range(3)]
    assert [names(entity) for entity in popped] == ["high", "a", "low"]


def test_members_wait_until_their_group_exists() -> None:
    harness = make_harness()
    add(harness, "ab")
    assert counts(harness) == {"incomplete": 2}
    assert harness.queue.pop() is None
    harness.queue.update_pod_group(None, RING, 101)
    assert names(pop_group(harness)) == "ab"


def test_deleted_members_without_a_group_leave_nothing() -> None:
    harness = make_harness()
    assert isinstance(harness.queue, PodGroupQueue)
    for pod in add(harness, "ab"):
        harness.queue.delete(pod, 100)
    assert (harness.queue._incomplete, harness.queue._group_keys) == ({}, {})


def test_a_member_that_arrives_during_the_attempt_waits_for_its_end() -> None:
    harness = make_harness(RING)
    add(harness, "a")
    group = pop_group(harness)
    add(harness, "b", 101)
    assert counts(harness) == {"pending": 1}
    end_attempt(harness, group, REJECTED, "a", 102)
    assert counts(harness) == {"backoff": 2}
    harness.queue.flush_backoff_q_completed(104)
    assert names(pop_group(harness)) == "ab"


@pytest.mark.parametrize(
    ("status", "failed", "queue", "timestamp", "failures"),
    [
        pytest.param(REJECTED, "ab", "backoff", 102, (1, 0), id="a rejected group backs off"),
        pytest.param(error_status("x"), "ab", "backoff", 102, (0, 1), id="a group with an error backs off"),
        pytest.param(SUCCESS, "b", "active", 100, (0, 0), id="members that remain keep the position of the group"),
        pytest.param(SUCCESS, "", "", 0, (0, 0), id="a group without members is not queued"),
    ],
)
def test_the_end_of_an_attempt_queues_what_remains(
    status: Status, failed: str, queue: str, timestamp: float, failures: tuple[int, int]
) -> None:
    harness = make_harness(RING)
    add(harness, "ab")
    end_attempt(harness, pop_group(harness), status, failed, 102)
    assert counts(harness) == ({queue: len(failed)} if queue else {})
    harness.queue.flush_backoff_q_completed(104)
    if queue:
        group = pop_group(harness)
        assert (group.timestamp, group.attempts, group.initial_attempt_timestamp) == (timestamp, 2, 100)
        assert (group.unschedulable_count, group.consecutive_error_count) == failures


def test_members_that_arrive_during_a_successful_attempt_queue_at_its_end() -> None:
    harness = make_harness(RING)
    add(harness, "a")
    group = pop_group(harness)
    add(harness, "b", 101)
    end_attempt(harness, group, SUCCESS, "", 102)
    group = pop_group(harness)
    assert (names(group), group.timestamp) == ("b", 102)


def test_no_member_is_lost_when_the_binding_of_another_pod_fails_during_the_attempt() -> None:
    harness = make_harness(RING)
    harness.queue.add(make_pod_info(make_pod("single")), 100)
    (single,) = (entity.pods[0] for entity in (harness.queue.pop(),) if entity is not None)
    add(harness, "ab", 101)
    group = pop_group(harness)
    add(harness, "c", 102)
    harness.queue.add_unschedulable_if_not_present(single, 103)
    end_attempt(harness, group, REJECTED, "ab", 104)
    assert names(harness.queue.find_entity("default/c")) == "abc"


def test_consecutive_errors_of_a_group_add_up() -> None:
    harness = make_harness(RING)
    add(harness, "a")
    for now in (100, 200):
        end_attempt(harness, pop_group(harness), error_status("x"), "a", now)
        harness.queue.flush_backoff_q_completed(now + 100)
    assert pop_group(harness).consecutive_error_count == 2


def test_a_rejected_group_without_a_backoff_is_queued_at_once() -> None:
    harness = make_harness(RING, max_backoff=0.0)
    add(harness, "a")
    end_attempt(harness, pop_group(harness), REJECTED, "a", 100)
    assert counts(harness) == {"active": 1}


def test_the_backoff_of_a_group_grows_to_ten_seconds_times_the_root_of_its_size() -> None:
    """Source: pkg/scheduler/backend/queue/backoff_queue.go, backoffQueue.calculateBackoffDuration (1.37)."""
    harness, now, waits = make_harness(RING), 100.0, []
    add(harness, "abcd")
    for _ in range(7):
        group = pop_group(harness)
        end_attempt(harness, group, REJECTED, "abcd", now)
        started = now
        while not harness.queue.count_pending_pods()["active"]:
            now += 1
            harness.queue.flush_backoff_q_completed(now)
        waits.append(now - started - 1)  # a backoff that expires in this second is flushed in the next one
    assert waits == [1, 2, 4, 8, 16, 20, 20]


def test_a_group_that_backs_off_is_not_popped_early_and_ignores_events() -> None:
    """Source: pkg/scheduler/backend/queue/backoff_queue.go, backoffQueue.add (1.37)."""
    harness = make_harness(RING)
    add(harness, "a")
    end_attempt(harness, pop_group(harness), REJECTED, "a", 100)
    harness.queue.move_all_to_active_or_backoff_queue(NODE_ADD, 100)
    assert harness.queue.pop() is None


def test_one_gated_member_gates_its_group() -> None:
    """Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.runPreEnqueuePlugins (1.37)."""
    harness = make_harness(RING)
    harness.gated.add("b")
    add(harness, "ab")
    assert counts(harness) == {"gated": 2}
    harness.gated.clear()
    harness.queue.move_all_to_active_or_backoff_queue(NODE_ADD, 101)
    group = pop_group(harness)
    assert (names(group), group.gating_plugin) == ("ab", "")


def test_the_members_of_a_gated_group_are_checked_once_until_the_last_gated_one_passes() -> None:
    """Otherwise the time for a gang whose members arrive one by one grows with the square of its size."""
    harness, members = make_harness(RING), "abcdefghijklmnopqrst"
    harness.gated.update(members)
    for name in members:
        add(harness, name)
        harness.queue.move_all_to_active_or_backoff_queue(NODE_ADD, 101)
    assert counts(harness) == {"gated": 20}
    assert harness.pre_enqueue_count < 50
    assert {harness.queue.get_pod(f"default/{name}").gating_plugin for name in members} == {"NodeAdd"}  # type: ignore[union-attr]

    harness.gated.remove("t")
    harness.queue.move_all_to_active_or_backoff_queue(NODE_ADD, 102)
    harness.queue.delete(make_group_member("s"), 102)
    harness.queue.move_all_to_active_or_backoff_queue(NODE_ADD, 103)
    assert counts(harness) == {"gated": 19}

    harness.gated.clear()
    harness.queue.move_all_to_active_or_backoff_queue(NODE_ADD, 104)
    assert names(pop_group(harness)) == "abcdefghijklmnopqrt"


def test_a_deleted_gated_member_lets_its_group_pass_on_the_next_event() -> None:
    harness = make_harness(RING)
    harness.gated.add("c")
    _, second, third = add(harness, "abc")
    harness.queue.delete(third, 101)
    assert counts(harness) == {"gated": 2}
    harness.queue.move_all_to_active_or_backoff_queue(NODE_ADD, 102)
    assert counts(harness) == {"active": 2}
    harness.queue.delete(second, 103)
    assert names(pop_group(harness)) == "a"


@pytest.mark.parametrize(("has_event", "queue"), [(True, "backoff"), (False, "gated")])
def test_a_group_that_was_gated_is_retried_only_for_an_event_during_its_attempt(has_event: bool, queue: str) -> None:
    """For example, its victims were deleted during the attempt, so that no later event requeues it."""
    harness = make_harness(RING)
    add(harness, "ab")
    group = pop_group(harness)
    if has_event:
        harness.queue.move_all_to_active_or_backoff_queue(NODE_ADD, 101)
    harness.gated.update("ab")
    end_attempt(harness, group, REJECTED, "ab", now=101)
    assert counts(harness) == {"gated": 2}

    harness.gated.clear()
    harness.queue.retry_gated_pod("default/a", 101)
    assert counts(harness) == {queue: 2}


def test_a_gated_group_without_members_is_removed() -> None:
    harness = make_harness(RING)
    harness.gated.add("a")
    (pod,) = add(harness, "a")
    harness.queue.delete(pod, 101)
    assert counts(harness) == {}


def test_members_of_a_deleted_group_are_incomplete() -> None:
    harness = make_harness(RING)
    add(harness, "ab")
    harness.queue.update_pod_group(RING, None, 101)
    assert counts(harness) == {"incomplete": 2}
    assert sorted(pod.key for pod in harness.queue) == ["default/a", "default/b"]


def test_an_updated_member_is_updated_where_it_is() -> None:
    harness = make_harness(RING)
    add(harness, "a")
    changed = make_group_member("a", labels={"changed": "yes"})
    harness.queue.update(make_pod_info(changed), (), 101)
    (member,) = pop_group(harness).members
    assert member.pod_info.pod.metadata.labels == {"changed": "yes"}


def test_an_updated_member_that_is_in_no_queue_waits_for_its_group_outside() -> None:
    """Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.Update (1.37)."""
    harness = make_harness()
    member = make_pod_info(make_group_member("a"))
    harness.queue.update(member, (), 100)
    assert counts(harness) == {}
    harness.queue.update_pod_group(None, RING, 101)
    harness.queue.update(member, (), 102)
    assert counts(harness) == {"active": 1}


def test_activating_a_member_activates_its_group() -> None:
    harness = make_harness(RING)
    pods = add(harness, "ab")
    end_attempt(harness, pop_group(harness), REJECTED, "ab", 100)
    harness.queue.activate([pods[0]], 100)
    assert counts(harness) == {"active": 2}


def test_a_member_that_cannot_be_bound_is_queued_with_its_group() -> None:
    harness = make_harness(RING)
    add(harness, "ab")
    group = pop_group(harness)
    late = group.members[0]
    assert isinstance(harness.queue, PodGroupQueue)
    harness.queue.add_attempted_pod_group(group, SUCCESS, 101)
    harness.queue.add_unschedulable_if_not_present(late, 102)
    assert counts(harness) == {"active": 1}
    group = pop_group(harness)
    assert (names(group), group.initial_attempt_timestamp) == ("a", 100)


def test_a_member_on_a_node_is_queued_alone_for_its_resize() -> None:
    """Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.isPodGroupMember (1.37)."""
    harness = make_harness(RING)
    harness.queue.add(make_pod_info(make_group_member("a", node="n1")), 100)
    (pod,) = harness.queue.pop().pods  # type: ignore[union-attr]
    pod.unschedulable_plugins = frozenset({"NodeAdd"})
    harness.queue.add_unschedulable_if_not_present(pod, 100)
    assert harness.queue.count_entities()["unschedulable", "pod"] == 1


# -- composite pod groups

ROOT = make_composite_group("root", priority=5)


def make_tree_harness(*groups: Any) -> QueueHarness:
    harness = QueueHarness(gates={"GenericWorkload": True, "CompositePodGroup": True}, release=RELEASE_1_37)
    for group in groups:
        harness.queue.update_pod_group(None, group, 100)
    return harness


def test_the_root_of_a_tree_is_popped_with_the_members_of_all_its_pod_groups() -> None:
    harness = make_tree_harness(ROOT, make_child_group("x"), make_child_group("y"))
    add(harness, "a", group="x")
    add(harness, "b", group="y")
    assert harness.queue.count_entities()["active", "podgroup"] == 1
    entity = pop_group(harness)
    assert (entity.key, entity.priority, names(entity)) == ("compositepodgroup/default/root", 5, "ab")


@pytest.mark.parametrize("missing", ["root", "middle", "x"])
def test_members_wait_until_all_groups_above_them_exist(missing: str) -> None:
    groups = [ROOT, make_composite_group("middle", parent="root"), make_child_group("x", parent="middle")]
    harness = make_tree_harness(*(group for group in groups if group.metadata.name != missing))
    add(harness, "a", group="x")
    assert counts(harness) == {"incomplete": 1}
    (group,) = (group for group in groups if group.metadata.name == missing)
    harness.queue.update_pod_group(None, group, 101)
    assert names(pop_group(harness)) == "a"


def test_members_below_a_deleted_group_wait_and_the_others_stay_queued() -> None:
    middle = make_composite_group("middle", parent="root")
    harness = make_tree_harness(ROOT, middle, make_child_group("x", parent="middle"), make_child_group("y"))
    add(harness, "a", group="x")
    add(harness, "b", group="y")
    harness.queue.update_pod_group(middle, None, 101)
    assert counts(harness) == {"incomplete": 1, "active": 1}
    assert names(pop_group(harness)) == "b"


def test_members_that_are_pending_when_their_root_is_deleted_wait_for_it() -> None:
    harness = make_tree_harness(ROOT, make_child_group("x"))
    add(harness, "a", group="x")
    entity = pop_group(harness)
    add(harness, "b", 101, group="x")
    assert counts(harness) == {"pending": 1}
    harness.queue.update_pod_group(ROOT, None, 102)
    assert counts(harness) == {"incomplete": 1}
    end_attempt(harness, entity, REJECTED, "a", 103)
    assert counts(harness) == {"incomplete": 2}


def test_the_members_of_all_pod_groups_are_queued_again_as_their_root() -> None:
    harness = make_tree_harness(ROOT, make_child_group("x"), make_child_group("y"))
    add(harness, "a", group="x")
    add(harness, "b", group="y")
    end_attempt(harness, pop_group(harness), REJECTED, "ab", 101)
    assert counts(harness) == {"backoff": 2}
    harness.queue.flush_backoff_q_completed(110)
    assert names(pop_group(harness)) == "ab"


def test_without_the_gate_a_pod_group_with_a_parent_is_queued_alone() -> None:
    harness = make_harness(make_child_group("x"))
    add(harness, "a", group="x")
    assert pop_group(harness).key == "podgroup/default/x"
