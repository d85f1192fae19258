"""Random clusters for plans of moves, the replay of a plan on rebuilt clusters, and a search of all sequences."""

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from extender.analysis.simulate import SimulationOptions, simulate
from extender.api.kinds.pod import Pod
from extender.app import wiring
from extender.planning.rebalance.move_simulator import Move, MoveSimulator
from extender.planning.rebalance.plan import Action, Step
from tests.unit.planning.clusters import SETUP, ZONE, budget, make_cache, node, pod

Body = dict[str, Any]
UNSCHEDULABLE = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
APPS = "xyz"


def make_cluster(rng: Random, max_nodes: int, max_pods: int) -> tuple[list[Body], list[Body], list[Body]]:
    """Return nodes, pods and budgets. Each node has some free cores; a waiting pod needs more than most nodes have."""
    nodes = [make_node(rng, number) for number in range(rng.randint(3, max_nodes))]
    free = {body["metadata"]["name"]: int(body["status"]["allocatable"]["cpu"]) * 1000 for body in nodes}
    reserve = rng.choice([500, 1000, 1500])
    pods: list[Body] = []
    for number in range(max_pods - 2):
        milli_cpu = rng.choice([500, 1000, 1000, 2000])
        names = [name for name, amount in free.items() if amount >= milli_cpu + reserve]
        if names:
            name = rng.choice(names)
            free[name] -= milli_cpu
            owner = rng.choice(["ReplicaSet"] * 7 + ["StatefulSet", "DaemonSet", ""])
            pods.append(make_pod(rng, f"p{number:03}", milli_cpu, name, owner))
    largest = max(free.values())
    waiting = range(rng.randint(1, 2))
    pods += [make_pod(rng, f"w{number}", largest + 500 * rng.randint(0, 2), "", "") for number in waiting]
    budgets = [budget(app, {"app": app}, rng.randint(0, 2)) for app in APPS if rng.random() < 0.3]
    if rng.random() < 0.1:
        budgets.append(budget("second", {"app": "x"}, 1))
    return nodes, pods, budgets


def make_node(rng: Random, number: int) -> Body:
    body = node(f"n{number}", str(rng.randint(2, 6)), rng.randint(3, 9), rng.choice("ab"))
    body["metadata"]["labels"]["disk"] = rng.choice(["ssd", "hdd"])
    if rng.random() < 0.1:
        body["spec"]["taints"] = [{"key": "dedicated", "value": "a", "effect": "NoSchedule"}]
    if rng.random() < 0.05:
        cordon(body)
    return body


def make_pod(rng: Random, name: str, milli_cpu: int, on: str, owner: str) -> Body:
    app = rng.choice(APPS)
    body = pod(name, f"{milli_cpu}m", on, owner, {"app": app}, **make_spec(rng, app))
    if rng.random() < 0.05:
        body["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": "true"}
    return body


def make_spec(rng: Random, app: str) -> Body:
    selector = {"matchLabels": {"app": app}}
    term = {"labelSelector": selector, "topologyKey": rng.choice([ZONE, "kubernetes.io/hostname"])}
    spread = {"maxSkew": rng.randint(1, 2), "topologyKey": ZONE, "labelSelector": selector}
    affinity_rules = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    plain: list[Body] = [{}] * 9 + [{"priority": rng.randint(0, 2), "preemptionPolicy": "Never"}]
    return rng.choice(
        [
            *plain,
            {"nodeSelector": {"disk": "ssd"}},
            {"tolerations": [{"key": "dedicated", "operator": "Exists"}]},
            {"topologySpreadConstraints": [{**spread, "whenUnsatisfiable": "DoNotSchedule"}]},
            {"affinity": {"podAntiAffinity": affinity_rules}},
            {"affinity": {"podAffinity": affinity_rules}},
        ]
    )


def cordon(body: Body) -> None:
    body["spec"] = {
        **body["spec"],
        "unschedulable": True,
        "taints": [*body["spec"].get("taints", []), UNSCHEDULABLE],
    }


def uncordon(body: Body) -> None:
    taints = [taint for taint in body["spec"].get("taints", []) if taint["key"] != UNSCHEDULABLE["key"]]
    body["spec"] = {**body["spec"], "unschedulable": False, "taints": taints}


def make_simulator(objects: Sequence[Body]) -> MoveSimulator:
    return MoveSimulator(make_cache(*objects), SETUP.profiles, wiring.make_runtime())


