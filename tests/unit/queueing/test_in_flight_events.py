"""Which events are kept while pods are in flight."""

from extender.framework.events import ActionType, ClusterEvent, EventResource
from extender.queueing.in_flight_events import InFlightEvents
from extender.queueing.queued_entities import QueuedPodInfo
from tests.build import make_pod
from tests.unit.queueing.builders import NODE_ADD, POD_DELETE, QueueHarness, make_pod_info

FIRST = QueuedPodInfo(make_pod_info(make_pod("first")), timestamp=0)
SECOND = QueuedPodInfo(make_pod_info(make_pod("second")), timestamp=0)


def test_a_pod_sees_the_events_since_it_was_popped_oldest_first() -> None:
    in_flight_events = InFlightEvents()
    in_flight_events.add_pod(FIRST)
    in_flight_events.add_event(NODE_ADD)
    in_flight_events.add_pod(SECOND)
    in_flight_events.add_event(POD_DELETE)

    assert list(in_flight_events.get_events_since_pop(FIRST.uid) or ()) == [NODE_ADD, POD_DELETE]
    assert list(in_flight_events.get_events_since_pop(SECOND.uid) or ()) == [POD_DELETE]
    assert in_flight_events.get_events_since_pop("other") is None


def test_events_are_dropped_when_no_pod_in_flight_needs_them() -> None:
    in_flight_events = InFlightEvents()
    in_flight_events.add_pod(FIRST)
    in_flight_events.add_event(NODE_ADD)
    in_flight_events.add_pod(SECOND)
    in_flight_events.add_event(POD_DELETE)

    in_flight_events.done(FIRST.uid)
    assert in_flight_events.count_by_label() == {"AssignedPodDelete": 1}

    in_flight_events.done(SECOND.uid)
    assert (in_flight_events.count_by_label().total(), len(in_flight_events)) == (0, 0)


def test_without_pods_in_flight_no_event_is_stored() -> None:
    in_flight_events = InFlightEvents()
    in_flight_events.add_event(NODE_ADD)
    assert in_flight_events.count_by_label().total() == 0


def test_a_uid_is_in_flight_once() -> None:
    in_flight_events = InFlightEvents()
    assert in_flight_events.add_pod(FIRST)
    assert not in_flight_events.add_pod(FIRST)
    in_flight_events.add_event(ClusterEvent(EventResource.NODE, ActionType.DELETE))
    in_flight_events.done("other")
    assert in_flight_events.count_by_label().total() == 1


def test_a_pod_activated_again_in_flight_gets_one_event_until_it_is_popped_again() -> None:
    """The members of a gang activate each other: 1,000 of them half a million times."""
    harness, web = QueueHarness(), make_pod("web")
    pod, _ = harness.add_and_pop(web), harness.add_and_pop(make_pod("other"))
    harness.queue.activate([web], 100)
    harness.queue.activate([web], 100)
    assert harness.queue.in_flight_events.count_by_label().total() == 1

    harness.queue.done(pod.uid)
    harness.queue.in_flight_events.add_pod(pod)
    harness.queue.activate([web], 101)
    events = harness.queue.in_flight_events.get_events_since_pop(pod.uid)
    assert events is not None
    assert [event.label for event in events] == ["ForceActivate"]
