"""Groups of nodes with the same devices, and the versions of their results."""

import numpy as np
import pytest

from extender.cache.cache import Cache
from extender.dra.node_groups import NodeGroups
from tests.build import make_cluster, make_node
from tests.unit.dra.builders import DRIVER, make_allocator, make_slice


def make_groups(cache: Cache) -> NodeGroups:
    allocator = make_allocator()
    allocator.sync(cache.snapshot())
    return allocator.node_groups


def find_all(groups: NodeGroups, cache: Cache, *, timed_out: bool = False) -> list[int]:
    with cache.read() as snapshot:
        candidates = np.ones(len(snapshot), dtype=np.bool_)
        return groups.find_all(snapshot.view(), candidates, lambda: timed_out).tolist()


NODES = [make_node(name) for name in ("n1", "n2", "n3")]


def test_nodes_with_the_same_shared_devices_are_one_group() -> None:
    cache = make_cluster(*NODES, make_slice({"pool": "all"}))
    groups = make_groups(cache)
    assert find_all(groups, cache) == [0, 0, 0]
    cache.add_or_update_object(make_slice({"pool": "local", "node": "n2"}))
    groups = make_groups(cache)
    assert find_all(groups, cache) == [0, 1, 0]


def test_only_the_groups_with_a_changed_pool_get_another_version() -> None:
    cache = make_cluster(*NODES, *(make_slice({"pool": name, "node": name}) for name in ("n1", "n2")))
    groups = make_groups(cache)
    assert find_all(groups, cache) == [0, 1, 2]
    before = groups.versions.copy()
    groups.invalidate([(DRIVER, "n2"), (DRIVER, "unknown")])
    assert (groups.versions != before).nonzero()[0].tolist() == [1]
    groups.invalidate(None)
    assert (groups.versions[:3] != before[:3]).all()


@pytest.mark.parametrize(("slice_nodes", "want"), [({"node": "n1"}, True), ({}, False)], ids=["own", "shared"])
def test_a_changed_node_gets_another_version_if_its_devices_are_its_own(
    slice_nodes: dict[str, str], want: bool
) -> None:
    cache = make_cluster(*NODES, make_slice({"pool": "p", **slice_nodes}))
    groups = make_groups(cache)
    group = find_all(groups, cache)[0]
    before = groups.versions[group]
    cache.add_or_update_node(make_node("n1", labels={"new": "label"}))
    assert find_all(groups, cache)[0] == group
    assert (groups.versions[group] != before) == want


def test_the_groups_of_many_nodes_are_found_after_nodes_moved() -> None:
    names = [f"n{number}" for number in range(50)]
    cache = make_cluster(*map(make_node, names), *(make_slice({"pool": name, "node": name}) for name in names))
    groups = make_groups(cache)
    assert find_all(groups, cache) == list(range(50))
    assert len(groups.versions) > groups.count
    cache.remove_node("n7")
    with cache.read() as snapshot:
        want = [names.index(name) for name in snapshot.names]
        assert groups.get_rows_by_name(snapshot) == {name: row for row, name in enumerate(snapshot.names)}
    assert find_all(groups, cache) == want


def test_few_groups_are_looked_up_after_the_timeout() -> None:
    cache = make_cluster(*(make_node(f"n{number}") for number in range(200)))
    groups = make_groups(cache)
    assert 0 < find_all(groups, cache, timed_out=True).count(0) < 100
    assert find_all(groups, cache) == [0] * 200
