"""Execute a preemption: set the victims' conditions, delete them or cancel their bindings.

Source: pkg/scheduler/framework/preemption/executor.go, Executor (1.36).
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from extender.api.kinds.pod import Pod
from extender.api.kinds.pod_group import PodGroup
from extender.cache.pod_info import AssignedPodInfo
from extender.client.errors import ApiError, NotFoundError
from extender.plugins.default_preemption import DefaultPreemption
from extender.preemption.plan import Candidate, GroupPreemptionPlan
from extender.scheduler.context import SchedulerContext, log
from extender.scheduler.failure_handler import run_in_background, write_status
from extender.scheduler.status_patches import make_delete_call, make_disruption_target_patch, make_nomination_patch

_WHOLE_CLUSTER = "cluster"
"""The node name in messages about a preemption in the whole cluster.

Source: pkg/scheduler/framework/preemption/executor.go, Executor.actuatePodGroupPreemption (1.36).
"""


@dataclass(frozen=True, slots=True)
class Preemptor:
    """The pod or pod group for which pods are evicted.

    Attributes:
        object: the pod or the group.
        pods: the pod, or the group's pending members; at least one.

    Source: pkg/scheduler/framework/preemption/executor.go, Executor.actuatePodGroupPreemption (1.36).
    """

    object: Pod | PodGroup
    pods: tuple[Pod, ...]

    @property
    def uid(self) -> str:
        """Return the uid of the pod or the group."""
        return self.object.metadata.uid

    @property
    def kind(self) -> str:
        """Return the kind for messages."""
        return "pod" if isinstance(self.object, Pod) else "podgroup"

    @property
    def scheduler_name(self) -> str:
        """Return the scheduler name for the victims' events."""
        return self.pods[0].spec.scheduler_name

    def __str__(self) -> str:
        return f"{self.kind} {self.object.metadata.namespace}/{self.object.metadata.name}"


def preempt(context: SchedulerContext, preemptor: Pod, candidate: Candidate) -> None:
    """Evict the victims of *candidate* for *preemptor*, in the background.

    Source: pkg/scheduler/framework/preemption/executor.go, Executor.prepareCandidateAsync (1.36).
    """
    _clear_lower_priority_nominations(context, preemptor, candidate.node_name)
    _evict_victims(context, Preemptor(preemptor, (preemptor,)), candidate.victims)


def preempt_for_group(
    context: SchedulerContext, group: PodGroup, pods: Sequence[Pod], plan: GroupPreemptionPlan
) -> None:
    """Evict the victims of *plan* for *group*, in the background. Nominations stay, since no node is selected.

    Source: pkg/scheduler/framework/preemption/executor.go, Executor.actuatePodGroupPreemption (1.36).
    """
    _evict_victims(context, Preemptor(group, tuple(pods)), plan.victims)


def _evict_victims(context: SchedulerContext, preemptor: Preemptor, victims: Sequence[AssignedPodInfo]) -> None:
    running_victims = [victim for victim in victims if not victim.terminating]
    if not running_victims:
        return
    context.metrics.observe_preemption(len(victims))
    victims_to_delete = [victim for victim in running_victims if not _cancel_binding(context, preemptor, victim)]
    if not victims_to_delete:
        return
    preempting_uids = _get_preempting_uids(context, preemptor)
    preempting_uids.add(preemptor.uid)
    run_in_background(context, _evict_all(context, preemptor, victims_to_delete, preempting_uids))


def _get_preempting_uids(context: SchedulerContext, preemptor: Preemptor) -> set[str]:
    """Return the uids of preemptors with evictions in progress. The plugin keeps these preemptors out of activeQ."""
    plugin = context.profiles[preemptor.scheduler_name].plugins.get("DefaultPreemption")
    if not isinstance(plugin, DefaultPreemption):
        return set()
    return plugin.preempting if isinstance(preemptor.object, Pod) else plugin.preempting_groups


