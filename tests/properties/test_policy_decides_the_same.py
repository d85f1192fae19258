"""A Policy and its converted configuration give the same feasible nodes and scores on random small clusters."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from extender.app import wiring
from extender.cache.cache import Cache
from extender.config.render import render_without_defaults
from extender.cycle.diagnosis import find_nodes_that_pass_filters
from extender.cycle.score import prioritize_nodes
from tests import policy_oracle as oracle
from tests import policy_oracle_cluster as oracle_cluster
from tests.build import make_node, make_object, make_pod

SAMPLES = Path(__file__).resolve().parents[1] / "cases" / "policy"
ZONE = "topology.kubernetes.io/zone"
AVOID = "scheduler.alpha.kubernetes.io/preferAvoidPods"
SETTINGS = settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])


def load_sample(path: Path) -> dict[str, Any]:
    """Return the Policy in a file or in the ConfigMap of a file."""
    document: dict[str, Any] = yaml.safe_load(path.read_text())
    return json.loads(document["data"]["policy.cfg"]) if document["kind"] == "ConfigMap" else document


# -- Kubernetes objects of the oracle's cluster


def build_pod(pod: oracle_cluster.Pod, node: str = "") -> Any:
    requests = {"cpu": pod.cpu and f"{pod.cpu}m", "memory": pod.memory and f"{pod.memory}Mi"}
    container: dict[str, Any] = {
        "name": "app",
        "image": "app",
        "resources": {
            "requests": {name: amount for name, amount in requests.items() if amount},
            "limits": {"cpu": f"{pod.cpu_limit}m"} if pod.cpu_limit else {},
        },
        "ports": [{"containerPort": 80, "hostPort": pod.port}] if pod.port else [],
    }
    disk = {"name": "disk", "gcePersistentDisk": {"pdName": pod.disk, "readOnly": pod.read_only}}
    preferred = [
        {"weight": weight, "preference": {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}}
        for weight, key, value in pod.preferred_labels
    ]
    spec = {
        "containers": [container],
        "volumes": [disk] if pod.disk else [],
        "nodeSelector": dict(pod.selector),
        "tolerations": [{"key": key, "operator": "Exists"} for key in pod.tolerated_keys],
        "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}},
    }
    metadata: dict[str, Any] = {}
    if pod.owner:
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x", "uid": pod.owner, "controller": True}
        metadata["ownerReferences"] = [owner]
    if pod.deleting:
        metadata["deletionTimestamp"] = "2020-01-01T00:00:00Z"
    return make_pod(pod.name, node=node, labels=pod.labels, metadata=metadata, spec=spec)


def build_cache(cluster: oracle_cluster.Cluster) -> Cache:
    cache = Cache()
    for node in cluster.nodes:
        zone = {ZONE: node.labels["zone"]} if "zone" in node.labels else {}
        avoided = {
            "preferAvoidPods": [{"podSignature": {"podController": {"kind": "ReplicaSet", "uid": node.avoided_owner}}}]
        }
        cache.add_or_update_node(
            make_node(
                node.name,
                labels={**node.labels, **zone},
                taints=[{"key": key, "effect": effect} for key, effect in node.taints],
                unschedulable=node.cordoned,
                allocatable={
                    "cpu": f"{node.cpu}m",
                    "memory": f"{node.memory}Mi",
                    "pods": str(node.max_pods),
                    "attachable-volumes-gce-pd": str(node.max_disks),
                },
                metadata={"annotations": {AVOID: json.dumps(avoided)} if node.avoided_owner else {}},
                status={"conditions": [{"type": key, "status": value} for key, value in node.conditions.items()]},
            )
        )
    for node in cluster.nodes:
        for pod in node.pods:
            cache.add_or_update_pod(build_pod(pod, node.name))
    for index, selector in enumerate(cluster.services):
        metadata = {"name": f"s{index}", "namespace": "default"}
        cache.add_or_update_object(
            make_object({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"selector": selector}})
        )
    return cache


# -- random clusters and Policies

APPS = st.sampled_from([{"app": "web"}, {"app": "db"}, {"app": "web", "tier": "front"}])
TAINT_KEYS = ("dedicated", "old", oracle.CORDON)
LABELS = ("rack", "zone", "ssd", "retiring")


@st.composite
def pods(draw: st.DrawFn, name: str, *, incoming: bool = False) -> oracle_cluster.Pod:
    return oracle_cluster.Pod(
        name,
        labels=draw(APPS),
        cpu=draw(st.none() | st.integers(1, 900)),
        memory=draw(st.none() | st.integers(1, 900)),
        cpu_limit=draw(st.sampled_from([0, 500, 1500])),
        port=draw(st.sampled_from([0, 0, 8080])),
        disk=draw(st.sampled_from(["", "", "d1", "d2"])),
        read_only=draw(st.booleans()),
        deleting=not incoming and draw(st.integers(0, 5)) == 0,
        selector=draw(st.dictionaries(st.sampled_from(["rack", "zone"]), st.sampled_from("ab"), max_size=1)),
        tolerated_keys=tuple(draw(st.sets(st.sampled_from(TAINT_KEYS), max_size=2))),
        owner=draw(st.sampled_from(["", "u1", "u2"])),
        preferred_labels=tuple(
            draw(
                st.lists(
                    st.tuples(st.integers(1, 9), st.sampled_from(["rack", "zone"]), st.sampled_from("ab")), max_size=2
                )
            )
        ),
    )


@st.composite
def nodes(draw: st.DrawFn, name: str) -> oracle_cluster.Node:
    effect = st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule", "PreferNoSchedule"])
    taints = draw(st.dictionaries(st.sampled_from(["dedicated", "old"]), effect, max_size=1))
    conditions = draw(
        st.dictionaries(
            st.sampled_from(
                ["Ready", "OutOfDisk", "NetworkUnavailable", "MemoryPressure", "DiskPressure", "PIDPressure"]
            ),
            st.sampled_from(["True", "False", "Unknown"]),
            max_size=1,
        )
    )
    assigned = [draw(pods(f"{name}-{index}")) for index in range(draw(st.integers(0, 3)))]
    return oracle_cluster.Node(
        name,
        labels=draw(st.dictionaries(st.sampled_from(LABELS), st.sampled_from("ab"))),
        cpu=draw(st.integers(500, 4000)),
        memory=draw(st.integers(500, 4000)),
        max_pods=draw(st.integers(2, 9)),
        max_disks=draw(st.integers(0, 3)),
        taints=tuple(taints.items()),
        cordoned=draw(st.integers(0, 5)) == 0,
        conditions=conditions,
        avoided_owner=draw(st.sampled_from(["", "u1"])),
        pods=tuple(assigned),
    )


@st.composite
def pods_and_clusters(draw: st.DrawFn) -> tuple[oracle_cluster.Pod, oracle_cluster.Cluster]:
    """Draw a pod and a cluster. Permissive clusters reject few nodes, so that several nodes are scored."""
    permissive = draw(st.booleans())
    selectors = st.sampled_from([{"app": "web"}, {"app": "db"}, {"tier": "front"}])
    services = draw(st.lists(selectors, min_size=int(permissive), max_size=2))
    cluster_nodes = [draw(nodes(f"n{index}")) for index in range(draw(st.integers(1 + 2 * permissive, 4)))]
    pod = draw(pods("p", incoming=True))
    if permissive:
        unrestricted: dict[str, Any] = {
            "taints": (),
            "cordoned": False,
            "conditions": {},
            "max_pods": 9,
            "max_disks": 9,
        }
        cluster_nodes = [
            replace(node, cpu=node.cpu + 3000, memory=node.memory + 3000, **unrestricted) for node in cluster_nodes
        ]
        pod = replace(pod, selector={}, port=0, disk="")
    return pod, oracle_cluster.Cluster(tuple(cluster_nodes), tuple(services))


PREDICATE = st.one_of(
    st.sampled_from(sorted(oracle.PREDICATES)).map(lambda name: {"name": name}),
    st.sampled_from(LABELS).map(
        lambda label: {"name": "affinity", "argument": {"serviceAffinity": {"labels": [label]}}}
    ),
    st.tuples(st.sampled_from(LABELS), st.booleans()).map(
        lambda pair: {"name": "has", "argument": {"labelsPresence": {"labels": [pair[0]], "presence": pair[1]}}}
    ),
)
SHAPE = st.lists(st.tuples(st.integers(0, 100), st.integers(0, 10)), min_size=1, max_size=3, unique_by=lambda p: p[0])
RATIO = st.tuples(SHAPE, st.sampled_from([[], [{"name": "memory", "weight": 3}, {"name": "cpu"}]])).map(
    lambda pair: {
        "shape": [{"utilization": utilization, "score": score} for utilization, score in sorted(pair[0])],
        "resources": pair[1],
    }
)


@st.composite
def policies(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a valid Policy in which no label is both required and forbidden."""
    policy: dict[str, Any] = {"kind": "Policy", "apiVersion": "v1"}
    if draw(st.booleans()):
        predicates: list[dict[str, Any]] = draw(st.lists(PREDICATE, max_size=6))
        label_predicates = {
            entry["argument"]["labelsPresence"]["labels"][0]: entry for entry in predicates if entry["name"] == "has"
        }
        others = [entry for entry in predicates if entry["name"] != "has"]
        policy["predicates"] = others + list(label_predicates.values())
    if draw(st.booleans()):
        names = st.sampled_from(sorted([*oracle.PRIORITIES, "EqualPriority"]))
        plain = draw(st.lists(names, max_size=5, unique=True))
        priorities = [{"name": name, "weight": draw(st.integers(1, 9))} for name in plain]
        label_weight, service_weight = draw(st.integers(1, 9)), draw(st.integers(1, 9))
        for label, presence in draw(st.dictionaries(st.sampled_from(LABELS), st.booleans(), max_size=2)).items():
            argument: dict[str, Any] = {"labelPreference": {"label": label, "presence": presence}}
            priorities.append({"name": f"prefer-{label}", "weight": label_weight, "argument": argument})
        for label in draw(st.lists(st.sampled_from(LABELS), max_size=2, unique=True)):
            argument = {"serviceAntiAffinity": {"label": label}}
            priorities.append({"name": f"spread-{label}", "weight": service_weight, "argument": argument})
        if draw(st.booleans()):
            argument = {"requestedToCapacityRatioArguments": draw(RATIO)}
            priorities.append({"name": "ratio", "weight": draw(st.integers(1, 9)), "argument": argument})
        policy["priorities"] = priorities
    return policy