class Replay:
    """Makes the steps of a plan on documents. After each step the rebuilt cluster is simulated."""

    def __init__(self, nodes: list[Body], pods: list[Body], budgets: list[Body]) -> None:
        self.nodes = {body["metadata"]["name"]: {**body} for body in nodes}
        self.pods = {f"default/{body['metadata']['name']}": body for body in pods}
        self.budgets = budgets

    def make(self, step: Step) -> None:
        """Make *step*, and check that its outcome is possible."""
        if step.change.action is Action.CORDON:
            assert not self.nodes[step.change.name]["spec"].get("unschedulable")
            cordon(self.nodes[step.change.name])
            return
        expected = {placement.pod: placement.node for placement in step.placed}
        if step.change.action is Action.UNCORDON:
            uncordon(self.nodes[step.change.name])
        else:
            self.check_eviction(step)
            assert step.target in step.equal_targets
            expected[step.change.name] = step.target
            self.pods[step.change.name] = move_to(self.pods.pop(step.change.name), "")  # the last in the queue
        self.check_placements(expected, step)
        for key, name in expected.items():
            self.pods[key] = move_to(self.pods[key], name)

    def check_eviction(self, step: Step) -> None:
        """Check that the eviction API accepts the eviction. All earlier replacements are healthy by now."""
        body = self.pods[step.change.name]
        meta = body["metadata"]
        assert body["spec"]["nodeName"] == step.source
        assert meta["ownerReferences"]
        assert meta["ownerReferences"][0]["kind"] != "DaemonSet"
        assert "karpenter.sh/do-not-disrupt" not in meta["annotations"]
        matching = [
            entry
            for entry in self.budgets
            if entry["spec"]["selector"]["matchLabels"].items() <= meta["labels"].items()
        ]
        assert len(matching) <= 1
        assert all(entry["status"]["disruptionsAllowed"] > 0 for entry in matching)

    def check_placements(self, expected: dict[str, str], step: Step | None = None) -> None:
        """Simulate the rebuilt cluster: the same pods are placed, and the evicted one on one of the equal nodes."""
        cache = make_cache(*self.nodes.values(), *self.pods.values(), *self.budgets)
        simulation = simulate(cache, SETUP.profiles, wiring.make_runtime(), SimulationOptions(0))
        placed = {entry.pod: entry.node for entry in simulation.placements if entry.node}
        assert placed.keys() == expected.keys(), step
        if len(placed) == 1 and step is not None and step.change.action is Action.EVICT:
            assert placed[step.change.name] in step.equal_targets


def move_to(body: Body, name: str) -> Body:
    spec = {key: value for key, value in body["spec"].items() if key != "nodeName"}
    return {
        **body,
        "spec": {**spec, "nodeName": name} if name else spec,
        "status": {"phase": "Running" if name else "Pending"},
    }


def find_any_plan(simulator: MoveSimulator, target: Pod, moves: int) -> bool:
    """Return whether any sequence of *moves* moves lets *target* run, by trying all of them.

    The node of a pod is cordoned while the pod moves; one more node may be cordoned until the end.
    """
    for retained in ("", *simulator.cache.snapshot().names):
        if retained and simulator.is_cordoned(retained):
            continue
        mark = simulator.mark()
        if retained:
            simulator.cordon(retained)
        for _ in make_all_moves(simulator, moves, set()):
            inner_mark = simulator.mark()
            if retained:
                simulator.uncordon(retained)
            simulator.settle()
            is_placed = simulator.is_placed(target)
            simulator.undo_to(inner_mark)
            if is_placed:
                simulator.undo_to(mark)
                return True
        simulator.undo_to(mark)
    return False


def make_all_moves(simulator: MoveSimulator, moves: int, seen: set[object]) -> Iterator[None]:
    """Make each sequence of *moves* moves, and yield after each one. Equal states are visited once."""
    assigned = simulator.cache.assigned_pods
    state = (moves, frozenset((entry.key, entry.node_name) for entry in assigned.values()))
    if state in seen:
        return
    seen.add(state)
    if not moves:
        yield
        return
    for uid in list(assigned):
        if uid not in assigned:
            continue
        mark, source = simulator.mark(), assigned[uid].node_name
        was_cordoned = simulator.is_cordoned(source)
        if not was_cordoned:
            simulator.cordon(source)
        if isinstance(simulator.evict(assigned[uid], settles=True), Move):
            if not was_cordoned:
                simulator.uncordon(source)
                simulator.settle()
            yield from make_all_moves(simulator, moves - 1, seen)
        simulator.undo_to(mark)
