"""A scheduler in memory with a fake API server that returns its writes as events, and a manual clock."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from random import Random
from typing import Any, cast

import msgspec

from extender.api.codec import from_builtins
from extender.api.kinds.pod import Pod
from extender.api.kinds.pod_group import CompositePodGroup, PodGroup
from extender.app import wiring
from extender.cache.cache import Cache
from extender.cache.group_hierarchy import Group
from extender.cache.pod_info import PodInfo
from extender.client.errors import NotFoundError
from extender.config.feature_gates import FeatureGates
from extender.cycle.pre_enqueue import run_pre_enqueue_plugins
from extender.framework.api_plan import ApiCall
from extender.framework.profiles import Profile
from extender.framework.status import Status
from extender.metrics.scheduler_metrics import make_scheduler_metrics
from extender.queueing.entity_queues import QueueSettings
from extender.queueing.pod_group_queue import make_scheduling_queue
from extender.scheduler.api_writer import PodEvent, do_nothing
from extender.scheduler.context import SchedulerContext
from extender.scheduler.event_handlers import ClusterEventDispatcher
from extender.scheduler.scheduler import Scheduler
from tests.build import make_cluster


class ManualClock:
    """A clock that tests advance."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> float:
        return 1_772_323_200.0 + self.seconds


class FakeApi:
    """Stores pods by key, records calls, and notifies of changes. Raises the errors that a test adds."""

    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}
        self.calls: list[ApiCall] = []
        self.errors: dict[str, list[Exception]] = {}
        self.notify: Callable[[Pod, Pod | None], None] = lambda old, new: None
        self.notifies = True

    async def call(
        self, api_call: ApiCall, check_before_send: Callable[[], None] = do_nothing, _: Any = None, /
    ) -> None:
        await asyncio.sleep(0)
        check_before_send()
        self.calls.append(api_call)
        errors = self.errors.get(api_call.subresource or api_call.verb)
        if errors:
            raise errors.pop(0)
        if api_call.kind != "Pod":
            return
        old = self.pods.get(f"{api_call.namespace}/{api_call.name}")
        if old is None:
            raise NotFoundError("no such pod")
        if api_call.subresource == "binding":
            new = msgspec.structs.replace(
                old, spec=msgspec.structs.replace(old.spec, node_name=api_call.body["target"]["name"])
            )
            self._put(old, new)
        elif api_call.verb == "delete":
            del self.pods[old.key]
            self.notify(old, None)
        elif "nominatedNodeName" in api_call.body.get("status", {}):
            status = msgspec.structs.replace(
                old.status, nominated_node_name=api_call.body["status"]["nominatedNodeName"] or ""
            )
            self._put(old, msgspec.structs.replace(old, status=status))
        elif "nodeAllocatableResourceClaimStatuses" in api_call.body.get("status", {}):
            taken = api_call.body["status"]["nodeAllocatableResourceClaimStatuses"] or ()
            new_status = from_builtins({"status": {"nodeAllocatableResourceClaimStatuses": taken}}, Pod).status
            status = msgspec.structs.replace(
                old.status,
                node_allocatable_resource_claim_statuses=new_status.node_allocatable_resource_claim_statuses,
            )
            self._put(old, msgspec.structs.replace(old, status=status))

    def _put(self, old: Pod, new: Pod) -> None:
        self.pods[new.key] = new
        if self.notifies:
            self.notify(old, new)

    def calls_to(self, operation: str) -> list[ApiCall]:
        """Return the calls to a subresource, or of a verb."""
        return [api_call for api_call in self.calls if operation in (api_call.subresource, api_call.verb)]


class FakeRecorder:
    """Records events."""

    def __init__(self) -> None:
        self.recorded: list[tuple[str, str, str]] = []

    def event(self, pod: Pod, event: PodEvent, _scheduler_name: str = "") -> None:
        self.recorded.append((pod.key, event.reason, event.note))


class FakeLeadership:
    """Leads until a test changes `leads`."""

    leads = True

    def may_act(self) -> bool:
        return self.leads


class RecordingGroupMetrics:
    """Records the results of pod group attempts. Raises *error* in the algorithm metric."""

    def __init__(self, error: Exception | None = None) -> None:
        self.results: list[str] = []
        self._error = error

    def __getattr__(self, name: str) -> Callable[..., None]:
        return do_nothing

    def time_event_handling(self, event: str) -> AbstractContextManager[None]:
        return nullcontext()

    def observe_pod_group_attempt(self, profile: str, result: str, seconds: float) -> None:
        self.results.append(result)

    def observe_pod_group_algorithm(self, seconds: float) -> None:
        if self._error is not None:
            raise self._error


