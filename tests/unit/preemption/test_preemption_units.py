"""The pods that are evicted together, in order of importance."""

import pytest

from extender.preemption.preemption_units import list_units
from tests.build import make_cluster
from tests.unit.preemption.builders import make_small_node, make_victim


def test_single_pods_are_units_of_their_own() -> None:
    pods = [make_victim("a", "n1", priority=3), make_victim("b", "n2", priority=5)]
    snapshot = make_cluster(make_small_node("n1"), make_small_node("n2"), *pods).snapshot()

    units = list_units(snapshot)

    assert [(unit.priority, [pod.pod.metadata.name for pod in unit.pods]) for unit in units] == [(3, ["a"]), (5, ["b"])]


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
    units = list_units(make_cluster(make_small_node("n1"), *pods).snapshot())

    ordered = sorted(units, key=lambda unit: unit.importance_key)

    assert [unit.pods[0].pod.metadata.name for unit in ordered] == ["first", "second"]
