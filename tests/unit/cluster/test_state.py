"""The life of a pod in the tables, and what readers see of it."""

import pytest

from extender.cluster.audit import validate
from extender.cluster.ledger import LedgerError
from extender.cluster.state import ClusterState
from tests.build import a_cluster, a_node, a_pod

CPU, MEMORY = 0, 1


def requested(state: ClusterState, node: str) -> int:
    """Milli-CPU that the pods on *node* ask for."""
    snapshot = state.snapshot()
    row = snapshot.row(node)
    assert row is not None
    return int(snapshot.view().requested(CPU)[row])


def test_a_pod_on_a_node_counts_there() -> None:
    state = a_cluster(a_node("n1"), a_node("n2"), a_pod("web", node="n2", requests={"cpu": "300m"}))

    assert requested(state, "n1") == 0
    assert requested(state, "n2") == 300


def test_a_waiting_pod_counts_nowhere() -> None:
    state = a_cluster(a_node("n1"), a_pod("web", requests={"cpu": "300m"}))

    assert requested(state, "n1") == 0
    assert [pod.key for pod in state.waiting.values()] == ["default/web"]


def test_sums_beyond_int64_wrap_around_and_come_back() -> None:
    """As upstream's do, whose sums are int64 too; 9e18 + 9e18 - 2**64 = -446744073709551616."""
    huge = {"memory": "9000000000000000000"}
    first, second = a_pod("first", node="n1", requests=huge), a_pod("second", node="n1", requests=huge)
    state = a_cluster(a_node("n1"), first, second)

    def memory() -> tuple[int, int]:
        nodes = state.snapshot().view()
        return nodes.requested(MEMORY).item(0), nodes.nonzero_requested(1).item(0)

    assert memory() == (-446_744_073_709_551_616, -446_744_073_709_551_616)
    state.drop_pod(second.metadata.uid)
    assert memory() == (9_000_000_000_000_000_000, 9_000_000_000_000_000_000)


def test_an_assumed_pod_counts_until_it_is_forgotten() -> None:
    pod = a_pod("web", requests={"cpu": "300m"})
    state = a_cluster(a_node("n1"), pod)

    state.assume(pod, "n1")
    assert requested(state, "n1") == 300
    assert state.is_assumed(pod.metadata.uid)
    assert dict(state.waiting) == {}

    state.forget(pod)
    assert requested(state, "n1") == 0
    assert list(state.waiting) == [pod.metadata.uid]


def test_a_confirmed_pod_counts_once() -> None:
    pod = a_pod("web", requests={"cpu": "300m"})
    state = a_cluster(a_node("n1"), pod)
    state.assume(pod, "n1")

    state.put_pod(a_pod("web", node="n1", requests={"cpu": "300m"}))

    assert requested(state, "n1") == 300
    assert not state.is_assumed(pod.metadata.uid)


def test_a_pod_that_was_bound_elsewhere_than_assumed_moves() -> None:
    """The API server is right (A108)."""
    pod = a_pod("web", requests={"cpu": "300m"})
    state = a_cluster(a_node("n1"), a_node("n2"), pod)
    state.assume(pod, "n1")

    state.put_pod(a_pod("web", node="n2", requests={"cpu": "300m"}))

    assert (requested(state, "n1"), requested(state, "n2")) == (0, 300)


def test_a_pod_cannot_be_assumed_twice() -> None:
    pod = a_pod("web")
    state = a_cluster(a_node("n1"), a_node("n2"), pod)
    state.assume(pod, "n1")

    with pytest.raises(LedgerError, match=r"pod default/web \(uid uid-default-web\) is on n1 already"):
        state.assume(pod, "n2")


def test_forgetting_what_was_never_assumed_does_nothing() -> None:
    state = a_cluster(a_node("n1"), a_pod("web", node="n1", requests={"cpu": "1"}))

    state.forget(a_pod("web"))

    assert requested(state, "n1") == 1000


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finished_pod_frees_its_node(phase: str) -> None:
    state = a_cluster(a_node("n1"), a_pod("web", node="n1", requests={"cpu": "1"}))

    state.put_pod(a_pod("web", node="n1", requests={"cpu": "1"}, status={"phase": phase}))

    assert requested(state, "n1") == 0


