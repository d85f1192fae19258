"""Pods that match a selector are counted by node and topology domain, and the counts follow the pods."""

from collections.abc import Mapping
from weakref import WeakSet

import pytest

from extender.api.matching import EVERYTHING, NOTHING, Requirement, Selector, selector_from_labels
from extender.cache.cache import Cache
from extender.cache.tables import selector_counts
from extender.cache.tables.node_table import NodeTable
from extender.cache.tables.pod_selectors import PodMatcher, PodSelector
from extender.cache.tables.selector_counts import SelectorCountTable
from extender.cache.tables.symbols import PodLabels, Symbols
from tests.build import make_cluster, make_node, make_pod

ALL_PODS = PodSelector(frozenset({"default"}), NOTHING, EVERYTHING)
WEB_PODS = PodSelector(frozenset({"default"}), NOTHING, selector_from_labels({"app": "web"}))
TERMINATING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


def by_row(cache: Cache, matcher: PodMatcher) -> list[int]:
    snapshot = cache.snapshot()
    return snapshot.counts_by_row(snapshot.pod_counts(matcher)).tolist()


def some_pods() -> Cache:
    return make_cluster(
        make_node("one", labels={"zone": "a"}),
        make_node("two", labels={"zone": "b"}),
        make_pod("web-1", node="one", labels={"app": "web"}),
        make_pod("web-2", node="two", labels={"app": "web"}, metadata=TERMINATING),
        make_pod("db", node="two", labels={"app": "db"}),
        make_pod("other", node="two", namespace="other", labels={"app": "web"}),
    )


@pytest.mark.parametrize(
    ("matcher", "counts"),
    [
        pytest.param(PodMatcher((ALL_PODS,)), [1, 2], id="all pods of a namespace"),
        pytest.param(PodMatcher((WEB_PODS,)), [1, 1], id="pods with a label"),
        pytest.param(PodMatcher((ALL_PODS, WEB_PODS)), [1, 1], id="pods that two selectors match"),
        pytest.param(PodMatcher((WEB_PODS,), ignore_terminating_pods=True), [1, 0], id="pods that are not terminating"),
    ],
)
def test_pods_are_counted_by_node(matcher: PodMatcher, counts: list[int]) -> None:
    assert by_row(some_pods(), matcher) == counts


def test_counts_follow_added_and_removed_pods() -> None:
    cache, matcher = some_pods(), PodMatcher((WEB_PODS,))
    assert by_row(cache, matcher) == [1, 1]
    cache.add_or_update_pod(make_pod("web-3", node="two", labels={"app": "web"}))
    cache.remove_pod("uid-default-web-1")
    assert by_row(cache, matcher) == [0, 2]


def test_a_pod_of_a_class_without_pods_counts_for_a_matcher_added_since() -> None:
    cache = some_pods()
    assert by_row(cache, PodMatcher((ALL_PODS,))) == [1, 2]
    cache.remove_pod("uid-default-web-1")
    cache.remove_pod("uid-default-web-2")
    assert by_row(cache, PodMatcher((WEB_PODS,))) == [0, 0]
    cache.add_or_update_pod(make_pod("web-1", node="one", labels={"app": "web"}))
    assert by_row(cache, PodMatcher((WEB_PODS,))) == [1, 0]


def test_at_most_256_matchers_of_removed_pods_are_retained() -> None:
    cache, web = some_pods(), PodMatcher((WEB_PODS,))
    pending = [PodMatcher((_job(f"pending-{number}"),)) for number in range(300)]
    for matcher in (web, *pending):
        by_row(cache, matcher)
    for number in range(2000):
        cache.add_or_update_pod(make_pod("old", node="one", labels={"job": f"job-{number}"}))
        assert by_row(cache, PodMatcher((_job(f"job-{number}"),))) == [1, 0]
        cache.remove_pod("uid-default-old")
        table = cache.snapshot().tables.selector_counts
        assert len(table.items()) <= 301 + 256
    matchers = dict(table.items())
    assert all(matcher in matchers for matcher in (web, *pending))
    cache.add_or_update_pod(make_pod("web-3", node="two", labels={"app": "web"}))
    assert by_row(cache, web) == [1, 2]
    cache.add_or_update_pod(make_pod("again", node="two", labels={"job": "job-0"}))
    assert by_row(cache, PodMatcher((_job("job-0"),))) == [0, 1]


