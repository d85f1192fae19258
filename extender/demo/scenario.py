"""The scenario of the demo: pods that wait for different reasons, among ordinary pods."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib.resources import files
from random import Random
from typing import Any, Final

import msgspec
import yaml

from extender.fake_apiserver.kubelets import RUN_SECONDS_ANNOTATION
from extender.fake_apiserver.registry.api import Api

_ZONES: Final = ("eu-1a", "eu-1b", "eu-1c")
_NODE_CPU, _NODE_MEMORY = 8000, 32 * 1024
"""Capacity of a node, in milli-CPU and MiB."""
_CPU_UTILIZATION: Final = 0.6
"""The fraction of the nodes' CPU that the ordinary pods request in total."""
_MAX_POD_CPU: Final = 1500
"""The maximum CPU request of an ordinary pod in milli-CPU. Each of these pods fits on a node."""
MAX_PODS_PER_NODE: Final = 80
"""The maximum number of ordinary pods per node. The limit of a node is 110, but pods are not spread evenly."""
_FIRST_ARRIVAL, _LAST_ARRIVAL = 0.5, 13.0
"""The ordinary pods arrive between these times, in seconds."""


class Step(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The objects that are created at one time.

    Attributes:
        at_seconds: the time of the step in seconds since the start.
        message: the description of the step for people.
        create: the manifests of the objects.
        copies: the number of copies of each manifest, named `<name>-1` and so on.
    """

    at_seconds: float
    message: str = ""
    create: tuple[dict[str, Any], ...] = ()
    copies: int = 1


class Scenario(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The initial objects of a cluster, and the steps that change them, in order of time."""

    title: str
    duration_seconds: float
    objects: tuple[dict[str, Any], ...] = ()
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class DemoSize:
    """The size of the demo.

    Attributes:
        nodes: the number of ordinary nodes, in three zones; at least three.
        pods: the number of ordinary pods; at most `MAX_PODS_PER_NODE` per node.
        seed: the random seed of the pods' sizes and arrival times.
    """

    nodes: int = 8
    pods: int = 60
    seed: int = 0


def build_scenario(size: DemoSize) -> Scenario:
    """Build the scenario; equal sizes give equal scenarios."""
    text = files(__package__).joinpath("scenario.yaml").read_bytes()
    scenario = msgspec.convert(yaml.safe_load(text), Scenario)
    nodes = tuple(_build_node(number) for number in range(size.nodes))
    steps = sorted((*scenario.steps, *_build_arrivals(size)), key=lambda step: step.at_seconds)
    return msgspec.structs.replace(scenario, objects=(*nodes, *scenario.objects), steps=tuple(steps))


async def run_scenario(
    api: Api,
    scenario: Scenario,
    on_step: Callable[[Step], object],
    *,
    speed: float = 1.0,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Run the steps, each at its time, and wait until the end of the scenario.

    Args:
        api: the API, which has the initial objects.
        scenario: the scenario.
        on_step: is called before each step.
        speed: the speed of the scenario; 2 runs it in half of its duration.
        sleep: waits for a number of seconds.
    """
    elapsed_seconds = 0.0
    for step in scenario.steps:
        await sleep((step.at_seconds - elapsed_seconds) / speed)
        elapsed_seconds = step.at_seconds
        on_step(step)
        for manifest in step.create:
            meta = manifest["metadata"]
            names = [f"{meta['name']}-{number + 1}" for number in range(step.copies)]
            for name in names if step.copies > 1 else [meta["name"]]:
                api.create_from_manifest({**manifest, "metadata": {**meta, "name": name}})
    await sleep((scenario.duration_seconds - elapsed_seconds) / speed)


def _build_node(node_number: int) -> dict[str, Any]:
    name, zone = f"node-{node_number + 1}", _ZONES[node_number % len(_ZONES)]
    capacity = {"cpu": f"{_NODE_CPU}m", "memory": f"{_NODE_MEMORY}Mi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone}},
        "status": {"capacity": capacity, "nodeInfo": {"kubeletVersion": "v1.37.2"}},
    }


def _build_arrivals(size: DemoSize) -> list[Step]:
    rng = Random(size.seed)  # noqa: S311  reproducible
    mean_cpu = min(_CPU_UTILIZATION * size.nodes * _NODE_CPU / size.pods, _MAX_POD_CPU / 2) if size.pods else 0.0
    times = sorted(rng.uniform(_FIRST_ARRIVAL, _LAST_ARRIVAL) for _ in range(size.pods))
    return [Step(at_seconds, create=(_build_pod(number, mean_cpu, rng),)) for number, at_seconds in enumerate(times, 1)]


def _build_pod(pod_number: int, mean_cpu: float, rng: Random) -> dict[str, Any]:
    app, namespace = rng.choice((("web", "shop"), ("api", "shop"), ("report", "batch")))
    size_factor = rng.uniform(0.1, 1.9)
    requests = {
        "cpu": f"{max(1, int(mean_cpu * size_factor))}m",
        "memory": f"{max(1, int(mean_cpu * _NODE_MEMORY / _NODE_CPU * size_factor))}Mi",
    }
    meta: dict[str, Any] = {"name": f"{app}-{pod_number}", "namespace": namespace, "labels": {"app": app}}
    spec: dict[str, Any] = {
        "terminationGracePeriodSeconds": 1,
        "containers": [{"name": app, "image": f"registry.example.com/{app}:1", "resources": {"requests": requests}}],
    }
    if app == "report":
        meta["annotations"] = {RUN_SECONDS_ANNOTATION: f"{rng.uniform(1.5, 4.0):.1f}"}
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
