"""A standalone scheduler: transports, informers, queue, scheduling loop and leader election in one event loop."""

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Callable, Coroutine, Sequence
from random import Random
from typing import Any
from uuid import uuid4

from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod
from extender.app.informers import Informers
from extender.app.node_freshness import NodeFreshness
from extender.app.wiring import SchedulerSetup, make_runtime
from extender.basics import gc_tuning
from extender.basics.clock import Clock
from extender.cache.cache import Cache
from extender.cache.pod_info import PodInfo
from extender.cache.raw_objects import RawObjectCache
from extender.client.connections import RecoverySignal
from extender.client.credentials import Credentials
from extender.client.event_broadcaster import EventBroadcaster
from extender.client.events import EventSeriesCache, make_leader_event
from extender.client.extender import build_extenders
from extender.client.kubeconfig import CredentialSource
from extender.client.leader_election import Election
from extender.client.leader_elector import LeaderElector
from extender.client.transport import USER_AGENT, Transport
from extender.client.writer import Writer
from extender.cycle.node_sampling import NodeSampler
from extender.cycle.pre_enqueue import run_pre_enqueue_plugins
from extender.framework.status import Status
from extender.metrics.scheduler_metrics import SchedulerMetrics
from extender.queueing.entity_queues import QueueSettings
from extender.queueing.pod_group_queue import make_scheduling_queue
from extender.queueing.scheduling_queue import SchedulingQueue
from extender.scheduler.api_writer import ApiWriter, EventRecorder
from extender.scheduler.context import SchedulerContext
from extender.scheduler.event_handlers import ClusterEventDispatcher
from extender.scheduler.scheduler import Scheduler

log = logging.getLogger("extender")

_DRAIN_SECONDS = 10.0
_LEADER_EVENT_DRAIN_SECONDS = 1.0


