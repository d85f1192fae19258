"""What can be done when no node takes the pod: PostFilter of every plugin. Source: A062, A019 to A021."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import Snapshot
from extender.decide.engine import Engine
from extender.decide.feasible import Feasibility
from extender.framework.points import PostFilter, PostFiltered
from extender.framework.profiles import Profile
from extender.framework.runner import PluginError
from extender.framework.verdict import Code, Status


@dataclass(frozen=True, slots=True)
class Attempt:
    """A failed search as PostFilter plugins see it, with all they need to ask again about hypotheses.

    Attributes:
        feasibility: what was refused, by whom and why.
        profile: whose plugins were asked.
        engine: asks them.
        chance: says where a search among nodes begins and which of equals is taken; None: at the first, and the first.
        every_node: look at every node, also where fewer would do.
    """

    feasibility: Feasibility
    profile: Profile
    engine: Engine
    chance: Random | None = None
    every_node: bool = False


@dataclass(frozen=True, slots=True)
class Rescue:
    """What PostFilter came to.

    Attributes:
        status: SUCCESS if room can be made.
        nominated: as in `PostFiltered`.
        answers: what each plugin said that was asked, by plugin.
    """

    status: Status
    nominated: str | None = None
    answers: Mapping[str, PostFiltered] = field(default_factory=dict)

    @property
    def details(self) -> dict[str, Any]:
        """What the caller needs to act on the answers, by plugin."""
        return {name: answer.detail for name, answer in self.answers.items() if answer.detail is not None}


@dataclass(slots=True)
class Answers:
    """What PostFilter plugins said so far, in order. The first that neither fails nor says "unschedulable" decides."""

    _by_plugin: dict[str, PostFiltered] = field(default_factory=dict)
    _reasons: list[str] = field(default_factory=list)
    _nominated: str | None = None
    _first: str = ""

    def add(self, plugin: str, answer: PostFiltered) -> Rescue | None:
        """The next answer; gives what PostFilter came to if no further plugin is to be asked."""
        self._by_plugin[plugin] = answer
        status = answer.status
        if status.code is Code.UNRESOLVABLE or not status.rejected:
            nominated = answer.nominated if status.ok or status.rejected else None
            return Rescue(status.by(plugin), nominated, self._by_plugin)
        if answer.nominated is not None:
            self._nominated = answer.nominated
        self._first = self._first or plugin
        self._reasons.extend(status.reasons)
        return None

    def end(self) -> Rescue:
        """What PostFilter came to if nobody could help."""
        return Rescue(Status(Code.UNSCHEDULABLE, tuple(self._reasons), self._first), self._nominated, self._by_plugin)


def ask(plugin: PostFilter, pod: PodQuery, cluster: Snapshot, attempt: Attempt) -> PostFiltered:
    """What one plugin says; a fault of its own is an answer too."""
    try:
        return attempt.engine.run.expect(plugin, "PostFilter", PostFiltered, plugin.post_filter, pod, cluster, attempt)
    except PluginError as wrong:
        return PostFiltered(wrong.status)


def rescue(pod: PodQuery, cluster: Snapshot, attempt: Attempt) -> Rescue:
    """Ask the PostFilter plugins in order."""
    began = attempt.engine.run.begin()
    answers = Answers()
    asked = (answers.add(plugin.name, ask(plugin, pod, cluster, attempt)) for plugin in attempt.profile.post_filters)
    decided = next((each for each in asked if each is not None), None) or answers.end()
    attempt.engine.run.passed(attempt.profile.scheduler_name, "PostFilter", decided.status, began)
    return decided
