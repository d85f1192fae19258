"""Execute a preemption: set the victims' conditions, and delete the victims or cancel their bindings.

Victims are evicted in the background, or in the scheduling cycle without the gate SchedulerAsyncPreemption.

Source: pkg/scheduler/framework/preemption/executor.go, Executor (1.36).
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from extender.api.kinds.pod import Pod
from extender.api.kinds.pod_group import PodGroup
from extender.cache.group_hierarchy import Group
from extender.cache.pod_info import AssignedPodInfo
from extender.client.errors import ApiError, NotFoundError
from extender.framework.api_plan import ApiPlan
from extender.framework.extension_points import PostFilterResult
from extender.framework.status import SUCCESS, error_status
from extender.plugins.default_preemption import DefaultPreemption
from extender.preemption.plan import Candidate, GroupPreemptionPlan, PreemptionPlan
from extender.scheduler import log_messages
from extender.scheduler.api_writer import PodEvent
from extender.scheduler.context import SchedulerContext, log, run_in_background, start_task
from extender.scheduler.failure_handler import find_waiting_pod
from extender.scheduler.status_patches import make_delete_call, make_disruption_target_patch, make_nomination_patch
from extender.scheduler.status_writer import call_with_retries, write_pod_status

_WHOLE_CLUSTER = "cluster"
"""The node name in messages about a preemption in the whole cluster.

Source: pkg/scheduler/framework/preemption/executor.go, Executor.actuatePodGroupPreemption (1.36).
"""

_RETRY_SECONDS = 10.0
"""Seconds until a pod is retried after a failed call of PostFilter.

kube-scheduler retries it after an event, or after five minutes.
"""

_MAX_WAIT_SECONDS, _POLL_SECONDS = 10.0, 0.01
"""Longest wait for the end of cancelled bindings, and for the watch to show deletions; seconds between checks.

PreBind may take longer.
"""

EvictionPlan = Candidate | GroupPreemptionPlan
"""The victims to evict, for a pod or for a group."""


@dataclass(frozen=True, slots=True)
class Preemptor:
    """The pod or pod group for which pods are evicted.

    Attributes:
        object: the pod, or the group, which may be a composite pod group.
        pods: the pod, or the group's pending members; at least one.
        node_name: the node for which the pod preempts; events name it also if a victim is on another node.

    Source: pkg/scheduler/framework/preemption/executor.go, NewExecutor, Executor.actuatePodGroupPreemption (1.36).
    """

    object: Pod | Group
    pods: tuple[Pod, ...]
    node_name: str = _WHOLE_CLUSTER

    @property
    def uid(self) -> str:
        """Return the uid of the pod or the group."""
        return self.object.metadata.uid

    @property
    def kind(self) -> str:
        """Return the kind for messages."""
        if isinstance(self.object, Pod):
            return "pod"
        return "podgroup" if isinstance(self.object, PodGroup) else "compositepodgroup"

    @property
    def scheduler_name(self) -> str:
        """Return the scheduler name for the victims' events."""
        return self.pods[0].spec.scheduler_name

    def __str__(self) -> str:
        return f"{self.kind} {self.object.metadata.namespace}/{self.object.metadata.name}"


async def preempt_in_cycle(context: SchedulerContext, preemptor: Pod, result: PostFilterResult) -> PostFilterResult:
    """Evict the victims of *result* now. Return it without its plan, or an error if a victim cannot be evicted.

    A result without a plan to preempt is returned as it is.

    Source: pkg/scheduler/framework/preemption/executor.go, Executor.prepareCandidate (1.36).
    """
    if not isinstance(result.plan, PreemptionPlan):
        return result
    candidate = result.plan.best_candidate
    if error := await evict_now(context, Preemptor(preemptor, (preemptor,), candidate.node_name), candidate):
        return PostFilterResult(error_status(f"preemption: {error}"))
    _clear_lower_priority_nominations(context, preemptor, candidate.node_name)
    return replace(result, plan=None)


