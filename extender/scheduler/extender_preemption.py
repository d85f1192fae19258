"""Preemption with HTTP extenders, which may drop candidates and change victims."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

from extender.api.extender_v1 import MetaVictims
from extender.api.kinds.pod import Pod
from extender.basics.input_limits import shorten
from extender.cache.pod_info import AssignedPodInfo
from extender.cache.snapshot import Snapshot
from extender.client.extender import HttpExtender, NodeVictims
from extender.client.extender_transport import ExtenderError
from extender.framework.extension_points import PostFilterResult
from extender.framework.status import error_status, unschedulable_status
from extender.preemption.plan import Candidate, PreemptionPlan, describe_placement, select_candidate
from extender.scheduler.context import log

_PREFIX = "preemption: "
"""The prefix of error messages.

Source: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go, DefaultPreemption.PostFilter (1.36).
"""


def is_error_ignored(extender: HttpExtender, exception: ExtenderError) -> bool:
    """Return whether errors of the extender are ignored. If they are, log the error.

    Source: pkg/scheduler/schedule_one.go, findNodesThatPassExtenders, Scheduler.extendersBinding;
    pkg/scheduler/framework/preemption/preemption.go, Evaluator.callExtenders (1.36).
    """
    if extender.config.ignorable:
        fields = {"extender": extender.name, "err": shorten(str(exception))}
        log.info("Skipping extender as it returned error and has ignorable flag set", extra=fields)
    return extender.config.ignorable


async def call_extenders(
    result: PostFilterResult,
    plan: PreemptionPlan,
    pod: Pod,
    snapshot: Snapshot,
    extenders: Sequence[HttpExtender],
    rng: Random,
) -> PostFilterResult:
    """Call the extenders' preempt verbs one after another and return the changed result.

    *plan* has all candidates, and was made on *snapshot*. *extenders* are interested in the pod, in order.
    """
    preempting_extenders = [extender for extender in extenders if extender.config.preempt_verb]
    if not preempting_extenders:
        return result
    candidates: Sequence[Candidate] = plan.candidates
    for extender in preempting_extenders:
        try:
            offered_victims = {
                candidate.node_name: NodeVictims(
                    [victim.pod_with_node_name for victim in _list_unique_victims(candidate)],
                    candidate.num_pdb_violations,
                )
                for candidate in candidates
            }
            accepted_victims = await extender.preempt(pod, offered_victims)
            reviewed_candidates = [
                convert_to_candidate(extender.name, node, victims, snapshot)
                for node, victims in accepted_victims.items()
            ]
        except ExtenderError as exception:
            if is_error_ignored(extender, exception):
                continue
            return PostFilterResult(error_status(f"{_PREFIX}{exception}"))
        empty_candidate = next((candidate for candidate in reviewed_candidates if not candidate.victims), None)
        if empty_candidate is not None and not extender.config.ignorable:
            node = empty_candidate.node_name
            return PostFilterResult(error_status(f'{_PREFIX}expected at least one victim pod on node "{node}"'))
        candidates = [candidate for candidate in reviewed_candidates if candidate.victims]
        if not candidates:
            return PostFilterResult(unschedulable_status(f"{_PREFIX}no candidate node for preemption"))
    new_plan = select_candidate(candidates, rng)
    status = result.status
    if status.reasons:  # the message of the plugin names the node and the number of victims
        status = replace(status, reasons=(f"{_PREFIX}{describe_placement(new_plan.best_candidate)}",))
    best_candidate = replace(new_plan.best_candidate, victims=_list_unique_victims(new_plan.best_candidate))
    return PostFilterResult(status, best_candidate.node_name, replace(new_plan, best_candidate=best_candidate))


def _list_unique_victims(candidate: Candidate) -> tuple[AssignedPodInfo, ...]:
    """Return each victim once. A victim that an extender repeats counts repeatedly only when a node is selected.

    The next extender gets whole pods, so that half a million repetitions would fill the memory.
    """
    return tuple({victim.uid: victim for victim in candidate.victims}.values())


def convert_to_candidate(extender: str, node: str, victims: MetaVictims, snapshot: Snapshot) -> Candidate:
    """Convert an extender's victims on one node to a candidate.

    Raises:
        ExtenderError: the node, or one of the victims on it, does not exist.

    Source: pkg/scheduler/extender.go, HTTPExtender.convertPodUIDToPod (1.36).
    """
    if snapshot.row(node) is None:
        raise ExtenderError(f'nodeinfo not found for node name "{node}"')
    pods_by_uid: Mapping[str, AssignedPodInfo] = {pod.pod.metadata.uid: pod for pod in snapshot.pods_on(node).values()}
    victim_pods: list[AssignedPodInfo] = []
    for victim in victims.pods:
        pod = pods_by_uid.get(victim.uid)
        if pod is None:
            raise ExtenderError(
                f"extender: {extender} claims to preempt pod (UID: &{{{victim.uid}}}) on node: {node}, "
                "but the pod is not found on that node"
            )
        victim_pods.append(pod)
    return Candidate(node, tuple(victim_pods), victims.num_pdb_violations)
