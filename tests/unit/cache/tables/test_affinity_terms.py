"""Affinity terms of assigned pods are counted by node; a term without pods is not in use."""

import tracemalloc
from weakref import WeakSet

import pytest

from extender.api.matching import EVERYTHING, NOTHING
from extender.cache.cache import Cache
from extender.cache.hypothesis import Hypothesis
from extender.cache.snapshot import Snapshot
from extender.cache.tables import affinity_terms
from extender.cache.tables.affinity_terms import AffinityTerm, AffinityTermTable, TermKind
from extender.cache.tables.node_table import NodeTable
from extender.cache.tables.pod_selectors import PodSelector
from extender.cache.tables.symbols import PodLabels, Symbols
from tests.build import make_cluster, make_node, make_pod

ANTI_AFFINITY = {
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone", "labelSelector": {}}]
        }
    }
}


def counts(snapshot: Snapshot, namespace: str = "default") -> list[list[int]]:
    """The counts by node of each term that matches a pod in *namespace*."""
    incoming = snapshot.make_pod_info(make_pod("incoming", namespace=namespace))
    terms = snapshot.affinity_terms_matching(incoming.signature.pod_labels)
    return [snapshot.counts_by_row(term_counts).tolist() for _, term_counts in terms]


def two_pods() -> Cache:
    pods = [make_pod(name, node="two", spec=ANTI_AFFINITY) for name in ("a", "b")]
    return make_cluster(make_node("one"), make_node("two"), *pods)


def test_equal_terms_of_several_pods_are_counted_together() -> None:
    assert counts(two_pods().snapshot()) == [[0, 2]]


def test_a_term_matches_only_pods_of_its_namespaces() -> None:
    assert counts(two_pods().snapshot(), namespace="other") == []


def test_a_term_without_pods_is_not_in_use() -> None:
    cache = two_pods()
    cache.remove_pod("uid-default-a")
    assert counts(cache.snapshot()) == [[0, 1]]
    cache.remove_pod("uid-default-b")
    assert counts(cache.snapshot()) == []


def test_at_most_256_terms_without_pods_are_retained() -> None:
    cache = two_pods()
    for number in range(2000):
        term = {"topologyKey": f"zone-{number}", "labelSelector": {}}
        spec = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
        cache.add_or_update_pod(make_pod("old", node="one", spec=spec))
        cache.remove_pod("uid-default-old")
        assert len(cache.snapshot().tables.affinity_terms.items()) <= 2 + 256
    assert counts(cache.snapshot()) == [[0, 2]]


def test_labels_for_which_the_matching_terms_are_cached_are_limited() -> None:
    symbols, table, live = Symbols(), AffinityTermTable(), WeakSet[PodLabels]()
    pod = two_pods().snapshot().make_pod_info(make_pod("of-another-namespace", namespace="other", spec=ANTI_AFFINITY))
    table.add_or_remove(pod.signature.pod_affinity_terms.all_terms, 0, NodeTable(symbols))
    for number in range(20_000):
        labels = symbols.intern_pod_labels("default", {"job": f"job-{number}"})
        live.add(labels)
        assert table.find_matching_terms(labels) == ()
    assert 4096 <= len(live) <= 4096 + 1


def test_no_labels_are_cached_while_no_pod_has_a_term() -> None:
    symbols, table, live = Symbols(), AffinityTermTable(), WeakSet[PodLabels]()
    for number in range(10):
        labels = symbols.intern_pod_labels("default", {"job": f"job-{number}"})
        live.add(labels)
        assert table.find_matching_terms(labels) == ()
    assert len(live) == 1  # the local variable


def test_removing_a_pod_from_a_hypothesis_leaves_the_snapshot_unchanged() -> None:
    snapshot = two_pods().snapshot()
    hypothesis = Hypothesis(snapshot)
    hypothesis.remove_pod(snapshot.pods_on("two")["uid-default-a"])
    assert counts(hypothesis.snapshot()) == [[0, 1]]
    assert counts(snapshot) == [[0, 2]]


