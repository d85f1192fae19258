"""Pod groups on placements: the members share a rack."""

from collections import Counter

import pytest

from extender.app import wiring
from extender.framework.observer import ObservedEvent, PluginObserver
from extender.framework.status import SUCCESS, Code, Status, unschedulable_status
from tests.event_recorder import EventRecorder
from tests.unit.cycle.test_pod_group_members import make_gang_cluster, schedule


def test_a_group_is_placed_in_the_only_rack_that_fits_it() -> None:
    """Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.podGroupSchedulingPlacementAlgorithm (1.36)."""
    decision = schedule(make_gang_cluster("a1", "b1", "b2", rack="rack"), "a", "b")
    assert decision.status == SUCCESS
    assert decision.placement.name == "b"
    assert sorted(member.node_name for member in decision.members) == ["b1", "b2"]


@pytest.mark.parametrize("seed", range(5))
def test_of_several_racks_that_with_most_members_is_best(seed: int) -> None:
    """Source: pkg/scheduler/framework/plugins/podgrouppodscount/podgroup_pods_count.go,
    PodGroupPodsCount.ScorePlacement (1.36).
    """
    decision = schedule(make_gang_cluster("a1", "a2", "b1", "b2", "b3", rack="rack"), "a", "b", "c", seed=seed)
    assert decision.placement.name == "b"
    assert len([member for member in decision.members if member.node_name]) == 3


def test_ties_between_racks_are_broken_at_random() -> None:
    state = make_gang_cluster("a1", "a2", "b1", "b2", rack="rack")
    assert {schedule(state, "a", "b", seed=seed).placement.name for seed in range(20)} == {"a", "b"}


def test_a_group_that_fits_no_rack_is_unschedulable() -> None:
    decision = schedule(make_gang_cluster("a1", "b1", rack="rack"), "a", "b")
    first = "0/2 placements are available, first placement status: pod group is unschedulable"
    assert decision.status == unschedulable_status(first)
    failure = decision.get_member_failure(1)
    assert failure is not None
    assert "0/1 nodes are available: 1 Insufficient cpu." in failure.status.message


def test_a_label_that_no_node_has_leaves_no_placement() -> None:
    decision = schedule(make_gang_cluster("a1", rack="row"), "a")
    assert decision.status == Status(
        Code.UNSCHEDULABLE, ("no feasible placements found",), "TopologyPlacementGenerator"
    )


def test_placements_and_their_evaluations_are_observed() -> None:
    """Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.podGroupSchedulingPlacementAlgorithm (1.37)."""
    recorder = EventRecorder()
    schedule(make_gang_cluster("a1", "b1", "b2", rack="rack"), "a", "b", runtime=wiring.make_runtime(recorder))
    assert recorder.events == [
        (ObservedEvent.PLACEMENTS_GENERATED, ("default-scheduler",), 2),
        (ObservedEvent.PLACEMENT_EVALUATION, ("infeasible", "default-scheduler"), None),
        (ObservedEvent.PLACEMENT_EVALUATION, ("feasible", "default-scheduler"), None),
    ]


class PlacementPointRecorder(PluginObserver):
    """Counts the runs of the extension points of placements by their status."""

    def __init__(self) -> None:
        self.runs: Counter[tuple[str, str, Code]] = Counter()

    def observe_extension_point(self, profile: str, point: str, code: Code, seconds: float) -> None:
        assert seconds >= 0
        if point in {"PlacementGenerate", "PlacementScore"}:
            self.runs[profile, point, code] += 1


@pytest.mark.parametrize(
    ("nodes", "rack", "generated", "has_scores"),
    [
        pytest.param(("a1", "a2", "b1", "b2"), "rack", Code.SUCCESS, True, id="two racks fit"),
        pytest.param(("a1", "a2"), "rack", Code.SUCCESS, False, id="the only rack needs no score"),
        pytest.param(("a1",), "row", Code.UNSCHEDULABLE, False, id="no placement"),
    ],
)
def test_the_extension_points_of_placements_are_observed(
    nodes: tuple[str, ...], rack: str, generated: Code, has_scores: bool
) -> None:
    """Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunPlacementGeneratePlugins,
    frameworkImpl.RunPlacementScorePlugins (1.36).
    """
    recorder = PlacementPointRecorder()
    schedule(make_gang_cluster(*nodes, rack=rack), "a", "b", runtime=wiring.make_runtime(recorder))
    score_runs = [("default-scheduler", "PlacementScore", Code.SUCCESS)] if has_scores else []
    assert recorder.runs == Counter([("default-scheduler", "PlacementGenerate", generated), *score_runs])
