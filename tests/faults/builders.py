"""A fake API server with schedulers in virtual time, and a history to check."""

import asyncio
import gc
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import msgspec

from extender.app import wiring
from extender.app.standalone import StandaloneScheduler
from extender.client.kubeconfig import CredentialSource, Impersonation
from extender.config.model import LeaderElection
from extender.fake_apiserver.kubelets import KubeletTiming
from extender.fake_apiserver.registry.resources import NODES, PODS
from extender.metrics.scheduler_metrics import make_scheduler_metrics
from tests.consistency import find_inconsistencies
from tests.faults.history_recorder import HistoryRecorder, RecordingApp
from tests.faults.tcp_proxy import TcpProxy
from tests.faulty_apiserver import Fault, FaultKind, FaultyApiServer
from tests.unit.client.virtual_time import current_loop
from tests.unit.client.virtual_time import run as run_virtually

Object = dict[str, Any]

RECOVERY_SECONDS = 400.0
"""Seconds of virtual time in which everything must recover after the faults stopped."""

LONG_LEASE = {"leader_election": LeaderElection(lease_duration=600.0, renew_deadline=500.0, retry_period=60.0)}
"""For faults that are not about the lease."""

_PLUGIN_NAMES = (
    "PrioritySort",
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeResourcesFit",
    "DefaultPreemption",
    "DefaultBinder",
)
"""The plugins of a profile that watches few kinds: pods, nodes and disruption budgets."""


@dataclass
class Replica:
    """One scheduler process with its own proxy and memory."""

    proxy: TcpProxy
    scheduler: StandaloneScheduler
    stopping: asyncio.Event
    task: asyncio.Task[int]

    @property
    def is_leader(self) -> bool:
        return self.scheduler.elector is not None and self.scheduler.elector.may_act()

    async def kill(self) -> None:
        """Stop at once, as `kill -9` does."""
        self.proxy.cut()
        self.task.cancel()
        tasks = list(self.scheduler.context.tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(self.task, *tasks, return_exceptions=True)


@dataclass
class FaultHarness:
    """The server and its schedulers; created by `run`."""

    server: FaultyApiServer
    recorder: HistoryRecorder
    random: Random
    replicas: list[Replica] = field(default_factory=list)
    lease_seconds: float = 15.0

    async def start_scheduler(self, *more_plugins: str, **settings: Any) -> Replica:
        """Start a scheduler with *more_plugins*; *settings* override its configuration."""
        port = int(self.server.url.rpartition(":")[2])
        proxy = TcpProxy(port)
        await proxy.start()
        scheduling_input = wiring.build_setup_from_document(_make_configuration(more_plugins), "trial")
        client_connection = msgspec.structs.replace(scheduling_input.configuration.client_connection, qps=-1.0)
        self.lease_seconds = settings.get("leader_election", LeaderElection()).lease_duration
        configuration = replace(scheduling_input.configuration, client_connection=client_connection, **settings)
        setup = replace(scheduling_input, configuration=configuration)
        credential_source = CredentialSource(master=proxy.url)
        scheduler = StandaloneScheduler(
            setup,
            credential_source,
            current_loop(),
            make_scheduler_metrics(setup.profiles),
            max_in_unschedulable_pods_seconds=300.0,
            rng=self.random,
        )
        credential_source = CredentialSource(master=proxy.url, impersonation=Impersonation(user=scheduler.identity))
        scheduler.credentials._source = credential_source
        stopping = asyncio.Event()
        replica = Replica(proxy, scheduler, stopping, asyncio.create_task(scheduler.run(stopping)))
        self.replicas.append(replica)
        return replica

    async def start_leader(self, *more_plugins: str, **settings: Any) -> Replica:
        """Start a scheduler and wait until it leads."""
        replica = await self.start_scheduler(*more_plugins, **settings)
        await self.wait_until(lambda: replica.is_leader)
        return replica

    def create_nodes(self, count: int, **capacity: str) -> None:
        """Create nodes n1, n2 and so on."""
        for number in range(1, count + 1):
            self.server.api.create_from_manifest(make_node(f"n{number}", **capacity))

    def create_pods(self, *names: str, **spec: Any) -> None:
        """Create pods."""
        for name in names:
            self.server.api.create_from_manifest(make_pod(name, **spec))

    def inject_fault(self, kind: FaultKind, verb: str = "*", resource: str = "*", **settings: Any) -> None:
        """Inject a fault into responses from now on."""
        self.server.faults.add(Fault(kind, verb, resource, **settings))

    def node_of(self, name: str) -> str:
        pod = self.server.store.get(PODS.storage_key, "default", name)
        return "" if pod is None else str(pod["spec"].get("nodeName", ""))

    def unbound_names(self) -> set[str]:
        return {
            pod["metadata"]["name"] for pod in self.server.api.list_objects(PODS) if not pod["spec"].get("nodeName")
        }

    async def wait_until(self, condition: Callable[[], bool], seconds: float = RECOVERY_SECONDS) -> float:
        """Wait until a condition holds and return how long it took."""
        start_time = current_loop().time()
        while not condition():
            assert current_loop().time() - start_time < seconds, f"not true within {seconds} s"
            await asyncio.sleep(0.25)
        return current_loop().time() - start_time

    async def wait_until_consistent(self, *pending: str, seconds: float = RECOVERY_SECONDS) -> float:
        """Wait until all pods but *pending* are bound and the caches are correct; return how long it took."""
        seconds_taken = await self.wait_until(lambda: self.unbound_names() == set(pending), seconds)
        running = [scheduler.scheduler for scheduler in self.replicas if not scheduler.task.done()]
        for scheduler in running:
            await self.wait_until(lambda scheduler=scheduler: not self._differences(scheduler), seconds)  # type: ignore[misc]
            await self.wait_until(lambda scheduler=scheduler: not scheduler.context.tasks, seconds)  # type: ignore[misc]
            assert find_inconsistencies(scheduler.cache.snapshot()) == []
            assert len(scheduler.queue.in_flight_events) == 0
            assert len(scheduler.context.waiting_pods) == 0
            assert scheduler.context.pre_bind_cancel_functions == {}
        error = self.recorder.violations(self.lease_seconds)
        assert not error, error[:5]
        return seconds_taken

    def _differences(self, scheduler: StandaloneScheduler) -> str:
        """Return how a scheduler's cache differs from the server (invariant I5)."""
        pods = self.server.api.list_objects(PODS)
        expected_nodes = {
            pod["metadata"]["uid"]: pod["spec"]["nodeName"]
            for pod in pods
            if pod["spec"].get("nodeName") and pod["status"].get("phase") not in {"Succeeded", "Failed"}
        }
        known_nodes = {uid: pod.node_name for uid, pod in scheduler.cache.assigned_pods.items()}
        pending = {pod["metadata"]["uid"] for pod in pods if not pod["spec"].get("nodeName")}
        nodes = {node["metadata"]["name"] for node in self.server.api.list_objects(NODES)}
        assumed = [uid for uid, pod in scheduler.cache.assigned_pods.items() if pod.assumed]
        return (
            f"placed {known_nodes} for {expected_nodes}" * (known_nodes != expected_nodes)
            + f"waiting {set(scheduler.cache.pending_pods)} for {pending}"
            * (set(scheduler.cache.pending_pods) != pending)
            + f"nodes {scheduler.cache.snapshot().names} for {nodes}" * (set(scheduler.cache.snapshot().names) != nodes)
            + f"still assumed: {assumed}" * bool(assumed)
        )


def _make_configuration(more_plugins: Sequence[str]) -> Object:
    enabled = [{"name": name} for name in (*_PLUGIN_NAMES, *more_plugins)]
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"disabled": [{"name": "*"}], "enabled": enabled}}}],
    }


