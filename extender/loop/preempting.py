"""Carrying out a preemption: victims are told why, evicted or called back, and the preemptor waits. Source: E.5."""

import asyncio

from extender.client.errors import ApiError, NotFoundError
from extender.cluster.pods import PlacedPod
from extender.loop.conditions import eviction, must_go, nominated_only
from extender.loop.desk import Desk, log
from extender.loop.failing import in_background, written
from extender.objects.pod import Pod
from extender.plugins.default_preemption import DefaultPreemption
from extender.preemption.plan import PreemptionPlan


def preempt(desk: Desk, preemptor: Pod, plan: PreemptionPlan) -> None:
    """Begin to evict the victims of *plan* for *preemptor*; what takes time goes on in the background. Source: E043."""
    chosen = plan.chosen
    desk.tally.preempted(len(chosen.victims))
    _clear_lesser_nominations(desk, preemptor, chosen.node)
    alive = [victim for victim in chosen.victims if not victim.terminating]
    to_delete = [victim for victim in alive if not _called_back(desk, preemptor, victim)]
    if not to_delete:
        return
    plugin = desk.profiles[preemptor.spec.scheduler_name].plugins.get("DefaultPreemption")
    if isinstance(plugin, DefaultPreemption):
        plugin.preempting.add(preemptor.metadata.uid)
    in_background(desk, _evict_all(desk, preemptor, chosen.node, to_delete, plugin))


def _clear_lesser_nominations(desk: Desk, preemptor: Pod, node: str) -> None:
    """Pods of lower priority no longer wait for *node*. Source: E045."""
    priority = preemptor.spec.priority or 0
    for query in desk.state.snapshot().nominated(node):
        if query.priority < priority and query.uid != preemptor.metadata.uid:
            desk.state.nominate(query.pod, "")
            write = nominated_only(query.pod, "")
            if write is not None:
                in_background(desk, written(desk, write, query.pod))


def _called_back(desk: Desk, preemptor: Pod, victim: PlacedPod) -> bool:
    """Stop *victim* if it is only on its way to the node, so that nothing needs to be deleted. Source: E038."""
    waiting = desk.waiting.get(victim.uid)
    stop = desk.binding.get(victim.uid)
    if waiting is not None:
        waiting.preempt("DefaultPreemption", "preempted")
        desk.wake()
    elif stop is not None:
        stop("preempted by DefaultPreemption")
    else:
        return False
    _told(desk, preemptor, victim, in_memory=True)
    return True


def _told(desk: Desk, preemptor: Pod, victim: PlacedPod, *, in_memory: bool) -> None:
    """Source: E041."""
    note = f"Preempted by pod {preemptor.metadata.uid} on node {victim.node_name}"
    if in_memory:
        note += " (in kube-scheduler memory)."
    desk.recorder.event(
        victim.pod, warning=False, reason="Preempted", action="Preempting", note=note, related=preemptor
    )


async def _evict_all(desk: Desk, preemptor: Pod, node: str, victims: list[PlacedPod], plugin: object) -> None:
    """All victims but the last side by side, then the last, whose going wakes the preemptor. Source: E043, E044."""
    began = desk.clock.monotonic()
    try:
        await asyncio.gather(*(_evict(desk, preemptor, victim) for victim in victims[:-1]))
        _let_go(plugin, preemptor)
        await _evict(desk, preemptor, victims[-1])
        desk.tally.evicted("success", desk.clock.monotonic() - began)
    except ApiError as wrong:
        desk.tally.evicted("error", desk.clock.monotonic() - began)
        log.warning("preemption for pod %s on node %s did not come through: %s", preemptor.key, node, wrong)
        _let_go(plugin, preemptor)
        waiting = desk.state.waiting.get(preemptor.metadata.uid)
        if waiting is not None:
            desk.queue.activate([desk.state.snapshot().query(waiting)], desk.clock.monotonic())
            desk.wake()


def _let_go(plugin: object, preemptor: Pod) -> None:
    if isinstance(plugin, DefaultPreemption):
        plugin.preempting.discard(preemptor.metadata.uid)


async def _evict(desk: Desk, preemptor: Pod, victim: PlacedPod) -> None:
    if not desk.leadership.may_act():
        raise ApiError("the lease is lost")
    why = must_go(victim.pod, preemptor.spec.scheduler_name, desk.clock.now())
    try:
        if why is not None:
            await desk.api.carry_out(why)
        await desk.api.carry_out(eviction(victim.pod))
    except NotFoundError:
        return
    _told(desk, preemptor, victim, in_memory=False)
