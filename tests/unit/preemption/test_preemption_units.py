"""The pods that are evicted together, in order of importance."""

import pytest

from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_36, RELEASE_1_37
from extender.preemption.preemption_units import list_units, list_units_on_node
from tests.build import make_cluster, make_node
from tests.pod_group_builders import make_child_group, make_composite_group, make_pod_group
from tests.unit.preemption.builders import make_small_node, make_victim


def test_single_pods_are_units_of_their_own() -> None:
    pods = [make_victim("a", "n1", priority=3), make_victim("b", "n2", priority=5)]
    snapshot = make_cluster(make_small_node("n1"), make_small_node("n2"), *pods).snapshot()

    units = list_units(snapshot, RELEASE_1_37)

    assert [(unit.priority, [pod.pod.metadata.name for pod in unit.pods]) for unit in units] == [(3, ["a"]), (5, ["b"])]


def test_units_are_listed_in_zone_order() -> None:
    """Source: pkg/scheduler/backend/cache/node_tree.go, nodeTree.list (1.37)."""
    zones = {"n1": "z1", "n2": "z1", "n3": "z2"}
    nodes = [make_node(name, labels={"topology.kubernetes.io/zone": zone}) for name, zone in zones.items()]
    snapshot = make_cluster(*nodes, *(make_victim(f"on-{name}", name) for name in zones)).snapshot()

    units = list_units(snapshot, RELEASE_1_37)

    assert [unit.pods[0].pod.metadata.name for unit in units] == ["on-n1", "on-n3", "on-n2"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"priority": 5}, {"priority": 3, "start": "01:00"}),
        ({"priority": 3, "start": "01:00"}, {"priority": 3, "start": "02:00"}),
        ({"priority": 3, "start": "02:00"}, {"priority": 3, "start": ""}),
    ],
    ids=["the higher priority", "the earlier start", "a started pod"],
)
def test_the_more_important_unit_sorts_first(first: dict[str, int | str], second: dict[str, int | str]) -> None:
    """Source: pkg/scheduler/framework/preemption/types.go, newDomainForWorkloadPreemption (1.36)."""
    pods = [make_victim("second", "n1", **second), make_victim("first", "n1", **first)]  # type: ignore[arg-type]
    units = list_units(make_cluster(make_small_node("n1"), *pods).snapshot(), RELEASE_1_37)

    ordered = sorted(units, key=lambda unit: unit.get_importance_key(RELEASE_1_36))

    assert [unit.pods[0].pod.metadata.name for unit in ordered] == ["first", "second"]


def test_since_1_37_the_oldest_pod_decides_which_group_is_more_important() -> None:
    """Source: pkg/scheduler/framework/preemption/util.go, MoreImportantVictim (1.37)."""
    groups = [make_pod_group(name, disruptionMode={"all": {}}, priority=1) for name in ("x", "y")]
    starts = [
        ("x1", "x", "n1", "02:00"),
        ("y1", "y", "n1", "03:00"),
        ("x2", "x", "n2", "04:00"),
        ("y2", "y", "n2", "01:00"),
    ]
    pods = [
        make_victim(name, node, start=start, spec={"schedulingGroup": {"podGroupName": group}})
        for name, group, node, start in starts
    ]
    snapshot = make_cluster(make_small_node("n1"), make_small_node("n2"), *groups, *pods).snapshot()
    for release, first in ((RELEASE_1_36, "x1"), (RELEASE_1_37, "y1")):
        best = min(list_units(snapshot, release), key=lambda unit: unit.get_importance_key(release))
        assert best.pods[0].pod.metadata.name == first


def test_since_1_37_a_pod_that_is_evicted_alone_has_the_priority_of_its_group() -> None:
    group = make_pod_group("x", disruptionMode={"single": {}}, priority=7)
    pod = make_victim("x1", "n1", priority=3, spec={"schedulingGroup": {"podGroupName": "x"}})
    snapshot = make_cluster(make_small_node("n1"), group, pod).snapshot()
    assert [unit.priority for unit in list_units(snapshot, RELEASE_1_36)] == [3]
    assert [unit.priority for unit in list_units(snapshot, RELEASE_1_37)] == [7]


def test_a_composite_group_that_is_disrupted_as_a_whole_is_one_unit_and_the_most_important() -> None:
    """Source: pkg/scheduler/framework/preemption/types.go, getHighestAllAncestor (1.37)."""
    groups = [
        make_composite_group("root", disruptionMode={"all": {}}, priority=1),
        make_child_group("x", priority=9, disruptionMode={"single": {}}),
        make_child_group("y"),
        make_pod_group("z", disruptionMode={"all": {}}, priority=1),
    ]
    pods = [
        make_victim(name, "n1", priority=1, start=start, spec={"schedulingGroup": {"podGroupName": group}})
        for name, group, start in (
            ("x1", "x", "03:00"),
            ("y1", "y", "03:00"),
            *((f"z{number}", "z", "01:00") for number in "123"),
        )
    ]
    gates = FeatureGates(dict.fromkeys(("GenericWorkload", "CompositePodGroup"), True), RELEASE_1_37)
    snapshot = make_cluster(make_small_node("n1"), *groups, *pods, gates=gates).snapshot()
    units = sorted(list_units(snapshot, RELEASE_1_37), key=lambda unit: unit.get_importance_key(RELEASE_1_37))
    assert [(unit.priority, sorted(pod.pod.metadata.name for pod in unit.pods)) for unit in units] == [
        (1, ["x1", "y1"]),
        (1, ["z1", "z2", "z3"]),
    ]
    on_node = list_units_on_node("n1", snapshot, RELEASE_1_37)
    assert [len(unit.pods) for unit in on_node] == [2, 3]
