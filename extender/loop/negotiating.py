"""Victims put before HTTP extenders: which nodes are left to make room on, and which pods go there.

Source: E023 to E027.
"""

from collections.abc import Mapping, Sequence
from random import Random

import msgspec

from extender.client.extender_calls import ExtenderError
from extender.client.extenders import HttpExtender, Offer
from extender.cluster.pods import PlacedPod
from extender.cluster.snapshot import Snapshot
from extender.framework.points import PostFiltered
from extender.framework.verdict import error, unschedulable
from extender.loop.desk import log
from extender.objects.extender_v1 import MetaVictims
from extender.objects.pod import Pod
from extender.preemption.choose import choose
from extender.preemption.plan import Candidate, PreemptionPlan

_PREFIX = "preemption: "
"""Source: E007."""


def skipped(extender: HttpExtender, wrong: ExtenderError) -> bool:
    """Whether what went *wrong* with *extender* is passed over, which is told in the log. Source: F027, E024, F042."""
    if extender.config.ignorable:
        told = {"extender": extender.name, "err": str(wrong)}
        log.info("Skipping extender as it returned error and has ignorable flag set", extra=told)
    return extender.config.ignorable


async def negotiated(
    answer: PostFiltered,
    plan: PreemptionPlan,
    pod: Pod,
    cluster: Snapshot,
    extenders: Sequence[HttpExtender],
    chance: Random,
) -> PostFiltered:
    """What becomes of *answer*, which is to carry out *plan*, when the extenders have been asked one after another.

    Args:
        answer: of the plugin that made the plan.
        plan: with all its candidates.
        pod: wants room.
        cluster: the plan is about.
        extenders: those that are interested in the pod, in order.
        chance: picks among equals.
    """
    asked = [extender for extender in extenders if extender.config.preempt_verb]
    if not asked:
        return answer
    candidates: Sequence[Candidate] = plan.candidates
    for extender in asked:
        try:
            said = await extender.preempt(pod, {each.node: _offer(each) for each in candidates})
            claimed = [claim(extender.name, node, victims, cluster) for node, victims in said.items()]
        except ExtenderError as wrong:
            if skipped(extender, wrong):
                continue
            return PostFiltered(error(f"{_PREFIX}{wrong}"))
        empty = next((each for each in claimed if not each.victims), None)
        if empty is not None and not extender.config.ignorable:
            return PostFiltered(error(f'{_PREFIX}expected at least one victim pod on node "{empty.node}"'))
        candidates = [each for each in claimed if each.victims]
        if not candidates:
            return PostFiltered(unschedulable(f"{_PREFIX}no candidate node for preemption"))
    chosen = choose(candidates, chance)
    return PostFiltered(answer.status, chosen.chosen.node, chosen)


def _offer(candidate: Candidate) -> Offer:
    return Offer([_whole(victim) for victim in candidate.victims], candidate.violations)


def _whole(victim: PlacedPod) -> Pod:
    """The pod as the API server has it, with its node."""
    spec = msgspec.structs.replace(victim.pod.spec, node_name=victim.node_name)
    return msgspec.structs.replace(victim.pod, spec=spec)


def claim(extender: str, node: str, victims: MetaVictims, cluster: Snapshot) -> Candidate:
    """What an extender says about one node, with the pods that *cluster* has there.

    Raises:
        ExtenderError: the node, or one of the pods on it, is not there. Source: F044.
    """
    if cluster.row(node) is None:
        raise ExtenderError(f'nodeinfo not found for node name "{node}"')
    there: Mapping[str, PlacedPod] = {pod.pod.metadata.uid: pod for pod in cluster.pods_on(node).values()}
    found: list[PlacedPod] = []
    for victim in victims.pods:
        pod = there.get(victim.uid)
        if pod is None:
            raise ExtenderError(
                f"extender: {extender} claims to preempt pod (UID: &{{{victim.uid}}}) on node: {node}, "
                "but the pod is not found on that node"
            )
        found.append(pod)
    return Candidate(node, tuple(found), victims.num_pdb_violations)
