"""How PodTopologySpread counts, also while pods are imagined to come and go. What it decides is told in tests/cases."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from extender.cluster.hypothesis import Hypothesis
from extender.cluster.pods import PlacedPod, PodQuery
from extender.cluster.snapshot import Snapshot
from extender.cluster.state import ClusterState
from extender.config.gates import FeatureGates
from extender.framework.setup import Setup
from extender.plugins.pod_topology_spread.hard_notes import HardNotes
from extender.plugins.pod_topology_spread.plugin import PodTopologySpread, PodTopologySpreadArgs
from tests.build import a_cluster, a_node, a_pod, an_object

SKEWED = "node(s) didn't match pod topology spread constraints"
UNLABELLED = "node(s) didn't match pod topology spread constraints (missing required label)"
WEB = {"app": "web"}


def constraint(key: str = "zone", action: str = "DoNotSchedule", skew: int = 1, **more: Any) -> dict[str, Any]:
    selector = {"labelSelector": {"matchLabels": WEB}}
    return {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": action, **selector, **more}


def spread(*constraints: Mapping[str, Any]) -> dict[str, Sequence[Mapping[str, Any]]]:
    return {"topologySpreadConstraints": constraints}


@pytest.fixture
def plugin() -> PodTopologySpread:
    return PodTopologySpread(Setup(PodTopologySpreadArgs(), FeatureGates()))


def webs(**numbers: int) -> ClusterState:
    """A zone a node, each with this many pods that count."""
    nodes = [a_node(name, labels={"zone": name, "host": name}) for name in numbers]
    pods = [
        a_pod(f"{name}-{index}", node=name, labels=WEB) for name, number in numbers.items() for index in range(number)
    ]
    return a_cluster(*nodes, *pods)


def refused(plugin: PodTopologySpread, pod: PodQuery, snapshot: Snapshot, notes: HardNotes) -> dict[str, str]:
    return {
        name: group.reason.text
        for group in plugin.filter(pod, snapshot.view(), notes)
        for name, hit in zip(snapshot.names, group.nodes.tolist(), strict=True)
        if hit
    }


def counted(notes: HardNotes) -> list[tuple[list[int], int, int]]:
    """Pods by domain, the least of them and the number of domains, for each constraint."""
    return [(domains.counts.tolist(), domains.least, domains.number) for domains in notes.domains]


def assume(snapshot: Snapshot, node: str, **more: Any) -> tuple[PlacedPod, int]:
    """A pod as if it stood on *node*, and that node's row."""
    row = snapshot.row(node)
    assert row is not None
    return Hypothesis(snapshot).place(snapshot.query(a_pod("new", **more)), node), row


def test_a_pod_added_and_removed_leaves_the_counts_as_they_were(plugin: PodTopologySpread) -> None:
    snapshot = webs(a=1, b=0).snapshot()
    pod = snapshot.query(a_pod(labels=WEB, spec=spread(constraint())))
    notes = plugin.pre_filter(pod, snapshot).notes
    other, row = assume(snapshot, "b", labels=WEB)
    imagined = plugin.clone(notes)
    plugin.add_pod(pod, other, row, snapshot, imagined)
    assert counted(imagined) == [([1, 1], 1, 2)]
    assert refused(plugin, pod, snapshot, imagined) == {}
    plugin.remove_pod(pod, other, row, snapshot, imagined)
    assert counted(imagined) == [([1, 0], 0, 2)]
    assert refused(plugin, pod, snapshot, imagined) == {"a": SKEWED}
    assert counted(notes) == [([1, 0], 0, 2)]


def test_notes_with_a_pod_added_are_those_of_a_cluster_that_has_it(plugin: PodTopologySpread) -> None:
    snapshot = webs(a=2, b=1, c=1).snapshot()
    pod = snapshot.query(a_pod(labels=WEB, spec=spread(constraint(), constraint("host", skew=2))))
    hypothesis = Hypothesis(snapshot)
    other = hypothesis.place(snapshot.query(a_pod("new", labels=WEB)), "b")
    notes = plugin.clone(plugin.pre_filter(pod, snapshot).notes)
    plugin.add_pod(pod, other, 1, snapshot, notes)
    assert counted(notes) == counted(plugin.pre_filter(pod, hypothesis.snapshot()).notes)
    assert counted(notes) == [([2, 2, 1], 1, 3)] * 2


