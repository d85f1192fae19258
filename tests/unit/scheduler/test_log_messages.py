"""The log messages about each pod, in kube-scheduler's text and from its verbosity on."""

import logging

import pytest

from extender.client.errors import ServerError
from extender.framework.pod_group_points import PodGroupInfo
from extender.framework.status import error_status, unschedulable_status
from extender.logs.klog import TextFormatter, verbosity
from extender.scheduler.log_messages import log_group_outcome
from tests.build import make_node, make_pod
from tests.pod_group_builders import make_child_group, make_composite_group, make_pod_group
from tests.unit.scheduler import test_composite_pod_groups
from tests.unit.scheduler.builders import SchedulerHarness
from tests.unit.scheduler.test_evictions import add_waiting_pod, make_harness
from tests.unit.scheduler.test_pod_groups_1_37 import ALLOCATABLE, NO_VICTIMS, PROFILE, members


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


def format_lines(caplog: pytest.LogCaptureFixture, first_word: str = "") -> list[str]:
    """Return the log lines without their headers, if their texts start with *first_word*."""
    records = [record for record in caplog.records if record.getMessage().startswith(first_word)]
    return [TextFormatter().format(record).partition("] ")[2] for record in records]


def test_a_cluster_without_nodes_has_a_message_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    """Source: pkg/scheduler/schedule_one.go, Scheduler.handleSchedulingFailure (1.37)."""
    caplog.set_level(verbosity(2))
    harness = SchedulerHarness()
    harness.create(make_pod("first"))
    harness.attempt()
    text = "Unable to schedule pod; no nodes are registered to the cluster; waiting"
    assert format_lines(caplog, "Unable") == [f'"{text}" pod="default/first"']


def test_the_attempt_of_a_pod_group_and_its_result_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.submitPodGroupAlgorithmResult (1.37)."""
    caplog.set_level(verbosity(3))
    harness = SchedulerHarness(make_node("n1", allocatable=ALLOCATABLE), make_pod_group(min_count=2), profile=PROFILE)
    harness.create(*members("abc"))
    harness.run()
    assert format_lines(caplog)[0] == (
        '"Attempting to schedule pod group" podGroupType="podgroup" podGroup="default/ring"'
    )
    assert format_lines(caplog, "Successfully scheduled") == [
        '"Successfully scheduled a pod group" podGroup="default/ring" scheduledPods=2 unschedulablePods=1'
    ]


def test_each_pod_group_of_a_tree_is_logged_with_the_number_of_its_members(caplog: pytest.LogCaptureFixture) -> None:
    """Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.submitPodGroupAlgorithmResult (1.37)."""
    caplog.set_level(verbosity(2))
    groups = make_composite_group(min_group_count=2), make_child_group("x"), make_child_group("y")
    harness = test_composite_pod_groups.make_harness("3", *groups)
    harness.create(*test_composite_pod_groups.members("x", "ab"), *test_composite_pod_groups.members("y", "c"))
    harness.run()
    assert format_lines(caplog, "Successfully scheduled") == [
        f'"Successfully scheduled a pod group" podGroup="default/{name}" scheduledPods={count} unschedulablePods=0'
        for name, count in (("x", 2), ("y", 1))
    ]


def test_members_that_are_rejected_with_their_group_are_distinguished(caplog: pytest.LogCaptureFixture) -> None:
    """Source: pkg/scheduler/schedule_one.go, Scheduler.handleSchedulingFailure (1.37)."""
    caplog.set_level(verbosity(2))
    harness = SchedulerHarness(make_node("n1", allocatable=ALLOCATABLE), make_pod_group(min_count=3), profile=PROFILE)
    harness.create(*members("abc"))
    harness.attempt()
    reason = f"minCount (3) cannot be satisfied: 2 scheduled, 0 remaining, {NO_VICTIMS}"
    text, detail = "Unable to schedule pod belonging to a pod group; waiting", f"pod group is unschedulable, {reason}"
    assert format_lines(caplog, "Unable") == [
        f'"{text}" pod="default/a" err="{detail}"',
        f'"{text}" pod="default/b" err="{detail}"',
        '"Unable to schedule pod; no fit; waiting" pod="default/c" err="0/1 nodes are available: 1 Insufficient cpu."',
        f'"Unable to schedule a pod group" podGroup="default/ring" unschedulablePods=3 err="{reason}"',
    ]


def test_a_group_that_waits_or_fails_is_logged_with_the_reason(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(verbosity(2))
    group = PodGroupInfo("default", "ring")
    log_group_outcome(group, unschedulable_status("2 victims"), 0, 3, waits=True)
    log_group_outcome(group, error_status("a plugin failed"), 0, 3, waits=False)
    assert format_lines(caplog) == [
        '"Pod group is waiting for preemption" podGroup="default/ring" unschedulablePods=3 err="2 victims"',
        '"Error scheduling pod group" err="a plugin failed" podGroup="default/ring" errorPods=3',
    ]
