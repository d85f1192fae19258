"""Caches between cycles never change a result: decisions with and without them are equal."""

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod
from extender.api.kinds.storage import PersistentVolumeClaim
from extender.app import wiring
from extender.cache.cache import Cache
from extender.cache.hypothesis import Hypothesis
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import Snapshot
from extender.cache.tables.arrays import BoolArray
from extender.cycle.decision import ScheduleFailure, ScheduleResult
from extender.cycle.diagnosis import find_nodes_that_pass_filters
from extender.cycle.node_sampling import NodeSampler
from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.pre_filter import PreFilterRun
from extender.cycle.scheduling_cycle import schedule_pod
from extender.cycle.score import prioritize_nodes, select_host
from tests.build import make_node, make_object, make_pod

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
PROFILE = wiring.build_setup().first_profile


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


def _node(number: int, cpu: int, zone: str | None, tainted: bool, *, image_size: int = 0) -> Node:
    labels = {HOST: f"node-{number}"} | ({ZONE: zone} if zone else {})
    taints = (
        [{"key": "only", "effect": "NoSchedule"}, {"key": "rather", "effect": "PreferNoSchedule"}] if tainted else []
    )
    size = {"cpu": str(cpu), "memory": "4Gi", "pods": "6"}
    images = [{"names": ["app:latest"], "sizeBytes": image_size or 90_000_000 * cpu}] if number % 2 else []
    return make_node(f"node-{number}", labels=labels, taints=taints, allocatable=size, images=images)


NODES = st.tuples(st.integers(0, 7), st.integers(1, 4), st.sampled_from(["a", "b", None]), st.booleans())
PODS = st.tuples(
    st.sampled_from(sorted(SPECS)), st.sampled_from(["web", "db"]), st.sampled_from([100, 700]), st.booleans()
)
STEPS = st.lists(
    st.one_of(NODES.map(lambda n: ("node", n)), PODS.map(lambda p: ("pod", p)), st.just(("gone", None))), max_size=40
)
REPLACEMENT_STEPS = st.lists(
    st.one_of(
        NODES.map(lambda n: ("node", n)),
        PODS.map(lambda p: ("pod", p)),
        st.integers(0, 7).map(lambda row: ("left", row)),
    ),
    max_size=30,
)
GROUPS = st.tuples(st.lists(PODS, min_size=1, max_size=4), st.sampled_from(["placed", "given up", "tried again"]))
GROUP_STEPS = st.lists(
    st.one_of(
        NODES.map(lambda n: ("node", n)),
        PODS.map(lambda p: ("pod", p)),
        GROUPS.map(lambda g: ("group", g)),
        st.just(("gone", None)),
    ),
    max_size=25,
)


def _pod(number: int, spec: str, app: str, cpu: int, port: bool) -> Pod:
    container: dict[str, Any] = {"name": "app", "image": "app", "resources": {"requests": {"cpu": f"{cpu}m"}}}
    if port:
        container["ports"] = [{"hostPort": 8080}]
    return make_pod(f"pod-{number}", labels={"app": app}, spec={"containers": [container], **SPECS[spec]})


@settings(max_examples=120, suppress_health_check=list(HealthCheck))
@given(first=st.lists(NODES, min_size=1, max_size=8), steps=STEPS)
def test_cached_and_fresh_results_are_equal(first: list[Any], steps: list[Any]) -> None:
    """One runtime caches columns for the whole run, the other runs every plugin on every node each time."""
    caching_runtime, fresh_runtime = wiring.make_runtime(cache_results=True), wiring.make_runtime(cache_results=False)
    cache, rng, placed = Cache(), Random(0), list[str]()
    for node in first:
        cache.add_or_update_node(_node(*node))
    for number, (kind, what) in enumerate(steps):
        if kind == "node":
            cache.add_or_update_node(_node(*what))
        elif kind == "gone" and placed:
            cache.remove_pod(placed.pop(0))
        elif kind == "pod":
            pod = _pod(number, *what)
            with cache.read() as snapshot:
                name = _select_node(pod, snapshot, caching_runtime, fresh_runtime, rng)
            if name is not None:
                cache.assume(pod, name)
                placed.append(pod.metadata.uid)


@settings(max_examples=120, suppress_health_check=list(HealthCheck))
@given(first=st.lists(NODES, min_size=1, max_size=8), steps=GROUP_STEPS)
def test_hypotheses_of_pod_groups_share_cached_results(first: list[Any], steps: list[Any]) -> None:
    """The members of a group are placed on a hypothesis. Then they are assumed, or not, or the group is tried again."""
    caching_runtime, fresh_runtime = wiring.make_runtime(cache_results=True), wiring.make_runtime(cache_results=False)
    cache, rng, placed = Cache(), Random(0), list[str]()
    for node in first:
        cache.add_or_update_node(_node(*node))
    for number, (kind, what) in enumerate(steps):
        if kind == "node":
            cache.add_or_update_node(_node(*what))
        elif kind == "gone" and placed:
            cache.remove_pod(placed.pop(rng.randrange(len(placed))))
        elif kind in {"pod", "group"}:
            specs, outcome = ([what], "placed") if kind == "pod" else what
            pods = [_pod(10 * number + index, *spec) for index, spec in enumerate(specs)]
            for _ in range(2 if outcome == "tried again" else 1):
                names = _place_on_hypothesis(pods, cache, caching_runtime, fresh_runtime, rng)
            for pod, name in names if outcome != "given up" else ():
                cache.assume(pod, name)
                placed.append(pod.metadata.uid)


