"""Carrying out a preemption: victims are told why, evicted or called back, and the preemptor waits. Source: E.5."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from extender.client.errors import ApiError, NotFoundError
from extender.cluster.pods import PlacedPod
from extender.loop.conditions import eviction, must_go, nominated_only
from extender.loop.desk import Desk, log
from extender.loop.failing import in_background, written
from extender.objects.groups import PodGroup
from extender.objects.pod import Pod
from extender.plugins.default_preemption import DefaultPreemption
from extender.preemption.plan import Candidate, GroupPreemptionPlan

_ANYWHERE = "cluster"
"""What messages call the node if pods are evicted anywhere. Source: E054."""


@dataclass(frozen=True, slots=True)
class Preemptor:
    """For whom pods are evicted: a pod, or the members of a pod group that wait. Source: E054.

    Attributes:
        thing: the pod, or the group.
        pods: that pod, or those members; at least one.
    """

    thing: Pod | PodGroup
    pods: tuple[Pod, ...]

    @property
    def uid(self) -> str:
        """Of the pod, or of the group."""
        return self.thing.metadata.uid

    @property
    def kind(self) -> str:
        """As messages call it."""
        return "pod" if isinstance(self.thing, Pod) else "podgroup"

    @property
    def scheduler(self) -> str:
        """The scheduler name, in which victims are told."""
        return self.pods[0].spec.scheduler_name

    def __str__(self) -> str:
        return f"{self.kind} {self.thing.metadata.namespace}/{self.thing.metadata.name}"


def preempt(desk: Desk, preemptor: Pod, chosen: Candidate) -> None:
    """Begin to evict the victims of *chosen* for *preemptor*; that goes on in the background. Source: E043."""
    _clear_lesser_nominations(desk, preemptor, chosen.node)
    _evict_for(desk, Preemptor(preemptor, (preemptor,)), chosen.victims)


def preempt_for_group(desk: Desk, group: PodGroup, pods: Sequence[Pod], plan: GroupPreemptionPlan) -> None:
    """The same for the members *pods* of *group*; no node is meant, so no nomination is cleared. Source: E054."""
    _evict_for(desk, Preemptor(group, tuple(pods)), plan.victims)


def _evict_for(desk: Desk, preemptor: Preemptor, victims: Sequence[PlacedPod]) -> None:
    alive = [victim for victim in victims if not victim.terminating]
    if not alive:
        return
    desk.tally.preempted(len(victims))
    to_delete = [victim for victim in alive if not _called_back(desk, preemptor, victim)]
    if not to_delete:
        return
    under_way = _under_way(desk, preemptor)
    under_way.add(preemptor.uid)
    in_background(desk, _evict_all(desk, preemptor, to_delete, under_way))


def _under_way(desk: Desk, preemptor: Preemptor) -> set[str]:
    """The preemptors of this kind whose victims are being evicted; the plugin keeps these out of the queue."""
    plugin = desk.profiles[preemptor.scheduler].plugins.get("DefaultPreemption")
    if not isinstance(plugin, DefaultPreemption):
        return set()
    return plugin.preempting if isinstance(preemptor.thing, Pod) else plugin.preempting_groups


def _clear_lesser_nominations(desk: Desk, preemptor: Pod, node: str) -> None:
    """Pods of lower priority no longer wait for *node*. Source: E045."""
    priority = preemptor.spec.priority or 0
    for query in desk.state.snapshot().nominated(node):
        if query.priority < priority and query.uid != preemptor.metadata.uid:
            desk.state.nominate(query.pod, "")
            write = nominated_only(query.pod, "")
            if write is not None:
                in_background(desk, written(desk, write))


def _called_back(desk: Desk, preemptor: Preemptor, victim: PlacedPod) -> bool:
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


def _told(desk: Desk, preemptor: Preemptor, victim: PlacedPod, *, in_memory: bool) -> None:
    """Source: E041."""
    node = victim.node_name if isinstance(preemptor.thing, Pod) else _ANYWHERE
    note = f"Preempted by {preemptor.kind} {preemptor.uid} on node {node}"
    if in_memory:
        note += " (in kube-scheduler memory)."
    desk.recorder.event(
        victim.pod,
        warning=False,
        reason="Preempted",
        action="Preempting",
        note=note,
        related=preemptor.thing,
        scheduler=preemptor.scheduler,
    )


async def _evict_all(desk: Desk, preemptor: Preemptor, victims: list[PlacedPod], under_way: set[str]) -> None:
    """All victims but the last side by side, then the last, whose going wakes the preemptor. Source: E043, E044."""
    began = desk.clock.monotonic()
    try:
        await asyncio.gather(*(_evict(desk, preemptor, victim) for victim in victims[:-1]))
        under_way.discard(preemptor.uid)
        await _evict(desk, preemptor, victims[-1])
        desk.tally.evicted("success", desk.clock.monotonic() - began)
    except ApiError as wrong:
        desk.tally.evicted("error", desk.clock.monotonic() - began)
        log.warning("preemption for %s did not come through: %s", preemptor, wrong)
        under_way.discard(preemptor.uid)
        cluster = desk.state.snapshot()
        waiting = [pod for each in preemptor.pods if (pod := desk.state.waiting.get(each.metadata.uid)) is not None]
        desk.queue.activate(map(cluster.query, waiting), desk.clock.monotonic())
        desk.wake()


async def _evict(desk: Desk, preemptor: Preemptor, victim: PlacedPod) -> None:
    if not desk.leadership.may_act():
        raise ApiError("the lease is lost")
    why = must_go(victim.pod, preemptor.scheduler, preemptor.kind, desk.clock.now())
    try:
        if why is not None:
            await desk.api.carry_out(why)
        await desk.api.carry_out(eviction(victim.pod))
    except NotFoundError:
        return
    _told(desk, preemptor, victim, in_memory=False)
