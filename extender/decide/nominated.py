"""Pods that wait for room on a node count there for others of no higher priority. Source: A095, A096."""

from typing import Any

import numpy as np

from extender.cluster.arrays import BoolArray, IntArray
from extender.cluster.hypothesis import Hypothesis
from extender.cluster.pods import PlacedPod, PodQuery
from extender.cluster.snapshot import Snapshot
from extender.decide.engine import Engine
from extender.decide.filtering import Verdicts, failed
from extender.decide.prefiltering import PreFilterOutcome
from extender.framework.columns import FilterColumn
from extender.framework.points import PreFilterExtensions
from extender.framework.profiles import Profile
from extender.framework.runner import PluginError


def beside_nominated(
    verdicts: Verdicts, pod: PodQuery, cluster: Snapshot, profile: Profile, engine: Engine, before: PreFilterOutcome
) -> Verdicts:
    """*verdicts* with the nodes corrected that *pod* does not fit on beside the pods nominated for them.

    A node must take the pod with them as well as without them: a nominated pod may satisfy an affinity, and
        may never come.
    Nominated pods of lower priority do not count, nor does *pod* itself.
    """
    if not cluster.nominations:
        return verdicts
    what_if = Hypothesis(cluster)
    to_come: dict[int, list[PlacedPod]] = {}
    for name, queries in cluster.nominations.items():
        row = cluster.row(name)
        if row is None or not verdicts.asked[row]:
            continue
        ahead = [q for q in queries if q.priority >= pod.priority and q.uid != pod.uid]
        if ahead:
            to_come[row] = [what_if.place(q, name) for q in ahead]
    if not to_come:
        return verdicts
    imagined = what_if.snapshot()
    columns = {
        name: FilterColumn(c.refused.copy(), {r: m.copy() for r, m in c.groups.items()})
        for name, c in verdicts.columns.items()
    }
    for row, others in to_come.items():
        answers = ask_row(
            row, pod, imagined, profile, engine, before, notes_with(others, row, pod, imagined, profile, before)
        )
        if any(column.refused[0] for column in answers.values()):
            for name, answer in answers.items():
                if name not in columns:  # not asked before, since no node was left
                    columns[name] = FilterColumn(np.zeros(len(cluster), dtype=np.bool_))
                _overwrite(columns[name], row, answer)
    return Verdicts(verdicts.asked, columns)


def notes_with(
    others: list[PlacedPod], row: int, pod: PodQuery, imagined: Snapshot, profile: Profile, before: PreFilterOutcome
) -> dict[str, Any]:
    """PreFilter's notes as if *others* were on *row*: those of plugins with AddPod are copied and changed.

    Source: A060.
    """
    notes = dict(before.notes)
    for plugin in profile.pre_filters:
        if plugin.name in before.skipped or not isinstance(plugin, PreFilterExtensions):
            continue
        copied = plugin.clone(notes[plugin.name])
        for other in others:
            plugin.add_pod(pod, other, row, imagined, copied)
        notes[plugin.name] = copied
    return notes


def ask_row(
    row: int,
    pod: PodQuery,
    imagined: Snapshot,
    profile: Profile,
    engine: Engine,
    before: PreFilterOutcome,
    notes: dict[str, Any],
) -> dict[str, FilterColumn]:
    """What every Filter plugin says about one row of an imagined cluster: columns of one entry, by plugin."""
    view = imagined.view(_one(row))
    answers: dict[str, FilterColumn] = {}
    for plugin in profile.filters:
        if plugin.name in before.skipped:
            continue
        try:
            column = FilterColumn(_nobody())
            column.write(slice(None), engine.run.filter(plugin, pod, view, notes.get(plugin.name)))
        except PluginError as wrong:
            column = failed(wrong, 1)
        answers[plugin.name] = column
    return answers


def _one(row: int) -> IntArray:
    return np.array([row], dtype=np.int64)


def _nobody() -> BoolArray:
    return np.zeros(1, dtype=np.bool_)


def _overwrite(column: FilterColumn, row: int, answer: FilterColumn) -> None:
    column.refused[row] = answer.refused[0]
    for mask in column.groups.values():
        mask[row] = False
    for reason, mask in answer.groups.items():
        if mask[0]:
            column.groups.setdefault(reason, np.zeros(column.size, dtype=np.bool_))[row] = True
