"""Nominated pods count on their nodes for pods of no higher priority."""

import pytest

from extender.app import wiring
from extender.cycle.diagnosis import find_nodes_that_pass_filters
from extender.cycle.plugin_runtime import PluginRuntime
from tests.build import make_cluster, make_node, make_pod

PROFILE = wiring.build_setup().first_profile
NODE = {"cpu": "1", "memory": "4Gi", "pods": "9"}


@pytest.mark.parametrize(
    ("priority", "feasible"),
    [(4, [False, True]), (5, [False, True]), (6, [True, True])],
    ids=["a higher nominated priority counts", "an equal one counts", "a lower one does not count"],
)
def test_a_nominated_pod_takes_its_node_from_pods_of_no_higher_priority(priority: int, feasible: list[bool]) -> None:
    """Source: pkg/scheduler/framework/runtime/framework.go, addGENominatedPods (1.36)."""
    cache = make_cluster(make_node("n1", allocatable=NODE), make_node("n2", allocatable=NODE))
    nominated = make_pod("nominated", priority=5, requests={"cpu": "1"})
    cache.add_or_update_pod(nominated)
    cache.nominate(nominated, "n1")
    snapshot = cache.snapshot()
    pod = snapshot.make_pod_info(make_pod("web", priority=priority, requests={"cpu": "1"}))

    diagnosis = find_nodes_that_pass_filters(pod, snapshot, PROFILE, PluginRuntime(), with_rejections=True)

    assert diagnosis.feasible.tolist() == feasible


def test_a_nominated_pod_does_not_count_against_itself() -> None:
    cache = make_cluster(make_node("n1", allocatable=NODE))
    pod = make_pod("web", requests={"cpu": "1"})
    cache.add_or_update_pod(pod)
    cache.nominate(pod, "n1")
    snapshot = cache.snapshot()

    diagnosis = find_nodes_that_pass_filters(snapshot.make_pod_info(pod), snapshot, PROFILE, PluginRuntime())

    assert diagnosis.feasible.tolist() == [True]
