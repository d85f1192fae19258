"""One scheduling cycle: the selected node, the message of a failure, and PreEnqueue."""

from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

from extender.cache.tables.arrays import make_mask
from extender.cycle.decision import Decision, ScheduleFailure, ScheduleResult
from extender.cycle.diagnosis import NodeRejection
from extender.cycle.extender_steps import FilteredNodes, FilterStep
from extender.cycle.node_sampling import NodeSampler
from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.scheduling_cycle import CycleInputs, run_scheduling_cycle, schedule_pod
from extender.framework.extension_points import PreFilterResult
from extender.framework.status import Code, Reason
from tests.build import make_cluster, make_node, make_pod
from tests.unit.cycle.fakes import (
    FakePostFilter,
    FakePreFilter,
    FakeScore,
    RaisingPlugin,
    RejectingFilter,
    make_profile,
)


def schedule(*plugins: Any, nodes: str = "abc", seed: int = 1, percentage: int | None = None) -> Decision:
    """Schedule a pod on these nodes."""
    snapshot = make_cluster(*map(make_node, nodes)).snapshot()
    profile = make_profile(*plugins, percentage=percentage)
    return schedule_pod(
        snapshot.make_pod_info(make_pod()), snapshot, profile, PluginRuntime(), Random(seed), NodeSampler()
    )


def schedule_failure(*plugins: Any, nodes: str = "abc") -> ScheduleFailure:
    decision = schedule(*plugins, nodes=nodes)
    assert isinstance(decision, ScheduleFailure)
    return decision


def test_the_best_node_is_selected() -> None:
    decision = schedule(FakeScore("X", {"a": 1, "b": 9, "c": 3}))

    assert isinstance(decision, ScheduleResult)
    assert (decision.suggested_host, decision.feasible_nodes, decision.evaluated_nodes) == ("b", 3, 3)


def test_ties_are_broken_at_random_among_the_best() -> None:
    score = FakeScore("X", {"a": 5, "b": 9, "c": 9})
    selected = {
        decision.suggested_host
        for seed in range(20)
        if isinstance(decision := schedule(score, seed=seed), ScheduleResult)
    }

    assert selected == {"b", "c"}


def test_the_only_feasible_node_is_selected_without_scoring() -> None:
    """Even if a score plugin would fail.

    Source: pkg/scheduler/schedule_one.go, Scheduler.schedulePod (1.36).
    """
    decision = schedule(RejectingFilter("R", "a", "b"), FakeScore("X", {}))

    assert isinstance(decision, ScheduleResult)
    assert (decision.suggested_host, decision.ranking) == ("c", None)


@pytest.mark.parametrize(
    ("plugins", "node"),
    [((), "a"), ((RejectingFilter("R", "a"),), "b"), ((RejectingFilter("R", "b", code=Code.ERROR),), "a")],
    ids=["it takes the pod", "it does not", "a filter fails on another node"],
)
def test_the_nominated_node_is_selected_without_scoring_if_it_fits(plugins: Any, node: str) -> None:
    """Source: pkg/scheduler/schedule_one.go, Scheduler.evaluateNominatedNode (1.36)."""
    snapshot = make_cluster(*map(make_node, "abc")).snapshot()
    profile = make_profile(*plugins, FakeScore("X", {"a": 1, "b": 9, "c": 3}))
    pod = make_pod(status={"nominatedNodeName": "a"})

    decision = schedule_pod(snapshot.make_pod_info(pod), snapshot, profile, PluginRuntime(), Random(1), NodeSampler())

    assert isinstance(decision, ScheduleResult)
    assert decision.suggested_host == node


@pytest.mark.parametrize(
    ("rejected", "node"), [("", "a"), ("a", "b")], ids=["it passes Filter", "it does not pass Filter"]
)
def test_the_nominated_node_may_be_one_that_pre_filter_excludes(rejected: str, node: str) -> None:
    """Source: pkg/scheduler/schedule_one.go, Scheduler.findNodesThatFitPod (1.36)."""
    snapshot = make_cluster(*map(make_node, "abc")).snapshot()
    picky = FakePreFilter("Picky", PreFilterResult(node_names=frozenset("b")))
    profile = make_profile(picky, RejectingFilter("R", rejected))
    pod = make_pod(status={"nominatedNodeName": "a"})

    decision = schedule_pod(snapshot.make_pod_info(pod), snapshot, profile, PluginRuntime(), Random(1), NodeSampler())

    assert isinstance(decision, ScheduleResult)
    assert decision.suggested_host == node


