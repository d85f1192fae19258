"""Changes of a pod while it waits in a queue or is in flight, and how it returns to the queue."""

from extender.framework.events import QueueingHint
from tests.build import make_pod
from tests.pod_group_builders import make_group_member, make_pod_group
from tests.unit.queueing.builders import NODE_ADD, POD_DELETE, NodeAddPlugin, QueueHarness, make_pod_info
from tests.unit.queueing.test_pod_group_queue import make_harness

WEB = make_pod("web")
CHANGED = make_pod("web", labels={"changed": "yes"})


def test_a_pod_that_was_recreated_under_its_name_starts_again() -> None:
    harness = QueueHarness()
    harness.add_and_reject(WEB, "NodeAdd")
    harness.queue.update(make_pod_info(make_pod("web", metadata={"uid": "new"})), (), 101)
    entity = harness.queue.pop()
    assert entity is not None
    (pod,) = entity.pods
    assert (pod.uid, pod.attempts, pod.timestamp, pod.rejector_plugins) == ("new", 1, 101, frozenset())


def test_a_changed_pod_is_requeued_by_the_first_event_that_may_help_it() -> None:
    harness = QueueHarness()
    queued_pod = harness.add_and_reject(WEB, "NodeAdd")
    harness.moves.clear()
    harness.queue.update(make_pod_info(CHANGED), (POD_DELETE, NODE_ADD, NODE_ADD), 200)
    assert harness.moves == [("active", "NodeAdd")]
    assert queued_pod.pod_info.pod is CHANGED


def test_a_changed_member_of_a_missing_group_is_queued_as_it_is_now() -> None:
    harness = make_harness()
    harness.queue.add(make_pod_info(make_group_member("a")), 100)
    changed = make_group_member("a", labels={"changed": "yes"})
    harness.queue.update(make_pod_info(changed), (NODE_ADD,), 101)
    harness.queue.update_pod_group(None, make_pod_group("ring", min_count=1), 102)
    entity = harness.queue.pop()
    assert entity is not None
    assert [pod.pod_info.pod for pod in entity.pods] == [changed]


def test_a_change_of_a_pod_in_flight_counts_when_the_attempt_fails() -> None:
    harness = QueueHarness()
    queued_pod = harness.add_and_pop(WEB)
    harness.queue.update(make_pod_info(CHANGED), (NODE_ADD,), 101)
    queued_pod.unschedulable_plugins = frozenset({"NodeAdd"})
    harness.queue.add_unschedulable_if_not_present(queued_pod, 102)
    assert harness.queue_of(WEB) == "backoff"


def test_a_failed_attempt_of_a_pod_that_was_recreated_meanwhile_is_dropped() -> None:
    harness = QueueHarness()
    queued_pod = harness.add_and_pop(WEB)
    harness.queue.delete(WEB, 101)
    harness.queue.add(make_pod_info(make_pod("web", metadata={"uid": "new"})), 101)
    queued_pod.unschedulable_plugins = frozenset({"NodeAdd"})
    harness.queue.add_unschedulable_if_not_present(queued_pod, 102)
    assert [(pod.uid, pod.attempts) for pod in harness.queue] == [("new", 0)]
    assert len(harness.queue.in_flight_events) == 0
    assert queued_pod.unschedulable_count == 0


def test_the_wait_for_the_next_attempt_starts_at_the_end_of_the_last_one() -> None:
    harness = QueueHarness()
    queued_pod = harness.add_and_reject(WEB, "NodeAdd", now=100)
    harness.queue.flush_unschedulable_pods_leftover(500)
    harness.queue.pop()
    harness.queue.add_unschedulable_if_not_present(queued_pod, 510)
    assert (queued_pod.timestamp, queued_pod.was_flushed_from_unschedulable) == (510, False)


def test_a_pod_that_is_rejected_after_it_was_done_backs_off() -> None:
    """No events are stored for it any more. Source: pkg/scheduler/schedule_one.go, Scheduler.bindingCycle (1.36)."""
    harness = QueueHarness()
    queued_pod = harness.add_and_pop(WEB)
    harness.queue.done(queued_pod.uid)
    queued_pod.unschedulable_plugins = frozenset({"NodeAdd"})
    harness.queue.add_unschedulable_if_not_present(queued_pod, 101)
    assert harness.queue_of(WEB) == "backoff"


def test_a_pod_that_is_gated_after_it_was_done_waits_for_its_gate() -> None:
    harness = QueueHarness()
    queued_pod = harness.add_and_pop(WEB)
    harness.queue.done(queued_pod.uid)
    harness.gated.add("web")
    harness.queue.add_unschedulable_if_not_present(queued_pod, 101)
    assert harness.queue_of(WEB) == "gated"
    assert queued_pod.event_while_gated == ""


def test_an_event_that_helps_no_pod_is_no_move() -> None:
    plugin = NodeAddPlugin("NodeAdd")
    plugin.hint = lambda _pod, _event: QueueingHint.SKIP
    harness = QueueHarness(node_add_plugin=plugin)
    harness.add_and_reject(WEB, "NodeAdd")
    harness.moves.clear()
    harness.queue.move_all_to_active_or_backoff_queue(NODE_ADD, 200)
    assert harness.moves == []
    assert harness.queue_of(WEB) == "unschedulable"


def test_a_pod_that_is_gated_again_by_an_event_is_a_move_that_its_gate_remembers() -> None:
    harness = QueueHarness(gated={"web"})
    harness.queue.add(make_pod_info(WEB), 100)
    harness.moves.clear()
    harness.queue.move_all_to_active_or_backoff_queue(NODE_ADD, 101)
    assert harness.moves == [("unschedulable", "NodeAdd")]
    (pod,) = harness.queue
    assert pod.event_while_gated == "NodeAdd"


def test_a_pod_that_an_event_lets_pass_has_missed_no_event() -> None:
    harness = QueueHarness()
    queued_pod = harness.add_and_reject(WEB, "NodeAdd")
    harness.queue.move_all_to_active_or_backoff_queue(NODE_ADD, 200)
    assert harness.queue_of(WEB) == "active"
    assert queued_pod.event_while_gated == ""


def test_the_backoff_of_a_queued_pod_grows_with_its_failures() -> None:
    """A pod in flight, and one that was never rejected, do not back off."""
    harness = QueueHarness()
    assert harness.queue.get_backoff_seconds(WEB.key, 100) == 0
    queued_pod = harness.add_and_reject(WEB, "NodeAdd")
    failed_at = queued_pod.timestamp
    assert harness.queue.get_backoff_seconds(WEB.key, failed_at) == 1
    queued_pod.unschedulable_count = 3
    assert harness.queue.get_backoff_seconds(WEB.key, failed_at) == 4
    assert harness.queue.get_backoff_seconds(WEB.key, failed_at + 5) == 0