def test_an_older_snapshot_does_not_change_the_domain_counts_of_a_relabelled_node() -> None:
    cache = make_cluster(make_node("one", labels={"zone": "a"}), make_pod(node="one", spec=ANTI_AFFINITY))
    old = cache.snapshot()
    class_id = old.make_pod_info(make_pod("incoming")).signature.pod_labels
    cache.add_or_update_node(make_node("one", labels={"zone": "b"}))
    new = cache.snapshot()
    ((_, old_counts),) = old.affinity_terms_matching(class_id)
    ((_, new_counts),) = new.affinity_terms_matching(class_id)
    assert old.counts_by_domain(old_counts, "zone").tolist() == [1]
    assert new.counts_by_domain(new_counts, "zone").tolist() == [0, 1]


def test_the_terms_of_few_pods_take_little_memory_in_a_large_cluster() -> None:
    host = "kubernetes.io/hostname"
    terms = [
        {
            "topologyKey": host,
            "labelSelector": {"matchExpressions": [{"key": f"k{number}", "operator": "DoesNotExist"}]},
        }
        for number in range(200)
    ]
    spec = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}
    names = [f"n{number}" for number in range(2000)]
    cache = make_cluster(*(make_node(name, labels={host: name}) for name in names))
    incoming = cache.snapshot().make_pod_info(make_pod("incoming")).signature.pod_labels
    tracemalloc.start()
    cache.add_or_update_pod(make_pod(node="n7", spec=spec))
    snapshot = cache.snapshot()
    matches = snapshot.affinity_terms_matching(incoming)
    assert {int(snapshot.counts_by_domain(term_counts, host).sum()) for _, term_counts in matches} == {1}
    used_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(matches) == 200
    assert used_bytes < 1_000_000  # arrays of 2,000 nodes would take 6,400,000


def test_counts_are_the_same_for_few_and_for_many_nodes() -> None:
    names = [f"n{number}" for number in range(64)]
    cache = make_cluster(*(make_node(name, labels={"zone": f"z{name[-1]}"}) for name in names))
    expected = [0] * 64
    for number in (3, 3, 13, 21, 40, 63):
        cache.add_or_update_pod(make_pod(f"{number}-{expected[number]}", node=f"n{number}", spec=ANTI_AFFINITY))
        expected[number] += 1
        assert counts(cache.snapshot()) == [expected]
    for uid in ("3-0", "13-0", "21-0", "40-0"):
        cache.remove_pod(f"uid-default-{uid}")
    snapshot = cache.snapshot()
    ((_, term_counts),) = snapshot.affinity_terms_matching(snapshot.make_pod_info(make_pod("i")).signature.pod_labels)
    assert counts(snapshot) == [[1 if number in {3, 63} else 0 for number in range(64)]]
    assert snapshot.counts_by_domain(term_counts, "zone").tolist() == [0, 0, 0, 2, 0, 0, 0, 0, 0, 0]


def test_the_cached_matches_of_all_labels_together_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(affinity_terms, "_MAX_CACHED_MATCHES", 100)
    symbols, table, live = Symbols(), AffinityTermTable(), WeakSet[PodLabels]()
    nodes = NodeTable(symbols)
    for number in range(30):
        term = {"topologyKey": f"zone-{number}", "labelSelector": {}}
        spec = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
        pod = two_pods().snapshot().make_pod_info(make_pod(spec=spec))
        table.add_or_remove(pod.signature.pod_affinity_terms.all_terms, 0, nodes)
    for number in range(50):
        labels = symbols.intern_pod_labels("default", {"job": f"job-{number}"})
        live.add(labels)
        assert len(table.find_matching_terms(labels)) == 30
    assert len(live) == 3


def test_the_hash_of_a_term_is_computed_once() -> None:
    class CountedSelector(PodSelector):
        hashes = 0

        def __hash__(self) -> int:
            CountedSelector.hashes += 1
            return 1

    term = AffinityTerm(TermKind.REQUIRED_AFFINITY, CountedSelector(frozenset(), NOTHING, EVERYTHING), "zone")
    assert {term: 1}[term] == 1
    assert CountedSelector.hashes == 1
    same = AffinityTerm(TermKind.REQUIRED_AFFINITY, term.pod_selector, "zone")
    assert {term: 1}[same] == 1
    assert {term: 1}.get(AffinityTerm(TermKind.REQUIRED_AFFINITY, term.pod_selector, "rack")) is None
