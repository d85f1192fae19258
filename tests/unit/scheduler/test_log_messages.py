"""The log messages about each pod, in kube-scheduler's text and from its verbosity on."""

import logging

import pytest

from extender.client.errors import ServerError
from extender.logs.klog import TextFormatter, verbosity
from tests.build import make_node, make_pod
from tests.unit.scheduler.builders import SchedulerHarness
from tests.unit.scheduler.test_evictions import add_waiting_pod, make_harness


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


def test_each_victim_of_a_preemption_is_logged_at_verbosity_2(caplog: pytest.LogCaptureFixture) -> None:
    """Source: pkg/scheduler/framework/preemption/executor.go, NewExecutor (1.37)."""
    caplog.set_level(verbosity(2))
    harness, _ = make_harness(make_pod("running", node="n1", requests={"cpu": "1"}, priority=0))
    add_waiting_pod(harness, "waiting", "1", 0)
    binding = make_pod("binding", requests={"cpu": "1"}, priority=0)
    harness.cache.assume(binding, "n1")
    harness.context.pre_bind_cancel_functions[binding.metadata.uid] = lambda _: None

    harness.attempt()

    records = [record for record in caplog.records if "preemptor" in vars(record)]
    lines = [TextFormatter().format(record).partition("] ")[2] for record in records]
    assert sorted(lines) == [
        '"Preemptor Pod preempted victim Pod" preemptor="default/high" victim="default/running" node="n1"',
        '"Preemptor preempted a waiting pod" preemptorType="pod" preemptor="default/high" '
        'waitingPod="default/waiting" node="n1"',
        '"Preemptor rejected a pod in preBind" preemptorType="pod" preemptor="default/high" '
        'podInPreBind="default/binding" node="n1"',
    ]
