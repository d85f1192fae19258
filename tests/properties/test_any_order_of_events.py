"""After any sequence of events, the tables of the cache equal tables rebuilt from the remaining objects."""

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from extender.api.codec import from_builtins
from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod
from extender.api.kinds.workload import Namespace
from extender.api.matching import EVERYTHING, NOTHING, selector_from_labels
from extender.cache.cache import Cache
from extender.cache.hypothesis import Hypothesis
from extender.cache.tables.pod_selectors import PodMatcher, PodSelector
from tests.consistency import find_inconsistencies

NODES = st.sampled_from([f"node-{i}" for i in range(5)])
PODS = st.sampled_from([f"pod-{i}" for i in range(8)])
ZONES = st.sampled_from(["a", "b", None])
APPS = st.sampled_from(["web", "db"])
NAMESPACES = st.sampled_from(["default", "team"])


def _make_node(name: str, zone: str | None, cpu: int, image: str) -> Node:
    labels = {"kubernetes.io/hostname": name} | ({"topology.kubernetes.io/zone": zone} if zone else {})
    allocatable = {"cpu": str(cpu), "memory": "8Gi", "pods": "10"} | ({"example.com/gpu": "2"} if cpu > 4 else {})
    status = {"allocatable": allocatable, "images": [{"names": [image], "sizeBytes": 1000 + cpu}]}
    return from_builtins({"metadata": {"name": name, "labels": labels}, "status": status}, Node)


def _make_pod(name: str, node: str, app: str, namespace: str, cpu: int, *, terminating: bool) -> Pod:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "topology.kubernetes.io/zone"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}} if cpu > 2 else None
    meta = {"name": name, "namespace": namespace, "uid": f"{namespace}-{name}", "labels": {"app": app}}
    if terminating:
        meta["deletionTimestamp"] = "2026-03-01T00:00:00Z"
    container = {"name": "c", "resources": {"requests": {"cpu": str(cpu)}}, "ports": [{"hostPort": 8000 + cpu}]}
    return from_builtins(
        {"metadata": meta, "spec": {"nodeName": node, "containers": [container], "affinity": affinity}}, Pod
    )


class Events(RuleBasedStateMachine):
    """Random adds, updates and deletes, with reads in between that make the tables cache counts."""

    def __init__(self) -> None:
        super().__init__()
        self.cache = Cache()
        self.held_snapshots: list[tuple[object, list[str], list[int]]] = []

    @rule(name=NODES, zone=ZONES, cpu=st.integers(1, 8), image=st.sampled_from(["a:1", "b:1"]))
    def add_or_update_node(self, name: str, zone: str | None, cpu: int, image: str) -> None:
        self.cache.add_or_update_node(_make_node(name, zone, cpu, image))

    @rule(name=NODES)
    def remove_node(self, name: str) -> None:
        self.cache.remove_node(name)

    @rule(name=PODS, node=NODES, app=APPS, namespace=NAMESPACES, cpu=st.integers(0, 4), terminating=st.booleans())
    def add_or_update_pod(self, name: str, node: str, app: str, namespace: str, cpu: int, terminating: bool) -> None:
        self.cache.add_or_update_pod(_make_pod(name, node, app, namespace, cpu, terminating=terminating))

    @rule(name=PODS, namespace=NAMESPACES)
    def remove_pod(self, name: str, namespace: str) -> None:
        self.cache.remove_pod(f"{namespace}-{name}")

    @rule(name=PODS, node=NODES, app=APPS, bound_app=APPS)
    def assume_and_forget_or_confirm(self, name: str, node: str, app: str, bound_app: str) -> None:
        pod = _make_pod(name, "", app, "default", 1, terminating=False)
        if pod.metadata.uid in self.cache.assigned_pods:
            return
        self.cache.add_or_update_pod(pod)
        self.cache.assume(pod, node)
        assert self.cache.is_assumed(pod.metadata.uid)
        if app == "web":
            self.cache.forget(pod)
            assert pod.metadata.uid in self.cache.pending_pods
        else:
            self.cache.add_or_update_pod(_make_pod(name, node, bound_app, "default", 1, terminating=False))
            assert not self.cache.is_assumed(pod.metadata.uid)

    @rule(namespace=NAMESPACES, team=st.sampled_from(["x", "y"]))
    def add_or_update_namespace(self, namespace: str, team: str) -> None:
        self.cache.add_or_update_object(
            from_builtins({"metadata": {"name": namespace, "labels": {"team": team}}}, Namespace)
        )

    @rule(
        app=APPS,
        ignore_terminating_pods=st.booleans(),
        key=st.sampled_from(["kubernetes.io/hostname", "topology.kubernetes.io/zone"]),
    )
    def count_pods(self, app: str, ignore_terminating_pods: bool, key: str) -> None:
        by_name = PodSelector(frozenset(("default",)), NOTHING, selector_from_labels({"app": app}))
        by_team = PodSelector(frozenset(), selector_from_labels({"team": "x"}), EVERYTHING)
        with self.cache.read() as snapshot:
            for selectors in ((by_name,), (by_team,), (by_name, by_team)):
                counts = snapshot.pod_counts(PodMatcher(selectors, ignore_terminating_pods=ignore_terminating_pods))
                snapshot.counts_by_domain(counts, key)

    @rule()
    def hold_a_snapshot(self) -> None:
        snapshot = self.cache.snapshot()
        self.held_snapshots.append((snapshot, list(snapshot.names), snapshot.view().pod_count.tolist()))
        del self.held_snapshots[:-3]

    @rule(name=PODS, node=NODES, app=APPS)
    def change_a_hypothesis(self, name: str, node: str, app: str) -> None:
        pod_info = self.cache.make_pod_info(_make_pod(f"new-{name}", "", app, "default", 2, terminating=False))
        with self.cache.read() as snapshot:
            hypothesis = Hypothesis(snapshot)
            for pod in list(hypothesis.snapshot().assigned_pods())[:2]:
                hypothesis.remove_pod(pod)
            hypothesis.assume_pod(pod_info, node)
            assert find_inconsistencies(hypothesis.snapshot()) == []

    @invariant()
    def the_tables_equal_rebuilt_tables(self) -> None:
        with self.cache.read() as snapshot:
            assert find_inconsistencies(snapshot) == []

    @invariant()
    def held_snapshots_do_not_change(self) -> None:
        for snapshot, names, counts in self.held_snapshots:
            assert list(snapshot.names) == names  # type: ignore[attr-defined]
            assert snapshot.view().pod_count.tolist() == counts  # type: ignore[attr-defined]


Events.TestCase.settings = settings(max_examples=60, stateful_step_count=30, suppress_health_check=list(HealthCheck))
TestAnyOrderOfEvents = Events.TestCase