def _job(name: str) -> PodSelector:
    return PodSelector(frozenset({"default"}), NOTHING, selector_from_labels({"job": name}))


def test_lists_of_matchers_for_labels_that_no_pod_has_are_limited() -> None:
    nodes, symbols, table = NodeTable(Symbols()), Symbols(), SelectorCountTable()
    live = WeakSet[PodLabels]()
    for number in range(2_000):
        labels = symbols.intern_pod_labels("default", {"job": f"job-{number}"})
        live.add(labels)
        table.add_or_remove(labels, 0, nodes, terminating=False)
        table.add_or_remove(labels, 0, nodes, terminating=False, sign=-1)
    assert len(live) <= 256 + 1


def test_an_older_snapshot_does_not_change_the_domain_counts_of_a_relabelled_node() -> None:
    cache = make_cluster(make_node("one", labels={"zone": "a"}), make_pod(node="one"))
    matcher = PodMatcher((ALL_PODS,))
    old = cache.snapshot()
    old.pod_counts(matcher)
    cache.add_or_update_node(make_node("one", labels={"zone": "b"}))
    new = cache.snapshot()
    assert old.counts_by_domain(old.pod_counts(matcher), "zone").tolist() == [1]
    assert new.counts_by_domain(new.pod_counts(matcher), "zone").tolist() == [0, 1]


def test_counts_are_dropped_after_512_updates_without_a_read_and_are_counted_again() -> None:
    cache, idle, read = some_pods(), PodMatcher((ALL_PODS,)), PodMatcher((WEB_PODS,))
    assert by_row(cache, idle) == [1, 2]
    for number in range(513):
        cache.add_or_update_pod(make_pod(f"new-{number}", node="one", labels={"app": "web"}))
        by_row(cache, read)
        assert (idle in dict(cache.snapshot().tables.selector_counts.items())) is (number < 512)
    cache.remove_pod("uid-default-new-7")
    assert [matcher for matcher, _ in cache.snapshot().tables.selector_counts.items()] == [read]
    assert by_row(cache, idle) == [513, 2]
    cache.remove_pod("uid-default-new-8")
    assert by_row(cache, idle) == [512, 2]


def test_a_new_matcher_matches_each_namespace_once(monkeypatch: pytest.MonkeyPatch) -> None:
    cache, matched_namespaces = some_pods(), []
    matches_namespace = PodSelector.matches_namespace

    def record(selector: PodSelector, name: str, labels: Mapping[str, str] | None) -> bool:
        matched_namespaces.append(name)
        return matches_namespace(selector, name, labels)

    monkeypatch.setattr(PodSelector, "matches_namespace", record)
    assert by_row(cache, PodMatcher((ALL_PODS,))) == [1, 2]
    assert sorted(matched_namespaces) == ["default", "other"]


def test_the_matchers_in_the_lists_of_all_labels_together_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selector_counts, "_MAX_LISTED_MATCHERS", 100)
    cache = make_cluster(make_node("one"))
    matchers = [PodMatcher((_without(f"key-{number}"),)) for number in range(30)]
    for matcher in matchers:
        by_row(cache, matcher)
    for number in range(50):
        cache.add_or_update_pod(make_pod(f"p{number}", node="one", labels={"job": f"job-{number}"}))
        lists = cache.snapshot().tables.selector_counts._matchers_by_pod_labels
        assert sum(len(matchers) for matchers in lists.values()) <= 100
    for number in range(0, 50, 2):
        cache.remove_pod(f"uid-default-p{number}")
    assert [by_row(cache, matcher) for matcher in matchers] == [[25]] * 30


def _without(key: str) -> PodSelector:
    return PodSelector(frozenset({"default"}), NOTHING, Selector((Requirement(key, "DoesNotExist"),)))


def test_a_copy_of_the_table_shares_the_lists_of_matchers() -> None:
    cache = some_pods()
    by_row(cache, PodMatcher((ALL_PODS,)))
    cache.add_or_update_pod(make_pod("web-3", node="one", labels={"app": "web"}))
    table = cache.snapshot().tables.selector_counts
    lists, copied_lists = table._matchers_by_pod_labels, table.fork()._matchers_by_pod_labels
    assert any(lists.values())
    assert all(copied_lists[labels] is matchers for labels, matchers in lists.items())
