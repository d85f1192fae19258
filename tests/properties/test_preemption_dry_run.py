"""Dry runs of preemption equal clusters rebuilt without the victims."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod
from extender.app import wiring
from extender.cache.cache import Cache
from extender.cycle.diagnosis import find_nodes_that_pass_filters
from extender.cycle.post_filter import FailedAttempt
from extender.framework.profiles import Profile
from extender.plugins.default_preemption import DefaultPreemptionArgs
from extender.preemption.candidates import CandidateSearchResult, find_candidates
from tests.build import make_node, make_object, make_pod

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
PROFILE = wiring.build_setup().first_profile
ENOUGH = DefaultPreemptionArgs(100, 0).calculate_num_candidates


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
class GeneratedCluster:
    """Nodes with pods, a preemptor, nominated pods and disruption budgets."""

    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]
    pod: Pod
    nominated: tuple[tuple[Pod, str], ...]
    budgets: tuple[dict[str, Any], ...]

    def without(self, gone: Sequence[str] = ()) -> Cache:
        """Return the cluster rebuilt without the pods of these uids."""
        state = Cache()
        for obj in self.nodes:
            state.add_or_update_node(obj)
        for pod in self.pods:
            if pod.metadata.uid not in gone:
                state.add_or_update_pod(pod)
        for raw in self.budgets:
            state.add_or_update_object(make_object(raw))
        for pod, node in self.nominated:
            state.nominate(pod, node)
        return state


def _node(number: int, zone: str | None) -> Node:
    labels = {HOST: f"node-{number}"} | ({ZONE: zone} if zone else {})
    return make_node(f"node-{number}", labels=labels, allocatable={"cpu": "2", "memory": "4Gi", "pods": "4"})


def make_random_pod(name: str, spec: str, app: str, cpu: int, port: bool, **more: Any) -> Pod:
    container: dict[str, Any] = {"name": "app", "image": "app", "resources": {"requests": {"cpu": f"{cpu}m"}}}
    if port:
        container["ports"] = [{"hostPort": 8080}]
    return make_pod(name, labels={"app": app}, spec={"containers": [container], **SPECS[spec]}, **more)


KINDS = st.tuples(
    st.sampled_from(sorted(SPECS)), st.sampled_from(["web", "db"]), st.sampled_from([100, 700, 1500]), st.booleans()
)
PLACED = st.tuples(KINDS, st.integers(0, 3), st.integers(0, 3), st.booleans())
BUDGETS = st.lists(st.tuples(st.sampled_from(["web", "db"]), st.integers(-1, 2), st.booleans()), max_size=3)


@st.composite
def cluster_cases(draw: st.DrawFn, *, terminating: bool) -> GeneratedCluster:
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
            make_random_pod(
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
    waiting = make_random_pod("waiting", *draw(KINDS), priority=draw(st.sampled_from([15, 25, 100])))
    nominated = []
    for number, (kind, node, priority, _) in enumerate(draw(st.lists(PLACED, max_size=2))):
        # without anti-affinity of their own: the plugin is not asked at all where no pod on a node refuses the pod
        plain = ("plain", *kind[1:])
        pod = make_random_pod(f"next-{number}", *plain, priority=priority * 100)
        nominated.append((pod, f"node-{node % len(nodes)}"))
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
    return GeneratedCluster(nodes, tuple(pods), waiting, tuple(nominated), tuple(budgets))


def find_rejection_reasons(case: GeneratedCluster, node: str, gone: Sequence[str]) -> list[str]:
    """Return why *node* rejects the pod without those pods; empty if it fits."""
    snapshot = case.without(gone).snapshot()
    found = find_nodes_that_pass_filters(
        snapshot.make_pod_info(case.pod), snapshot, PROFILE, wiring.make_runtime(), with_rejections=True
    )
    row = snapshot.row(node)
    return [refusal.reason.text for refusal in found.rejections if refusal.nodes[row]]


def _protected(case: GeneratedCluster, pods: Sequence[Pod]) -> set[str]:
    """Return the uids of pods that violate a budget when *pods* are evicted in this order.

    The check of a pod stops at the first violated budget, as in 1.37; 1.36 counts the pod in the later ones, too.
    """
    left = [raw["status"]["disruptionsAllowed"] for raw in case.budgets]
    found = set()
    for pod in pods:
        for index, raw in enumerate(case.budgets):
            meant = raw["spec"]["selector"]["matchLabels"]["app"] == pod.metadata.labels["app"]
            if meant and pod.metadata.name not in raw["status"]["disruptedPods"]:
                left[index] -= 1
                if left[index] < 0:
                    found.add(pod.metadata.uid)
                    break
    return found


def _select_victims_on_node(case: GeneratedCluster, node: str) -> tuple[list[str], int] | list[str]:
    """Return the victims on *node*, or why there are none, by rebuilding the cluster for every step."""
    below = case.pod.spec.priority or 0
    pods = [pod for pod in case.pods if pod.spec.node_name == node and (pod.spec.priority or 0) < below]
    pods.sort(key=lambda pod: (-(pod.spec.priority or 0), str(pod.status.start_time)))
    gone = [pod.metadata.uid for pod in pods]
    if not pods:
        return ["No preemption victims found for incoming pod"]
    refusals = find_rejection_reasons(case, node, gone)
    if refusals:
        return refusals
    protected = _protected(case, pods)
    for uid in sorted(gone, key=lambda uid: uid not in protected):
        without = [other for other in gone if other != uid]
        if not find_rejection_reasons(case, node, without):
            gone = without
    return gone, len(protected & set(gone))


def _find_all_candidates(
    case: GeneratedCluster, profile: Profile = PROFILE
) -> tuple[CandidateSearchResult, list[str]] | None:
    """Return the result of the dry runs and the names of their nodes; None if the pod fits without preemption."""
    snapshot, runtime = case.without().snapshot(), wiring.make_runtime()
    pod_info = snapshot.make_pod_info(case.pod)
    failed = find_nodes_that_pass_filters(pod_info, snapshot, profile, runtime)
    if failed.has_feasible_node or failed.pre_filter_run.status is not None:
        return None
    may_help = failed.find_nodes_where_preemption_may_help()
    nodes = [name for name, helps in zip(snapshot.names, may_help, strict=True) if helps]
    return find_candidates(pod_info, snapshot, FailedAttempt(failed, profile, runtime, all_nodes=True), ENOUGH), nodes


@settings(max_examples=250, suppress_health_check=list(HealthCheck))
@given(case=cluster_cases(terminating=False))
def test_dry_runs_equal_clusters_without_the_victims(case: GeneratedCluster) -> None:
    """Without terminating pods: spreading plugins count them only when they are added or removed."""
    searched = _find_all_candidates(case)
    if searched is None:
        return
    found, nodes = searched

    assert found.errors == ()
    got = {
        each.node_name: ([victim.uid for victim in each.victims], each.num_pdb_violations) for each in found.candidates
    }
    by_the_book = {node: _select_victims_on_node(case, node) for node in nodes}
    assert got == {node: message for node, message in by_the_book.items() if isinstance(message, tuple)}
    assert found.reason_counts == Counter(
        text for message in by_the_book.values() if isinstance(message, list) for text in message
    )


class PerNodePlugin:
    """A plugin without batch dry runs."""

    def __init__(self, plugin: Any) -> None:
        self.name = plugin.name
        self.pre_filter, self.filter = plugin.pre_filter, plugin.filter
        self.clone, self.add_pod, self.remove_pod = plugin.clone, plugin.add_pod, plugin.remove_pod


def _node_by_node(profile: Profile) -> Profile:
    slow = {
        name: PerNodePlugin(plugin) for name, plugin in profile.plugins.items() if hasattr(plugin, "apply_pod_changes")
    }

    def swapped(plugins: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(slow.get(plugin.name, plugin) for plugin in plugins)

    assert slow
    return replace(
        profile, pre_filter_plugins=swapped(profile.pre_filter_plugins), filter_plugins=swapped(profile.filter_plugins)
    )


@settings(max_examples=250, suppress_health_check=list(HealthCheck))
@given(case=cluster_cases(terminating=True))
def test_a_dry_run_of_many_nodes_equals_dry_runs_of_each(case: GeneratedCluster) -> None:
    """Plugins with cluster-wide state give the same results for a batch as with one copy of the state per node."""
    together, alone = _find_all_candidates(case), _find_all_candidates(case, _node_by_node(PROFILE))

    assert (together is None) == (alone is None)
    if together is not None and alone is not None:
        assert _plain(together[0]) == _plain(alone[0])


def _plain(found: CandidateSearchResult) -> tuple[Any, ...]:
    candidates = [
        (each.node_name, [victim.uid for victim in each.victims], each.num_pdb_violations) for each in found.candidates
    ]
    return candidates, found.failed_count, dict(found.reason_counts), found.errors
