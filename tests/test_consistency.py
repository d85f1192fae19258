"""Tables that differ from the objects are reported, each difference in one sentence."""

from collections.abc import Callable

import pytest

from extender.api.matching import EVERYTHING, NOTHING
from extender.cache.cache import Cache
from extender.cache.cluster_tables import ClusterTables
from extender.cache.tables.pod_selectors import PodMatcher, PodSelector
from tests.build import make_cluster, make_node, make_pod
from tests.consistency import find_inconsistencies

ALL_PODS = PodMatcher((PodSelector(frozenset({"default"}), NOTHING, EVERYTHING),))
IMAGE = {"names": ["web:1"], "sizeBytes": 10}
PORT = {"containers": [{"name": "app", "ports": [{"hostPort": 80}]}]}


def full_cache() -> Cache:
    cache = make_cluster(
        make_node("m", labels={"zone": "a"}),
        make_node("n", images=[IMAGE]),
        make_pod("a", node="n", requests={"cpu": "1"}),
        make_pod("b", node="n", spec=PORT),
    )
    snapshot = cache.snapshot()
    snapshot.counts_by_domain(snapshot.pod_counts(ALL_PODS), "zone")
    return cache


def test_consistent_tables_have_no_differences() -> None:
    assert find_inconsistencies(full_cache().snapshot()) == []


def _count_a_pod_twice(tables: ClusterTables) -> None:
    tables.selector_counts.get(ALL_PODS, tables.nodes).add(0, 1, tables.nodes)


DAMAGES: dict[str, tuple[Callable[[ClusterTables], object], list[str]]] = {
    "a wrong sum": (
        lambda tables: tables.nodes.columns.get_writable("requested").__setitem__((0, 1), -5),
        ["n: requested cpu is -5, expected 1000", "n: requested cpu is negative: -5"],
    ),
    "a wrong pod count": (
        lambda tables: tables.nodes.columns.get_writable("pod_count").__setitem__(0, 3),
        ["m: pod_count is 3, expected 0"],
    ),
    "a wrong label": (
        lambda tables: tables.nodes.get_label_column("zone").__setitem__(0, -1),
        ["m: label zone is None, expected a"],
    ),
    "a port in use that no pod has": (
        lambda tables: tables.host_ports.add(0, (("TCP", 80, "0.0.0.0"),)),  # noqa: S104  the wildcard of the API
        ["host ports (('TCP', 80, '0.0.0.0'),): in use on ['m', 'n'], expected on ['n']"],
    ),
    "an image on no node": (
        lambda tables: tables.nodes.images.remove(1, tables.nodes.objects[1]),
        ["image web:1: on [], expected on ['n']"],
    ),
    "a row of an unknown name": (
        lambda tables: tables.nodes.row_by_name.__setitem__("unknown", 2),
        ["the map of node names to rows does not match the list of node names"],
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_difference_is_reported(damage: str) -> None:
    snapshot = full_cache().snapshot()
    apply, differences = DAMAGES[damage]
    apply(snapshot.tables)
    assert find_inconsistencies(snapshot) == differences


def test_wrong_counts_are_reported_in_total_by_node_and_by_domain() -> None:
    snapshot = full_cache().snapshot()
    _count_a_pod_twice(snapshot.tables)
    assert [message.partition(": ")[2] for message in find_inconsistencies(snapshot)] == [
        "3 in total, expected 2",
        "1 on m, expected 0",
        "by zone {'a': 1}, expected {}",
    ]