def _clear_lower_priority_nominations(context: SchedulerContext, preemptor: Pod, node: str) -> None:
    """Clear the nominations of pods of lower priority for *node*.

    Source: pkg/scheduler/framework/preemption/executor.go, clearNominatedNodeName (1.36).
    """
    priority = preemptor.spec.priority or 0
    for pod_info in context.cache.snapshot().nominated_pods(node):
        if pod_info.priority < priority and pod_info.uid != preemptor.metadata.uid:
            context.cache.nominate(pod_info.pod, "")
            patch = make_nomination_patch(pod_info.pod, "")
            if patch is not None:
                run_in_background(context, write_status(context, patch))


def _cancel_binding(context: SchedulerContext, preemptor: Preemptor, victim: AssignedPodInfo) -> bool:
    """Cancel the binding of *victim* if it is not bound yet; return False if it must be deleted instead.

    Source: pkg/scheduler/framework/preemption/executor.go, NewExecutor (1.36).
    """
    waiting_pod = context.waiting_pods.get(victim.uid)
    cancel = context.pre_bind_cancels.get(victim.uid)
    if waiting_pod is not None:
        waiting_pod.preempt("DefaultPreemption", "preempted")
        context.wake()
    elif cancel is not None:
        cancel("preempted by DefaultPreemption")
    else:
        return False
    _record_preempted_event(context, preemptor, victim, in_memory=True)
    return True


def _record_preempted_event(
    context: SchedulerContext, preemptor: Preemptor, victim: AssignedPodInfo, *, in_memory: bool
) -> None:
    """Record the Preempted event of *victim*; *in_memory* means that the victim was assumed but not bound.

    Source: pkg/scheduler/framework/preemption/executor.go, NewExecutor (1.36).
    """
    node = victim.node_name if isinstance(preemptor.object, Pod) else _WHOLE_CLUSTER
    note = f"Preempted by {preemptor.kind} {preemptor.uid} on node {node}"
    if in_memory:
        note += " (in kube-scheduler memory)."
    context.recorder.event(
        victim.pod,
        warning=False,
        reason="Preempted",
        action="Preempting",
        note=note,
        related=preemptor.object,
        scheduler=preemptor.scheduler_name,
    )


async def _evict_all(
    context: SchedulerContext, preemptor: Preemptor, victims: list[AssignedPodInfo], preempting_uids: set[str]
) -> None:
    """Evict all victims except the last concurrently, then the last one, whose deletion activates the preemptor.

    Source: pkg/scheduler/framework/preemption/executor.go, Executor.prepareCandidateAsync (1.36).
    """
    start_time = context.clock.monotonic()
    try:
        await asyncio.gather(*(_evict(context, preemptor, victim) for victim in victims[:-1]))
        preempting_uids.discard(preemptor.uid)
        await _evict(context, preemptor, victims[-1])
        context.metrics.observe_evictions("success", context.clock.monotonic() - start_time)
    except ApiError as error:
        context.metrics.observe_evictions("error", context.clock.monotonic() - start_time)
        log.warning("preemption for %s failed: %s", preemptor, error)
        preempting_uids.discard(preemptor.uid)
        snapshot = context.cache.snapshot()
        pending_pods = (context.cache.pending_pods.get(pod.metadata.uid) for pod in preemptor.pods)
        pod_infos = [snapshot.make_pod_info(pod) for pod in pending_pods if pod is not None]
        context.queue.activate(pod_infos, context.clock.monotonic())
        context.wake()


async def _evict(context: SchedulerContext, preemptor: Preemptor, victim: AssignedPodInfo) -> None:
    if not context.leadership.may_act():
        raise ApiError("the lease is lost")
    patch = make_disruption_target_patch(victim.pod, preemptor.scheduler_name, preemptor.kind, context.clock.now())
    try:
        if patch is not None:
            await context.api.call(patch)
        await context.api.call(make_delete_call(victim.pod))
    except NotFoundError:
        return
    _record_preempted_event(context, preemptor, victim, in_memory=False)
