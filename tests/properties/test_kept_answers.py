"""What is kept between cycles never changes an answer: decisions with and without it are the same, pod after pod."""

from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from extender import wiring
from extender.cluster.state import ClusterState
from extender.decide.cycle import decide
from extender.decide.decision import Placed, Unplaced
from extender.decide.feasible import feasible
from extender.decide.pick import pick
from extender.decide.rank import rank
from extender.decide.sampling import Search
from extender.objects.node import Node
from extender.objects.pod import Pod
from extender.objects.storage import PersistentVolumeClaim
from tests.build import a_node, a_pod, an_object

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
PROFILE = wiring.scheduling().first


def _near(app: str, key: str) -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}


SPECS: dict[str, dict[str, Any]] = {
    "plain": {},
    "tolerant": {"tolerations": [{"key": "only", "operator": "Exists"}]},
    "in zone a": {"nodeSelector": {ZONE: "a"}},
    "prefers zone b": {
        "affinity": {
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 5,
                        "preference": {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["b"]}]},
                    }
                ]
            }
        }
    },
    "apart": {
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_near("web", HOST)]}}
    },
    "near": {
        "affinity": {
            "podAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 7, "podAffinityTerm": _near("db", ZONE)}]
            }
        }
    },
    "spread": {
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": ZONE,
                "whenUnsatisfiable": action,
                "labelSelector": {"matchLabels": {"app": "web"}},
            }
            for action in ("DoNotSchedule", "ScheduleAnyway")
        ]
    },
}


def _node(number: int, cpu: int, zone: str | None, tainted: bool) -> Node:
    labels = {HOST: f"node-{number}"} | ({ZONE: zone} if zone else {})
    taints = (
        [{"key": "only", "effect": "NoSchedule"}, {"key": "rather", "effect": "PreferNoSchedule"}] if tainted else []
    )
    size = {"cpu": str(cpu), "memory": "4Gi", "pods": "6"}
    images = [{"names": ["app:latest"], "sizeBytes": 90_000_000 * cpu}] if number % 2 else []
    return a_node(f"node-{number}", labels=labels, taints=taints, allocatable=size, images=images)


NODES = st.tuples(st.integers(0, 7), st.integers(1, 4), st.sampled_from(["a", "b", None]), st.booleans())
PODS = st.tuples(
    st.sampled_from(sorted(SPECS)), st.sampled_from(["web", "db"]), st.sampled_from([100, 700]), st.booleans()
)
STEPS = st.lists(
    st.one_of(NODES.map(lambda n: ("node", n)), PODS.map(lambda p: ("pod", p)), st.just(("gone", None))), max_size=40
)


def _pod(number: int, spec: str, app: str, cpu: int, port: bool) -> Pod:
    container = {"name": "app", "image": "app", "resources": {"requests": {"cpu": f"{cpu}m"}}}
    if port:
        container["ports"] = [{"hostPort": 8080}]
    return a_pod(f"pod-{number}", labels={"app": app}, spec={"containers": [container], **SPECS[spec]})


@settings(max_examples=120, suppress_health_check=list(HealthCheck))
@given(first=st.lists(NODES, min_size=1, max_size=8), steps=STEPS)
def test_kept_and_fresh_answers_are_equal(first: list[Any], steps: list[Any]) -> None:
    """One engine keeps columns over the whole run, the other asks every plugin about every node each time."""
    keeping, fresh = wiring.engine(keep=True), wiring.engine(keep=False)
    state, chance, placed = ClusterState(), Random(0), []
    for node in first:
        state.put_node(_node(*node))
    for number, (kind, what) in enumerate(steps):
        if kind == "node":
            state.put_node(_node(*what))
        elif kind == "gone" and placed:
            state.drop_pod(placed.pop(0))
        elif kind == "pod":
            pod = _pod(number, *what)
            cluster = state.snapshot()
            query = cluster.query(pod)
            kept = feasible(query, cluster, PROFILE, keeping, reasons=True)
            asked = feasible(query, cluster, PROFILE, fresh, reasons=True)
            assert kept.feasible.tolist() == asked.feasible.tolist()
            assert kept.message() == asked.message()
            assert kept.before.skipped == asked.before.skipped
            if not kept.any:
                continue
            mine = rank(query, cluster, PROFILE, keeping, kept.feasible, kept.before)
            theirs = rank(query, cluster, PROFILE, fresh, asked.feasible, asked.before)
            assert mine.totals.tolist() == theirs.totals.tolist()
            assert mine.best().tolist() == theirs.best().tolist()
            assert pick(mine, Random(number)) == pick(theirs, Random(number))
            assert {n: s.raw.tolist() for n, s in mine.plugins.items()} == {
                n: s.raw.tolist() for n, s in theirs.plugins.items()
            }
            name = cluster.names[chance.choice(mine.best().tolist())]
            del cluster, query
            state.assume(pod, name)
            placed.append(pod.metadata.uid)


def test_a_round_of_prefilter_that_ends_early_says_the_same_whatever_is_kept() -> None:
    """The claim is gone: plugins behind the first that says so were not asked, whatever they said about pods before."""
    bound = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default", "uid": "claim", **bound},
        "spec": {"accessModes": ["ReadWriteOnce"], "volumeName": "disk"},
        "status": {"phase": "Bound"},
    }
    disk = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "disk", "uid": "disk"},
        "spec": {"claimRef": {"namespace": "default", "name": "data", "uid": "claim"}},
    }
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    state = ClusterState()
    for thing in (claim, disk):
        state.put_object(an_object(thing))
    state.put_node(a_node("node-1"))
    keeping, fresh = wiring.engine(keep=True), wiring.engine(keep=False)

    def both(name: str) -> tuple[Any, Any]:
        cluster = state.snapshot()
        query = cluster.query(a_pod(name, spec={"volumes": volumes}))
        kept, asked = (decide(query, cluster, PROFILE, each, Random(0), Search()) for each in (keeping, fresh))
        return kept, asked

    assert [type(each) for name in ("first", "second", "third") for each in both(name)] == [Placed] * 6
    state.drop_object(PersistentVolumeClaim, "default/data")
    kept, asked = both("fourth")

    assert isinstance(kept, Unplaced)
    assert isinstance(asked, Unplaced)
    assert kept.message == asked.message
    assert kept.message.startswith('0/1 nodes are available: persistentvolumeclaim "data" not found.')
    assert kept.nominated == asked.nominated
    assert kept.attempt.before.skipped == asked.attempt.before.skipped == {"NodeAffinity", "NodePorts"}
    assert kept.attempt.before.notes.keys() == asked.attempt.before.notes.keys()


@pytest.mark.parametrize("spec", sorted(SPECS))
def test_the_second_pod_of_a_kind_sees_the_first(spec: str) -> None:
    """A full node is refused as soon as the pod that filled it was assumed."""
    state, engine = ClusterState(), wiring.engine()
    state.put_node(a_node("node-1", labels={HOST: "node-1", ZONE: "a"}, allocatable={"cpu": "1", "pods": "10"}))
    for number, want in ((1, True), (2, False)):
        pod = _pod(number, spec, "other", 700, False)
        cluster = state.snapshot()
        found = feasible(cluster.query(pod), cluster, PROFILE, engine)
        assert found.any is want
        del cluster
        if want:
            state.assume(pod, "node-1")
