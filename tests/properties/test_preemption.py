"""What preemption imagines is what would happen: dry runs equal clusters rebuilt without the pods that are gone."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from extender import wiring
from extender.cluster.state import ClusterState
from extender.decide.feasible import feasible
from extender.decide.rescue import Attempt
from extender.framework.profiles import Profile
from extender.objects.node import Node
from extender.objects.pod import Pod
from extender.preemption.candidates import Enough, Found, search
from tests.build import a_node, a_pod, an_object

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
PROFILE = wiring.scheduling().first
ENOUGH = Enough(100, 0)


def _near(app: str, key: str) -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}


def _required(kind: str, app: str, key: str) -> dict[str, Any]:
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [_near(app, key)]}}}


def _spread(key: str, **more: Any) -> dict[str, Any]:
    selector = {"labelSelector": {"matchLabels": {"app": "web"}}}
    constraint = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", **selector, **more}
    return {"topologySpreadConstraints": [constraint]}


SPECS: dict[str, dict[str, Any]] = {
    "plain": {},
    "apart by host": _required("podAntiAffinity", "web", HOST),
    "apart by zone": _required("podAntiAffinity", "db", ZONE),
    "near by zone": _required("podAffinity", "web", ZONE),
    "spread by zone": _spread(ZONE),
    "spread by host": _spread(HOST, minDomains=3),
    "spread by both": {
        "topologySpreadConstraints": [
            *_spread(ZONE, maxSkew=2)["topologySpreadConstraints"],
            *_spread(HOST)["topologySpreadConstraints"],
        ]
    },
}


@dataclass(frozen=True)
class World:
    """Nodes, pods on them, a pod that wants room and those that wait beside it, and budgets."""

    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]
    pod: Pod
    nominated: tuple[tuple[Pod, str], ...]
    budgets: tuple[dict[str, Any], ...]

    def without(self, gone: Sequence[str] = ()) -> ClusterState:
        """The cluster with the pods of these uids really not there."""
        state = ClusterState()
        for thing in self.nodes:
            state.put_node(thing)
        for pod in self.pods:
            if pod.metadata.uid not in gone:
                state.put_pod(pod)
        for raw in self.budgets:
            state.put_object(an_object(raw))
        for pod, node in self.nominated:
            state.nominate(pod, node)
        return state


def _node(number: int, zone: str | None) -> Node:
    labels = {HOST: f"node-{number}"} | ({ZONE: zone} if zone else {})
    return a_node(f"node-{number}", labels=labels, allocatable={"cpu": "2", "memory": "4Gi", "pods": "4"})


def _pod(name: str, spec: str, app: str, cpu: int, port: bool, **more: Any) -> Pod:
    container: dict[str, Any] = {"name": "app", "image": "app", "resources": {"requests": {"cpu": f"{cpu}m"}}}
    if port:
        container["ports"] = [{"hostPort": 8080}]
    return a_pod(name, labels={"app": app}, spec={"containers": [container], **SPECS[spec]}, **more)


KINDS = st.tuples(
    st.sampled_from(sorted(SPECS)), st.sampled_from(["web", "db"]), st.sampled_from([100, 700, 1500]), st.booleans()
)
PLACED = st.tuples(KINDS, st.integers(0, 3), st.integers(0, 3), st.booleans())
BUDGETS = st.lists(st.tuples(st.sampled_from(["web", "db"]), st.integers(-1, 2), st.booleans()), max_size=3)


@st.composite
def worlds(draw: st.DrawFn, *, terminating: bool) -> World:
    zones = draw(st.lists(st.sampled_from(["a", "b", None]), min_size=1, max_size=4))
    nodes = tuple(_node(number, zone) for number, zone in enumerate(zones))
    pods = []
    taken: set[int] = set()  # two pods of one node never share a host port; if they did, kube-scheduler would err
    for number, (kind, node, priority, going) in enumerate(draw(st.lists(PLACED, min_size=2, max_size=12))):
        spec, app, cpu, wants_port = kind
        port = wants_port and node % len(nodes) not in taken
        if port:
            taken.add(node % len(nodes))
        metadata = {"deletionTimestamp": "2026-01-02T00:00:00Z"} if going and terminating else {}
        pods.append(
            _pod(
                f"pod-{number}",
                spec,
                app,
                cpu,
                port,
                node=f"node-{node % len(nodes)}",
                priority=priority * 10,
                metadata=metadata,
                status={"startTime": f"2026-01-01T00:00:{number:02}Z"},
            )
        )
    waiting = _pod("waiting", *draw(KINDS), priority=draw(st.sampled_from([15, 25, 100])))
    nominated = []
    for number, (kind, node, priority, _) in enumerate(draw(st.lists(PLACED, max_size=2))):
        # without anti-affinity of their own: the plugin is not asked at all where no pod on a node refuses the pod
        plain = ("plain", *kind[1:])
        nominated.append((_pod(f"next-{number}", *plain, priority=priority * 100), f"node-{node % len(nodes)}"))
    budgets = [
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": f"budget-{number}", "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": app}}},
            "status": {
                "disruptionsAllowed": allowed,
                "disruptedPods": {"pod-1": "2026-01-01T00:00:00Z"} if disrupted else {},
            },
        }
        for number, (app, allowed, disrupted) in enumerate(draw(BUDGETS))
    ]
    return World(nodes, tuple(pods), waiting, tuple(nominated), tuple(budgets))


def _refusals(world: World, node: str, gone: Sequence[str]) -> list[str]:
    """Why *node* does not take the pod when those pods are gone; empty if it does."""
    cluster = world.without(gone).snapshot()
    found = feasible(cluster.query(world.pod), cluster, PROFILE, wiring.engine(), reasons=True)
    row = cluster.row(node)
    return [refusal.reason.text for refusal in found.refusals if refusal.nodes[row]]


def _protected(world: World, pods: Sequence[Pod]) -> set[str]:
    """The uids of pods that a budget protects when *pods* are evicted in this order."""
    left = [raw["status"]["disruptionsAllowed"] for raw in world.budgets]
    found = set()
    for pod in pods:
        for index, raw in enumerate(world.budgets):
            meant = raw["spec"]["selector"]["matchLabels"]["app"] == pod.metadata.labels["app"]
            if meant and pod.metadata.name not in raw["status"]["disruptedPods"]:
                left[index] -= 1
                if left[index] < 0:
                    found.add(pod.metadata.uid)
    return found


def _one_node(world: World, node: str) -> tuple[list[str], int] | list[str]:
    """The victims on *node* by the book, or why there are none; the cluster is built anew for every question."""
    below = world.pod.spec.priority or 0
    pods = [pod for pod in world.pods if pod.spec.node_name == node and (pod.spec.priority or 0) < below]
    pods.sort(key=lambda pod: (-(pod.spec.priority or 0), str(pod.status.start_time)))
    gone = [pod.metadata.uid for pod in pods]
    if not pods:
        return ["No preemption victims found for incoming pod"]
    refusals = _refusals(world, node, gone)
    if refusals:
        return refusals
    protected = _protected(world, pods)
    for uid in sorted(gone, key=lambda uid: uid not in protected):
        without = [other for other in gone if other != uid]
        if not _refusals(world, node, without):
            gone = without
    return gone, len(protected & set(gone))


def _searched(world: World, profile: Profile = PROFILE) -> tuple[Found, list[str]] | None:
    """What the dry runs find, and the names of the nodes they are about; None if the pod fits somewhere."""
    cluster, engine = world.without().snapshot(), wiring.engine()
    query = cluster.query(world.pod)
    failed = feasible(query, cluster, profile, engine)
    if failed.any or failed.before.status is not None:
        return None
    nodes = [name for name, helps in zip(cluster.names, failed.merely_unschedulable(), strict=True) if helps]
    return search(query, cluster, Attempt(failed, profile, engine, every_node=True), ENOUGH), nodes


@settings(max_examples=250, suppress_health_check=list(HealthCheck))
@given(world=worlds(terminating=False))
def test_dry_runs_equal_clusters_without_the_victims(world: World) -> None:
    """Pods that are being deleted are left out: plugins that spread pods count them only when they come or leave."""
    searched = _searched(world)
    if searched is None:
        return
    found, nodes = searched

    assert found.errors == ()
    got = {each.node: ([victim.uid for victim in each.victims], each.violations) for each in found.candidates}
    by_the_book = {node: _one_node(world, node) for node in nodes}
    assert got == {node: said for node, said in by_the_book.items() if isinstance(said, tuple)}
    assert found.reasons == Counter(text for said in by_the_book.values() if isinstance(said, list) for text in said)


class NodeByNode:
    """A plugin that can be asked about imagined pods on one node at a time only."""

    def __init__(self, plugin: Any) -> None:
        self.name = plugin.name
        self.pre_filter, self.filter = plugin.pre_filter, plugin.filter
        self.clone, self.add_pod, self.remove_pod = plugin.clone, plugin.add_pod, plugin.remove_pod


def _node_by_node(profile: Profile) -> Profile:
    slow = {name: NodeByNode(plugin) for name, plugin in profile.plugins.items() if hasattr(plugin, "filter_apart")}

    def swapped(plugins: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(slow.get(plugin.name, plugin) for plugin in plugins)

    assert slow
    return replace(profile, pre_filters=swapped(profile.pre_filters), filters=swapped(profile.filters))


@settings(max_examples=250, suppress_health_check=list(HealthCheck))
@given(world=worlds(terminating=True))
def test_many_nodes_at_once_and_one_at_a_time_are_equal(world: World) -> None:
    """Plugins that know the whole cluster answer the same for all nodes together as with notes of each node's own."""
    together, alone = _searched(world), _searched(world, _node_by_node(PROFILE))

    assert (together is None) == (alone is None)
    if together is not None and alone is not None:
        assert _plain(together[0]) == _plain(alone[0])


def _plain(found: Found) -> tuple[Any, ...]:
    candidates = [(each.node, [victim.uid for victim in each.victims], each.violations) for each in found.candidates]
    return candidates, found.failed, dict(found.reasons), found.errors