def test_without_nodes_post_filter_does_not_run() -> None:
    """Source: pkg/scheduler/schedule_one.go, Scheduler.schedulingAlgorithm (1.36)."""
    post_filter = FakePostFilter("H", Code.SUCCESS)

    decision = schedule_failure(post_filter, nodes="")

    assert decision.message == "no nodes available to schedule pods"
    assert decision.status.code is Code.UNRESOLVABLE
    assert decision.rejectors == frozenset()
    assert post_filter.calls == 0


def test_a_rejected_pod_has_its_rejectors() -> None:
    decision = schedule_failure(RejectingFilter("R", "a", "b", "c", text="no"))

    assert decision.message == "0/3 nodes are available: 3 no."
    assert (decision.status.code, decision.rejectors, decision.nominated_node) == (Code.UNSCHEDULABLE, {"R"}, "")


def test_an_error_is_no_rejection() -> None:
    """The pod has no rejectors, so the queue retries it after its error backoff.

    Source: pkg/scheduler/schedule_one.go, Scheduler.schedulingAlgorithm (1.36).
    """
    post_filter = FakePostFilter("H", Code.SUCCESS)

    decision = schedule_failure(RaisingPlugin(), post_filter)

    assert decision.status.code is Code.ERROR
    assert decision.message == 'running PreFilter plugin "Broken": ValueError: out of order'
    assert (decision.rejectors, post_filter.calls) == (frozenset(), 0)


def test_failing_to_score_is_an_error() -> None:
    decision = schedule_failure(FakeScore("X", {"a": 1, "b": 101, "c": 1}))

    assert decision.status.code is Code.ERROR
    assert 'plugin "X" returns an invalid score 101' in decision.message


@pytest.mark.parametrize(
    ("plugins", "message", "nominated"),
    [
        ([FakePostFilter("A", Code.UNSCHEDULABLE, "x"), FakePostFilter("B", Code.UNSCHEDULABLE, "y")], " x, y", None),
        ([FakePostFilter("A", Code.UNSCHEDULABLE, "x"), FakePostFilter("B", Code.SUCCESS, nominated="b")], "", "b"),
        ([FakePostFilter("A", Code.SUCCESS, nominated="a"), FakePostFilter("B", Code.UNSCHEDULABLE, "y")], "", "a"),
        (
            [FakePostFilter("A", Code.UNSCHEDULABLE, "x", nominated=""), FakePostFilter("B", Code.UNSCHEDULABLE, "y")],
            " x, y",
            "",
        ),
        ([FakePostFilter("A", Code.UNRESOLVABLE, "x"), FakePostFilter("B", Code.SUCCESS, nominated="b")], " x", None),
        (
            [FakePostFilter("A", Code.ERROR, "not found"), FakePostFilter("B", Code.SUCCESS, nominated="b")],
            " not found",
            None,
        ),
    ],
    ids=[
        "all that cannot help are heard",
        "the first that helps decides",
        "nobody is asked after success",
        "a cleared nomination is remembered",
        "what is final ends the round",
        "an error ends the round",
    ],
)
def test_post_filter_plugins_run_in_order(plugins: list[Any], message: str, nominated: str | None) -> None:
    """Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunPostFilterPlugins (1.36)."""
    decision = schedule_failure(RejectingFilter("R", "a", "b", "c", text="no"), *plugins)

    assert decision.message == f"0/3 nodes are available: 3 no.{message}"
    assert decision.nominated_node == nominated


def test_a_percentage_stops_the_search_early() -> None:
    names = [f"n{i}" for i in range(200)]
    snapshot = make_cluster(*map(make_node, names)).snapshot()
    score = FakeScore("X", dict.fromkeys(names, 1))

    decision = schedule_pod(
        snapshot.make_pod_info(make_pod()),
        snapshot,
        make_profile(score, percentage=10),
        PluginRuntime(),
        Random(1),
        NodeSampler(),
    )

    assert isinstance(decision, ScheduleResult)
    assert (decision.feasible_nodes, decision.evaluated_nodes) == (100, 100)


