"""Which events of a watch are heartbeats."""

import json
from typing import Any

import pytest

from extender.client.node_heartbeats import HeartbeatDetector

EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-01T00:05:00Z"


def make_event(version: str, time: str = EARLY, *, kind: str = "MODIFIED", **more: Any) -> bytes:
    """Return an event in the API server's encoding."""
    managed = [
        {"manager": "kubelet", "operation": "Update", "time": time, "fieldsType": "FieldsV1", "fieldsV1": {}},
        {"manager": "kubectl", "operation": "Update", "time": EARLY, "fieldsType": "FieldsV1", "fieldsV1": {}},
    ]
    meta = {"name": "n1", "uid": "u1", "resourceVersion": version, "managedFields": managed, **more.pop("meta", {})}
    conditions = [
        {"type": "Ready", "status": more.pop("ready", "True"), "lastHeartbeatTime": time, "lastTransitionTime": EARLY},
        {"type": "DiskPressure", "status": "False", "lastHeartbeatTime": time, "lastTransitionTime": EARLY},
    ]
    body = {"kind": "Node", "metadata": meta, "spec": more, "status": {"conditions": conditions}}
    return json.dumps({"type": kind, "object": body}, separators=(",", ":")).encode()


def detector_after(line: bytes, *more: bytes) -> HeartbeatDetector:
    """Return a detector that remembers these events, whose versions increase."""
    detector = HeartbeatDetector()
    for number, event_line in enumerate((line, *more), 1):
        detector.find_heartbeat_version(event_line)
        detector.set_state("n1", str(number))
    return detector


def test_an_update_of_times_and_version_is_a_heartbeat() -> None:
    assert detector_after(make_event("1")).find_heartbeat_version(make_event("2", LATE)) == "2"


def test_a_longer_resource_version_is_a_heartbeat_too() -> None:
    assert detector_after(make_event("9")).find_heartbeat_version(make_event("10", LATE)) == "10"


def test_objects_with_equal_layouts_are_distinguished() -> None:
    other = {"name": "n2", "uid": "u2"}
    detector = detector_after(make_event("1"))
    assert detector.find_heartbeat_version(make_event("2", meta=other)) == ""
    detector.set_state("n2", "2")
    assert detector.find_heartbeat_version(make_event("3", LATE, meta=other)) == "3"
    assert detector.find_heartbeat_version(make_event("4", LATE)) == "4"


def test_times_at_new_positions_are_searched_again() -> None:
    detector = detector_after(make_event("1"))
    moved = {"labels": {"zone": "a"}}
    assert detector.find_heartbeat_version(make_event("2", meta=moved)) == ""
    detector.set_state("n1", "2")
    assert detector.find_heartbeat_version(make_event("3", LATE, meta=moved)) == "3"


def test_the_first_event_of_an_object_is_decoded() -> None:
    assert HeartbeatDetector().find_heartbeat_version(make_event("1")) == ""


CHANGES = {
    "a condition": make_event("2", LATE, ready="False"),
    "a label": make_event("2", LATE, meta={"labels": {"zone": "a"}}),
    "the spec": make_event("2", LATE, unschedulable=True),
    "another object of that name": make_event("2", LATE, meta={"uid": "u2"}),
    "an annotation that looks like a version": make_event("2", LATE, meta={"annotations": {"resourceVersion": "1"}}),
    "an annotation that looks like the time of a manager": make_event("2", meta={"annotations": {"time": LATE}}),
    "a time that is none": make_event("2", "never"),
    "a version that is no number": make_event("two", LATE),
    "the end": make_event("2", LATE, kind="DELETED"),
}


@pytest.mark.parametrize("line", CHANGES.values(), ids=CHANGES)
def test_any_other_change_is_decoded(line: bytes) -> None:
    assert detector_after(make_event("1")).find_heartbeat_version(line) == ""


def test_a_change_back_to_an_earlier_state_is_decoded() -> None:
    was, then = make_event("1"), make_event("2", ready="False")
    assert detector_after(was, then).find_heartbeat_version(make_event("3", LATE)) == ""


def test_a_repeated_older_event_is_not_remembered() -> None:
    detector = detector_after(make_event("1"), make_event("2", ready="False"))
    detector.find_heartbeat_version(make_event("1"))
    detector.set_state("n1", "1")
    assert detector.find_heartbeat_version(make_event("3", LATE)) == ""


def test_after_a_new_list_every_object_is_decoded_again() -> None:
    detector = detector_after(make_event("1"))
    detector.clear()
    assert detector.find_heartbeat_version(make_event("2", LATE)) == ""


def test_a_forgotten_object_is_decoded_again() -> None:
    detector = detector_after(make_event("1"))
    detector.remove_state("n1")
    assert detector.find_heartbeat_version(make_event("2", LATE)) == ""