def make_node(name: str, **capacity: str) -> Object:
    resources = {"cpu": "4", "memory": "8Gi", "pods": "110", **capacity}
    labels = {"kubernetes.io/hostname": name}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": resources},
    }


def make_pod(name: str, cpu: str = "500m", **spec: Any) -> Object:
    container = {"name": "c", "image": "app:1", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 1, **spec},
    }


def run(
    scenario: Callable[[FaultHarness], Awaitable[None]],
    *,
    seed: int = 0,
    kubelet_timing: KubeletTiming | None = None,
    **options: Any,
) -> None:
    """Run a scenario in virtual time, stop everything that it started and check that no task is left."""

    async def run_scenario() -> None:
        server = FaultyApiServer(
            clock=current_loop(), seed=seed, kubelet_timing=kubelet_timing or KubeletTiming(), **options
        )
        recorder = HistoryRecorder(server.store, current_loop())
        server._app.__class__ = RecordingApp
        server._app.recorder = recorder  # type: ignore[attr-defined]
        harness = FaultHarness(server, recorder, Random(seed))
        tasks_before = asyncio.all_tasks()
        await server.start()
        try:
            await scenario(harness)
        finally:
            for replica in harness.replicas:
                await replica.kill()
                await replica.proxy.stop()
            await server.stop()
        await asyncio.sleep(1)
        remaining = [repr(task) for task in asyncio.all_tasks() - tasks_before if not task.done()]
        assert not remaining, remaining

    threshold = gc.get_threshold()
    try:
        run_virtually(run_scenario())
    finally:
        gc.unfreeze()
        gc.set_threshold(*threshold)
