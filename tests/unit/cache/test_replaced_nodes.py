"""A cluster whose nodes are replaced by nodes with new names keeps few values of the nodes that are gone."""

from typing import Any

from extender.api.kinds.node import Node
from extender.api.matching import NOTHING, selector_from_labels
from extender.cache.cache import Cache
from extender.cache.tables.pod_selectors import PodMatcher, PodSelector
from tests.build import make_cluster, make_node, make_pod
from tests.consistency import find_inconsistencies

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
WEB = PodSelector(frozenset({"default"}), NOTHING, selector_from_labels({"app": "web"}))
APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": ZONE}
        ]
    }
}


def _node(name: str, **labels: str) -> Node:
    taints = [{"key": "name", "value": name, "effect": "PreferNoSchedule"}]
    return make_node(name, labels={HOST: name, **labels}, taints=taints, features=[name])


def _replace_nodes(cache: Cache, count: int) -> int:
    """Replace one node *count* times by a node with a new name; return the largest number of ids of a value."""
    largest = 0
    for number in range(count):
        cache.add_or_update_node(_node(f"new-{number}"))
        cache.remove_node(f"new-{number - 1}")
        with cache.read() as snapshot:
            symbols = snapshot.symbols
            snapshot.view().label_value_ids(HOST)
            values = symbols.get_label_values(HOST)
            largest = max(largest, len(values), len(symbols.taint_sets), len(symbols.feature_sets))
    return largest


def test_values_of_removed_nodes_have_at_most_1_024_ids_more_than_twice_the_nodes() -> None:
    cache = make_cluster(*(_node(f"n{number}") for number in range(4)))

    assert _replace_nodes(cache, 5000) == 2 * 6 + 1024 + 1  # six nodes, before the one with a new name is removed

    with cache.read() as snapshot:
        names = list(snapshot.names)
        view = snapshot.view()
        hosts, taint_sets = snapshot.symbols.get_label_values(HOST), snapshot.symbols.taint_sets
        assert [hosts[value] for value in view.label_value_ids(HOST)] == names
        assert [taint_sets[value][0].value for value in view.taint_set_ids] == names
        assert [snapshot.symbols.feature_sets[value] for value in view.feature_set_ids] == [{name} for name in names]


def test_labels_of_removed_nodes_that_pods_named_are_dropped() -> None:
    """A reservation may be a label of its own, which its node has and its pods name."""
    cache, most = make_cluster(_node("n0")), 0
    for number in range(6000):
        cache.add_or_update_node(_node("new", **{f"reservation-{number}": "true"}))
        with cache.read() as snapshot:
            assert snapshot.view().label_value_ids(f"reservation-{number}").tolist() == [-1, 0]
            most = max(most, len(snapshot.symbols._label_values))
        cache.remove_node("new")
    assert most <= 4096 + 1
    assert find_inconsistencies(cache.snapshot()) == []


def test_sums_by_domain_have_the_new_ids_of_their_values() -> None:
    """No label of a zone changes when the ids change, and the zones get other ids."""
    web: dict[str, Any] = {"labels": {"app": "web"}, "spec": {"affinity": APART}}
    cache = make_cluster(_node("n0", **{ZONE: "b"}), _node("n1", **{ZONE: "a"}), make_pod("web", node="n1", **web))
    matcher, old = PodMatcher((WEB,)), cache.snapshot()
    labels = old.make_pod_info(make_pod(labels={"app": "web"})).signature.pod_labels

    def count(snapshot: Any) -> dict[str, tuple[int, int]]:
        """Return the matching pods and terms by zone."""
        ((_, term_counts),) = snapshot.affinity_terms_matching(labels)
        counts = (snapshot.pod_counts(matcher), term_counts)
        pods, terms = (snapshot.counts_by_domain(each, ZONE).tolist() for each in counts)
        zones = snapshot.symbols.get_label_values(ZONE)
        return dict(zip(zones, zip(pods, terms, strict=True), strict=True))

    assert count(old) == {"b": (0, 0), "a": (1, 1)}
    cache.remove_node("n0")
    with cache.read() as snapshot:
        assert count(snapshot) == {"b": (0, 0), "a": (1, 1)}
    _replace_nodes(cache, 1100)

    with cache.read() as snapshot:
        assert count(snapshot) == {"a": (1, 1)}
    assert count(old) == {"b": (0, 0), "a": (1, 1)}
    assert find_inconsistencies(cache.snapshot()) == []