@pytest.mark.parametrize(
    ("labels", "namespace"),
    [
        pytest.param({"app": "db"}, "default", id="a pod that the selector leaves out"),
        pytest.param(WEB, "other", id="a pod of another namespace"),
    ],
)
def test_a_pod_that_does_not_count_changes_nothing(
    plugin: PodTopologySpread, labels: Mapping[str, str], namespace: str
) -> None:
    snapshot = webs(a=1, b=0).snapshot()
    pod = snapshot.query(a_pod(labels=WEB, spec=spread(constraint())))
    notes = plugin.pre_filter(pod, snapshot).notes
    other, row = assume(snapshot, "b", labels=labels, namespace=namespace)
    plugin.add_pod(pod, other, row, snapshot, notes)
    assert counted(notes) == [([1, 0], 0, 2)]


def test_a_pod_on_a_node_that_does_not_count_changes_nothing(plugin: PodTopologySpread) -> None:
    cluster = webs(a=1, b=1)
    cluster.put_node(a_node("tainted", labels={"zone": "b"}, taints=[{"key": "k", "effect": "NoSchedule"}]))
    snapshot = cluster.snapshot()
    pod = snapshot.query(a_pod(labels=WEB, spec=spread(constraint(nodeTaintsPolicy="Honor"))))
    notes = plugin.pre_filter(pod, snapshot).notes
    other, row = assume(snapshot, "tainted", labels=WEB)
    plugin.add_pod(pod, other, row, snapshot, notes)
    assert counted(notes) == [([1, 1], 1, 2)]


