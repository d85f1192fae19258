"""A what-if answer equals a simulation of the cluster that is rebuilt with the scenario's changes."""

from random import Random
from typing import Any

import msgspec
import pytest

from extender.analysis.recorded_cluster import load_cache, parse_recording
from extender.analysis.simulate import SimulationOptions, simulate
from extender.answers.simulation import Placement
from extender.api.kinds.node import Taint
from extender.app import wiring
from extender.planning.scenario import AddedNodes, LabelChange, Scenario, TaintChange
from extender.planning.what_if import WhatIfRunner
from tests.unit.planning.clusters import SETUP, ZONE, as_list, make_cache, node, pod

UNSCHEDULABLE = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
Body = dict[str, Any]


def make_random_cluster(rng: Random) -> tuple[list[Body], list[Body]]:
    """Make nodes and pods: some with spread constraints, anti-affinity, selectors, host ports or priorities."""
    nodes = [
        node(f"n{number}", str(rng.randint(2, 6)), rng.randint(3, 9), rng.choice("abc"))
        for number in range(rng.randint(3, 9))
    ]
    for body in nodes:
        body["metadata"]["labels"]["disk"] = rng.choice(["ssd", "hdd"])
    pods: list[Body] = []
    for number in range(rng.randint(4, 20)):
        app = rng.choice("xyz")
        on = rng.choice(nodes)["metadata"]["name"] if rng.random() < 0.8 else ""
        owner = rng.choice(["ReplicaSet", "ReplicaSet", "StatefulSet", "DaemonSet", ""]) if on else ""
        cpu = rng.choice(["200m", "500m", "1"])
        pods.append(pod(f"p{number:02}", cpu, on, owner, {"app": app}, **make_random_spec(rng, app)))
    return nodes, pods


def make_random_spec(rng: Random, app: str) -> Body:
    selector = {"matchLabels": {"app": app}}
    term = {"labelSelector": selector, "topologyKey": rng.choice([ZONE, "kubernetes.io/hostname"])}
    constraint = {"maxSkew": 1, "topologyKey": ZONE, "labelSelector": selector}
    return rng.choice(
        [
            {},
            {"priority": rng.randint(0, 3), "preemptionPolicy": "Never"},
            {"nodeSelector": {"disk": "ssd"}},
            {"topologySpreadConstraints": [{**constraint, "whenUnsatisfiable": "DoNotSchedule"}]},
            {"topologySpreadConstraints": [{**constraint, "whenUnsatisfiable": "ScheduleAnyway"}]},
            {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}},
        ]
    )


def make_random_scenario(rng: Random, nodes: list[Body]) -> Scenario:
    names = [body["metadata"]["name"] for body in nodes]
    rng.shuffle(names)
    first, second, third = names[:3]
    choices = [
        Scenario(drain=(first,), cordon=(second,)),
        Scenario(remove=(first, second)),
        Scenario(lose=((ZONE, nodes[0]["metadata"]["labels"][ZONE]),)),
        Scenario(add=(AddedNodes(2, first),), drain=(second,)),
        Scenario(taints=(TaintChange(first, Taint(key="k", effect="NoExecute")),), remove=(second,)),
        Scenario(labels=(LabelChange(first, "disk", "ssd"),), drain=(second, third)),
    ]
    return rng.choice(choices)


def rebuild(scenario: Scenario, nodes: list[Body], pods: list[Body]) -> list[Body]:
    """Make the changed cluster from its documents. A removed node's row is taken by the last one, as in the cache."""
    nodes, pods = [*nodes], [*pods]
    for added in scenario.add:
        like = next(body for body in nodes if body["metadata"]["name"] == added.like)
        for name in (f"{added.like}-new-{number + 1}" for number in range(added.count)):
            labels = {**like["metadata"]["labels"], "kubernetes.io/hostname": name}
            nodes.append({**like, "metadata": {"name": name, "labels": labels}})
            pods += [copy_to(body, name) for body in pods if is_on(body, added.like) and is_daemon(body)]
    lost = scenario.find_lost_nodes(make_cache(*nodes).snapshot())
    leaving: list[Body] = []
    for name in lost:
        leaving += sorted((body for body in pods if is_on(body, name)), key=get_name)
        index = next(index for index, body in enumerate(nodes) if body["metadata"]["name"] == name)
        nodes[index] = nodes[-1]
        nodes.pop()
    pods = [body for body in pods if body["spec"].get("nodeName") not in lost]
    leaving = [body for body in leaving if not is_daemon(body)]
    for change in scenario.taints:
        set_spec(nodes, change.node, taints=[{"key": change.taint.key, "effect": change.taint.effect}])
        leaving += sorted((body for body in pods if is_on(body, change.node) and not is_daemon(body)), key=get_name)
    for label in scenario.labels:
        index = next(index for index, body in enumerate(nodes) if body["metadata"]["name"] == label.node)
        metadata = nodes[index]["metadata"]
        nodes[index] = {
            **nodes[index],
            "metadata": {**metadata, "labels": {**metadata["labels"], label.key: label.value}},
        }
    for name in (*scenario.cordon, *scenario.drain):
        set_spec(nodes, name, unschedulable=True, taints=[UNSCHEDULABLE])
    for name in scenario.drain:
        leaving += sorted((body for body in pods if is_on(body, name) and not is_daemon(body)), key=get_name)
    gone = {get_name(body) for body in leaving}
    returning = [make_pending(body) for body in leaving if body["metadata"]["ownerReferences"]]
    return [*nodes, *(body for body in pods if get_name(body) not in gone), *returning]


