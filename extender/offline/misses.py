"""The nodes that come nearest to taking a pod, and what would have to change on each."""

from dataclasses import dataclass
from typing import Final

from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import Snapshot
from extender.decide.examine import Examination, NodeVerdict
from extender.offline.remedies import INSUFFICIENT, explained, wanted

_LOOKED_AT: Final = 40


@dataclass(frozen=True, slots=True)
class Miss:
    """A node that refuses the pod.

    Attributes:
        node: its name.
        lines: one for each reason, with what is behind it.
        alike: whether other near nodes have the very same reasons.
    """

    node: str
    lines: tuple[str, ...]
    alike: bool = False


def nearest_misses(examination: Examination, cluster: Snapshot, count: int) -> list[Miss]:
    """The *count* nodes with the least in the way, the nearest first; of nodes with the same reasons only the first.

    Lacking part of a resource counts for that part, and every other reason for one.
    """
    far = _Distance(examination.pod, cluster)
    refused = [(far.of(name, verdict), name) for name, verdict in examination.nodes.items() if verdict.refusals]
    found: dict[tuple[str, ...], Miss] = {}
    for _, name in sorted(refused)[:_LOOKED_AT]:
        lines = _lines(examination.nodes[name], examination.pod, cluster, name)
        if lines in found:
            found[lines] = Miss(found[lines].node, lines, alike=True)
        else:
            found[lines] = Miss(name, lines)
    return list(found.values())[:count]


def _lines(verdict: NodeVerdict, pod: PodQuery, cluster: Snapshot, name: str) -> tuple[str, ...]:
    row = cluster.row(name)
    return tuple(
        reason if row is None else explained(plugin, reason, pod, cluster, row)
        for plugin, status in verdict.refusals.items()
        for reason in status.reasons
    )


class _Distance:
    """How far nodes are from taking a pod."""

    def __init__(self, pod: PodQuery, cluster: Snapshot) -> None:
        self._pod = pod
        self._cluster = cluster
        self._free: dict[str, list[int]] = {}

    def of(self, name: str, verdict: NodeVerdict) -> float:
        """The sum over the reasons against node *name*."""
        reasons = [reason for status in verdict.refusals.values() for reason in status.reasons]
        return sum(self._one(name, reason) for reason in reasons)

    def _one(self, name: str, reason: str) -> float:
        row = self._cluster.row(name)
        if row is None or not reason.startswith(INSUFFICIENT):
            return 1.0
        resource = reason.removeprefix(INSUFFICIENT)
        number, wants = wanted(self._pod, resource, self._cluster)
        if resource not in self._free:
            view = self._cluster.view()
            self._free[resource] = (view.allocatable(number) - view.requested(number)).tolist()
        short = wants - self._free[resource][row]
        return min(1.0, short / wants) if wants > 0 and short > 0 else 1.0  # else it is short of what claims add
