"""The log messages about each pod, in kube-scheduler's text and from its verbosity on."""

import logging

import pytest

from extender.client.errors import ServerError
from extender.logs.klog import verbosity
from tests.build import make_node, make_pod
from tests.unit.scheduler.builders import SchedulerHarness


def log_messages_by_pod(caplog: pytest.LogCaptureFixture, v: int) -> list[tuple[str, str]]:
    """Return the log messages of a pod that fits, one that does not, and one whose binding fails, by pod."""
    caplog.set_level(verbosity(v))
    harness = SchedulerHarness(make_node("n1", allocatable={"cpu": "2", "pods": "10"}))
    harness.create(make_pod("fits", requests={"cpu": "1"}))
    harness.run()
    harness.create(make_pod("large", requests={"cpu": "9"}))
    harness.run()
    harness.api.errors["binding"] = [ServerError("etcd is down", 500)]
    harness.create(make_pod("unlucky", requests={"cpu": "1"}))
    harness.run()
    lines = [(vars(line)["pod"].metadata.name, line.getMessage()) for line in caplog.records if "pod" in vars(line)]
    return list(dict.fromkeys(lines))


def test_outcomes_are_logged_at_verbosity_2(caplog: pytest.LogCaptureFixture) -> None:
    assert log_messages_by_pod(caplog, 2) == [
        ("fits", "Successfully bound pod to node"),
        ("large", "Unable to schedule pod; no fit; waiting"),
        ("unlucky", "Error scheduling pod; retrying"),
    ]


def test_every_attempt_is_logged_at_verbosity_3(caplog: pytest.LogCaptureFixture) -> None:
    attempts = [name for name, text in log_messages_by_pod(caplog, 3) if text == "Attempting to schedule pod"]
    assert attempts == ["fits", "large", "unlucky"]


def test_only_errors_are_logged_at_verbosity_0(caplog: pytest.LogCaptureFixture) -> None:
    assert log_messages_by_pod(caplog, 0) == [("unlucky", "Error scheduling pod; retrying")]
    assert caplog.records[-1].levelno == logging.ERROR
