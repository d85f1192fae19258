"""The round before any node is looked at: PreFilter of every plugin, and which nodes it leaves over.

Source: A055 to A059.
"""

from dataclasses import dataclass, field
from typing import Any

from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import Snapshot
from extender.decide.engine import Engine
from extender.decide.foregone import before_filter
from extender.framework.profiles import Profile
from extender.framework.runner import PluginError
from extender.framework.verdict import Code, Status


@dataclass(frozen=True, slots=True)
class PreFilterOutcome:
    """What PreFilter left.

    Attributes:
        status: None if the pod may go on; else why not.
        nodes: names of the only nodes that can do, whether they exist or not; None means all. None as well if a
            plugin ended the round: then it is not known.
        restrictors: the plugins that narrowed the nodes down, sorted.
        notes: by plugin.
        skipped: the plugins whose Filter is not called.
    """

    status: Status | None = None
    nodes: frozenset[str] | None = None
    restrictors: tuple[str, ...] = ()
    notes: dict[str, Any] = field(default_factory=dict)
    skipped: frozenset[str] = frozenset()

    @property
    def absent(self) -> str:
        """The reason of the nodes that were left out. Source: A059."""
        return f"node(s) didn't satisfy plugin(s) [{' '.join(self.restrictors)}]"


def pre_filter(pod: PodQuery, cluster: Snapshot, profile: Profile, engine: Engine) -> PreFilterOutcome:
    """Run PreFilter of all plugins of *profile*. A plugin that raises ends the round with an Error."""
    known, run = before_filter(pod, profile.pre_filters, keep=engine.columns.enabled), engine.run
    notes, skipped = dict(known.notes), set(known.skipped)
    restrictors: set[str] = set()
    names: frozenset[str] | None = None
    rejected: Status | None = None
    began = run.begin()

    def outcome(status: Status | None, *, last: Any = None, ended: bool = False) -> PreFilterOutcome:
        for unasked in () if last is None else known.after(last):
            notes.pop(unasked.name, None)
            skipped.discard(unasked.name)
        run.passed(profile.scheduler_name, "PreFilter", status, began)
        left = None if ended else names
        return PreFilterOutcome(status, left, tuple(sorted(restrictors)), notes, frozenset(skipped))

    for plugin in known.asked:
        try:
            answer = run.pre_filter(plugin, pod, cluster)
            known.learn(run, plugin, pod, "PreFilter", answer)
        except PluginError as wrong:
            return outcome(wrong.status, last=plugin, ended=True)
        notes[plugin.name] = answer.notes
        if answer.skip:
            skipped.add(plugin.name)
            continue
        if answer.status is not None and not answer.status.ok:
            status = answer.status.by(plugin.name)
            if status.code is Code.UNSCHEDULABLE:
                rejected = status  # the others still run, preemption needs their notes
                continue
            if not status.rejected:
                status = PluginError(plugin.name, "PreFilter", status.message).status
            return outcome(status, last=plugin, ended=True)
        if answer.nodes is not None:
            restrictors.add(plugin.name)
            names = answer.nodes if names is None else names & answer.nodes
            if not names:
                return outcome(Status(Code.UNRESOLVABLE, (_none_left(sorted(restrictors)),)), last=plugin)
    known.over()
    return outcome(rejected)


def _none_left(restrictors: list[str]) -> str:
    if len(restrictors) == 1:
        return f"node(s) didn't satisfy plugin {restrictors[0]}"
    return f"node(s) didn't satisfy plugin(s) [{' '.join(restrictors)}] simultaneously"
