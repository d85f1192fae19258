"""The scenario of the demo: a small story with a moral for each way of waiting, among a crowd of ordinary pods."""

from dataclasses import dataclass
from importlib.resources import files
from random import Random
from typing import Any, Final

import msgspec

from extender.sandbox.nodes import RUNS_FOR
from extender.sandbox.scenario import Scenario, Step, parse_scenario

_ZONES: Final = ("eu-1a", "eu-1b", "eu-1c")
_CPU, _MEMORY = 8000, 32 * 1024
"""Of a node, in milli-CPU and MiB."""
_FULL: Final = 0.6
"""The part of all nodes that the crowd asks for if none of it ends."""
_LARGEST: Final = 1500
"""Milli-CPU of the largest pod of a crowd: each finds a node however the others lie."""
MOST_A_NODE: Final = 80
"""Pods of a crowd for each node: a node takes 110, and zones and sizes are never quite even."""
_FIRST, _LAST = 0.5, 13.0
"""Seconds in which the crowd arrives."""


@dataclass(frozen=True, slots=True)
class Crowd:
    """How large the demo is.

    Attributes:
        nodes: ordinary nodes, in three zones; at least three.
        pods: ordinary pods; at most `MOST_A_NODE` for each node.
        seed: of their sizes and times.
    """

    nodes: int = 8
    pods: int = 60
    seed: int = 0


def story(crowd: Crowd) -> Scenario:
    """The scenario: always the same for the same crowd."""
    text = files(__package__).joinpath("story.yaml").read_bytes()
    tale = parse_scenario(text, "story.yaml")
    nodes = tuple(_node(number) for number in range(crowd.nodes))
    steps = sorted((*tale.steps, *_arrivals(crowd)), key=lambda step: step.at)
    return msgspec.structs.replace(tale, objects=(*nodes, *tale.objects), steps=tuple(steps))


def _node(number: int) -> dict[str, Any]:
    name, zone = f"node-{number + 1}", _ZONES[number % len(_ZONES)]
    capacity = {"cpu": f"{_CPU}m", "memory": f"{_MEMORY}Mi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone}},
        "status": {"capacity": capacity, "nodeInfo": {"kubeletVersion": "v1.36.3"}},
    }


def _arrivals(crowd: Crowd) -> list[Step]:
    chance = Random(crowd.seed)  # noqa: S311  repeatable on purpose
    mean = min(_FULL * crowd.nodes * _CPU / crowd.pods, _LARGEST / 2) if crowd.pods else 0.0
    times = sorted(chance.uniform(_FIRST, _LAST) for _ in range(crowd.pods))
    return [Step(at, create=(_pod(number, mean, chance),)) for number, at in enumerate(times, 1)]


def _pod(number: int, mean: float, chance: Random) -> dict[str, Any]:
    app, namespace = chance.choice((("web", "shop"), ("api", "shop"), ("report", "batch")))
    share = chance.uniform(0.1, 1.9)
    requests = {"cpu": f"{max(1, int(mean * share))}m", "memory": f"{max(1, int(mean * _MEMORY / _CPU * share))}Mi"}
    meta: dict[str, Any] = {"name": f"{app}-{number}", "namespace": namespace, "labels": {"app": app}}
    spec: dict[str, Any] = {
        "terminationGracePeriodSeconds": 1,
        "containers": [{"name": app, "image": f"registry.example.com/{app}:1", "resources": {"requests": requests}}],
    }
    if app == "report":
        meta["annotations"] = {RUNS_FOR: f"{chance.uniform(1.5, 4.0):.1f}"}
    elif app == "web":
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": 1,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {"app": "web"}},
            }
        ]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
