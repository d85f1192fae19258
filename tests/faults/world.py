"""A sandbox and schedulers on it, in time that passes only when nothing else can happen, with a history to check."""

import asyncio
import gc
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import msgspec

from extender import wiring
from extender.client.kubeconfig import Impersonation, Place
from extender.cluster.audit import validate
from extender.config.model import LeaderElection
from extender.sandbox.faults import Fault, Spoiled
from extender.sandbox.nodes import Pace
from extender.sandbox.served import NODES, PODS
from extender.sandbox.server import Sandbox
from extender.standalone import Standalone, Watching
from tests.faults.cable import Cable
from tests.faults.recording import Listening, Recording
from tests.unit.client.virtual_time import here
from tests.unit.client.virtual_time import run as run_virtually

Object = dict[str, Any]

PATIENCE = 400.0
"""Seconds of virtual time in which all must come right once the faults have stopped."""

LONG_LEASE = {"leader_election": LeaderElection(lease_duration=600.0, renew_deadline=500.0, retry_period=60.0)}
"""For faults that are not about the lease."""

_PLUGINS = (
    "PrioritySort",
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeResourcesFit",
    "DefaultPreemption",
    "DefaultBinder",
)
_PROFILE = {"plugins": {"multiPoint": {"disabled": [{"name": "*"}], "enabled": [{"name": name} for name in _PLUGINS]}}}
_CONFIGURATION = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [_PROFILE],
}
"""Few kinds to watch, so that a trial has little to carry: pods, nodes and disruption budgets."""


@dataclass
class Replica:
    """One scheduler process, as far as one loop can have several: its own wire, its own memory."""

    cable: Cable
    scheduler: Standalone
    stopping: asyncio.Event
    task: asyncio.Task[int]

    @property
    def leads(self) -> bool:
        return self.scheduler.elector is not None and self.scheduler.elector.may_act()

    async def kill(self) -> None:
        """As `kill -9`: it does nothing more, not even say goodbye."""
        self.cable.cut()
        self.task.cancel()
        jobs = list(self.scheduler.desk.jobs)
        for job in jobs:
            job.cancel()
        await asyncio.gather(self.task, *jobs, return_exceptions=True)