def test_removing_a_pod_that_is_being_deleted_takes_away_what_it_never_added(plugin: PodTopologySpread) -> None:
    cluster = webs(a=1, b=1)
    dying = a_pod("dying", node="a", labels=WEB, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    cluster.put_pod(dying)
    snapshot = cluster.snapshot()
    pod = snapshot.query(a_pod(labels=WEB, spec=spread(constraint())))
    notes = plugin.pre_filter(pod, snapshot).notes
    assert counted(notes) == [([1, 1], 1, 2)]
    plugin.remove_pod(pod, cluster.placed["uid-default-dying"], 0, snapshot, notes)
    assert counted(notes) == [([0, 1], 0, 2)]


def test_an_empty_selector_counts_pods_that_are_imagined_only(plugin: PodTopologySpread) -> None:
    snapshot = webs(a=3, b=0).snapshot()
    pod = snapshot.query(a_pod(labels=WEB, spec=spread(constraint(labelSelector={}))))
    notes = plugin.pre_filter(pod, snapshot).notes
    assert refused(plugin, pod, snapshot, notes) == {}
    other, row = assume(snapshot, "b", labels={"app": "db"})
    plugin.add_pod(pod, other, row, snapshot, notes)
    assert refused(plugin, pod, snapshot, notes) == {"b": SKEWED}


@pytest.mark.parametrize(
    ("numbers", "moves", "least"),
    [
        pytest.param({"a": 0, "b": 1, "c": 4}, ["+a"], 1, id="the emptiest fills up to the second"),
        pytest.param({"a": 0, "b": 1, "c": 4}, ["+a", "+a"], 1, id="the second takes its place"),
        pytest.param({"a": 2, "b": 3, "c": 4}, ["-c", "-c", "-c"], 1, id="a fuller one becomes the emptiest"),
        pytest.param({"a": 0, "b": 1, "c": 1}, ["+a", "+a", "+b", "+b"], 2, id="a third one is out of sight"),
        pytest.param({"a": 1}, ["+a", "-a", "-a"], 0, id="the only one is the emptiest"),
    ],
)
def test_the_emptiest_domain_is_followed_by_way_of_the_two_emptiest(
    plugin: PodTopologySpread, numbers: Mapping[str, int], moves: Sequence[str], least: int
) -> None:
    snapshot = webs(**numbers).snapshot()
    pod = snapshot.query(a_pod(labels=WEB, spec=spread(constraint())))
    notes = plugin.pre_filter(pod, snapshot).notes
    for sign, zone in moves:
        other, row = assume(snapshot, zone, labels=WEB)
        (plugin.add_pod if sign == "+" else plugin.remove_pod)(pod, other, row, snapshot, notes)
    assert notes.domains[0].least == least


def test_without_domains_every_labelled_node_will_do(plugin: PodTopologySpread) -> None:
    cluster = webs(a=3)
    cluster.put_node(a_node("bare"))
    snapshot = cluster.snapshot()
    pod = snapshot.query(a_pod(labels=WEB, spec={**spread(constraint()), "nodeSelector": {"disk": "ssd"}}))
    notes = plugin.pre_filter(pod, snapshot).notes
    assert (notes.domains[0].number, notes.domains[0].least) == (0, 2147483647)
    assert refused(plugin, pod, snapshot, notes) == {"bare": UNLABELLED}


def test_a_node_that_is_relabelled_counts_in_its_new_domain(plugin: PodTopologySpread) -> None:
    cluster = webs(a=1, b=1)
    spec = spread(constraint(nodeTaintsPolicy="Honor"))
    pod = cluster.snapshot().query(a_pod(labels=WEB, spec=spec))
    assert plugin.pre_filter(pod, cluster.snapshot()).notes.domains[0].number == 2
    cluster.put_node(a_node("b", labels={"zone": "a", "host": "b"}))
    snapshot = cluster.snapshot()
    notes = plugin.pre_filter(pod, snapshot).notes
    assert (notes.domains[0].number, notes.domains[0].least) == (1, 2)


def test_raw_scores_are_rounded_sums_of_weighted_pods(plugin: PodTopologySpread) -> None:
    cluster = webs(a=3, b=1)
    cluster.put_node(a_node("bare", labels={"zone": "a"}))
    snapshot = cluster.snapshot()
    soft = [constraint(action="ScheduleAnyway", skew=2), constraint("host", "ScheduleAnyway", skew=3)]
    pod = snapshot.query(a_pod(labels=WEB, spec=spread(*soft)))
    view = snapshot.view()
    notes = plugin.pre_score(pod, view).notes
    raw = plugin.score(pod, view, notes)
    # two domains each, so a pod weighs ln 4 = 1.386; a: 6 * 1.386 + 1 + 2, b: 2 * 1.386 + 1 + 2
    assert raw.tolist() == [11, 6, 0]
    assert plugin.normalize(pod, raw, view, notes).tolist() == [54, 100, 0]


def test_the_host_name_is_scored_by_the_node_alone(plugin: PodTopologySpread) -> None:
    key = "kubernetes.io/hostname"
    nodes = [a_node(name, labels={key: "same"}) for name in ("a", "b")]
    snapshot = a_cluster(*nodes, a_pod("x", node="a", labels=WEB), a_pod("y", node="a", labels=WEB)).snapshot()
    pod = snapshot.query(a_pod(labels=WEB, spec=spread(constraint(key, "ScheduleAnyway"))))
    view = snapshot.view()
    notes = plugin.pre_score(pod, view).notes
    assert plugin.score(pod, view, notes).tolist() == [3, 0]  # 2 ln 4 = 2.77


def test_only_domains_of_candidates_weigh_but_all_nodes_of_a_domain_count(plugin: PodTopologySpread) -> None:
    cluster = webs(a=1, b=2, c=0)
    cluster.put_node(a_node("other", labels={"zone": "a"}))
    cluster.put_pod(a_pod("more", node="other", labels=WEB))
    snapshot = cluster.snapshot()
    pod = snapshot.query(a_pod(labels=WEB, spec=spread(constraint(action="ScheduleAnyway"))))
    view = snapshot.view(np.array([0]))
    notes = plugin.pre_score(pod, view).notes
    assert plugin.score(pod, view, notes).tolist() == [2]  # 2 ln 3 = 2.20


def test_the_empty_zone_and_no_zone_are_one_domain_under_system_defaults(plugin: PodTopologySpread) -> None:
    key = "topology.kubernetes.io/zone"
    cluster = a_cluster(
        a_node("empty", labels={key: ""}),
        a_node("none"),
        a_pod("x", node="none", labels=WEB),
        an_object(
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": "web", "namespace": "default"},
                "spec": {"selector": WEB},
            }
        ),
    )
    snapshot = cluster.snapshot()
    pod = snapshot.query(a_pod(labels=WEB))
    view = snapshot.view()
    notes = plugin.pre_score(pod, view).notes
    assert plugin.score(pod, view, notes).tolist() == [5, 0]  # ln 3 + 4 = 5.10


def test_a_soft_constraint_that_cannot_be_read_is_an_error(plugin: PodTopologySpread) -> None:
    snapshot = webs(a=0).snapshot()
    broken = constraint(action="ScheduleAnyway", labelSelector={"matchExpressions": [{"key": "a", "operator": "Is"}]})
    answer = plugin.pre_score(snapshot.query(a_pod(spec=spread(broken))), snapshot.view())
    assert answer.status is not None
    assert answer.status.reasons[0].startswith(
        "calculating preScoreState: obtaining pod's soft topology spread constraints: "
    )
