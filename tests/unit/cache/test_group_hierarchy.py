"""The trees of pod groups in the cache and in the scheduling queue."""

from collections.abc import Callable
from typing import Any

import pytest

from extender.api.kinds.pod_group import CompositePodGroup
from extender.cache.cache import Cache
from extender.cache.group_hierarchy import GroupKey, GroupSource, find_root, list_pod_group_keys, make_group_key
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_37
from extender.queueing.pod_group_queue import WorkloadForest
from tests.pod_group_builders import make_child_group, make_composite_group

GATES = FeatureGates(dict.fromkeys(("GenericWorkload", "CompositePodGroup"), True), RELEASE_1_37)
ROOT, MIDDLE = GroupKey("default", "root", is_composite=True), GroupKey("default", "middle", is_composite=True)
A, B = make_group_key("default/a"), make_group_key("default/b")


def make_snapshot(*groups: Any) -> GroupSource:
    cache = Cache(GATES)
    for group in groups:
        cache.add_or_update_object(group)
    return cache.snapshot()


def make_forest(*groups: Any) -> GroupSource:
    forest = WorkloadForest(composite_groups=True)
    for group in groups:
        forest.put(group)
    return forest


both = pytest.mark.parametrize("make_source", [make_snapshot, make_forest])


@both
def test_a_tree_is_found_from_each_of_its_groups_in_any_order_of_creation(
    make_source: Callable[..., GroupSource],
) -> None:
    groups = [
        make_child_group("a", parent="middle"),
        make_composite_group("middle", parent="root"),
        make_child_group("b"),
        make_composite_group("root"),
    ]
    for source in (make_source(*groups), make_source(*reversed(groups))):
        assert [find_root(source, key) for key in (A, B, MIDDLE, ROOT)] == [ROOT] * 4
        assert set(list_pod_group_keys(source, ROOT)) == {A, B}
        assert list_pod_group_keys(source, MIDDLE) == [A]


@both
def test_a_group_below_a_missing_group_has_no_root(make_source: Callable[..., GroupSource]) -> None:
    source = make_source(make_child_group("a", parent="middle"), make_composite_group("root"))
    assert find_root(source, A) is None
    assert list_pod_group_keys(source, ROOT) == []


@both
def test_groups_in_a_cycle_have_no_root(make_source: Callable[..., GroupSource]) -> None:
    source = make_source(
        make_child_group("a"),
        make_composite_group("root", parent="middle"),
        make_composite_group("middle", parent="root"),
    )
    assert find_root(source, A) is None
    assert list_pod_group_keys(source, ROOT) == [A]


def test_a_deleted_group_leaves_its_children_for_a_new_group_of_its_name() -> None:
    cache, forest, root = Cache(GATES), WorkloadForest(composite_groups=True), make_composite_group("root")
    for group in (root, make_child_group("a")):
        cache.add_or_update_object(group)
        forest.put(group)
    old_snapshot = cache.snapshot()
    cache.remove_object(CompositePodGroup, "default/root")
    forest.remove(ROOT)
    assert [find_root(source, A) for source in (old_snapshot, cache.snapshot(), forest)] == [ROOT, None, None]
    cache.add_or_update_object(root)
    forest.put(root)
    assert [find_root(source, A) for source in (cache.snapshot(), forest)] == [ROOT, ROOT]


def test_without_the_gate_every_pod_group_is_a_root_and_composite_groups_are_not_stored() -> None:
    cache, forest = Cache(FeatureGates(release=RELEASE_1_37)), WorkloadForest(composite_groups=False)
    cache.add_or_update_object(make_composite_group("root"))
    forest.put(make_child_group("a"))
    assert cache.snapshot().get_group(ROOT) is None
    assert forest.find_root(A) == A