class StandaloneScheduler:
    """A scheduler without its HTTP port.

    Attributes:
        identity: the process's identity in leader election.
        elector: the leader elector; None without leader election.
        transport: the transport for watches and bindings.
    """

    def __init__(
        self,
        setup: SchedulerSetup,
        credential_source: CredentialSource,
        clock: Clock,
        metrics: SchedulerMetrics,
        *,
        max_in_unschedulable_pods_seconds: float,
        rng: Random | None = None,
    ) -> None:
        """Create all parts; no connection is opened yet.

        *rng* breaks ties and spreads retries. An unschedulable pod is retried after
        *max_in_unschedulable_pods_seconds*.

        Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.flushUnschedulablePodsLeftover (1.36).
        """
        configuration = setup.configuration
        self._clock, self.setup = clock, setup
        self.credentials = Credentials(credential_source, clock)
        connection = configuration.client_connection
        recovery, user_agent = RecoverySignal(), f"{USER_AGENT} scheduler"
        self.transport, self._election_transport, self._event_transport = (
            Transport(self.credentials, connection, user_agent, observe=metrics.observe_request, recovery=recovery)
            for _ in range(3)
        )
        self._rng = rng or Random()  # noqa: S311  for ties and jitter, not for secrets
        self.identity = f"{socket.gethostname()}_{uuid4()}"
        self.elector = self._make_elector()
        self._may_act: Callable[[], bool] = self.elector.may_act if self.elector is not None else lambda: True
        self._wake_event = asyncio.Event()
        self.transport.pending.on_capacity = self._wake_event.set
        self._api_writer = ApiWriter(Writer(self.transport), self._may_act, release=setup.gates.release)
        self.cache = Cache(setup.gates, frozenset(setup.profiles))
        self.runtimes = {name: make_runtime(metrics.make_profile_observer(name)) for name in setup.profiles}
        self.queue = self._make_queue(metrics, max_in_unschedulable_pods_seconds)
        self.broadcasters = {name: self._make_broadcaster(name) for name in setup.profiles}
        self.context = self._make_context(metrics)
        self.scheduler = Scheduler(self.context)
        dispatcher = ClusterEventDispatcher(self.cache, self.scheduler, list(setup.profiles), setup.gates)
        self.informers = Informers(setup, self.transport, dispatcher, clock, self.context.raw_objects)

    def _make_queue(self, metrics: SchedulerMetrics, max_in_unschedulable_pods_seconds: float) -> SchedulingQueue:
        setup, configuration = self.setup, self.setup.configuration
        settings = QueueSettings(
            float(configuration.pod_initial_backoff_seconds),
            float(configuration.pod_max_backoff_seconds),
            max_in_unschedulable_pods_seconds,
        )
        return make_scheduling_queue(
            setup.profiles,
            self._run_pre_enqueue,
            settings,
            on_hint=metrics.observe_queueing_hint,
            on_pre_hint=metrics.count_pre_queueing_hint,
            on_move=metrics.count_queue_move,
        )

    def _make_context(self, metrics: SchedulerMetrics) -> SchedulerContext:
        extender_configs = self.setup.configuration.extenders
        raw_objects = RawObjectCache(extender_configs)
        return SchedulerContext(
            cache=self.cache,
            queue=self.queue,
            profiles=self.setup.profiles,
            runtimes=self.runtimes,
            api=self._api_writer,
            recorder=EventRecorder(self.broadcasters, self.setup.gates.release),
            may_act=self._may_act,
            metrics=metrics,
            clock=self._clock,
            rng=self._rng,
            wake=self._wake_event.set,
            has_api_capacity=self.transport.pending.has_capacity,
            gates=self.setup.gates,
            node_sampler=NodeSampler(
                has_extenders=any(config.filter_verb or config.prioritize_verb for config in extender_configs)
            ),
            extenders=build_extenders(extender_configs, raw_objects.get),
            raw_objects=raw_objects,
            check_node_freshness=NodeFreshness(
                lambda: self.informers.reflectors[Node], Writer(self.transport), self.cache, self._clock
            ).find_problem,
        )

    def _make_elector(self) -> LeaderElector | None:
        settings = self.setup.configuration.leader_election
        if not settings.leader_elect:
            return None
        election = Election(settings, self.identity)
        elector = LeaderElector(election, Writer(self._election_transport), self._clock, self._rng.random)
        elector.on_new_leader = lambda identity: log.info("new leader elected", extra={"identity": identity})
        return elector

    def _make_broadcaster(self, scheduler_name: str) -> EventBroadcaster:
        series = EventSeriesCache(scheduler_name, f"{scheduler_name}-{self.identity.partition('_')[0]}")
        return EventBroadcaster(
            Writer(self._event_transport),
            series,
            self._clock,
            self._rng.random,
            has_bindings_in_flight=self._has_bindings_in_flight,
        )

    def _has_bindings_in_flight(self) -> bool:
        """Return whether pods are being scheduled or bound; events are then deferred."""
        return self.queue.can_pop or self._api_writer.in_flight_call_count > 0

    def _run_pre_enqueue(self, pod_info: PodInfo, first_plugin: str) -> Status | None:
        scheduler_name = pod_info.spec.scheduler_name
        profile, runtime = self.setup.profiles[scheduler_name], self.runtimes[scheduler_name]
        with self.cache.read() as snapshot:
            return run_pre_enqueue_plugins(pod_info, snapshot, profile, runtime, first_plugin)

    def requeue_pod(self, pod: Pod) -> None:
        """Return *pod* to the queue after a failed binding of the verb bind, if a profile schedules it."""
        if pod.spec.scheduler_name not in self.setup.profiles:
            return
        queue, pod_info, now = self.queue, self.cache.make_pod_info(pod), self._clock.monotonic()
        if queue.get_pod(pod_info.key) is None and pod_info.uid not in queue.in_flight_events:
            queue.add(pod_info, now)  # an update would lose a member whose group does not exist now
        else:
            queue.update(pod_info, (), now)
        self._wake_event.set()

    async def run(self, stopping: asyncio.Event) -> int:
        """Schedule until *stopping* is set (exit status 0), or until the lease is lost (exit status 1).

        Raises:
            ApiError: no credentials can be used.

        Source: cmd/kube-scheduler/app/server.go, Run (1.36).
        """
        await self.credentials.get_current_config()
        async with contextlib.AsyncExitStack() as stack:
            for transport in (self.transport, self._election_transport, self._event_transport):
                stack.push_async_callback(transport.close)
            for extender in self.context.extenders:
                stack.push_async_callback(extender.close)
            tasks = [
                asyncio.create_task(coroutine)
                for coroutine in (
                    self.informers.run(),
                    *(broadcaster.run() for broadcaster in self.broadcasters.values()),
                )
            ]
            stack.push_async_callback(_cancel, tasks)
            return await self._run_as_leader(stopping, tasks)

    async def _run_as_leader(self, stopping: asyncio.Event, background_tasks: Sequence[asyncio.Task[None]]) -> int:
        """Wait for cache sync and for the lease, then schedule; raise the exception of a failed background task."""
        if not await _wait_unless_stopped(stopping, self.informers.wait_for_sync(), background_tasks):
            return 0
        gc_tuning.freeze_heap()
        log.info("the cache of the scheduler is synced", extra={"nodes": len(self.cache.names), "pid": os.getpid()})
        if self.elector is not None:
            if not await _wait_unless_stopped(stopping, self.elector.acquire(), background_tasks):
                return 0
            self._record_leader_event(self.elector, "became leader")
        stop_scheduling = asyncio.Event()
        renewal = asyncio.create_task(self.elector.renew()) if self.elector is not None else None
        scheduling_loop = asyncio.create_task(self.scheduler.run(self._wake_event, stop_scheduling))
        tasks = [scheduling_loop, asyncio.create_task(stopping.wait()), *([] if renewal is None else [renewal])]
        try:
            await asyncio.wait((*tasks, *background_tasks), return_when=asyncio.FIRST_COMPLETED)
            stop_scheduling.set()
            self._wake_event.set()
            if renewal is not None and renewal.done():
                log.error("Leaderelection lost", extra={"why": renewal.result()})
                return 1
            _raise_task_error(background_tasks)
            await self._drain(scheduling_loop)
        finally:
            await _cancel([*tasks, *self.context.tasks, *self.context.status_retries])
        if self.elector is not None and await self.elector.release():
            await self._record_leader_event(self.elector, "stopped leading").drain(_LEADER_EVENT_DRAIN_SECONDS)
        log.info("Requested to terminate, exiting")
        return 0

    def _record_leader_event(self, elector: LeaderElector, action: str) -> EventBroadcaster:
        broadcaster = next(iter(self.broadcasters.values()))
        broadcaster.record(make_leader_event(elector.election.lease_reference, self.identity, action))
        return broadcaster

    async def _drain(self, scheduling_loop: asyncio.Task[None]) -> None:
        """Wait until *scheduling_loop* ends, all writes are made and all events are written, for a limited time.

        The loop may be in a scheduling cycle that waits for an HTTP extender or, for evictions, for the API server.
        Bindings that wait for Permit or for a volume end here. They may wait for minutes, and the lease is not released
        meanwhile. The next leader schedules their pods again.
        """
        deadline = self._clock.monotonic() + _DRAIN_SECONDS
        await asyncio.wait({scheduling_loop}, timeout=_DRAIN_SECONDS)
        if scheduling_loop.done():
            scheduling_loop.result()
        while self._is_writing() and self._clock.monotonic() < deadline:
            await asyncio.sleep(0.02)
        await _cancel([*self.context.tasks])
        for broadcaster in self.broadcasters.values():
            await broadcaster.drain(max(0.0, deadline - self._clock.monotonic()))

    def _is_writing(self) -> bool:
        """Return whether a task makes an API call or is about to make one."""
        waiting_count = len(self.context.waiting_pods) + len(self.context.pre_bind_cancel_functions)
        return self._api_writer.in_flight_call_count > 0 or len(self.context.tasks) > waiting_count


def _raise_task_error(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Raise the exception of a failed background task; scheduling requires informers and event recorders."""
    for task in tasks:
        if task.done():
            task.result()


async def _wait_unless_stopped(
    stopping: asyncio.Event, awaitable: Coroutine[Any, Any, None], background_tasks: Sequence[asyncio.Task[None]]
) -> bool:
    """Wait for *awaitable*; return False if *stopping* is set first."""
    future, stop_task = asyncio.ensure_future(awaitable), asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait((future, stop_task, *background_tasks), return_when=asyncio.FIRST_COMPLETED)
        _raise_task_error(background_tasks)
        if future.done():
            future.result()
        return future.done()
    finally:
        await _cancel([future, stop_task])


async def _cancel(tasks: Sequence[asyncio.Future[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
