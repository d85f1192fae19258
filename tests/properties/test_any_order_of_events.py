"""Whatever happens to a cluster in whatever order, its tables are those of the objects that are left."""

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from extender.cluster.audit import validate
from extender.cluster.hypothesis import Hypothesis
from extender.cluster.selecting import PodMatcher, PodTerm
from extender.cluster.state import ClusterState
from extender.objects.codec import from_builtins
from extender.objects.matching import EVERYTHING, NOTHING, from_labels
from extender.objects.node import Node
from extender.objects.pod import Pod
from extender.objects.workload import Namespace

NODES = st.sampled_from([f"node-{i}" for i in range(5)])
PODS = st.sampled_from([f"pod-{i}" for i in range(8)])
ZONES = st.sampled_from(["a", "b", None])
APPS = st.sampled_from(["web", "db"])
SPACES = st.sampled_from(["default", "team"])


def _node(name: str, zone: str | None, cpu: int, image: str) -> Node:
    labels = {"kubernetes.io/hostname": name} | ({"topology.kubernetes.io/zone": zone} if zone else {})
    allocatable = {"cpu": str(cpu), "memory": "8Gi", "pods": "10"} | ({"example.com/gpu": "2"} if cpu > 4 else {})
    status = {"allocatable": allocatable, "images": [{"names": [image], "sizeBytes": 1000 + cpu}]}
    return from_builtins({"metadata": {"name": name, "labels": labels}, "status": status}, Node)


def _pod(name: str, node: str, app: str, space: str, cpu: int, *, terminating: bool) -> Pod:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "topology.kubernetes.io/zone"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}} if cpu > 2 else None
    meta = {"name": name, "namespace": space, "uid": f"{space}-{name}", "labels": {"app": app}}
    if terminating:
        meta["deletionTimestamp"] = "2026-03-01T00:00:00Z"
    container = {"name": "c", "resources": {"requests": {"cpu": str(cpu)}}, "ports": [{"hostPort": 8000 + cpu}]}
    return from_builtins(
        {"metadata": meta, "spec": {"nodeName": node, "containers": [container], "affinity": affinity}}, Pod
    )


class Events(RuleBasedStateMachine):
    """Random adds, updates and deletes, with questions in between that make the tables keep counts."""

    def __init__(self) -> None:
        super().__init__()
        self.state = ClusterState()
        self.held: list[tuple[object, list[str], list[int]]] = []

    @rule(name=NODES, zone=ZONES, cpu=st.integers(1, 8), image=st.sampled_from(["a:1", "b:1"]))
    def node(self, name: str, zone: str | None, cpu: int, image: str) -> None:
        self.state.put_node(_node(name, zone, cpu, image))

    @rule(name=NODES)
    def node_gone(self, name: str) -> None:
        self.state.drop_node(name)

    @rule(name=PODS, node=NODES, app=APPS, space=SPACES, cpu=st.integers(0, 4), terminating=st.booleans())
    def pod(self, name: str, node: str, app: str, space: str, cpu: int, terminating: bool) -> None:
        self.state.put_pod(_pod(name, node, app, space, cpu, terminating=terminating))

    @rule(name=PODS, space=SPACES)
    def pod_gone(self, name: str, space: str) -> None:
        self.state.drop_pod(f"{space}-{name}")

    @rule(name=PODS, node=NODES, app=APPS)
    def assumed_and_forgotten_or_confirmed(self, name: str, node: str, app: str) -> None:
        pod = _pod(name, "", app, "default", 1, terminating=False)
        if pod.metadata.uid in self.state.placed:
            return
        self.state.put_pod(pod)
        self.state.assume(pod, node)
        assert self.state.is_assumed(pod.metadata.uid)
        if app == "web":
            self.state.forget(pod)
            assert pod.metadata.uid in self.state.waiting
        else:
            self.state.put_pod(_pod(name, node, app, "default", 1, terminating=False))
            assert not self.state.is_assumed(pod.metadata.uid)

    @rule(space=SPACES, team=st.sampled_from(["x", "y"]))
    def namespace(self, space: str, team: str) -> None:
        self.state.put_object(from_builtins({"metadata": {"name": space, "labels": {"team": team}}}, Namespace))

    @rule(
        app=APPS,
        live_only=st.booleans(),
        key=st.sampled_from(["kubernetes.io/hostname", "topology.kubernetes.io/zone"]),
    )
    def somebody_counts(self, app: str, live_only: bool, key: str) -> None:
        snapshot = self.state.snapshot()
        by_name = PodTerm(frozenset(("default",)), NOTHING, from_labels({"app": app}))
        by_team = PodTerm(frozenset(), from_labels({"team": "x"}), EVERYTHING)
        for terms in ((by_name,), (by_team,), (by_name, by_team)):
            counts = snapshot.counts(PodMatcher(terms, live_only=live_only))
            snapshot.count_domains(counts, key)

    @rule()
    def somebody_holds_a_snapshot(self) -> None:
        snapshot = self.state.snapshot()
        self.held.append((snapshot, list(snapshot.names), snapshot.view().pod_count.tolist()))
        del self.held[:-3]

    @rule(name=PODS, node=NODES, app=APPS)
    def somebody_asks_what_if(self, name: str, node: str, app: str) -> None:
        what_if = Hypothesis(self.state.snapshot())
        for pod in list(what_if.snapshot().placed_pods())[:2]:
            what_if.remove(pod)
        what_if.place(what_if.snapshot().query(_pod(f"new-{name}", "", app, "default", 2, terminating=False)), node)
        assert validate(what_if.snapshot()) == []

    @invariant()
    def the_tables_are_what_a_fresh_count_gives(self) -> None:
        assert validate(self.state.snapshot()) == []

    @invariant()
    def held_snapshots_stay_as_they_were(self) -> None:
        for snapshot, names, counts in self.held:
            assert list(snapshot.names) == names  # type: ignore[attr-defined]
            assert snapshot.view().pod_count.tolist() == counts  # type: ignore[attr-defined]


Events.TestCase.settings = settings(max_examples=60, stateful_step_count=30, suppress_health_check=list(HealthCheck))
TestAnyOrderOfEvents = Events.TestCase