def execute_post_filter_plans(context: SchedulerContext, pod: Pod, plans: Iterable[object]) -> None:
    """Execute the plans that PostFilter plugins returned for *pod*, in the background.

    The victims of the best candidate of a `PreemptionPlan` are evicted. The calls of an `ApiPlan`, such as the
    deallocation of a claim, are made in order. If a call fails, the pod is activated after `_RETRY_SECONDS`.

    Source: pkg/scheduler/framework/preemption/executor.go, Executor.prepareCandidateAsync;
    pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.PostFilter (1.36).
    """
    for plan in plans:
        if isinstance(plan, PreemptionPlan):
            candidate = plan.best_candidate
            if any(not victim.terminating for victim in candidate.victims):
                _clear_lower_priority_nominations(context, pod, candidate.node_name)
            evict_in_background(context, Preemptor(pod, (pod,), candidate.node_name), candidate)
        elif isinstance(plan, ApiPlan):
            run_in_background(context, _make_calls(context, pod, plan))


async def _make_calls(context: SchedulerContext, pod: Pod, plan: ApiPlan) -> None:
    try:
        for api_call in plan.calls:
            await context.api.call(api_call)
    except Exception as error:  # noqa: BLE001  after an invalid call of a plugin, too, the pod must be retried
        log.warning("PostFilter of pod %s failed: %s", pod.key, error)
        asyncio.get_running_loop().call_later(_RETRY_SECONDS, _activate_pods, context, (pod,))


def _activate_pods(context: SchedulerContext, pods: Iterable[Pod]) -> None:
    """Move *pods* to activeQ if they still wait for a node or for a deferred resize."""
    waiting_pods = [waiting_pod for pod in pods if (waiting_pod := find_waiting_pod(context, pod)) is not None]
    context.queue.activate(waiting_pods, context.clock.monotonic())
    context.wake()


async def _activate_after_backoff(context: SchedulerContext, pods: Sequence[Pod]) -> None:
    """Activate those of *pods* that are not attempted again before their backoff ends.

    kube-scheduler activates them at once. As long as the API server rejects an eviction, it repeats it without a pause.
    """
    attempts = _count_attempts(context, pods)
    now = context.clock.monotonic()
    await context.sleep(max((context.queue.get_backoff_seconds(key, now) for key in attempts), default=0))
    new_attempts = _count_attempts(context, pods)
    _activate_pods(context, [pod for pod in pods if new_attempts.get(pod.key, -1) == attempts.get(pod.key)])


def _count_attempts(context: SchedulerContext, pods: Iterable[Pod]) -> dict[str, int]:
    """Return the number of attempts of each queued pod, or of its group, by the key of the pod."""
    entities = ((pod.key, context.queue.find_entity(pod.key)) for pod in pods)
    return {key: entity.attempts for key, entity in entities if entity is not None}


async def evict_now(context: SchedulerContext, preemptor: Preemptor, plan: EvictionPlan) -> str:
    """Evict all victims of *plan* concurrently, and return the first error; empty if there is none.

    Source: pkg/scheduler/framework/preemption/executor.go, Executor.actuatePodGroupPreemption (1.36).
    """
    _observe_preemption(context, preemptor, plan)
    start_time, message = context.clock.monotonic(), ""
    try:
        victims = [
            victim
            for victim in plan.victims
            if not victim.terminating and not _cancel_binding(context, preemptor, victim)
        ]
        await _evict_concurrently(context, preemptor, victims)
    except ApiError as error:
        message = str(error)
        log.warning("preemption for %s failed: %s", preemptor, message)
    seconds = context.clock.monotonic() - start_time
    context.metrics.observe_evictions(preemptor.kind, "error" if message else "success", seconds)
    return message


def evict_in_background(context: SchedulerContext, preemptor: Preemptor, plan: EvictionPlan) -> None:
    """Evict the victims of *plan* in the background. The nominations for their nodes stay.

    Source: pkg/scheduler/framework/preemption/executor.go, Executor.prepareCandidateAsync,
    Executor.actuatePodGroupPreemption (1.36).
    """
    victims = [victim for victim in plan.victims if not victim.terminating]
    if victims or context.profiles[preemptor.scheduler_name].release.observes_terminating_victims:
        _observe_preemption(context, preemptor, plan)
    if not victims:
        return
    cancelled_victims = [victim for victim in victims[:-1] if _cancel_binding(context, preemptor, victim)]
    if len(cancelled_victims) == len(victims) - 1 and _cancel_binding(context, preemptor, victims[-1]):
        cancelled_victims.append(victims[-1])  # it waits for no deletion
    _get_last_victims(context, preemptor)[preemptor.uid] = None
    run_in_background(context, _evict_all(context, preemptor, victims, cancelled_victims))


