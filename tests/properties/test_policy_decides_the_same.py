"""A Policy and the configuration it is converted to decide the same, on any small cluster, node by node."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from extender import wiring
from extender.cluster.state import ClusterState
from extender.decide.feasible import feasible
from extender.decide.rank import rank
from extender.policy.text import text
from tests import policy_oracle as oracle
from tests.build import a_node, a_pod, an_object

SAMPLES = Path(__file__).resolve().parents[1] / "cases" / "policy"
ZONE = "topology.kubernetes.io/zone"
AVOID = "scheduler.alpha.kubernetes.io/preferAvoidPods"
QUIET = settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])


def sample(path: Path) -> dict[str, Any]:
    """The Policy in a file, taken out of its ConfigMap if it is in one."""
    document: dict[str, Any] = yaml.safe_load(path.read_text())
    return json.loads(document["data"]["policy.cfg"]) if document["kind"] == "ConfigMap" else document


# -- the oracle's world as objects


def built_pod(pod: oracle.Pod, node: str = "") -> Any:
    asked = {"cpu": pod.cpu and f"{pod.cpu}m", "memory": pod.memory and f"{pod.memory}Mi"}
    container: dict[str, Any] = {
        "name": "app",
        "image": "app",
        "resources": {
            "requests": {name: amount for name, amount in asked.items() if amount},
            "limits": {"cpu": f"{pod.cpu_limit}m"} if pod.cpu_limit else {},
        },
        "ports": [{"containerPort": 80, "hostPort": pod.port}] if pod.port else [],
    }
    disk = {"name": "disk", "gcePersistentDisk": {"pdName": pod.disk, "readOnly": pod.reads}}
    preferred = [
        {"weight": weight, "preference": {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}}
        for weight, key, value in pod.prefers
    ]
    spec = {
        "containers": [container],
        "volumes": [disk] if pod.disk else [],
        "nodeSelector": dict(pod.selector),
        "tolerations": [{"key": key, "operator": "Exists"} for key in pod.tolerates],
        "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}},
    }
    metadata: dict[str, Any] = {}
    if pod.owner:
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x", "uid": pod.owner, "controller": True}
        metadata["ownerReferences"] = [owner]
    if pod.deleting:
        metadata["deletionTimestamp"] = "2020-01-01T00:00:00Z"
    return a_pod(pod.name, node=node, labels=pod.labels, metadata=metadata, spec=spec)


def built(world: oracle.World) -> ClusterState:
    state = ClusterState()
    for node in world.nodes:
        zone = {ZONE: node.labels["zone"]} if "zone" in node.labels else {}
        avoided = {"preferAvoidPods": [{"podSignature": {"podController": {"kind": "ReplicaSet", "uid": node.avoids}}}]}
        state.put_node(
            a_node(
                node.name,
                labels={**node.labels, **zone},
                taints=[{"key": key, "effect": effect} for key, effect in node.taints],
                unschedulable=node.cordoned,
                allocatable={
                    "cpu": f"{node.cpu}m",
                    "memory": f"{node.memory}Mi",
                    "pods": str(node.pods_allowed),
                    "attachable-volumes-gce-pd": str(node.disks_allowed),
                },
                metadata={"annotations": {AVOID: json.dumps(avoided)} if node.avoids else {}},
                status={"conditions": [{"type": key, "status": value} for key, value in node.conditions.items()]},
            )
        )
    for node in world.nodes:
        for pod in node.pods:
            state.put_pod(built_pod(pod, node.name))
    for index, selector in enumerate(world.services):
        metadata = {"name": f"s{index}", "namespace": "default"}
        state.put_object(
            an_object({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"selector": selector}})
        )
    return state


# -- any world, any Policy

APPS = st.sampled_from([{"app": "web"}, {"app": "db"}, {"app": "web", "tier": "front"}])
TAINT_KEYS = ("dedicated", "old", oracle.CORDON)
LABELS = ("rack", "zone", "ssd", "retiring")


@st.composite
def pods(draw: st.DrawFn, name: str, *, waits: bool = False) -> oracle.Pod:
    return oracle.Pod(
        name,
        labels=draw(APPS),
        cpu=draw(st.none() | st.integers(1, 900)),
        memory=draw(st.none() | st.integers(1, 900)),
        cpu_limit=draw(st.sampled_from([0, 500, 1500])),
        port=draw(st.sampled_from([0, 0, 8080])),
        disk=draw(st.sampled_from(["", "", "d1", "d2"])),
        reads=draw(st.booleans()),
        deleting=not waits and draw(st.integers(0, 5)) == 0,
        selector=draw(st.dictionaries(st.sampled_from(["rack", "zone"]), st.sampled_from("ab"), max_size=1)),
        tolerates=tuple(draw(st.sets(st.sampled_from(TAINT_KEYS), max_size=2))),
        owner=draw(st.sampled_from(["", "u1", "u2"])),
        prefers=tuple(
            draw(
                st.lists(
                    st.tuples(st.integers(1, 9), st.sampled_from(["rack", "zone"]), st.sampled_from("ab")), max_size=2
                )
            )
        ),
    )


@st.composite
def nodes(draw: st.DrawFn, name: str) -> oracle.Node:
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
    placed = [draw(pods(f"{name}-{index}")) for index in range(draw(st.integers(0, 3)))]
    return oracle.Node(
        name,
        labels=draw(st.dictionaries(st.sampled_from(LABELS), st.sampled_from("ab"))),
        cpu=draw(st.integers(500, 4000)),
        memory=draw(st.integers(500, 4000)),
        pods_allowed=draw(st.integers(2, 9)),
        disks_allowed=draw(st.integers(0, 3)),
        taints=tuple(taints.items()),
        cordoned=draw(st.integers(0, 5)) == 0,
        conditions=conditions,
        avoids=draw(st.sampled_from(["", "u1"])),
        pods=tuple(placed),
    )


@st.composite
def questions(draw: st.DrawFn) -> tuple[oracle.Pod, oracle.World]:
    """A pod and a world; in a calm one little is refused, so that there is something to rate."""
    calm = draw(st.booleans())
    selectors = st.sampled_from([{"app": "web"}, {"app": "db"}, {"tier": "front"}])
    services = draw(st.lists(selectors, min_size=int(calm), max_size=2))
    found = [draw(nodes(f"n{index}")) for index in range(draw(st.integers(1 + 2 * calm, 4)))]
    pod = draw(pods("p", waits=True))
    if calm:
        open_to_all = {"taints": (), "cordoned": False, "conditions": {}, "pods_allowed": 9, "disks_allowed": 9}
        found = [replace(node, cpu=node.cpu + 3000, memory=node.memory + 3000, **open_to_all) for node in found]
        pod = replace(pod, selector={}, port=0, disk="")
    return pod, oracle.World(tuple(found), tuple(services))


PREDICATE = st.one_of(
    st.sampled_from(sorted(oracle.PREDICATES)).map(lambda name: {"name": name}),
    st.sampled_from(LABELS).map(
        lambda label: {"name": "together", "argument": {"serviceAffinity": {"labels": [label]}}}
    ),
    st.tuples(st.sampled_from(LABELS), st.booleans()).map(
        lambda both: {"name": "has", "argument": {"labelsPresence": {"labels": [both[0]], "presence": both[1]}}}
    ),
)
SHAPE = st.lists(st.tuples(st.integers(0, 100), st.integers(0, 10)), min_size=1, max_size=3, unique_by=lambda p: p[0])
RATIO = st.tuples(SHAPE, st.sampled_from([[], [{"name": "memory", "weight": 3}, {"name": "cpu"}]])).map(
    lambda both: {
        "shape": [{"utilization": at, "score": score} for at, score in sorted(both[0])],
        "resources": both[1],
    }
)


@st.composite
def policies(draw: st.DrawFn) -> dict[str, Any]:
    """Any Policy that is valid; a label is asked to be there or not to be there, never both."""
    policy: dict[str, Any] = {"kind": "Policy", "apiVersion": "v1"}
    if draw(st.booleans()):
        found = draw(st.lists(PREDICATE, max_size=6))
        presence = {
            entry["argument"]["labelsPresence"]["labels"][0]: entry for entry in found if entry["name"] == "has"
        }
        policy["predicates"] = [entry for entry in found if entry["name"] != "has"] + list(presence.values())
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
            priorities.append({"name": f"apart-{label}", "weight": service_weight, "argument": argument})
        if draw(st.booleans()):
            argument = {"requestedToCapacityRatioArguments": draw(RATIO)}
            priorities.append({"name": "ratio", "weight": draw(st.integers(1, 9)), "argument": argument})
        policy["priorities"] = priorities
    return policy


def check(policy: dict[str, Any], scheduling: wiring.Scheduling, pod: oracle.Pod, world: oracle.World) -> None:
    cluster = built(world).snapshot()
    query, profile, engine = cluster.query(built_pod(pod)), scheduling.first, wiring.engine()
    found = feasible(query, cluster, profile, engine)
    wanted = oracle.feasible(policy, pod, world)
    names = [cluster.names[row] for row in np.flatnonzero(found.feasible)]
    assert names == [node.name for node in wanted]
    if wanted:
        ranking = rank(query, cluster, profile, engine, found.feasible, found.before)
        assert ranking.error is None
        assert ranking.totals.tolist() == oracle.ranked(policy, pod, wanted, world)


@pytest.mark.parametrize("path", sorted(SAMPLES.iterdir()), ids=lambda path: path.stem)
@given(data=st.data())
@QUIET
def test_a_policy_of_a_release_decides_as_its_conversion(path: Path, data: st.DataObject) -> None:
    scheduling = wiring.from_file(path.read_bytes(), path.name)
    check(sample(path), scheduling, *data.draw(questions()))


@given(policy=policies(), question=questions())
@settings(QUIET, max_examples=120)
def test_any_policy_decides_as_the_text_of_its_conversion(
    policy: dict[str, Any], question: tuple[oracle.Pod, oracle.World]
) -> None:
    written = text(wiring.from_builtins(policy, "policy").configuration)
    check(policy, wiring.from_file(written.encode(), "converted"), *question)