def assert_same_decision(
    policy: dict[str, Any], setup: wiring.SchedulerSetup, pod: oracle_cluster.Pod, cluster: oracle_cluster.Cluster
) -> None:
    snapshot = build_cache(cluster).snapshot()
    profile, runtime = setup.first_profile, wiring.make_runtime()
    pod_info = snapshot.make_pod_info(build_pod(pod))
    diagnosis = find_nodes_that_pass_filters(pod_info, snapshot, profile, runtime)
    feasible_nodes = oracle.find_feasible_nodes(policy, pod, cluster)
    names = [snapshot.names[row] for row in np.flatnonzero(diagnosis.feasible).tolist()]
    assert names == [node.name for node in feasible_nodes]
    if feasible_nodes:
        ranking = prioritize_nodes(pod_info, snapshot, profile, runtime, diagnosis.feasible, diagnosis.pre_filter_run)
        assert ranking.error is None
        assert ranking.totals.tolist() == oracle.total_scores(policy, pod, feasible_nodes, cluster)


@pytest.mark.parametrize("path", sorted(SAMPLES.iterdir()), ids=lambda path: path.stem)
@given(data=st.data())
@SETTINGS
def test_a_sample_policy_decides_like_its_conversion(path: Path, data: st.DataObject) -> None:
    setup = wiring.load_setup(path.read_bytes(), path.name)
    assert_same_decision(load_sample(path), setup, *data.draw(pods_and_clusters()))


@pytest.mark.slow
@given(policy=policies(), pod_and_cluster=pods_and_clusters())
@settings(SETTINGS, max_examples=120)
def test_any_policy_decides_like_its_rendered_conversion(
    policy: dict[str, Any], pod_and_cluster: tuple[oracle_cluster.Pod, oracle_cluster.Cluster]
) -> None:
    rendered = render_without_defaults(wiring.build_setup_from_document(policy, "policy").configuration)
    assert_same_decision(policy, wiring.load_setup(rendered.encode(), "converted"), *pod_and_cluster)