@settings(max_examples=120, suppress_health_check=list(HealthCheck))
@given(first=st.lists(NODES, min_size=2, max_size=5), steps=REPLACEMENT_STEPS)
def test_replaced_nodes_leave_the_results_of_a_new_cache(
    first: list[Any], steps: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nodes with new names replace others, so ids are dropped again and again. Earlier snapshots have the old ids.

    All images have one size: as in kube-scheduler, it is that of the first node with the image, even if the node left.
    """
    monkeypatch.setattr("extender.cache.tables.node_table.MAX_UNUSED_VALUES", -4)
    caching_runtime, fresh_runtime = wiring.make_runtime(cache_results=True), wiring.make_runtime(cache_results=False)
    cache, rng, earlier = Cache(), Random(0), list[tuple[Pod, Snapshot, float, str | None]]()
    for node in first:
        cache.add_or_update_node(_node(*node, image_size=180_000_000))
    for number, (kind, what) in enumerate(steps):
        if kind == "node":
            cache.add_or_update_node(_node(100 + number, *what[1:], image_size=180_000_000))
        elif kind == "left" and len(cache.names) > 1:
            cache.remove_node(cache.names[what % len(cache.names)])
        elif kind == "pod":
            pod, seed = _pod(number, *what), rng.random()
            with cache.read() as snapshot:
                name = _select_node(pod, snapshot, caching_runtime, fresh_runtime, Random(seed))
            copy = _copy(cache).snapshot()
            assert name == _select_node(pod, copy, fresh_runtime, fresh_runtime, Random(seed))
            earlier.append((pod, cache.snapshot(), seed, name))
            if name is not None:
                cache.assume(pod, name)
    for pod, snapshot, seed, name in earlier:
        assert name == _select_node(pod, snapshot, caching_runtime, fresh_runtime, Random(seed))


def _copy(cache: Cache) -> Cache:
    """Return a new cache with the same nodes in the same rows, and the same pods on them."""
    copy = Cache()
    for node in cache.nodes:
        copy.add_or_update_node(node)
    for pod in cache.assigned_pods.values():
        copy.assume(pod.pod, pod.node_name)
    return copy


def _place_on_hypothesis(
    pods: list[Pod], cache: Cache, caching_runtime: PluginRuntime, fresh_runtime: PluginRuntime, rng: Random
) -> list[tuple[Pod, str]]:
    """Place *pods* one after another on a hypothesis; return those that fit, with the names of their nodes."""
    with cache.read() as snapshot:
        return _place_on(Hypothesis(snapshot, shares_results=True), pods, caching_runtime, fresh_runtime, rng)


def _place_on(
    hypothesis: Hypothesis, pods: list[Pod], caching_runtime: PluginRuntime, fresh_runtime: PluginRuntime, rng: Random
) -> list[tuple[Pod, str]]:
    names: list[tuple[Pod, str]] = []
    for pod in pods:
        snapshot = hypothesis.snapshot()
        name = _select_node(pod, snapshot, caching_runtime, fresh_runtime, rng)
        if name is None:
            continue
        assumed_pod = hypothesis.assume_pod(snapshot.make_pod_info(pod), name)
        if rng.random() < 0.2:  # as after a failure of Reserve
            hypothesis.remove_pod(assumed_pod)
        else:
            names.append((pod, name))
    return names


def _select_node(
    pod: Pod, snapshot: Snapshot, caching_runtime: PluginRuntime, fresh_runtime: PluginRuntime, rng: Random
) -> str | None:
    """Check that both runtimes have equal results for *pod*; return one of the best nodes, if a node fits."""
    pod_info = snapshot.make_pod_info(pod)
    cached = find_nodes_that_pass_filters(pod_info, snapshot, PROFILE, caching_runtime, with_rejections=True)
    fresh = find_nodes_that_pass_filters(pod_info, snapshot, PROFILE, fresh_runtime, with_rejections=True)
    assert cached.feasible.tolist() == fresh.feasible.tolist()
    assert cached.format_message() == fresh.format_message()
    assert cached.pre_filter_run.skipped_plugins == fresh.pre_filter_run.skipped_plugins
    if not cached.has_feasible_node:
        return None
    cached_result = prioritize_nodes(
        pod_info, snapshot, PROFILE, caching_runtime, cached.feasible, cached.pre_filter_run
    )
    fresh_result = prioritize_nodes(pod_info, snapshot, PROFILE, fresh_runtime, fresh.feasible, fresh.pre_filter_run)
    assert cached_result.totals.tolist() == fresh_result.totals.tolist()
    assert cached_result.find_best_rows().tolist() == fresh_result.find_best_rows().tolist()
    seed = rng.random()
    assert select_host(cached_result, Random(seed)) == select_host(fresh_result, Random(seed))
    assert [
        (n, s.raw.tolist(), s.normalized.tolist(), s.weight) for n, s in cached_result.scores_by_plugin.items()
    ] == [(n, s.raw.tolist(), s.normalized.tolist(), s.weight) for n, s in fresh_result.scores_by_plugin.items()]
    part = fresh.feasible & (np.array([rng.random() for _ in range(len(snapshot))]) < 0.7)
    if part.any():
        _check_part(pod_info, snapshot, caching_runtime, fresh_runtime, part, fresh.pre_filter_run)
    return snapshot.names[rng.choice(cached_result.find_best_rows().tolist())]


def _check_part(
    pod_info: PodInfo,
    snapshot: Snapshot,
    caching_runtime: PluginRuntime,
    fresh_runtime: PluginRuntime,
    part: BoolArray,
    pre_filter_run: PreFilterRun,
) -> None:
    """Check that the scores of *part* of the nodes are equal, although some are cached for all nodes."""
    fresh = prioritize_nodes(pod_info, snapshot, PROFILE, fresh_runtime, part, pre_filter_run)
    cached = prioritize_nodes(pod_info, snapshot, PROFILE, caching_runtime, part, pre_filter_run)
    assert cached.rows.tolist() == fresh.rows.tolist()
    assert cached.totals.tolist() == fresh.totals.tolist()
    assert cached.find_best_rows().tolist() == fresh.find_best_rows().tolist()
    assert cached.node_scores is not None
    scores_by_plugin = fresh.scores_by_plugin
    for index, row in enumerate(fresh.rows.tolist()):
        assert cached.node_scores.get_row(row) == {
            name: (scores.raw.item(index), scores.normalized.item(index), scores.weight)
            for name, scores in scores_by_plugin.items()
        }


def test_a_pre_filter_run_that_ends_early_is_the_same_with_and_without_cache() -> None:
    """The claim is deleted: plugins after the first that rejects the pod do not run, whatever is cached of them."""
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
    cache = Cache()
    for obj in (claim, disk):
        cache.add_or_update_object(make_object(obj))
    cache.add_or_update_node(make_node("node-1"))
    caching_runtime, fresh_runtime = wiring.make_runtime(cache_results=True), wiring.make_runtime(cache_results=False)

    def both(name: str) -> tuple[Any, Any]:
        pod_info = cache.make_pod_info(make_pod(name, spec={"volumes": volumes}))
        with cache.read() as snapshot:
            cached, fresh = (
                schedule_pod(pod_info, snapshot, PROFILE, runtime, Random(0), NodeSampler())
                for runtime in (caching_runtime, fresh_runtime)
            )
        return cached, fresh

    assert [type(each) for name in ("first", "second", "third") for each in both(name)] == [ScheduleResult] * 6
    cache.remove_object(PersistentVolumeClaim, "default/data")
    cached, fresh = both("fourth")

    assert isinstance(cached, ScheduleFailure)
    assert isinstance(fresh, ScheduleFailure)
    assert cached.message == fresh.message
    assert cached.message.startswith('0/1 nodes are available: persistentvolumeclaim "data" not found.')
    assert cached.nominated_node == fresh.nominated_node
    assert (
        cached.diagnosis.pre_filter_run.skipped_plugins
        == fresh.diagnosis.pre_filter_run.skipped_plugins
        == {"NodeAffinity", "NodePorts"}
    )
    assert cached.diagnosis.pre_filter_run.cycle_state.keys() == fresh.diagnosis.pre_filter_run.cycle_state.keys()


@pytest.mark.parametrize("spec", sorted(SPECS))
def test_the_second_pod_of_a_signature_sees_the_first(spec: str) -> None:
    """A full node is rejected as soon as the pod that filled it is assumed."""
    cache, runtime = Cache(), wiring.make_runtime()
    cache.add_or_update_node(
        make_node("node-1", labels={HOST: "node-1", ZONE: "a"}, allocatable={"cpu": "1", "pods": "10"})
    )
    for number, want in ((1, True), (2, False)):
        pod = _pod(number, spec, "other", 700, False)
        with cache.read() as snapshot:
            found = find_nodes_that_pass_filters(snapshot.make_pod_info(pod), snapshot, PROFILE, runtime)
        assert found.has_feasible_node is want
        if want:
            cache.assume(pod, "node-1")
