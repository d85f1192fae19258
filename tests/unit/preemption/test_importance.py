"""The order of potential victims."""

import numpy as np
import pytest

from extender.cache.pod_batch import PodBatch
from extender.config.releases import DEFAULT_RELEASE, RELEASES
from extender.preemption.importance import order_by_importance
from tests.build import make_cluster
from tests.unit.preemption.builders import make_preemptor, make_small_node, make_victim, search_candidates, victim_names


def order_names(release: str, node_numbers: list[int], **starts: str) -> list[str]:
    """Return the names of pods of one priority in order; *starts* are their start times by name, "" for none."""
    pods = [make_victim(name, "n", start=start) for name, start in starts.items()]
    snapshot = make_cluster(make_small_node("n"), *pods).snapshot()
    assigned = {pod.pod.metadata.name: pod for pod in snapshot.pods_on("n").values()}
    batch = PodBatch([assigned[name] for name in starts], np.zeros(len(pods), dtype=np.int64))
    order = order_by_importance(batch, np.array(node_numbers), RELEASES[release])
    return [batch.pods[index].pod.metadata.name for index in order.tolist()]


def test_pods_are_ordered_by_group_priority_and_start() -> None:
    """Source: pkg/scheduler/util/utils.go, MoreImportantPod (1.36)."""
    pods = {
        "young": make_victim("young", "n1", start="12:00"),
        "old": make_victim("old", "n1", start="08:00"),
        "not-started": make_victim("not-started", "n1", start=""),
        "important": make_victim("important", "n1", priority=9, start="12:00"),
        "other-group": make_victim("other-group", "n1", priority=99),
    }
    snapshot = make_cluster(make_small_node("n1"), *pods.values()).snapshot()
    assigned = {pod.pod.metadata.name: pod for pod in snapshot.pods_on("n1").values()}
    batch = PodBatch([assigned[name] for name in pods], np.zeros(5, dtype=np.int64))

    order = order_by_importance(batch, np.array([0, 0, 0, 0, 1]), DEFAULT_RELEASE)

    names = list(pods)
    assert [names[index] for index in order] == ["important", "old", "young", "not-started", "other-group"]


@pytest.mark.parametrize(
    ("release", "names"),
    [("1.36", ["a", "d", "c", "b", "f", "e"]), ("1.37", ["a", "b", "c", "d", "e", "f"])],
)
def test_of_two_pods_that_have_not_started_each_is_more_important_in_1_36(release: str, names: list[str]) -> None:
    """Each comparison reads the clock, first for the pod that is then found more important."""
    starts = {"a": "08:00", "b": "", "c": "", "d": "", "e": "", "f": ""}

    assert order_names(release, [0, 0, 0, 0, 1, 1], **starts) == names


@pytest.mark.parametrize("release", ["1.36", "1.37"])
def test_twelve_pods_with_one_start_time_keep_their_order_and_more_do_not(release: str) -> None:
    few = {f"few-{number}": "08:00" for number in range(12)}
    many = {f"many-{number}": "08:00" if number % 2 else "09:00" for number in range(14)}

    names = order_names(release, [0] * 12 + [1] * 14, **few, **many)

    assert names[:12] == list(few)
    assert [name.removeprefix("many-") for name in names[12:]] == [
        "9",
        "1",
        "13",
        "3",
        "7",
        "5",
        "11",
        "12",
        "6",
        "0",
        "10",
        "8",
        "4",
        "2",
    ]


def test_the_victims_of_a_node_with_many_pods_are_those_of_kube_scheduler() -> None:
    """A third of the pods started an hour before the others; 21 of them stay."""
    victims = [make_victim(f"p{number}", "n", start="10:00" if number % 3 else "09:00") for number in range(30)]
    state = make_cluster(make_small_node("n", cpu="30"), *victims)

    names = victim_names(search_candidates(state, make_preemptor(cpu="9")))["n"]

    assert sorted(names) == ["p1", "p2", "p22", "p23", "p25", "p26", "p28", "p29", "p4"]
