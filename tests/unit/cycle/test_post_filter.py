"""The combined outcome of PostFilter plugins, and the nodes that preemption may help with."""

from dataclasses import replace
from typing import Any

import pytest

from extender.cycle.diagnosis import Diagnosis, find_nodes_that_pass_filters
from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.post_filter import FailedAttempt, PostFilterRun, run_post_filter_plugins
from extender.framework.extension_points import PreFilterResult
from extender.framework.status import Code, Status
from extender.framework.waiting_pods import WaitingPodSignal
from tests.build import make_cluster, make_node, make_pod
from tests.unit.cycle.fakes import FakePostFilter, FakePreFilter, RaisingPlugin, RejectingFilter, make_profile

UNSCHEDULABLE, UNRESOLVABLE = Code.UNSCHEDULABLE, Code.UNRESOLVABLE


def _diagnose(*plugins: Any) -> tuple[Any, Any, Diagnosis, Any]:
    snapshot, profile = make_cluster(*map(make_node, "abc")).snapshot(), make_profile(*plugins)
    pod_info = snapshot.make_pod_info(make_pod())
    return pod_info, snapshot, find_nodes_that_pass_filters(pod_info, snapshot, profile, PluginRuntime()), profile


def _run_post_filter(*plugins: Any) -> PostFilterRun:
    pod_info, snapshot, diagnosis, profile = _diagnose(RejectingFilter("Refusing", "a", "b", "c"), *plugins)
    return run_post_filter_plugins(pod_info, snapshot, FailedAttempt(diagnosis, profile, PluginRuntime()))


def test_the_first_plugin_to_succeed_ends_the_run() -> None:
    last = FakePostFilter("Last", Code.SUCCESS, nominated="b")

    run = _run_post_filter(
        FakePostFilter("First", UNSCHEDULABLE, "no"), FakePostFilter("Second", Code.SUCCESS, nominated="a"), last
    )

    assert (run.status.code, run.status.plugin, run.nominated_node) == (Code.SUCCESS, "Second", "a")
    assert list(run.results) == ["First", "Second"]
    assert last.calls == 0


@pytest.mark.parametrize("code", [UNSCHEDULABLE, Code.PENDING], ids=["unschedulable", "pending"])
def test_unschedulable_results_do_not_end_the_run_and_are_all_reported(code: Code) -> None:
    run = _run_post_filter(FakePostFilter("First", code, "x", nominated=""), FakePostFilter("Second", code, "y", "z"))

    assert run.status == Status(UNSCHEDULABLE, ("x", "y", "z"), "First")
    assert run.nominated_node == ""


@pytest.mark.parametrize(
    ("code", "nominated"), [(UNRESOLVABLE, "a"), (Code.ERROR, None)], ids=["for good", "with an error"]
)
def test_any_other_result_ends_the_run_and_is_reported_alone(code: Code, nominated: str | None) -> None:
    run = _run_post_filter(
        FakePostFilter("First", UNSCHEDULABLE, "x"),
        FakePostFilter("Second", code, "y", nominated="a"),
        FakePostFilter("Last", code),
    )

    assert (run.status, run.nominated_node) == (Status(code, ("y",), "Second"), nominated)


def test_waiting_pods_that_a_plugin_rejects_stay_rejected_when_a_later_plugin_succeeds_or_fails() -> None:
    """A plugin of kube-scheduler rejects the pods during its call.

    Source: pkg/scheduler/framework/runtime/waiting_pods_map.go, waitingPod.Reject (1.36).
    """
    rejecting = FakePostFilter("First", UNSCHEDULABLE, "x")
    rejecting.result = replace(rejecting.result, uids_to_reject={"a": "the gang gave up", "b": "the gang gave up"})
    for last in (FakePostFilter("Last", Code.SUCCESS, nominated="a"), RaisingPlugin()):
        assert _run_post_filter(rejecting, last).rejections == (
            WaitingPodSignal("First", "a", "the gang gave up"),
            WaitingPodSignal("First", "b", "the gang gave up"),
        )


def test_an_exception_ends_the_run_with_an_error() -> None:
    pod_info, snapshot, diagnosis, _ = _diagnose(RejectingFilter("Refusing", "a", "b", "c"))
    raising = make_profile(FakePostFilter("First", UNSCHEDULABLE, "x", nominated=""), RaisingPlugin())

    run = run_post_filter_plugins(pod_info, snapshot, FailedAttempt(diagnosis, raising, PluginRuntime()))

    assert (run.status.code, run.status.plugin, run.nominated_node) == (Code.ERROR, "Broken", None)
    assert run.results["Broken"].status.code is Code.ERROR


def test_a_result_of_another_type_ends_the_run_with_an_error() -> None:
    plugin: Any = FakePostFilter("Wrong", Code.SUCCESS)
    plugin.result = 5
    run = _run_post_filter(plugin)

    assert (run.status.code, run.status.plugin) == (Code.ERROR, "Wrong")
    assert run.status.message == 'running PostFilter plugin "Wrong": returned int 5, want PostFilterResult'


def test_plans_are_grouped_by_plugin() -> None:
    assert _run_post_filter(FakePostFilter("First", UNSCHEDULABLE), FakePostFilter("Second", Code.SUCCESS)).plans == {}


# -- which nodes there is hope for


def test_nodes_that_are_unresolvable_first_are_no_preemption_candidates() -> None:
    *_, diagnosis, _ = _diagnose(
        RejectingFilter("First", "a", code=UNRESOLVABLE), RejectingFilter("Second", "a", "b", "c")
    )

    assert diagnosis.find_nodes_where_preemption_may_help().tolist() == [False, True, True]
    assert [diagnosis.get_rejection_code(row) for row in (0, 1, None)] == [UNRESOLVABLE, UNSCHEDULABLE, UNRESOLVABLE]


def test_excluded_nodes_are_no_preemption_candidates() -> None:
    *_, diagnosis, _ = _diagnose(
        FakePreFilter("Choosing", PreFilterResult(node_names=frozenset("b"))), RejectingFilter("Refusing", "b")
    )

    assert diagnosis.find_nodes_where_preemption_may_help().tolist() == [False, True, False]
    assert diagnosis.get_rejection_code(0) is UNRESOLVABLE


@pytest.mark.parametrize(("code", "may_help"), [(UNSCHEDULABLE, True), (UNRESOLVABLE, False)], ids=["now", "for good"])
def test_a_pre_filter_rejection_decides_for_all_nodes_whether_preemption_may_help(code: Code, may_help: bool) -> None:
    *_, diagnosis, _ = _diagnose(FakePreFilter("Refusing", PreFilterResult(Status(code, ("no",)))))

    assert diagnosis.find_nodes_where_preemption_may_help().tolist() == [may_help] * 3
    assert [diagnosis.get_rejection_code(row) for row in (0, None)] == [code, code]
