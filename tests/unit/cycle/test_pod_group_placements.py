"""Pod groups on placements: the members share a rack."""

import pytest

from extender.app import wiring
from extender.framework.observer import ObservedEvent
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