def _observe_preemption(context: SchedulerContext, preemptor: Preemptor, plan: EvictionPlan) -> None:
    group_count = plan.num_group_disruptions if isinstance(plan, GroupPreemptionPlan) else 0
    context.metrics.observe_preemption(preemptor.kind, len(plan.victims), group_count, plan.num_pdb_violations)


def _get_last_victims(context: SchedulerContext, preemptor: Preemptor) -> dict[str, AssignedPodInfo | None]:
    """Return the last victims by preemptor uid. The plugin gates a preemptor until its last victim is being deleted."""
    plugin = context.profiles[preemptor.scheduler_name].plugins.get("DefaultPreemption")
    if not isinstance(plugin, DefaultPreemption):
        return {}
    return plugin.last_victims if isinstance(preemptor.object, Pod) else plugin.last_victims_of_groups


def _clear_lower_priority_nominations(context: SchedulerContext, preemptor: Pod, node: str) -> None:
    """Clear the nominations of pods of lower priority for *node*. A pod in flight gets a new one from its attempt.

    Source: pkg/scheduler/framework/preemption/executor.go, clearNominatedNodeName (1.36).
    """
    priority = preemptor.spec.priority or 0
    with context.cache.read() as snapshot:
        nominated_pods = snapshot.nominated_pods(node)
    for pod_info in nominated_pods:
        if pod_info.priority < priority and pod_info.uid != preemptor.metadata.uid:
            context.cache.nominate(pod_info.pod, "")
            queued_pod_info = context.queue.get_pod(pod_info.key)
            if queued_pod_info is not None:
                patch = make_nomination_patch(pod_info.pod, "", queued_pod_info.sent_status)
                if patch is not None:
                    write_pod_status(context, queued_pod_info, patch)


def _cancel_binding(context: SchedulerContext, preemptor: Preemptor, victim: AssignedPodInfo) -> bool:
    """Cancel the binding of *victim*. Return False if the pod may be bound already, so that it must be deleted instead.

    Source: pkg/scheduler/framework/preemption/executor.go, NewExecutor (1.36).
    """
    waiting_pod = context.waiting_pods.get(victim.uid)
    cancel = context.pre_bind_cancel_functions.get(victim.uid)
    if waiting_pod is not None:
        if not waiting_pod.preempt("DefaultPreemption", "preempted") and waiting_pod.status == SUCCESS:
            return False
        context.wake()
    elif cancel is not None:
        cancel("preempted by DefaultPreemption")
    else:
        return False
    log_messages.log_cancelled(
        preemptor.object, preemptor.kind, victim.pod, preemptor.node_name, was_waiting=waiting_pod is not None
    )
    _record_preempted_event(context, preemptor, victim, in_memory=True)
    return True


def _record_preempted_event(
    context: SchedulerContext, preemptor: Preemptor, victim: AssignedPodInfo, *, in_memory: bool
) -> None:
    """Record the Preempted event of *victim*. *in_memory* is true if the victim was assumed but not bound.

    Source: pkg/scheduler/framework/preemption/executor.go, NewExecutor (1.36).
    """
    note = f"Preempted by {preemptor.kind} {preemptor.uid} on node {preemptor.node_name}"
    if in_memory:
        note += " (in kube-scheduler memory)."
    event = PodEvent("Preempted", "Preempting", note, related=preemptor.object)
    context.recorder.event(victim.pod, event, preemptor.scheduler_name)


