"""Changes of a cache, and the state after they are undone."""

from typing import Any

import pytest
from msgspec.structs import replace

from extender.api.kinds.disruption import PodDisruptionBudget
from extender.cache.cache import Cache
from extender.planning.cache_edits import CacheEdits
from tests.unit.planning.clusters import budget, decode_pod, make_cache, node, pod


def describe(cache: Cache) -> dict[str, Any]:
    snapshot = cache.snapshot()
    return {
        "rows": list(snapshot.names),
        "requested": snapshot.view().requested(0).tolist(),
        "pods": {name: sorted(pod.key for pod in snapshot.pods_on(name).values()) for name in snapshot.names},
        "pending": sorted(cache.pending_pods),
        "labels": [node.metadata.labels for node in snapshot.nodes],
        "budgets": sorted(snapshot.objects(PodDisruptionBudget)),
    }


def make_cluster() -> Cache:
    nodes = (node(f"n{number}") for number in range(4))
    return make_cache(*nodes, pod("a", "1", on="n0"), pod("b", "2", on="n3"), pod("c"), budget("web", {"a": "b"}, 1))


@pytest.mark.parametrize("name", ["n0", "n2", "n3"], ids=["the first", "one in the middle", "the last"])
def test_a_removed_node_comes_back_to_its_row_with_its_pods(name: str) -> None:
    cache = make_cluster()
    before, edits = describe(cache), CacheEdits(cache)
    edits.remove_node(name)
    assert name not in cache.snapshot().names
    edits.undo()
    assert describe(cache) == before
    assert cache.snapshot().view().pod_count.tolist() == [1, 0, 0, 1]


def test_all_changes_are_undone_in_reverse_order() -> None:
    cache = make_cluster()
    before, edits = describe(cache), CacheEdits(cache)
    edits.remove_pod(cache.assigned_pods["uid-a"])
    edits.remove_node("n0")
    edits.remove_node("n2")
    edits.add_node(replace(edits.get_node("n1"), metadata=replace(edits.get_node("n1").metadata, name="new")))
    edits.add_pod(decode_pod(pod("d", "3", on="new")))
    changed = edits.get_node("n1")
    edits.replace_node(replace(changed, metadata=replace(changed.metadata, labels={"x": "y"})))
    edits.remove_pending_pod(cache.pending_pods["uid-c"])
    old_budget = cache.snapshot().objects(PodDisruptionBudget)["default/web"]
    edits.put_object(replace(old_budget, metadata=replace(old_budget.metadata, name="other")))
    assert describe(cache) == {
        "rows": ["n3", "n1", "new"],
        "requested": [2000, 0, 3000],
        "pods": {"n3": ["default/b"], "n1": [], "new": ["default/d"]},
        "pending": [],
        "labels": [{"kubernetes.io/hostname": "n3"}, {"x": "y"}, {"kubernetes.io/hostname": "n1"}],
        "budgets": ["default/other", "default/web"],
    }
    edits.undo()
    assert describe(cache) == before


def test_an_unknown_node_is_an_error() -> None:
    with pytest.raises(KeyError):
        CacheEdits(make_cluster()).get_node("zzz")
