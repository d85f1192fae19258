"""From "this node" to "bound": Reserve, Permit, PreBindPreFlight, PreBind, Bind and PostBind as questions with answers.

Nothing here writes to an API server: PreBind and Bind answer with plans, which the caller carries out. Source: A023 to
A036, A068 to A073.
"""

from dataclasses import dataclass, field
from typing import Any

from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import Snapshot
from extender.decide.engine import Engine
from extender.framework.points import Bind, Permission, Plan, PreBind, PreFlight, Write
from extender.framework.profiles import Profile
from extender.framework.runner import PluginError
from extender.framework.verdict import Code, Status
from extender.framework.waiting import MAX_WAIT
from extender.objects.pod import Pod

Notes = dict[str, Any]


def reserve(
    pod: PodQuery, node: str, cluster: Snapshot, profile: Profile, engine: Engine, notes: Notes
) -> Status | None:
    """Set aside what *pod* needs on *node*; None if all plugins did. On a failure everything is taken back.

    Source: A068.
    """
    began = engine.run.begin()
    status = _first_failure(pod, node, cluster, profile, engine, notes)
    engine.run.passed(profile.scheduler_name, "Reserve", status, began)
    if status is not None:
        unreserve(pod, node, profile, engine, notes)
    return status


def _first_failure(
    pod: PodQuery, node: str, cluster: Snapshot, profile: Profile, engine: Engine, notes: Notes
) -> Status | None:
    """The first failure of a Reserve plugin."""
    for plugin in profile.reserves:
        try:
            status = engine.run.call(plugin, "Reserve", plugin.reserve, pod, node, cluster, notes.get(plugin.name))
        except PluginError as wrong:
            return wrong.status
        if status is None or status.ok:
            continue
        if status.rejected or status.plugin:
            return status.by(plugin.name)
        return PluginError(plugin.name, "Reserve", status.message).status
    return None


@dataclass(frozen=True, slots=True)
class Undone:
    """What taking reservations back came to.

    Attributes:
        writes: what the API server is to be told, in order; whatever becomes of one, the next is made.
        faults: what went wrong, which stopped nothing.
    """

    writes: tuple[Write, ...] = ()
    faults: tuple[PluginError, ...] = ()


def unreserve(pod: PodQuery, node: str, profile: Profile, engine: Engine, notes: Notes) -> Undone:
    """Take back the reservations of all plugins, last first. Source: A068."""
    writes: list[Write] = []
    faults, began = [], engine.run.begin()
    for plugin in reversed(profile.reserves):
        try:
            answer = engine.run.call(plugin, "Unreserve", plugin.unreserve, pod, node, notes.get(plugin.name))
        except PluginError as wrong:
            faults.append(wrong)
        else:
            writes += answer or ()
    engine.run.passed(profile.scheduler_name, "Unreserve", None, began)
    return Undone(tuple(writes), tuple(faults))


def assumed(pod: Pod, node: str, profile: Profile, notes: Notes) -> Pod:
    """*pod* as it counts on *node* once it is assumed there. Source: A022."""
    for plugin in profile.assumings:
        pod = plugin.assumed(pod, node, notes.get(plugin.name))
    return pod


@dataclass(frozen=True, slots=True)
class Permitted:
    """What Permit came to.

    Attributes:
        status: None allows; WAIT waits for the plugins in `timeouts`; anything else rejects.
        timeouts: seconds, by plugin.
        allows: pods that wait and are let go: plugin and uid.
        activates: pods in the queue that should be tried now.
    """

    status: Status | None = None
    timeouts: dict[str, float] = field(default_factory=dict)
    allows: tuple[tuple[str, str], ...] = ()
    activates: tuple[Pod, ...] = ()


def permit(pod: PodQuery, node: str, cluster: Snapshot, profile: Profile, engine: Engine, notes: Notes) -> Permitted:
    """Ask the Permit plugins; in *cluster* the pod is on the node already. Source: A024, A069."""
    began = engine.run.begin()
    permitted = _permitted(pod, node, cluster, profile, engine, notes)
    engine.run.passed(profile.scheduler_name, "Permit", permitted.status, began)
    return permitted


def _permitted(
    pod: PodQuery, node: str, cluster: Snapshot, profile: Profile, engine: Engine, notes: Notes
) -> Permitted:
    timeouts: dict[str, float] = {}
    reasons: tuple[str, ...] = ()
    allows: list[tuple[str, str]] = []
    activates: dict[str, Pod] = {}
    for plugin in profile.permits:
        try:
            answer = engine.run.expect(
                plugin, "Permit", Permission, plugin.permit, pod, node, cluster, notes.get(plugin.name)
            )
        except PluginError as wrong:
            return Permitted(wrong.status)
        status = answer.status
        allows += ((plugin.name, uid) for uid in answer.allows)
        activates.update((each.key, each) for each in answer.activates)
        if status is None or status.ok:
            continue
        if status.rejected:
            return Permitted(status.by(plugin.name))
        if status.code is not Code.WAIT:
            return Permitted(PluginError(plugin.name, "Permit", status.message).status)
        timeouts[plugin.name] = min(answer.timeout, MAX_WAIT)
        reasons = status.reasons
    others = tuple(allows), tuple(activates.values())
    if not timeouts:
        return Permitted(None, {}, *others)
    told = (*reasons, "one or more plugins asked to wait and no plugin rejected pod")
    return Permitted(Status(Code.WAIT, told), timeouts, *others)


