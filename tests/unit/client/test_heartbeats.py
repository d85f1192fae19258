"""Which events of a watch tell nothing but that an object is alive."""

import json
from typing import Any

import pytest

from extender.client.heartbeats import Heartbeats

EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-01T00:05:00Z"


def a_line(version: str, time: str = EARLY, *, kind: str = "MODIFIED", **more: Any) -> bytes:
    """An event as the API server writes it."""
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


def after(line: bytes, *more: bytes) -> Heartbeats:
    """What is known after reading these lines, whose versions grow."""
    known = Heartbeats()
    for number, each in enumerate((line, *more), 1):
        known.version(each)
        known.read("n1", str(number))
    return known


def test_a_report_that_changes_times_and_the_version_tells_only_its_version() -> None:
    assert after(a_line("1")).version(a_line("2", LATE)) == "2"


def test_a_version_that_became_longer_is_told_as_well() -> None:
    assert after(a_line("9")).version(a_line("10", LATE)) == "10"


def test_objects_that_are_laid_out_alike_are_told_apart() -> None:
    other = {"name": "n2", "uid": "u2"}
    known = after(a_line("1"))
    assert known.version(a_line("2", meta=other)) == ""
    known.read("n2", "2")
    assert known.version(a_line("3", LATE, meta=other)) == "3"
    assert known.version(a_line("4", LATE)) == "4"


def test_times_that_moved_are_looked_for_again() -> None:
    known = after(a_line("1"))
    moved = {"labels": {"zone": "a"}}
    assert known.version(a_line("2", meta=moved)) == ""
    known.read("n1", "2")
    assert known.version(a_line("3", LATE, meta=moved)) == "3"


def test_the_first_report_is_read() -> None:
    assert Heartbeats().version(a_line("1")) == ""


CHANGES = {
    "a condition": a_line("2", LATE, ready="False"),
    "a label": a_line("2", LATE, meta={"labels": {"zone": "a"}}),
    "the spec": a_line("2", LATE, unschedulable=True),
    "another object of that name": a_line("2", LATE, meta={"uid": "u2"}),
    "an annotation that looks like a version": a_line("2", LATE, meta={"annotations": {"resourceVersion": "1"}}),
    "an annotation that looks like the time of a manager": a_line("2", meta={"annotations": {"time": LATE}}),
    "a time that is none": a_line("2", "never"),
    "a version that is no number": a_line("two", LATE),
    "the end": a_line("2", LATE, kind="DELETED"),
}


@pytest.mark.parametrize("line", CHANGES.values(), ids=CHANGES)
def test_what_tells_more_is_read(line: bytes) -> None:
    assert after(a_line("1")).version(line) == ""


def test_a_state_that_comes_back_is_read() -> None:
    was, then = a_line("1"), a_line("2", ready="False")
    assert after(was, then).version(a_line("3", LATE)) == ""


def test_an_older_state_that_the_server_repeats_is_not_taken_for_the_last() -> None:
    known = after(a_line("1"), a_line("2", ready="False"))
    known.version(a_line("1"))
    known.read("n1", "1")
    assert known.version(a_line("3", LATE)) == ""


def test_after_a_new_list_every_object_is_read_again() -> None:
    known = after(a_line("1"))
    known.forget_all()
    assert known.version(a_line("2", LATE)) == ""


def test_a_forgotten_object_is_read_again() -> None:
    known = after(a_line("1"))
    known.forget("n1")
    assert known.version(a_line("2", LATE)) == ""