async def _evict_all(
    context: SchedulerContext,
    preemptor: Preemptor,
    victims: Sequence[AssignedPodInfo],
    cancelled_victims: Sequence[AssignedPodInfo],
) -> None:
    """Delete all victims but the last one concurrently, then the last one. Its deletion requeues the preemptor.

    The *cancelled_victims* are preempted in memory, and so is the last victim if it is not bound yet. If the last one
    is, the preemptor is activated since 1.37, because no deletion of the last victim requeues it. If another eviction
    fails, the last victim stays.

    Source: pkg/scheduler/framework/preemption/executor.go, Executor.prepareCandidateAsync (1.36, 1.37).
    """
    start_time, result = context.clock.monotonic(), "error"
    last_victims, last_victim = _get_last_victims(context, preemptor), victims[-1]
    deletes_last_victim = last_victim not in cancelled_victims
    victims = [victim for victim in victims[:-1] if victim not in cancelled_victims]
    try:
        await _evict_concurrently(context, preemptor, victims)
        if deletes_last_victim and _cancel_binding(context, preemptor, last_victim):
            deletes_last_victim, cancelled_victims = False, (*cancelled_victims, last_victim)
        if deletes_last_victim:
            victims.append(last_victim)
            last_victims[preemptor.uid] = last_victim
            await _evict(context, preemptor, last_victim)
        result = "success"
    except ApiError as error:
        log.warning("preemption for %s failed: %s", preemptor, error)
    except Exception:  # noqa: BLE001  logged with its traceback; the preemptor must not stay gated
        log.exception("preemption for %s failed", preemptor)
    seconds = context.clock.monotonic() - start_time
    await _wait_for_cancelled_bindings(context, cancelled_victims)
    if result == "success":
        await _wait_for_watched_deletions(context, victims)
    last_victims.pop(preemptor.uid, None)
    release = context.profiles[preemptor.scheduler_name].release
    if release.measures_evictions:
        context.metrics.observe_evictions(preemptor.kind, result, seconds)
    else:
        context.metrics.observe_evictions(preemptor.kind, "success", 0.0)
    if result == "error":
        start_task(context.status_retries, _activate_after_backoff(context, preemptor.pods))
    elif release.activates_without_deletion and not deletes_last_victim:
        _activate_pods(context, preemptor.pods)
    else:
        _retry_gated_pods(context, preemptor.pods)


def _retry_gated_pods(context: SchedulerContext, pods: Iterable[Pod]) -> None:
    """Retry *pods*. kube-scheduler does not, so it loses an event that occurred while the preemptor was gated."""
    for pod in pods:
        context.queue.retry_gated_pod(pod.key, context.clock.monotonic())
    context.wake()


async def _wait_for_cancelled_bindings(context: SchedulerContext, victims: Sequence[AssignedPodInfo]) -> None:
    """Wait until *victims* are off their nodes. Until then, an attempt of the preemptor would fail again."""
    assigned_pods = context.cache.assigned_pods
    await _wait_while_any(context, victims, lambda victim: assigned_pods.get(victim.uid) is victim)


async def _wait_for_watched_deletions(context: SchedulerContext, deleted_victims: Sequence[AssignedPodInfo]) -> None:
    """Wait until the watch has shown the deletions of *deleted_victims*.

    On a busy machine the watch may lag behind by hundreds of victims. An attempt would then evict them again.
    """
    assigned_pods = context.cache.assigned_pods

    def is_deletion_missing(deleted_victim: AssignedPodInfo) -> bool:
        victim = assigned_pods.get(deleted_victim.uid)
        return victim is not None and not victim.terminating

    await _wait_while_any(context, deleted_victims, is_deletion_missing)


async def _wait_while_any(
    context: SchedulerContext, victims: Sequence[AssignedPodInfo], condition: Callable[[AssignedPodInfo], bool]
) -> None:
    """Wait while *condition* is true for one of *victims*, for `_MAX_WAIT_SECONDS` at most."""
    deadline = context.clock.monotonic() + _MAX_WAIT_SECONDS
    while any(map(condition, victims)) and context.clock.monotonic() < deadline:
        await context.sleep(_POLL_SECONDS)


async def _evict_concurrently(
    context: SchedulerContext, preemptor: Preemptor, victims: Iterable[AssignedPodInfo]
) -> None:
    """Evict *victims*. The first failure cancels the other evictions, which have ended when it is raised.

    Raises:
        ApiError: the first failure.

    Source: pkg/scheduler/framework/preemption/executor.go, Executor.prepareCandidateAsync;
    pkg/scheduler/framework/parallelize/result_channel.go, ResultChannel.SendWithCancel (1.37).
    """
    try:
        async with asyncio.TaskGroup() as tasks:
            for victim in victims:
                tasks.create_task(_evict(context, preemptor, victim))
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None


async def _evict(context: SchedulerContext, preemptor: Preemptor, victim: AssignedPodInfo) -> None:
    if not context.may_act():
        raise ApiError("the lease is lost")
    patch = make_disruption_target_patch(victim.pod, preemptor.scheduler_name, preemptor.kind, context.clock.now())
    try:
        if patch is not None:
            await call_with_retries(context, patch)
        await context.api.call(make_delete_call(victim.pod))
    except NotFoundError:
        return
    log_messages.log_preempted(preemptor.object, victim.pod, preemptor.node_name)
    _record_preempted_event(context, preemptor, victim, in_memory=False)