@dataclass(frozen=True, slots=True)
class Preparation:
    """What PreBind will have to do.

    Attributes:
        status: None: there is something to do. SKIP: nothing. ERROR: the binding fails.
        groups: the plugins to run, group after group, those of a group side by side. Source: A032.
    """

    status: Status | None
    groups: tuple[tuple[PreBind, ...], ...] = ()


def prepare(pod: PodQuery, node: str, profile: Profile, engine: Engine, notes: Notes) -> Preparation:
    """Ask PreBindPreFlight. A plugin without it has something to do, and does it alone. Source: A026, A027, A052."""
    began = engine.run.begin()
    found = _prepared(pod, node, profile, engine, notes)
    engine.run.passed(profile.scheduler_name, "PreBindPreFlight", found.status, began)
    return found


def _prepared(pod: PodQuery, node: str, profile: Profile, engine: Engine, notes: Notes) -> Preparation:
    groups: list[list[PreBind]] = []
    joins = False
    for plugin in profile.pre_binds:
        answer: PreFlight | Status = PreFlight()
        if hasattr(plugin, "pre_bind_pre_flight"):  # cheaper than asking for the protocol
            try:
                answer = engine.run.call(
                    plugin, "PreBindPreFlight", plugin.pre_bind_pre_flight, pod, node, notes.get(plugin.name)
                )
            except PluginError as wrong:
                return Preparation(wrong.status)
        if isinstance(answer, Status):
            if answer.code is not Code.SKIP:
                return Preparation(_unexpected(plugin.name, answer))
            answer = PreFlight(skip=True)
        if not answer.skip:
            if joins and answer.parallel:
                groups[-1].append(plugin)
            else:
                groups.append([plugin])
        joins = answer.parallel and (
            joins or not answer.skip
        )  # who must run alone closes the group, even if it is skipped
    if not groups:
        return Preparation(Status(Code.SKIP))
    return Preparation(None, tuple(map(tuple, groups)))


def _unexpected(plugin: str, answer: Status) -> Status:
    if answer.code is Code.ERROR:
        return PluginError(plugin, "PreBindPreFlight", answer.message).status
    said = f'PreBindPreFlight {plugin} returned "{answer.code.label}", which is unsupported.'
    return Status(Code.ERROR, (f"{said} It is supposed to return Success, Skip, or Error status",), plugin)


def pre_bind(
    plugin: PreBind, pod: PodQuery, node: str, cluster: Snapshot, engine: Engine, notes: Notes
) -> Plan | Status:
    """What *plugin* wants done before the pod is bound, or the status that ends the binding. Source: A072."""
    try:
        answer = engine.run.call(plugin, "PreBind", plugin.pre_bind, pod, node, cluster, notes.get(plugin.name))
    except PluginError as wrong:
        return wrong.status
    if isinstance(answer, Plan):
        return answer
    return answer.by(plugin.name) if answer.rejected else PluginError(plugin.name, "PreBind", answer.message).status


def bind(pod: PodQuery, node: str, profile: Profile, engine: Engine) -> tuple[Bind, Plan] | Status:
    """How *pod* is bound to *node*: the first Bind plugin that does not skip, and its plan. Source: A034, A035."""
    for plugin in profile.binds:
        try:
            answer = engine.run.call(plugin, "Bind", plugin.bind, pod, node)
        except PluginError as wrong:
            return wrong.status
        if isinstance(answer, Plan):
            return plugin, answer
        if answer.code is Code.SKIP:
            continue
        return answer.by(plugin.name) if answer.rejected else PluginError(plugin.name, "Bind", answer.message).status
    return Status(Code.SKIP)


def post_bind(pod: PodQuery, node: str, profile: Profile, engine: Engine, notes: Notes) -> list[PluginError]:
    """Tell the PostBind plugins. Returns what went wrong, which changes nothing. Source: A073."""
    faults, began = [], engine.run.begin()
    for plugin in profile.post_binds:
        try:
            engine.run.call(plugin, "PostBind", plugin.post_bind, pod, node, notes.get(plugin.name))
        except PluginError as wrong:
            faults.append(wrong)
    engine.run.passed(profile.scheduler_name, "PostBind", None, began)
    return faults