def get_name(body: Body) -> str:
    name: str = body["metadata"]["name"]
    return name


def is_on(body: Body, name: str) -> bool:
    return body["spec"].get("nodeName") == name


def is_daemon(body: Body) -> bool:
    return any(owner["kind"] == "DaemonSet" for owner in body["metadata"]["ownerReferences"])


def copy_to(body: Body, name: str) -> Body:
    metadata = {**body["metadata"], "name": f"{get_name(body)}-{name}", "uid": f"{get_name(body)}/{name}"}
    return {**body, "metadata": metadata, "spec": {**body["spec"], "nodeName": name}}


def make_pending(body: Body) -> Body:
    spec = {key: value for key, value in body["spec"].items() if key != "nodeName"}
    return {**body, "spec": spec, "status": {"phase": "Pending"}}


def set_spec(nodes: list[Body], name: str, **changes: Any) -> None:
    index = next(index for index, body in enumerate(nodes) if body["metadata"]["name"] == name)
    nodes[index] = {**nodes[index], "spec": {**nodes[index]["spec"], **changes}}


@pytest.mark.parametrize("seed", range(60))
def test_a_scenario_equals_a_simulation_of_the_rebuilt_cluster(seed: int) -> None:
    rng = Random(seed)
    nodes, pods = make_random_cluster(rng)
    runner = WhatIfRunner(make_cache(*nodes, *pods), SETUP.profiles, wiring.make_runtime())
    for _ in range(3):  # the later scenarios run on a cluster whose changes were undone
        scenario = make_random_scenario(rng, nodes)
        outcome = runner.run(scenario, seed=seed)
        moved = {entry.pod: entry.to for entry in outcome.moved}
        placements, usage = simulate_until_settled(rebuild(scenario, nodes, pods), moved, seed)
        assert moved == {entry.pod: entry.node for entry in placements.values() if entry.node}
        waiting = {key: entry for key, entry in placements.items() if not entry.node}
        assert {entry.pod: entry.message for entry in outcome.waiting} == {
            key: entry.message for key, entry in waiting.items()
        }
        assert {entry.pod: ", ".join(entry.reasons) for entry in outcome.waiting} == {
            key: entry.reason for key, entry in waiting.items()
        }
        assert {name: usage.requested for name, usage in outcome.after.resources.items()} == usage


def simulate_until_settled(
    objects: list[Body], moved: dict[str, str], seed: int
) -> tuple[dict[str, Placement], dict[str, int]]:
    """Simulate the cluster. Then simulate pods with rules about other pods again, while a pod is placed.

    Return the last placement of each pod, and the requested amounts. A pod that is placed only then may go to any of
    the nodes with equal scores; the node in *moved* is taken.
    """
    placements: dict[str, Placement] = {}
    while True:
        cache = load_cache(parse_recording(as_list(objects).encode(), "test"))
        simulation = simulate(cache, SETUP.profiles, wiring.make_runtime(), SimulationOptions(seed))
        for entry in simulation.placements:
            node = moved.get(entry.pod, entry.node) if placements and entry.node else entry.node
            placements[entry.pod] = msgspec.structs.replace(entry, node=node)
        placed = {entry.pod for entry in simulation.placements if entry.node}
        again = {key for key, entry in placements.items() if not entry.node and has_rules(entry.reason)}
        if not placed or not again:
            return placements, {name: usage.requested for name, usage in simulation.usage_after.total.items()}
        objects = [bind(body, placements) for body in objects if is_relevant(body, placements, again)]


def has_rules(reason: str) -> bool:
    return "pod affinity" in reason or "anti-affinity" in reason or "topology spread" in reason


def is_relevant(body: Body, placements: dict[str, Placement], again: set[str]) -> bool:
    """Return False for a waiting pod that is not tried again."""
    key = f"default/{get_name(body)}"
    return body["kind"] != "Pod" or key not in placements or bool(placements[key].node) or key in again


def bind(body: Body, placements: dict[str, Placement]) -> Body:
    entry = placements.get(f"default/{get_name(body)}") if body["kind"] == "Pod" else None
    if entry is None or not entry.node:
        return body
    return {**body, "spec": {**body["spec"], "nodeName": entry.node}, "status": {"phase": "Running"}}
