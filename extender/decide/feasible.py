"""Which nodes can take a pod, and for the others, why not."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from extender.cluster.arrays import BoolArray
from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import Snapshot
from extender.decide.engine import Engine
from extender.decide.filtering import Verdicts, judge
from extender.decide.nominated import beside_nominated
from extender.decide.prefiltering import PreFilterOutcome, pre_filter
from extender.framework.profiles import Profile
from extender.framework.verdict import Code, Reason, Status, gravest

NO_NODES = "no nodes available to schedule pods"
"""What is said when there is no node at all. Source: A018."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Nodes that one plugin was the first to refuse, for one reason.

    Attributes:
        plugin: who refuses.
        reason: why; a node stands under every reason that plugin has against it.
        nodes: bool, shape (number of nodes,).
    """

    plugin: str
    reason: Reason
    nodes: BoolArray


@dataclass(frozen=True, slots=True)
class Feasibility:
    """The nodes that can take the pod, and groups of refusals for the rest.

    Holds no part of the cluster, so it may be kept.

    Attributes:
        size: number of nodes in the cluster.
        before: what PreFilter said.
        feasible: bool, shape (number of nodes,).
        refusals: in the order of the plugins. Empty when every node is feasible, and when nobody asked for
            reasons and some node is.
        error: the status that ended the attempt, if something went wrong.
        outside: how many nodes were not to be looked at; they are not counted in messages.
        others: who turned nodes away beside those in `refusals`: outbound extenders need not say which and why (F031).
        count: how many nodes can take the pod.
    """

    size: int
    before: PreFilterOutcome
    feasible: BoolArray
    refusals: tuple[Refusal, ...] = ()
    error: Status | None = None
    outside: int = 0
    others: frozenset[str] = frozenset()
    count: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", int(np.count_nonzero(self.feasible)))

    @property
    def any(self) -> bool:
        """Whether a node can take the pod."""
        return self.error is None and self.count > 0

    @property
    def rejectors(self) -> frozenset[str]:
        """The plugins that turned nodes or the pod away: their events may change the outcome.

        Source: A041, A057, A058.
        """
        names = {refusal.plugin for refusal in self.refusals} | set(self.before.restrictors)
        if self.before.status is not None and self.before.status.plugin:
            names.add(self.before.status.plugin)
        return frozenset(names) | self.others

    def message(self, addition: str = "") -> str:
        """The text of the pod's event and condition: `0/5 nodes are available: 2 Insufficient cpu, ...`.

        Args:
            addition: what PostFilter has to say.

        Source: A018, A046, A047.
        """
        if self.error is not None:
            return self.error.message
        if self.size == 0:
            return NO_NODES
        if self.before.status is not None and self.before.status.reasons:
            said = f"0/{self.size - self.outside} nodes are available: {self.before.status.message}."
        else:
            said = none_available(self.size - self.outside, self.counted())
        return f"{said} {addition}" if addition else said

    def among(self, rows: BoolArray) -> "Feasibility":
        """The same as far as *rows* (bool, shape (number of nodes,)) go; nothing is said about the others."""
        refusals = (replace(refusal, nodes=refusal.nodes & rows) for refusal in self.refusals)
        kept = tuple(refusal for refusal in refusals if refusal.nodes.any())
        return replace(self, feasible=self.feasible & rows, refusals=kept)

    def code(self, row: int | None) -> Code:
        """The code with which the node in *row* was refused.

        A node that was left out, or that there is none of (None), has the code of what left it out.
        """
        if self.before.status is not None:
            return self.before.status.code
        codes = [refusal.reason.code for refusal in self.refusals if row is not None and refusal.nodes[row]]
        return gravest(codes) if codes else Code.UNRESOLVABLE

    def merely_unschedulable(self) -> BoolArray:
        """The nodes that evicting pods may help with: a new bool array, shape (number of nodes,). Source: E009."""
        if self.before.status is not None:
            return np.full(self.size, self.before.status.code is Code.UNSCHEDULABLE, dtype=np.bool_)
        found = np.zeros(self.size, dtype=np.bool_)
        final = np.zeros(self.size, dtype=np.bool_)
        for refusal in self.refusals:
            target = found if refusal.reason.code is Code.UNSCHEDULABLE else final
            target |= refusal.nodes
        return found & ~final

    def counted(self) -> dict[str, int]:
        """How many nodes each reason applies to, nodes that PreFilter left out included."""
        counts: dict[str, int] = {}
        refused = np.zeros(self.size, dtype=np.bool_)
        for refusal in self.refusals:
            counts[refusal.reason.text] = counts.get(refusal.reason.text, 0) + int(refusal.nodes.sum())
            refused |= refusal.nodes
        if self.before.nodes is not None:
            absent = self.size - self.outside - int(refused.sum()) - self.count
            if absent:
                counts[self.before.absent] = counts.get(self.before.absent, 0) + absent
        return counts


def none_available(size: int, counted: Mapping[str, int]) -> str:
    """`0/5 nodes are available: 2 Insufficient cpu, ...`: how many of *size* nodes each reason applies to.

    Source: A046.
    """
    said = f"0/{size} nodes are available:"
    if not counted:
        return said
    return f"{said} {', '.join(sorted(f'{count} {text}' for text, count in counted.items()))}."


def feasible(
    pod: PodQuery,
    cluster: Snapshot,
    profile: Profile,
    engine: Engine,
    *,
    reasons: bool = False,
    within: frozenset[str] | None = None,
) -> Feasibility:
    """Which nodes of *cluster* can take *pod*, nominated pods taken into account.

    A node refused by one plugin is explained by that plugin alone: the first in the order of the profile.

    Args:
        pod: asks for a node.
        cluster: as it is.
        profile: whose plugins are asked.
        engine: asks them.
        reasons: spell out refusals even if some node is feasible.
        within: names of the only nodes to look at; None: all. Plugins see the others too.
    """
    if len(cluster) == 0:
        return Feasibility(0, PreFilterOutcome(), np.zeros(0, dtype=np.bool_))
    before = pre_filter(pod, cluster, profile, engine)
    if before.status is not None:
        error = before.status if not before.status.rejected else None
        nothing = np.zeros(len(cluster), dtype=np.bool_)
        return _within(Feasibility(len(cluster), before, nothing, error=error), cluster, within)
    if within is not None:
        before = replace(before, nodes=within if before.nodes is None else within & before.nodes)
    began = engine.run.begin()
    every = profile.check_all_filters
    verdicts = judge(pod, cluster, profile, engine, before, all_of_them=every)
    verdicts = beside_nominated(verdicts, pod, cluster, profile, engine, before)
    found = conclude(verdicts, cluster, before, reasons=reasons, every=every)
    engine.run.passed(profile.scheduler_name, "Filter", found.error, began)
    return _within(found, cluster, within)


def _within(found: Feasibility, cluster: Snapshot, names: frozenset[str] | None) -> Feasibility:
    if names is None:
        return found
    return replace(found, outside=len(cluster) - sum(cluster.row(name) is not None for name in names))


def conclude(
    verdicts: Verdicts, cluster: Snapshot, before: PreFilterOutcome, *, reasons: bool, every: bool = False
) -> Feasibility:
    """Sum *verdicts* up: who is feasible, who refused whom, and whether an error ended it all. Source: A092.

    Args:
        verdicts: of the plugins.
        cluster: that they are about.
        before: the round before.
        reasons: spell out refusals even if some node is feasible.
        every: of all plugins that refuse a node, not of the first alone. Source: C018.
    """
    ok = verdicts.feasible()
    broken = any(r.code is Code.ERROR for c in verdicts.columns.values() for r in c.groups)
    if not broken and not reasons:
        found = Feasibility(len(cluster), before, ok)
        if found.count:
            return found
    refusals: list[Refusal] = []
    failed: list[int] = []
    failures = verdicts.all_failures() if every else verdicts.first_failures()
    for plugin, rows in failures.items():
        groups = verdicts.columns[plugin].groups
        for reason, nodes in sorted(groups.items(), key=lambda group: group[0].order):
            mine = nodes & rows
            if mine.any():
                refusals.append(Refusal(plugin, reason, mine))
                if reason.code is Code.ERROR:
                    failed.extend(np.flatnonzero(mine).tolist())
    error = None
    if failed:
        first = min(failed, key=lambda row: cluster.names[row])
        error = verdicts.fault(first)
    return Feasibility(len(cluster), before, ok, tuple(refusals), error)