@dataclass
class World:
    """See the module; made by `run`."""

    sandbox: Sandbox
    history: Recording
    random: Random
    replicas: list[Replica] = field(default_factory=list)
    lease_seconds: float = 15.0

    async def scheduler(self, **settings: Any) -> Replica:
        """Start one; *settings* are of its configuration."""
        port = int(self.sandbox.url.rpartition(":")[2])
        cable = Cable(port)
        await cable.start()
        made = wiring.from_builtins(_CONFIGURATION, "trial")
        unbounded = msgspec.structs.replace(made.configuration.client_connection, qps=-1.0)
        self.lease_seconds = settings.get("leader_election", LeaderElection()).lease_duration
        configured = replace(made.configuration, client_connection=unbounded, **settings)
        scheduling = replace(made, configuration=configured)
        place = Place(master=cable.url)
        scheduler = Standalone(scheduling, place, here(), Watching(), max_parked=300.0, chance=self.random)
        place = Place(master=cable.url, impersonation=Impersonation(user=scheduler.identity))
        scheduler._credentials._place = place
        stopping = asyncio.Event()
        replica = Replica(cable, scheduler, stopping, asyncio.create_task(scheduler.run(stopping)))
        self.replicas.append(replica)
        return replica

    async def leader(self, **settings: Any) -> Replica:
        """Start one and wait until it leads."""
        replica = await self.scheduler(**settings)
        await self.until(lambda: replica.leads)
        return replica

    def nodes(self, count: int, **capacity: str) -> None:
        """Create nodes n1, n2 and so on."""
        for number in range(1, count + 1):
            self.sandbox.api.add(a_node(f"n{number}", **capacity))

    def pods(self, *names: str, **spec: Any) -> None:
        """Create pods."""
        for name in names:
            self.sandbox.api.add(a_pod(name, **spec))

    def spoil(self, what: Spoiled, verb: str = "*", resource: str = "*", **how: Any) -> None:
        """Spoil answers from now on."""
        self.sandbox.faults.add(Fault(what, verb, resource, **how))

    def node_of(self, name: str) -> str:
        pod = self.sandbox.store.get(PODS.place, "default", name)
        return "" if pod is None else str(pod["spec"].get("nodeName", ""))

    def unbound(self) -> set[str]:
        return {pod["metadata"]["name"] for pod in self.sandbox.api.each(PODS) if not pod["spec"].get("nodeName")}

    async def until(self, true: Callable[[], bool], seconds: float = PATIENCE) -> float:
        """Wait until something is true: how long it took."""
        began = here().time()
        while not true():
            assert here().time() - began < seconds, f"not true within {seconds} s"
            await asyncio.sleep(0.25)
        return here().time() - began

    async def settled(self, *waiting: str, seconds: float = PATIENCE) -> float:
        """Once the faults have stopped: all but *waiting* are bound, and nothing is wrong. How long it took."""
        took = await self.until(lambda: self.unbound() == set(waiting), seconds)
        live = [each.scheduler for each in self.replicas if not each.task.done()]
        for each in live:
            await self.until(lambda each=each: not self._unlike(each), seconds)  # type: ignore[misc]
            await self.until(lambda each=each: not each.desk.jobs, seconds)  # type: ignore[misc]
            assert validate(each.state.snapshot()) == []
            assert len(each.queue.in_flight) == 0
            assert len(each.desk.waiting) == 0
            assert each.desk.binding == {}
        wrong = self.history.wrong(self.lease_seconds)
        assert not wrong, wrong[:5]
        return took

    def _unlike(self, scheduler: Standalone) -> str:
        """I5: how what a scheduler knows differs from what there is."""
        pods = self.sandbox.api.each(PODS)
        placed = {
            pod["metadata"]["uid"]: pod["spec"]["nodeName"]
            for pod in pods
            if pod["spec"].get("nodeName") and pod["status"].get("phase") not in {"Succeeded", "Failed"}
        }
        known = {uid: pod.node_name for uid, pod in scheduler.state.placed.items()}
        waiting = {pod["metadata"]["uid"] for pod in pods if not pod["spec"].get("nodeName")}
        nodes = {node["metadata"]["name"] for node in self.sandbox.api.each(NODES)}
        assumed = [uid for uid, pod in scheduler.state.placed.items() if pod.assumed]
        return (
            f"placed {known} for {placed}" * (known != placed)
            + f"waiting {set(scheduler.state.waiting)} for {waiting}" * (set(scheduler.state.waiting) != waiting)
            + f"nodes {scheduler.state.snapshot().names} for {nodes}" * (set(scheduler.state.snapshot().names) != nodes)
            + f"still assumed: {assumed}" * bool(assumed)
        )


def a_node(name: str, **capacity: str) -> Object:
    has = {"cpu": "4", "memory": "8Gi", "pods": "110", **capacity}
    labels = {"kubernetes.io/hostname": name}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": has},
    }


def a_pod(name: str, cpu: str = "500m", **spec: Any) -> Object:
    container = {"name": "c", "image": "app:1", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 1, **spec},
    }


def run(trial: Callable[[World], Awaitable[None]], *, seed: int = 0, pace: Pace | None = None, **options: Any) -> None:
    """Run a trial in virtual time; all that it started is ended, and nothing may be left running."""

    async def whole() -> None:
        sandbox = Sandbox(clock=here(), seed=seed, pace=pace or Pace(), **options)
        history = Recording(sandbox.store, here())
        sandbox._app.__class__ = Listening
        sandbox._app.recording = history  # type: ignore[attr-defined]
        world = World(sandbox, history, Random(seed))
        before = asyncio.all_tasks()
        await sandbox.start()
        try:
            await trial(world)
        finally:
            for replica in world.replicas:
                await replica.kill()
                await replica.cable.stop()
            await sandbox.stop()
        await asyncio.sleep(1)
        left = [repr(task) for task in asyncio.all_tasks() - before if not task.done()]
        assert not left, left

    threshold = gc.get_threshold()
    try:
        run_virtually(whole())
    finally:
        gc.unfreeze()
        gc.set_threshold(*threshold)
