"""How InterPodAffinity follows pods that are imagined to come and go. What it decides is told in tests/cases."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest

from extender.cluster.hypothesis import Hypothesis
from extender.cluster.pods import PlacedPod, PodQuery
from extender.cluster.snapshot import Snapshot
from extender.cluster.state import ClusterState
from extender.config.gates import FeatureGates
from extender.framework.changes import Action, Resource
from extender.framework.setup import Setup
from extender.plugins.inter_pod_affinity.plugin import InterPodAffinity, InterPodAffinityArgs, Placement
from tests.build import a_cluster, a_node, a_pod

UNMET = "node(s) didn't match pod affinity rules"
OWN = "node(s) didn't match pod anti-affinity rules"
THEIRS = "node(s) didn't satisfy existing pods anti-affinity rules"


def terms(side: str, key: str, app: str) -> Mapping[str, Any]:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    return {"affinity": {side: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


NEAR_WEB = terms("podAffinity", "zone", "web")
APART_FROM_WEB = terms("podAntiAffinity", "zone", "web")
BOTH = {
    "affinity": {
        **terms("podAffinity", "host", "db")["affinity"],
        **terms("podAntiAffinity", "zone", "web")["affinity"],
    }
}


@pytest.fixture
def plugin() -> InterPodAffinity:
    return InterPodAffinity(Setup(InterPodAffinityArgs(), FeatureGates()))


@pytest.fixture
def cluster() -> ClusterState:
    return a_cluster(
        a_node("one", labels={"zone": "east", "host": "one"}),
        a_node("two", labels={"zone": "east", "host": "two"}),
        a_node("three", labels={"zone": "west", "host": "three"}),
        a_pod("db", node="one", labels={"app": "db"}),
        a_pod("web", node="three", labels={"app": "web"}),
    )


def refused(plugin: InterPodAffinity, pod: PodQuery, snapshot: Snapshot, notes: Placement) -> dict[str, str]:
    return {
        name: group.reason.text
        for group in plugin.filter(pod, snapshot.view(), notes)
        for name, hit in zip(snapshot.names, group.nodes.tolist(), strict=True)
        if hit
    }


def as_entries(notes: Placement) -> list[dict[tuple[str, int], int]]:
    return [notes.near.entries(), notes.apart.entries(), notes.refusing.entries()]


def assume(snapshot: Snapshot, name: str, node: str, **more: Any) -> tuple[PlacedPod, int]:
    """A pod as if it stood on *node*, and that node's row."""
    row = snapshot.row(node)
    assert row is not None
    return Hypothesis(snapshot).place(snapshot.query(a_pod(name, **more)), node), row


class Arrival(NamedTuple):
    """A pod with *labels* and *spec* asks; *new* comes to node two; whom that refuses *before* and *after*."""

    labels: Mapping[str, str]
    spec: Mapping[str, Any]
    new: Mapping[str, Any]
    before: Mapping[str, str]
    after: Mapping[str, str]


ARRIVALS = {
    "a pod to be near to comes": Arrival(
        {},
        NEAR_WEB,
        new={"labels": {"app": "web"}},
        before={"one": UNMET, "two": UNMET},
        after={},
    ),
    "a pod to be apart from comes": Arrival(
        {},
        APART_FROM_WEB,
        new={"labels": {"app": "web"}},
        before={"three": OWN},
        after={"one": OWN, "two": OWN, "three": OWN},
    ),
    "a pod that refuses comes": Arrival(
        {"app": "web"},
        APART_FROM_WEB,
        new={"labels": {"app": "x"}, "spec": APART_FROM_WEB},
        before={"three": OWN},
        after={"one": THEIRS, "two": THEIRS, "three": OWN},
    ),
    "a second pod to be near to comes": Arrival(
        {},
        BOTH,
        new={"labels": {"app": "db"}},
        before={"two": UNMET, "three": UNMET},
        after={"three": UNMET},
    ),
}