def test_a_resized_pod_counts_with_its_new_size() -> None:
    state = a_cluster(a_node("n1"), a_pod("web", node="n1", requests={"cpu": "1"}))

    state.put_pod(a_pod("web", node="n1", requests={"cpu": "250m"}))

    assert requested(state, "n1") == 250


def test_pods_of_a_node_that_is_not_known_yet_count_when_it_comes() -> None:
    state = a_cluster(a_pod("web", node="n1", requests={"cpu": "1"}))
    assert len(state.snapshot()) == 0

    state.put_node(a_node("n1"))

    assert requested(state, "n1") == 1000


def test_pods_of_a_node_that_went_and_came_back_count_again() -> None:
    """Source: A116."""
    state = a_cluster(a_node("n1"), a_node("n2"), a_pod("web", node="n1", requests={"cpu": "1"}))

    state.drop_node("n1")
    assert list(state.snapshot().names) == ["n2"]
    assert validate(state.snapshot()) == []

    state.put_node(a_node("n1"))
    assert requested(state, "n1") == 1000


def test_dropping_a_node_moves_the_last_one_into_its_row() -> None:
    pods = [a_pod(f"p{i}", node=f"n{i}", requests={"cpu": f"{i}"}) for i in range(3)]
    state = a_cluster(a_node("n0"), a_node("n1"), a_node("n2"), *pods)

    state.drop_node("n0")

    assert list(state.snapshot().names) == ["n2", "n1"]
    assert requested(state, "n2") == 2000
    assert validate(state.snapshot()) == []


def test_dropping_what_is_unknown_does_nothing() -> None:
    state = a_cluster(a_node("n1"))

    state.drop_node("n2")
    state.drop_pod("nobody")

    assert list(state.snapshot().names) == ["n1"]


def test_a_snapshot_does_not_see_what_comes_after_it() -> None:
    pod = a_pod("web", requests={"cpu": "1"})
    state = a_cluster(a_node("n1"), pod)
    before = state.snapshot()

    state.assume(pod, "n1")
    state.put_node(a_node("n2"))

    assert list(before.names) == ["n1"]
    assert before.view().requested(CPU).tolist() == [0]
    assert requested(state, "n1") == 1000


def test_the_tables_are_copied_only_while_somebody_holds_a_snapshot() -> None:
    state = a_cluster(a_node("n1"))
    tables = state.snapshot().tables

    state.put_node(a_node("n2"))
    assert state.snapshot().tables is tables

    held = state.snapshot()
    state.put_node(a_node("n3"))
    assert state.snapshot().tables is not tables
    assert len(held) == 2


def test_two_snapshots_without_a_write_between_are_one() -> None:
    state = a_cluster(a_node("n1"))
    first = state.snapshot()

    assert state.snapshot() is first


def test_a_nomination_is_seen_until_the_pod_is_placed() -> None:
    pod = a_pod("web", priority=5)
    state = a_cluster(a_node("n1"), pod)

    state.nominate(pod, "n1")
    assert [query.key for query in state.snapshot().nominated("n1")] == ["default/web"]

    state.assume(pod, "n1")
    assert state.snapshot().nominated("n1") == ()


def test_a_pod_is_nominated_for_one_node_at_a_time() -> None:
    pod = a_pod("web")
    state = a_cluster(a_node("n1"), a_node("n2"), pod)

    state.nominate(pod, "n1")
    state.nominate(pod, "n2")

    assert [query.key for query in state.snapshot().nominated("n1")] == []
    assert [query.key for query in state.snapshot().nominated("n2")] == ["default/web"]


def test_the_story_of_a_pod_is_told_in_order() -> None:
    pod = a_pod("web")
    state = a_cluster(a_node("n1"), pod)
    state.assume(pod, "n1")
    state.put_pod(a_pod("web", node="n1"))
    state.drop_pod(pod.metadata.uid)

    told = [event.partition(": ")[2] for event in state.story(pod.metadata.uid)]

    assert told == ["waiting", "assumed on n1", "confirmed on n1", "gone on n1"]