def test_a_sampled_search_starts_behind_the_nodes_that_were_evaluated() -> None:
    """The nominated node, which is evaluated first, is one of them.

    Source: pkg/scheduler/schedule_one.go, Scheduler.findNodesThatFitPod (1.36).
    """
    names = [f"n{i:03}" for i in range(200)]
    snapshot = make_cluster(*map(make_node, names)).snapshot()
    profile = make_profile(RejectingFilter("R", "n150"), FakeScore("X", dict.fromkeys(names, 1)), percentage=10)
    pod, sampler = make_pod(status={"nominatedNodeName": "n150"}), NodeSampler()

    decision = schedule_pod(snapshot.make_pod_info(pod), snapshot, profile, PluginRuntime(), Random(1), sampler)

    assert isinstance(decision, ScheduleResult)
    assert (decision.feasible_nodes, decision.evaluated_nodes, sampler.next_start_index) == (100, 101, 101)


def test_a_search_without_a_feasible_node_also_moves_the_start_of_the_next() -> None:
    """It moves by the number of nodes that PreFilter allowed.

    Source: pkg/scheduler/schedule_one.go, Scheduler.findNodesThatFitPod (1.36).
    """
    snapshot = make_cluster(*map(make_node, "abc")).snapshot()
    restricting = FakePreFilter("P", PreFilterResult(node_names=frozenset("ab")))
    profile = make_profile(restricting, RejectingFilter("R", *"abc"), percentage=10)
    sampler = NodeSampler()

    decision = schedule_pod(snapshot.make_pod_info(make_pod()), snapshot, profile, PluginRuntime(), Random(1), sampler)

    assert isinstance(decision, ScheduleFailure)
    assert (sampler.next_start_index, decision.diagnosis.get_rejection_code(2)) == (2, Code.UNRESOLVABLE)


@pytest.mark.parametrize(
    ("rejected_nodes", "unknown_nodes", "start"),
    [([], {}, 100), ([150], {}, 101), ([150], {"ghost": "unknown"}, 102), ([5, 140, 150], {}, 103)],
    ids=["no reason", "a reason", "a reason for an unknown node too", "reasons for other nodes too"],
)
def test_each_reason_with_which_an_extender_rejects_the_nominated_node_moves_the_start_of_the_next_search(
    rejected_nodes: list[int], unknown_nodes: dict[str, str], start: int
) -> None:
    """The nominated node is evaluated before the search, which evaluates it again.

    Source: pkg/scheduler/schedule_one.go, Scheduler.findNodesThatFitPod (1.37).
    """
    names = [f"n{i:03}" for i in range(200)]
    snapshot = make_cluster(*map(make_node, names)).snapshot()
    pod = snapshot.make_pod_info(make_pod(status={"nominatedNodeName": "n150"}))
    profile, runtime, sampler = make_profile(FakeScore("X", {}), percentage=10), PluginRuntime(), NodeSampler()
    steps = run_scheduling_cycle(CycleInputs(pod, snapshot, profile, runtime, Random(1), sampler, has_extenders=True))

    first = next(steps)
    assert isinstance(first, FilterStep)
    assert np.flatnonzero(first.diagnosis.feasible).tolist() == [150]
    rejections = [NodeRejection("Extender", Reason("no"), make_mask(rejected_nodes, 200))] if rejected_nodes else []
    nobody = np.zeros(200, dtype=np.bool_)
    answer = replace(first.diagnosis, feasible=nobody, rejections=tuple(rejections), unknown_nodes=unknown_nodes)
    second = steps.send(FilteredNodes(answer, snapshot, runtime))

    assert isinstance(second, FilterStep)
    assert (second.diagnosis.feasible_count, sampler.next_start_index) == (100, start)


def test_no_extender_is_called_if_a_filter_fails_after_an_extender_rejects_the_nominated_node() -> None:
    """Source: pkg/scheduler/schedule_one.go, Scheduler.findNodesThatFitPod (1.36)."""
    snapshot = make_cluster(*map(make_node, "ab")).snapshot()
    pod = snapshot.make_pod_info(make_pod(status={"nominatedNodeName": "a"}))
    profile, runtime = make_profile(RejectingFilter("R", "b", text="out of order", code=Code.ERROR)), PluginRuntime()
    inputs = CycleInputs(pod, snapshot, profile, runtime, Random(1), NodeSampler(), has_extenders=True)
    steps = run_scheduling_cycle(inputs)

    first = next(steps)
    assert isinstance(first, FilterStep)
    rejected = replace(first.diagnosis, feasible=np.zeros(2, dtype=np.bool_))
    with pytest.raises(StopIteration) as stop:
        steps.send(FilteredNodes(rejected, snapshot, runtime))

    decision = stop.value.value
    assert isinstance(decision, ScheduleFailure)
    assert decision.message == 'running "R" filter plugin: out of order'
