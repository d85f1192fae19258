"""Snapshots list nodes, pods and changed rows; views select some of the nodes."""

import numpy as np

from extender.cache.cache import Cache
from extender.cache.hypothesis import Hypothesis
from extender.cache.snapshot import Snapshot
from tests.build import make_cluster, make_node, make_pod


def two_nodes() -> Cache:
    return make_cluster(
        make_node("m", labels={"zone": "a"}),
        make_node("n", allocatable={"cpu": "2", "pods": "5"}),
        make_pod("a", node="n", requests={"cpu": "1"}),
    )


def changed_rows(old: Snapshot, new: Snapshot, *, pods: bool = True) -> list[int] | None:
    rows = new.find_changed_rows(old.position, nodes_only=not pods)
    return None if rows is None else rows.tolist()


def test_pods_are_listed_by_row() -> None:
    snapshot = make_cluster(make_node("m"), make_node("n"), make_pod("a", node="n"), make_pod("b", node="n")).snapshot()

    pods_by_row = snapshot.pods_by_row(np.array([1, 0]))

    assert [[pod.key for pod in pods] for pods in pods_by_row] == [["default/a", "default/b"], []]


def test_rows_of_unknown_names_are_negative() -> None:
    assert two_nodes().snapshot().rows(["n", "unknown", "m"]).tolist() == [1, -1, 0]


def test_only_rows_that_changed_since_are_listed() -> None:
    cache = two_nodes()
    old = cache.snapshot()
    cache.add_or_update_pod(make_pod("b", node="n"))
    with_pod = cache.snapshot()
    assert (changed_rows(old, with_pod), changed_rows(old, with_pod, pods=False)) == ([1], [])
    cache.add_or_update_node(make_node("m", labels={"zone": "b"}))
    assert changed_rows(old, cache.snapshot()) == [0, 1]
    assert changed_rows(with_pod, cache.snapshot(), pods=False) == [0]


def test_all_rows_may_have_changed_after_a_node_was_removed() -> None:
    cache = two_nodes()
    old = cache.snapshot()
    cache.remove_node("n")
    assert changed_rows(old, cache.snapshot()) is None


def test_requests_of_a_resource_that_no_node_has_are_summed_up() -> None:
    """A plugin may limit them by a label of the node, for example."""
    requests = {"example.com/license": "2"}
    cache = make_cluster(
        make_node("m"),
        make_node("n"),
        make_pod("a", node="n", requests=requests),
        make_pod("b", node="n", requests=requests),
    )
    snapshot = cache.snapshot()
    view, row = snapshot.view(), snapshot.view(np.array([1]))
    assert view.sum_requests("example.com/license").tolist() == [0, 4]
    license_id = snapshot.symbols.resources.intern("example.com/license")
    for _ in range(2):  # before and after a write counts the requests
        assert (view.requested(license_id).tolist(), view.allocatable(license_id).tolist()) == ([0, 4], [0, 0])
        assert row.requested_and_allocatable(1, license_id) == view.requested_and_allocatable(1, license_id) == (4, 0)
        cache.add_or_update_pod(make_pod("c", node="m"))
        view, row = cache.snapshot().view(), cache.snapshot().view(np.array([1]))


def test_a_view_has_one_entry_for_each_of_its_rows() -> None:
    snapshot = two_nodes().snapshot()
    view = snapshot.view(np.array([1, 0]))
    assert (view.names, len(view)) == (["n", "m"], 2)
    assert (view.requested(0).tolist(), view.allocatable(0).tolist()) == ([1000, 0], [2000, 4000])
    assert (view.pod_count.tolist(), view.allowed_pods.tolist()) == ([1, 0], [5, 110])
    assert view.label_value_ids("zone").tolist() == [-1, 0]


def test_a_resource_that_no_node_has_is_zero_everywhere() -> None:
    snapshot = two_nodes().snapshot()
    resource = snapshot.symbols.resources.intern("example.com/gpu")
    later = max(resource, 50)
    assert snapshot.view().requested(later).tolist() == [0, 0]
    assert snapshot.view().requested_and_allocatable(0, later) == (0, 0)


def test_a_view_of_one_node_returns_plain_numbers() -> None:
    view = two_nodes().snapshot().view(np.array([1]))
    assert view.single_row == 1
    assert view.requested_and_allocatable(1, 0) == (1000, 2000)
    assert view.pod_count_and_limit(1) == (1, 5)
    assert view.nonzero_requested_of(1, 0) == 1000


def test_the_lowest_priority_is_that_of_the_pods_on_nodes_now() -> None:
    """One pod with a low priority would else make each failed attempt search for victims, also after it is gone."""
    low, pending = make_pod("low", node="a", priority=-5), make_pod("pending", priority=-9)
    cache = make_cluster(make_node("a"), pending)
    assert cache.snapshot().lowest_priority == 2147483647
    for pod in (make_pod("p", node="a", priority=7), make_pod("q", node="gone"), low):
        cache.add_or_update_pod(pod)
    before = cache.snapshot()
    hypothesis = Hypothesis(before)
    hypothesis.remove_pod(cache.assigned_pods[low.metadata.uid])
    assert (before.lowest_priority, hypothesis.snapshot().lowest_priority) == (-5, 0)
    cache.remove_pod(low.metadata.uid)
    assert (before.lowest_priority, cache.snapshot().lowest_priority) == (-5, 0)
    cache.assume(pending, "a")
    assert cache.snapshot().lowest_priority == -9
    cache.forget(pending)
    assert cache.snapshot().lowest_priority == 0


def test_nodes_that_were_added_after_a_snapshot_are_no_changed_rows_of_it() -> None:
    cache = two_nodes()
    first = cache.snapshot()
    cache.add_or_update_pod(make_pod("b", node="m"))
    second = cache.snapshot()
    cache.add_or_update_node(make_node("o"))
    cache.add_or_update_pod(make_pod("c", node="o"))

    assert changed_rows(first, second) == [0]
    assert changed_rows(second, first) == [0]
    assert changed_rows(cache.snapshot(), second) == []
    assert changed_rows(second, cache.snapshot()) == [2]
