"""What can be done when no node takes the pod: PostFilter of every plugin. Source: A062, A019 to A021."""

from dataclasses import dataclass, field
from typing import Any

from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import Snapshot
from extender.decide.engine import Engine
from extender.decide.feasible import Feasibility
from extender.framework.points import PostFiltered
from extender.framework.profiles import Profile
from extender.framework.runner import PluginError
from extender.framework.verdict import Code, Status


@dataclass(frozen=True, slots=True)
class Attempt:
    """A failed search as PostFilter plugins see it, with all they need to ask again about hypotheses."""

    feasibility: Feasibility
    profile: Profile
    engine: Engine


@dataclass(frozen=True, slots=True)
class Rescue:
    """What PostFilter came to.

    Attributes:
        status: SUCCESS if room can be made.
        nominated: as in `PostFiltered`.
        details: by plugin.
    """

    status: Status
    nominated: str | None = None
    details: dict[str, Any] = field(default_factory=dict)


def rescue(pod: PodQuery, cluster: Snapshot, attempt: Attempt) -> Rescue:
    """Ask the PostFilter plugins in order; the first that neither fails nor says "unschedulable" decides."""
    reasons: list[str] = []
    details: dict[str, Any] = {}
    nominated: str | None = None
    first = ""
    for plugin in attempt.profile.post_filters:
        try:
            answer = attempt.engine.run.expect(
                plugin, "PostFilter", PostFiltered, plugin.post_filter, pod, cluster, attempt
            )
        except PluginError as wrong:
            return Rescue(wrong.status, nominated, details)
        if answer.detail is not None:
            details[plugin.name] = answer.detail
        if answer.nominated is not None:
            nominated = answer.nominated
        if answer.status.code is not Code.UNSCHEDULABLE:
            return Rescue(answer.status.by(plugin.name), answer.nominated, details)
        first = first or plugin.name
        reasons.extend(answer.status.reasons)
    return Rescue(Status(Code.UNSCHEDULABLE, tuple(reasons), first), nominated, details)
