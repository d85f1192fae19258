"""Members of pod groups in the scheduling queue, in fake time."""

from extender.framework.changes import Change
from extender.objects.pod import Pod
from extender.queueing.waiting import QueueSettings
from tests.build import a_pod
from tests.groups import a_member
from tests.unit.queueing.test_waiting import NODE_ADDED, POD_GONE, World, popped, query, rejected

WEB = a_member("web")


def a_world() -> World:
    return World(settings=QueueSettings(groups=True))


def names(world: World) -> list[str]:
    """What can be popped now, all of it."""
    return [pod.query.pod.metadata.name for _ in range(9) if (pod := world.queue.pop())]


def test_a_pod_is_popped_by_name_from_wherever_it_waits() -> None:
    """D010."""
    world = a_world()
    active, parked, backing_off = a_pod("active"), a_pod("parked"), a_pod("backing-off")
    rejected(world, parked, "Picky")
    rejected(world, backing_off, "Picky")
    world.queue.happened(NODE_ADDED, 100)
    rejected(world, parked, "Picky")
    world.queue.add(query(active), 100)

    found = [world.queue.pop_this(query(pod), 101) for pod in (active, parked, backing_off)]

    assert [pod is not None and pod.uid in world.queue.in_flight for pod in found] == [True] * 3
    assert sum(world.queue.counts().values()) == 0


def test_a_pod_popped_by_name_counts_as_tried() -> None:
    """D010."""
    world = a_world()
    rejected(world, WEB, "Picky")
    again = world.queue.pop_this(query(WEB), 101)
    assert again is not None
    assert again.attempts == 2


def test_a_pod_that_does_not_wait_or_is_kept_out_is_not_popped_by_name() -> None:
    """D010: the gate is asked once more."""
    world = a_world()
    popped(world, WEB)
    assert world.queue.pop_this(query(WEB), 101) is None
    gated = a_pod("gated")
    world.gated.add("gated")
    world.queue.add(query(gated), 100)
    assert world.queue.pop_this(query(gated), 101) is None
    assert world.queue.counts()["gated"] == 1


def test_a_rejected_member_backs_off_though_nothing_happened() -> None:
    """D019."""
    world = a_world()
    rejected(world, WEB, "Picky")
    assert world.where(WEB) == "backoff"

    world.queue.flush_backoff(101.9)
    assert world.where(WEB) == "backoff"
    world.queue.flush_backoff(102)
    assert world.where(WEB) == "active"


def test_with_the_gate_off_a_rejected_member_waits_for_an_event() -> None:
    world = World()
    rejected(world, WEB, "Picky")
    assert world.where(WEB) == "unschedulable"


def test_a_rejected_member_is_popped_early_once_something_happened_and_not_before() -> None:
    """D007."""
    world = a_world()
    rejected(world, WEB, "Picky")
    assert names(world) == []

    world.queue.happened(POD_GONE, 100)

    assert names(world) == ["web"]


def test_a_member_whose_group_is_at_fault_is_not_popped_early() -> None:
    """D007: no plugin rejected it, so it counts as after an error."""
    world = a_world()
    rejected(world, WEB)
    world.queue.happened(NODE_ADDED, 100)
    assert names(world) == []
    assert world.where(WEB) == "backoff"


def test_a_changed_member_that_backs_off_is_in_the_queue_once() -> None:
    world = a_world()
    rejected(world, WEB, "Picky")
    newer: Pod = a_member("web", priority=3)

    world.queue.update(query(newer), [Change(NODE_ADDED.resource, NODE_ADDED.action)], 100)

    assert world.queue.counts()["backoff"] == 1
    world.queue.delete(WEB.key)
    assert sum(world.queue.counts().values()) == 0


def test_a_member_that_met_an_error_later_is_not_released_with_those_that_were_rejected() -> None:
    world = a_world()
    rejected(world, WEB, "Picky")
    again = world.queue.pop_this(query(WEB), 100)
    assert again is not None
    again.rejectors = frozenset()
    world.queue.came_back(again, 100)

    world.queue.happened(NODE_ADDED, 100)

    assert names(world) == []
