"""Counts are shared between the views of a cluster; what an old view asks must not spoil a newer one."""

from extender.cluster.selecting import PodMatcher, PodTerm
from extender.objects.matching import EVERYTHING, NOTHING
from tests.build import a_cluster, a_node, a_pod

TERM = PodTerm(frozenset({"default"}), NOTHING, EVERYTHING)
ANTI_AFFINITY = {
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone", "labelSelector": {}}]
        }
    }
}


def test_domains_summed_by_an_old_view_are_not_those_of_a_relabelled_node() -> None:
    cluster = a_cluster(a_node("one", labels={"zone": "a"}), a_pod(node="one"))
    matcher = PodMatcher((TERM,))
    old = cluster.snapshot()
    old.counts(matcher)
    cluster.put_node(a_node("one", labels={"zone": "b"}))
    new = cluster.snapshot()
    assert old.count_domains(old.counts(matcher), "zone").tolist() == [1]
    assert new.count_domains(new.counts(matcher), "zone").tolist() == [0, 1]


def test_terms_summed_by_an_old_view_are_not_those_of_a_relabelled_node() -> None:
    cluster = a_cluster(a_node("one", labels={"zone": "a"}), a_pod(node="one", spec=ANTI_AFFINITY))
    old = cluster.snapshot()
    asked = old.query(a_pod("asks")).shape.number
    cluster.put_node(a_node("one", labels={"zone": "b"}))
    new = cluster.snapshot()
    ((_, before),) = old.terms_about(asked)
    ((_, after),) = new.terms_about(asked)
    assert old.count_domains(before, "zone").tolist() == [1]
    assert new.count_domains(after, "zone").tolist() == [0, 1]
