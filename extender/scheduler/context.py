"""The state that the modules of the scheduler share."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from extender.basics.clock import Clock
from extender.cache.cache import Cache
from extender.cache.raw_objects import RawObjectCache
from extender.client.extender import HttpExtender
from extender.config.feature_gates import FeatureGates
from extender.cycle.node_sampling import NodeSampler
from extender.cycle.plugin_runtime import PluginRuntime
from extender.framework.api_plan import ApiCall
from extender.framework.profiles import Profile
from extender.framework.waiting_pods import WaitingPods
from extender.metrics.scheduler_metrics import SchedulerMetrics
from extender.queueing.scheduling_queue import SchedulingQueue
from extender.scheduler.api_writer import ApiWriter, EventRecorder
from extender.scheduler.attempt_history import AttemptHistory
from extender.scheduler.binder import skip_freshness_check

log = logging.getLogger("extender.scheduler")


@dataclass(slots=True)
class StatusWrite:
    """The unfinished write of a pod's status.

    Attributes:
        call: the patch with the newest status.
        retry_delay: the delay before the next retry, in seconds.
        is_running: whether the call is being made; otherwise a retry waits.
    """

    call: ApiCall
    retry_delay: float
    is_running: bool = False


@dataclass(slots=True)
class SchedulerContext:
    """The shared state of one scheduler. Only the event loop's thread uses it.

    Attributes:
        cache: the cluster, with assumed pods.
        queue: the scheduling queue.
        profiles: the profiles by scheduler name.
        runtimes: the plugin runtimes by scheduler name.
        api: the caller of the API server.
        recorder: the event recorder.
        may_act: the function that returns whether this process may bind and evict now: without leader election always,
            else while it leads. The call is cheap, because it precedes each write.
        metrics: the metrics of the process.
        clock: the source of the current time.
        rng: the random generator for ties and jitter.
        wake: the function that wakes the scheduling loop. It is called when the queue may have a pod, or a waiting pod
            may have been allowed or rejected.
        gates: the feature gates. With NominatedNodeNameForExpectation, pods are nominated before binding. Without it,
            PreBindPreFlight does not run, so that all PreBind plugins run, one after another. With
            SchedulerAsyncPreemption, victims are evicted in the background. Without it, the scheduling cycle waits.
        has_api_capacity: the function that returns whether the API server is ready for more requests. While it returns
            false, no pod is scheduled; `wake` is called when it returns true again.
        sleep: the function that waits for a number of seconds.
        node_sampler: the node sampler, with the start index of searches that stop early.
        extenders: the HTTP extenders in configured order.
        raw_objects: the raw JSON of nodes and pods for extenders.
        waiting_pods: the pods that wait on Permit.
        permit_decided_events: for each waiting pod, the event that is set when Permit is decided, by pod uid.
        pre_bind_cancel_functions: for each pod in PreBind, the function that cancels its binding, by pod uid.
        tasks: the bindings, evictions and status writes in progress; they finish before the process ends.
        status_writes: the unfinished writes of conditions, by pod uid.
        status_retries: the waits before the retries of these writes and of failed evictions; they are cancelled when
            the process ends.
        check_node_freshness: the function that returns why the cached node may be out of date; empty if it is current.
            No pod is bound to a node that may be out of date.
        attempt_history: the last attempts, for pages.

    Source: pkg/scheduler/schedule_one.go, Scheduler.bindingCycle (1.36).
    """

    cache: Cache
    queue: SchedulingQueue
    profiles: Mapping[str, Profile]
    runtimes: Mapping[str, PluginRuntime]
    api: ApiWriter
    recorder: EventRecorder
    may_act: Callable[[], bool]
    metrics: SchedulerMetrics
    clock: Clock
    rng: Random
    wake: Callable[[], None]
    gates: FeatureGates = field(default_factory=FeatureGates)
    has_api_capacity: Callable[[], bool] = lambda: True
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    node_sampler: NodeSampler = field(default_factory=NodeSampler)
    extenders: Sequence[HttpExtender] = ()
    raw_objects: RawObjectCache = field(default_factory=RawObjectCache)
    waiting_pods: WaitingPods = field(default_factory=WaitingPods)
    permit_decided_events: dict[str, asyncio.Event] = field(default_factory=dict)
    pre_bind_cancel_functions: dict[str, Callable[[str], None]] = field(default_factory=dict)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    status_writes: dict[str, StatusWrite] = field(default_factory=dict)
    status_retries: set[asyncio.Task[None]] = field(default_factory=set)
    check_node_freshness: Callable[[str], Awaitable[str]] = skip_freshness_check
    attempt_history: AttemptHistory = field(default_factory=AttemptHistory)


def run_in_background(context: SchedulerContext, coroutine: Coroutine[Any, Any, Any]) -> None:
    """Start *coroutine* as a task of the context."""
    start_task(context.tasks, coroutine)


def start_task(tasks: set[asyncio.Task[None]], coroutine: Coroutine[Any, Any, Any]) -> None:
    """Start *coroutine* as a task, which is in *tasks* until it ends."""
    task = asyncio.get_running_loop().create_task(coroutine)
    tasks.add(task)
    task.add_done_callback(tasks.discard)