@pytest.mark.parametrize("case", ARRIVALS.values(), ids=ARRIVALS.keys())
def test_a_pod_imagined_on_a_node_changes_the_answer_and_its_removal_changes_it_back(
    plugin: InterPodAffinity, cluster: ClusterState, case: Arrival
) -> None:
    snapshot = cluster.snapshot()
    pod = snapshot.query(a_pod(labels=case.labels, spec=case.spec))
    notes = plugin.pre_filter(pod, snapshot).notes
    other, row = assume(snapshot, "new", "two", **case.new)
    imagined = plugin.clone(notes)
    plugin.add_pod(pod, other, row, snapshot, imagined)
    assert refused(plugin, pod, snapshot, imagined) == case.after
    assert refused(plugin, pod, snapshot, notes) == case.before
    plugin.remove_pod(pod, other, row, snapshot, imagined)
    assert as_entries(imagined) == as_entries(notes)
    assert refused(plugin, pod, snapshot, imagined) == case.before


@pytest.mark.parametrize("app", ["web", "db"])
def test_notes_with_a_pod_added_are_those_of_a_cluster_that_has_it(
    plugin: InterPodAffinity, cluster: ClusterState, app: str
) -> None:
    snapshot = cluster.snapshot()
    pod = snapshot.query(a_pod(labels={"app": "web"}, spec=BOTH))
    arrival = a_pod("new", labels={"app": app}, spec=APART_FROM_WEB)
    hypothesis = Hypothesis(snapshot)
    other = hypothesis.place(snapshot.query(arrival), "two")
    notes = plugin.clone(plugin.pre_filter(pod, snapshot).notes)
    plugin.add_pod(pod, other, 1, snapshot, notes)
    assert as_entries(notes) == as_entries(plugin.pre_filter(pod, hypothesis.snapshot()).notes)


def test_a_pod_whose_only_match_is_removed_is_the_first_of_its_group_again(plugin: InterPodAffinity) -> None:
    cluster = a_cluster(
        a_node("one", labels={"zone": "east"}),
        a_node("two", labels={"zone": "west"}),
        a_pod("web", node="one", labels={"app": "web"}),
    )
    snapshot = cluster.snapshot()
    pod = snapshot.query(a_pod(labels={"app": "web"}, spec=NEAR_WEB))
    notes = plugin.clone(plugin.pre_filter(pod, snapshot).notes)
    assert refused(plugin, pod, snapshot, notes) == {"two": UNMET}
    plugin.remove_pod(pod, cluster.placed["uid-default-web"], 0, snapshot, notes)
    assert refused(plugin, pod, snapshot, notes) == {}


def test_what_one_copy_imagines_the_other_does_not_see(plugin: InterPodAffinity, cluster: ClusterState) -> None:
    snapshot = cluster.snapshot()
    pod = snapshot.query(a_pod(spec=APART_FROM_WEB))
    first = plugin.pre_filter(pod, snapshot).notes
    other, row = assume(snapshot, "new", "one", labels={"app": "web"})
    plugin.add_pod(pod, other, row, snapshot, first)
    second = plugin.clone(first)
    plugin.remove_pod(pod, other, row, snapshot, first)
    assert refused(plugin, pod, snapshot, first) == {"three": OWN}
    assert refused(plugin, pod, snapshot, second) == {"one": OWN, "two": OWN, "three": OWN}
    assert refused(plugin, pod, snapshot, plugin.pre_filter(pod, snapshot).notes) == {"three": OWN}


def test_a_pod_added_where_the_key_is_missing_counts_nowhere(plugin: InterPodAffinity, cluster: ClusterState) -> None:
    cluster.put_node(a_node("bare"))
    snapshot = cluster.snapshot()
    pod = snapshot.query(a_pod(spec=APART_FROM_WEB))
    notes = plugin.pre_filter(pod, snapshot).notes
    before = as_entries(notes)
    other, row = assume(snapshot, "new", "bare", labels={"app": "web"})
    plugin.add_pod(pod, other, row, snapshot, notes)
    assert as_entries(notes) == before


def test_without_queueing_hints_taint_updates_of_nodes_are_heard_too() -> None:
    gates = FeatureGates({"SchedulerQueueingHints": False})
    plugin = InterPodAffinity(Setup(InterPodAffinityArgs(), gates))
    (nodes,) = [each for each in plugin.events() if each.resource is Resource.NODE]
    assert nodes.action == Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT
