"""The log tells of every pod, each outcome in kube-scheduler's words, from the verbosity on that it has there."""

import logging

import pytest

from extender.client.errors import ServerError
from extender.observe.logs import verbosity
from tests.build import a_node, a_pod
from tests.unit.loop.world import World


def told(caplog: pytest.LogCaptureFixture, v: int) -> list[tuple[str, str]]:
    """What is logged, once each, of a pod that fits, one that does not, and one whose binding fails, by pod."""
    caplog.set_level(verbosity(v))
    world = World(a_node("n1", allocatable={"cpu": "2", "pods": "10"}))
    world.create(a_pod("fits", requests={"cpu": "1"}))
    world.run()
    world.create(a_pod("large", requests={"cpu": "9"}))
    world.run()
    world.server.faults["binding"] = [ServerError("etcd is down", 500)]
    world.create(a_pod("unlucky", requests={"cpu": "1"}))
    world.run()
    lines = [(vars(line)["pod"].metadata.name, line.getMessage()) for line in caplog.records if "pod" in vars(line)]
    return list(dict.fromkeys(lines))


def test_at_2_outcomes_are_told(caplog: pytest.LogCaptureFixture) -> None:
    assert told(caplog, 2) == [
        ("fits", "Successfully bound pod to node"),
        ("large", "Unable to schedule pod; no fit; waiting"),
        ("unlucky", "Error scheduling pod; retrying"),
    ]


def test_at_3_every_attempt_is_told(caplog: pytest.LogCaptureFixture) -> None:
    attempts = [name for name, text in told(caplog, 3) if text == "Attempting to schedule pod"]
    assert attempts == ["fits", "large", "unlucky"]


def test_at_0_only_what_went_wrong_is_told(caplog: pytest.LogCaptureFixture) -> None:
    assert told(caplog, 0) == [("unlucky", "Error scheduling pod; retrying")]
    assert caplog.records[-1].levelno == logging.ERROR
