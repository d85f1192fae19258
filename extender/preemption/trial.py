"""Some nodes, each imagined on its own with pods gone, and what the Filter plugins say of them then.

Thousands of nodes are imagined in one hypothesis, since most filters look at nothing but a node and its pods. What
filters know of the whole cluster is in their notes; plugins with `PreFilterExtensions` keep them true, either for all
nodes in one go (`ApartFilter`) or with a copy a node.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from extender.cluster.arrays import BoolArray, IntArray
from extender.cluster.batches import PodBatch
from extender.cluster.hypothesis import Hypothesis
from extender.cluster.pods import PlacedPod, PodQuery, placed
from extender.cluster.snapshot import Snapshot
from extender.decide.engine import Engine
from extender.decide.filtering import Verdicts
from extender.decide.prefiltering import PreFilterOutcome
from extender.framework.columns import FilterColumn
from extender.framework.points import ApartFilter, PreFilterExtensions
from extender.framework.profiles import Profile
from extender.framework.runner import PluginError
from extender.framework.verdict import Code, Reason, Rejection


@dataclass(frozen=True, slots=True)
class Question:
    """Who asks, by whose rules.

    Attributes:
        pod: wants room.
        cluster: as it is.
        profile: whose Filter plugins are asked.
        engine: asks them.
        before: what PreFilter said of the cluster as it is.
    """

    pod: PodQuery
    cluster: Snapshot
    profile: Profile
    engine: Engine
    before: PreFilterOutcome


@dataclass(frozen=True, slots=True)
class Answer:
    """Which of the nodes asked about take the pod.

    Attributes:
        fits: bool, one entry a node.
        rounds: what was said, with the positions among the nodes asked about that it settles.
    """

    fits: BoolArray
    rounds: tuple[tuple[IntArray, Verdicts], ...]

    def reasons(self) -> Counter[str]:
        """How many nodes are refused for each reason, by the first plugin to refuse them."""
        counts: Counter[str] = Counter()
        for _, verdicts in self.rounds:
            for plugin, rows in verdicts.first_failures().items():
                for reason, mask in verdicts.columns[plugin].groups.items():
                    counts[reason.text] += int(np.count_nonzero(mask & rows))
        return +counts

    def errors(self) -> list[str]:
        """What went wrong on nodes where a plugin could not answer."""
        found: list[str] = []
        for _, verdicts in self.rounds:
            if any(reason.code is Code.ERROR for column in verdicts.columns.values() for reason in column.groups):
                first = map(verdicts.first_failure, range(len(verdicts.asked)))
                found += [status.message for status in first if status is not None and status.code is Code.ERROR]
        return found


class Trial:
    """Pods may be taken away from their nodes and brought back; at first all are there.

    Attributes:
        batch: the pods that may go and, after them, those nominated for the same nodes that count there (A095).
        faults: rows on which a plugin could not follow a pod that came or left, with the error. They count no more.
    """

    __slots__ = (
        "_ahead",
        "_apart",
        "_by",
        "_copies",
        "_question",
        "_what_if",
        "batch",
        "faults",
    )

    def __init__(self, question: Question, asked: IntArray, pods: PodBatch) -> None:
        """All pods are where they are.

        Args:
            question: who asks.
            asked: the rows that will be asked about.
            pods: may go; they are on rows among those asked about.
        """
        self._question = question
        self._what_if = Hypothesis(question.cluster)
        self.batch = pods
        self._ahead: dict[int, list[int]] = {}
        ahead = _ahead(question, asked)
        if ahead:
            rows = [row for row, others in ahead.items() for _ in others]
            coming = [other for others in ahead.values() for other in others]
            self.batch = PodBatch([*pods.pods, *coming], np.concatenate((pods.rows, np.array(rows, dtype=np.int64))))
            for index, row in enumerate(rows, len(pods)):
                self._ahead.setdefault(row, []).append(index)
        self._by: IntArray = np.zeros(len(self.batch), dtype=np.int64)
        self._apart: frozenset[str] = frozenset()
        self._copies: dict[str, dict[int, Any]] = {}
        for plugin in question.profile.pre_filters:
            if plugin.name in question.before.skipped or not isinstance(plugin, PreFilterExtensions):
                continue
            if isinstance(plugin, ApartFilter):
                self._apart |= {plugin.name}
            else:
                self._copies[plugin.name] = {}
        self.faults: dict[int, str] = {}

    # -- pods that go and come back

    def take_away(self, which: IntArray) -> None:
        """The pods with these indices are gone; they are there now."""
        self._what_if.take_away(self.batch, which)
        self._by[which] -= 1
        self._follow(which, coming=False)

    def bring(self, which: IntArray) -> None:
        """The pods with these indices are on their nodes; they are not there now."""
        self._what_if.bring(self.batch, which)
        self._by[which] += 1
        self._follow(which, coming=True)

    def _follow(self, which: IntArray, *, coming: bool) -> None:
        """Keep the copies of notes true."""
        if not self._copies:
            return
        imagined = self._what_if.snapshot()
        for plugin in self._question.profile.pre_filters:
            copies = self._copies.get(plugin.name)
            if copies is None or not isinstance(plugin, PreFilterExtensions):
                continue
            change, point = (plugin.add_pod, "AddPod") if coming else (plugin.remove_pod, "RemovePod")
            for index in which.tolist():
                row = int(self.batch.rows[index])
                if row in self.faults:
                    continue
                try:
                    notes = copies.get(row)
                    if notes is None:
                        notes = copies[row] = self._call(plugin, point, plugin.clone, self._notes(plugin.name))
                    self._call(plugin, point, change, self._question.pod, self.batch.pods[index], row, imagined, notes)
                except PluginError as wrong:
                    self.faults[row] = str(wrong)

    def _call(self, plugin: Any, point: str, method: Callable[..., Any], *args: Any) -> Any:
        return self._question.engine.run.call(plugin, point, method, *args)

    def _notes(self, plugin: str) -> Any:
        return self._question.before.notes.get(plugin)

    # -- asking

    def ask(self, rows: IntArray) -> Answer:
        """What the Filter plugins say of *rows* as they are imagined now.

        A node must take the pod beside the pods nominated for it as well as without them. Source: A095, E015.
        """
        fits = np.ones(len(rows), dtype=np.bool_)
        rounds: list[tuple[IntArray, Verdicts]] = []
        crowded = np.flatnonzero(np.isin(rows, list(self._ahead)))
        if len(crowded):
            coming = [index for row in rows[crowded].tolist() for index in self._ahead[row]]
            verdicts = self._beside(rows[crowded], np.array(coming, dtype=np.int64))
            refused = ~verdicts.feasible()
            fits[crowded[refused]] = False
            rounds.append((crowded[refused], _only(verdicts, refused)))
        left = np.flatnonzero(fits)
        verdicts = self._round(rows[left])
        fits[left] = verdicts.feasible()
        rounds.append((left, verdicts))
        fits &= ~np.isin(rows, list(self.faults))
        return Answer(fits, tuple(rounds))

    def _beside(self, rows: IntArray, coming: IntArray) -> Verdicts:
        kept = {name: dict(copies) for name, copies in self._copies.items()}
        for plugin in self._question.profile.pre_filters:
            copies = self._copies.get(plugin.name)
            if copies is not None and isinstance(plugin, PreFilterExtensions):
                for row in rows.tolist():
                    if row in copies:
                        copies[row] = plugin.clone(copies[row])
        self.bring(coming)
        verdicts = self._round(rows)
        self._what_if.take_away(self.batch, coming)
        self._by[coming] -= 1
        self._copies = kept
        return verdicts

    def _round(self, rows: IntArray) -> Verdicts:
        """Ask the Filter plugins in order; who is refused is not asked about again."""
        imagined = self._what_if.snapshot()
        left = np.ones(len(rows), dtype=np.bool_)
        columns: dict[str, FilterColumn] = {}
        for plugin in self._question.profile.filters:
            if plugin.name in self._question.before.skipped:
                continue
            here = np.flatnonzero(left)
            if not len(here):
                break
            column = columns[plugin.name] = FilterColumn(np.zeros(len(rows), dtype=np.bool_))
            self._fill(column, plugin, here, rows, imagined)
            if column.groups:
                left &= ~column.refused
        return Verdicts(np.ones(len(rows), dtype=np.bool_), columns)

    def _fill(self, column: FilterColumn, plugin: Any, here: IntArray, rows: IntArray, imagined: Snapshot) -> None:
        """Write what *plugin* says of the *rows* at the positions *here*."""
        run, pod, notes = self._question.engine.run, self._question.pod, self._notes(plugin.name)
        copies = self._copies.get(plugin.name)
        if copies is not None:
            for at in here.tolist():
                row = int(rows[at])
                own, spot = copies.get(row, notes), np.array([at], dtype=np.int64)
                _write(column, spot, lambda view, own=own: run.filter(plugin, pod, view, own), imagined, rows)
        elif plugin.name in self._apart:
            _write(
                column,
                here,
                lambda view: run.filter_apart(plugin, pod, view, notes, self.batch, self._by),
                imagined,
                rows,
            )
        else:
            _write(column, here, lambda view: run.filter(plugin, pod, view, notes), imagined, rows)


def _write(
    column: FilterColumn,
    here: IntArray,
    asked: Callable[..., tuple[Rejection, ...]],
    imagined: Snapshot,
    rows: IntArray,
) -> None:
    try:
        said = asked(imagined.view(rows[here]))
    except PluginError as wrong:
        said = (Rejection(np.ones(len(here), dtype=np.bool_), Reason(wrong.detail, Code.ERROR)),)
    column.write(here, said)


def _only(verdicts: Verdicts, which: BoolArray) -> Verdicts:
    """*verdicts* about those rows only."""
    return Verdicts(
        which[which],
        {
            name: FilterColumn(c.refused[which], {r: m[which] for r, m in c.groups.items() if m[which].any()})
            for name, c in verdicts.columns.items()
        },
    )


def _ahead(question: Question, rows: IntArray) -> dict[int, list[PlacedPod]]:
    """The pods that are nominated for these rows and go before the pod, by row. Source: A095."""
    cluster, pod = question.cluster, question.pod
    found: dict[int, list[PlacedPod]] = {}
    if not cluster.nominations:
        return found
    asked = frozenset(rows.tolist())
    for name, queries in cluster.nominations.items():
        row = cluster.row(name)
        if row is not None and row in asked:
            others = [q for q in queries if q.priority >= pod.priority and q.uid != pod.uid]
            if others:
                found[row] = [placed(q.pod, q.shape, name, assumed=True) for q in others]
    return found
