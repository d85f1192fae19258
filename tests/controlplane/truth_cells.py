"""Random cells, which share one control plane: each has its own nodes, ReplicaSets, budgets and scenario.

The node selector of every pod confines it to its cell, so cells do not influence each other.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from extender.api.kinds.node import Taint
from extender.planning.scenario import Scale, Scenario, TaintChange
from tests.controlplane.replica_sets import make_containers

CELL: Final = "example.com/cell"
ZONE: Final = "topology.kubernetes.io/zone"
HOST: Final = "kubernetes.io/hostname"
NODE_MILLI_CPU: Final = 4000


@dataclass(slots=True)
class App:
    """A ReplicaSet: its name, the nodes of its pods (empty for a waiting pod), and the spec of its pods."""

    name: str
    nodes: list[str]
    spec: dict[str, Any]


@dataclass(slots=True)
class Cell:
    """One random cluster with its scenario."""

    name: str
    nodes: list[dict[str, Any]] = field(default_factory=list)
    apps: list[App] = field(default_factory=list)
    budgets: list[dict[str, Any]] = field(default_factory=list)
    drain: list[str] = field(default_factory=list)
    cordon: list[str] = field(default_factory=list)
    taint: list[str] = field(default_factory=list)
    scale: dict[str, int] = field(default_factory=dict)


def make_cell(seed: int) -> Cell:
    """Make the cell of a seed."""
    rng = Random(seed)
    cell = Cell(f"cell-{seed}")
    names = [f"{cell.name}-{number}" for number in range(rng.randint(3, 6))]
    cell.nodes = [make_node(rng, cell.name, name) for name in names]
    free = dict.fromkeys(names, NODE_MILLI_CPU)
    for number in range(rng.randint(3, 5)):
        cell.apps.append(make_app(rng, cell, f"{cell.name}-{'abcde'[number]}", free))
    for app in cell.apps:
        if rng.random() < 0.4 and len(app.nodes) > 1:
            cell.budgets.append(make_budget(app, rng.randint(0, len(app.nodes) - 1)))
    choose_scenario(rng, cell, names)
    return cell


def make_node(rng: Random, cell: str, name: str) -> dict[str, Any]:
    size = {"cpu": f"{NODE_MILLI_CPU}m", "memory": "8Gi", "pods": "110"}
    labels = {CELL: cell, HOST: name, ZONE: f"{cell}-{rng.choice('ab')}", "disk": rng.choice(["ssd", "hdd", "ssd"])}
    status = {"capacity": size, "allocatable": size}
    return {"kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


def make_app(rng: Random, cell: Cell, name: str, free: dict[str, int]) -> App:
    milli_cpu = rng.choice([400, 700, 1100, 1600])
    spec = {"nodeSelector": {CELL: cell.name}, "containers": make_containers(milli_cpu), **make_rules(rng, name)}
    if rng.random() < 0.2:
        spec["nodeSelector"] = {CELL: cell.name, "disk": "ssd"}
    nodes: list[str] = []
    for _ in range(rng.randint(1, 4)):
        choices = [node for node, amount in free.items() if amount >= milli_cpu]
        if not choices or rng.random() < 0.1:
            nodes.append("")
            continue
        nodes.append(rng.choice(choices))
        free[nodes[-1]] -= milli_cpu
    return App(name, nodes, spec)


def make_rules(rng: Random, app: str) -> dict[str, Any]:
    selector = {"matchLabels": {"app": app}}
    term = {"labelSelector": selector, "topologyKey": HOST}
    spread = {
        "maxSkew": 1,
        "topologyKey": rng.choice([ZONE, HOST]),
        "labelSelector": selector,
        "whenUnsatisfiable": "DoNotSchedule",
    }
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 10, "podAffinityTerm": term}]}
    return rng.choice(
        [
            {},
            {},
            {"affinity": {"podAntiAffinity": required}},
            {"affinity": {"podAntiAffinity": preferred}},
            {"topologySpreadConstraints": [spread]},
            {"tolerations": [{"key": "dedicated", "operator": "Exists"}]},
        ]
    )


def make_budget(app: App, min_available: int) -> dict[str, Any]:
    spec = {"minAvailable": min_available, "selector": {"matchLabels": {"app": app.name}}}
    return {"kind": "PodDisruptionBudget", "metadata": {"name": app.name, "namespace": "default"}, "spec": spec}


def choose_scenario(rng: Random, cell: Cell, names: list[str]) -> None:
    first, second = rng.sample(names, 2)
    app = rng.choice(cell.apps)
    match rng.randint(0, 4):
        case 0:
            cell.drain = [first]
        case 1:
            cell.drain, cell.cordon = [first], [second]
        case 2:
            cell.drain = [first, second]
        case 3:
            cell.cordon, cell.scale = [first], {app.name: len(app.nodes) + rng.randint(1, 4)}
        case _:
            cell.taint = [first]


def make_scenario(cells: Sequence[Cell]) -> Scenario:
    """Make one scenario with the changes of all cells."""
    taint = Taint(key="dedicated", value="x", effect="NoExecute")
    return Scenario(
        drain=tuple(node for cell in cells for node in cell.drain),
        cordon=tuple(node for cell in cells for node in cell.cordon),
        taints=tuple(TaintChange(node, taint) for cell in cells for node in cell.taint),
        scale=tuple(
            Scale("replicaset", "default", name, count) for cell in cells for name, count in cell.scale.items()
        ),
    )
