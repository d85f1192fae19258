"""The scheduling cycle of a pod group: its members on their nodes, or what making room for it comes to.

Source: A145, A152, A153, E051 to E053.
"""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from extender.cluster.groups import group_key
from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import Snapshot
from extender.decide.cycle import decide
from extender.decide.engine import Engine
from extender.decide.placements import placed
from extender.decide.podgroup import GroupAttempt, GroupDecision, Steps, mixed_schedulers, within
from extender.decide.sampling import Search
from extender.framework.group_points import GroupQuery, PodGroupPostFilter, WhatIf
from extender.framework.points import PostFiltered
from extender.framework.profiles import GroupRules, Profile
from extender.framework.runner import PluginError
from extender.framework.verdict import Code, Status, error, unschedulable
from extender.objects.groups import PodGroup
from extender.objects.pod import Pod

_NOBODY_HELPS = unschedulable("default preemption plugin is not registered, workload aware preemption is disabled")
_CONSTRAINED = unschedulable("workload aware preemption is not supported for pod groups with scheduling constraints")


def turn_key(pod: Pod, since: float) -> tuple[int, float]:
    """Sorts the members of a group into the order of their turns: by priority, then by when they came. Source: A145."""
    return -(pod.spec.priority or 0), since


def attempt_for(pods: Sequence[PodQuery], profile: Profile, engine: Engine, chance: Random) -> GroupAttempt:
    """An attempt for the group of *pods*, which are in the order of their turns; at least one."""
    namespace, _, name = (group_key(pods[0].pod) or "").partition("/")
    return GroupAttempt(GroupQuery(namespace, name), tuple(pods), profile, engine, chance)


def decide_group(
    pods: Sequence[PodQuery], cluster: Snapshot, profile: Profile, engine: Engine, chance: Random, search: Search
) -> GroupDecision:
    """Where the members of a group go, or why the group goes nowhere, in one go.

    Args:
        pods: the members that wait, in the order of their turns; at least one.
        cluster: as it is.
        profile: of the scheduler name of the first.
        engine: calls the plugins.
        chance: breaks ties, of nodes and of placements.
        search: where a search that stops early goes on.
    """
    mixed = mixed_schedulers(pods)
    if mixed is not None:
        return GroupDecision(mixed)
    steps = group_steps(attempt_for(pods, profile, engine, chance), cluster)
    try:
        turn = next(steps)
        while True:
            allowed = turn.placement.nodes
            turn = steps.send(decide(turn.pod, turn.cluster, turn.profile, engine, chance, search, within=allowed))
    except StopIteration as end:
        decision: GroupDecision = end.value
        return decision


def group_steps(attempt: GroupAttempt, cluster: Snapshot) -> Steps[GroupDecision]:
    """The same member by member, for a caller that decides each. Their scheduler names are one and the same."""
    rules = attempt.profile.groups or GroupRules()
    decision = yield from _on_nodes(attempt, cluster, rules)
    if not rules.preempts or decision.status.code is not Code.UNSCHEDULABLE:
        return decision
    answer = yield from _room_made(attempt, cluster, rules)
    status = answer.status
    if status.ok:
        return replace(decision, waits_for_preemption=True, detail=answer.detail)
    if status.code is Code.ERROR:
        return replace(decision, status=status)
    return replace(decision, status=replace(decision.status, reasons=(*decision.status.reasons, status.message)))


def _on_nodes(attempt: GroupAttempt, cluster: Snapshot, rules: GroupRules) -> Steps[GroupDecision]:
    return (yield from placed(attempt, cluster) if rules.by_placement else within(attempt, cluster))


def _room_made(attempt: GroupAttempt, cluster: Snapshot, rules: GroupRules) -> Steps[PostFiltered]:
    """What the plugin says that makes room for groups; it may ask about any number of clusters. Source: A153."""
    plugin, group = rules.post_filter, cluster.find(PodGroup, attempt.group.key)
    if plugin is None:
        return PostFiltered(_NOBODY_HELPS)
    if group is None:
        name = attempt.group.name
        return PostFiltered(error(f'failed to get pod group object: podgroup.scheduling.k8s.io "{name}" not found'))
    constraints = group.spec.scheduling_constraints
    if constraints is not None and constraints.topology:
        return PostFiltered(_CONSTRAINED)
    alone = replace(attempt, profile=replace(attempt.profile, post_filters=()))
    try:
        what_if = plugin.pod_group_post_filter(group, attempt.pods, cluster)
        asked = _next(attempt, plugin, what_if, None)
        while isinstance(asked, Snapshot):
            decision = yield from _on_nodes(alone, asked, rules)
            asked = _next(attempt, plugin, what_if, decision.status)
    except PluginError as wrong:
        return PostFiltered(wrong.status)
    return asked


def _next(
    attempt: GroupAttempt, plugin: PodGroupPostFilter, what_if: WhatIf, told: Status | None
) -> Snapshot | PostFiltered:
    """The next cluster that the plugin asks about, or its answer.

    Raises:
        PluginError: it raised.
    """

    def step() -> Snapshot | PostFiltered:
        try:
            return next(what_if) if told is None else what_if.send(told)
        except StopIteration as end:
            answer: PostFiltered = end.value
            return answer

    return attempt.engine.run.call(plugin, "PodGroupPostFilter", step)