class SchedulerHarness:
    """A scheduler with nodes, and the default profile or *profile*."""

    def __init__(self, *objects: Any, profile: Profile | None = None, gates: FeatureGates | None = None) -> None:
        self.clock, self.api, self.events, self.leader = ManualClock(), FakeApi(), FakeRecorder(), FakeLeadership()
        self.profile = profile or wiring.build_setup(gates=gates).first_profile
        self.cache: Cache = make_cluster(*objects, gates=gates, group_schedulers={"default-scheduler"})
        runtime = wiring.make_runtime()

        def gate(pod_info: PodInfo, first: str) -> Status | None:
            with self.cache.read() as snapshot:
                return run_pre_enqueue_plugins(pod_info, snapshot, self.profile, runtime, first)

        self.queue = make_scheduling_queue(
            {"default-scheduler": self.profile},
            gate,
            QueueSettings(),
        )
        with self.cache.read() as snapshot:
            composite_groups: list[Group] = [*snapshot.objects(CompositePodGroup).values()]
            for group in (*composite_groups, *snapshot.objects(PodGroup).values()):
                self.queue.update_pod_group(None, group, self.clock.monotonic())
        self.context = SchedulerContext(
            cache=self.cache,
            queue=self.queue,
            profiles={"default-scheduler": self.profile},
            runtimes={"default-scheduler": runtime},
            api=cast("Any", self.api),
            recorder=cast("Any", self.events),
            may_act=self.leader.may_act,
            metrics=make_scheduler_metrics(
                {"default-scheduler": self.profile}, gates=gates or FeatureGates(), shows_hidden=True
            ),
            clock=self.clock,
            rng=Random(1),
            wake=lambda: None,
            gates=self.profile.gates if gates is None else gates,
            sleep=self._sleep,
        )
        self.scheduler = Scheduler(self.context)
        self.dispatcher = ClusterEventDispatcher(self.cache, self.scheduler, ["default-scheduler"], gates)
        self.api.notify = self._deliver
        for pod in self.cache.assigned_pods.values():
            on_node = msgspec.structs.replace(pod.pod.spec, node_name=pod.node_name)
            self.api.pods[pod.key] = msgspec.structs.replace(pod.pod, spec=on_node)

    async def _sleep(self, seconds: float) -> None:
        self.clock.seconds += seconds
        await asyncio.sleep(0)

    def _deliver(self, old: Pod, new: Pod | None) -> None:
        if new is None:
            self.dispatcher.on_delete(old)
        else:
            self.dispatcher.on_update(old, new)

    def create(self, *pods: Pod) -> None:
        """Create pods as users do."""
        for pod in pods:
            self.api.pods[pod.key] = pod
            self.dispatcher.on_add(pod)

    def attempt(self) -> None:
        """Run one attempt and all tasks that it starts."""
        asyncio.run(self._attempt())

    async def _attempt(self) -> None:
        await self.scheduler.schedule_one()
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0)

    def run(self, turns: int = 1) -> None:
        """Run the scheduler until it is idle; *turns* times, two seconds apart."""
        asyncio.run(self._run(turns))

    async def _run(self, turns: int) -> None:
        for turn in range(turns):
            if turn:
                self.clock.seconds += 2
                self.scheduler.run_periodic_tasks()
            for _ in range(200):
                stepped = self.context.may_act() and await self.scheduler.schedule_one()
                await asyncio.sleep(0)
                if not stepped and len(asyncio.all_tasks()) == 1:
                    break

    def queue_of(self, pod_name: str) -> str:
        """Return the queue of a pod without a group in the namespace `default`; empty if it is in none."""
        queues = self.queue._queues.list_by_queue()
        return next(
            (name for name, entities in queues.items() if f"default/{pod_name}" in {e.key for e in entities}), ""
        )

    def node_of(self, pod: Pod) -> str:
        """Return the node of *pod* on the server; empty if it has none."""
        return self.api.pods[pod.key].spec.node_name


def get_metric(harness: SchedulerHarness, line: str) -> str:
    """Return the value of the metric *line*, a name with labels; empty if it is not exposed."""
    text = b"".join(harness.context.metrics.render()).decode()
    return next((row.removeprefix(f"{line} ") for row in text.splitlines() if row.startswith(f"{line} ")), "")
