"""NodeLabel: keep pods off nodes by the labels nodes have or lack, whatever the pod says.

**Refuses** for good a node that lacks a label of `presentLabels` or has a label of `absentLabels`. Values do not
matter.

**Scores** 100 for each label of `presentLabelsPreference` that the node has and each of `absentLabelsPreference` that
it lacks, divided by the number of both. Scores are not normalized.

**Undone by** a new node, or labels that change.

**Options** `presentLabels`, `absentLabels`, `presentLabelsPreference`, `absentLabelsPreference`: lists of label keys.
A key may not be in the present and in the absent list. A plugin of releases up to 1.22.

Source: C034, C065.
"""

from collections.abc import Hashable, Sequence
from typing import Any, ClassVar, Final

import msgspec
import numpy as np

from extender.cluster.arrays import BoolArray, IntArray
from extender.cluster.nodes import ABSENT
from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import NodeView
from extender.config.faults import Fault
from extender.config.gates import FeatureGates
from extender.config.paths import child
from extender.framework.changes import Action, Change, Hint, Registration, Resource
from extender.framework.normalize import MAX_SCORE
from extender.framework.points import Reads
from extender.framework.setup import Setup
from extender.framework.verdict import Code, Reason, Rejection

_VIOLATED: Final = Reason("node(s) didn't have the requested labels", Code.UNRESOLVABLE)


class NodeLabelArgs(msgspec.Struct, frozen=True, rename="camel"):
    """Options of NodeLabel; see the module."""

    present_labels: tuple[str, ...] = ()
    absent_labels: tuple[str, ...] = ()
    present_labels_preference: tuple[str, ...] = ()
    absent_labels_preference: tuple[str, ...] = ()

    def faults(self, path: str, gates: FeatureGates) -> list[Fault]:  # noqa: ARG002
        """Labels that shall be there and not be there."""
        pairs = (
            ("presentLabels", self.present_labels, self.absent_labels),
            ("presentLabelsPreference", self.present_labels_preference, self.absent_labels_preference),
        )
        return [
            Fault(child(path, key), _conflict(both[0], present, absent))
            for key, present, absent in pairs
            if (both := [label for label in present if label in absent])
        ]


def _conflict(label: str, present: Sequence[str], absent: Sequence[str]) -> str:
    lists = f"both the present([{' '.join(present)}]) and absent([{' '.join(absent)}]) label list"
    return f'detecting at least one label (e.g., "{label}") that exist in {lists}'


class NodeLabel:
    """Looks at label columns; the same for all pods."""

    name: ClassVar[str] = "NodeLabel"
    options = NodeLabelArgs
    filter_reads: ClassVar[Reads] = Reads.NODE
    score_reads: ClassVar[Reads] = Reads.NODE

    def __init__(self, setup: Setup[NodeLabelArgs]) -> None:
        self._options = setup.options

    def filter_key(self, pod: PodQuery) -> Hashable | None:  # noqa: ARG002  the point's signature
        """Every pod gets the same answer."""
        return ""

    def filter(self, pod: PodQuery, nodes: NodeView, notes: Any) -> Sequence[Rejection]:  # noqa: ARG002
        """Source: C034."""
        refused = np.zeros(len(nodes), dtype=np.bool_)
        for label in self._options.present_labels:
            refused |= ~_has(nodes, label)
        for label in self._options.absent_labels:
            refused |= _has(nodes, label)
        return (Rejection(refused, _VIOLATED),)

    def score_key(self, pod: PodQuery) -> Hashable | None:  # noqa: ARG002  the point's signature
        """Every pod gets the same answer."""
        return ""

    def score(self, pod: PodQuery, nodes: NodeView, notes: Any) -> IntArray:  # noqa: ARG002
        """0 to 100 a node; 0 without preferences. Source: C065."""
        options = self._options
        scores = np.zeros(len(nodes), dtype=np.int64)
        for label in options.present_labels_preference:
            scores += MAX_SCORE * _has(nodes, label)
        for label in options.absent_labels_preference:
            scores += MAX_SCORE * ~_has(nodes, label)
        number = len(options.present_labels_preference) + len(options.absent_labels_preference)
        return scores // max(1, number)

    def events(self) -> Sequence[Registration]:
        """Changes of what is read."""
        return (Registration(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL, self._after_node_change),)

    def _after_node_change(self, pod: PodQuery, change: Change) -> Hint:  # noqa: ARG002  a hint's signature
        closed_before = change.old is None or not self._accepts(change.old.metadata.labels)
        return Hint.QUEUE if closed_before and self._accepts(change.new.metadata.labels) else Hint.SKIP

    def _accepts(self, labels: dict[str, str]) -> bool:
        present = all(label in labels for label in self._options.present_labels)
        return present and not any(label in labels for label in self._options.absent_labels)


def _has(nodes: NodeView, label: str) -> BoolArray:
    has: BoolArray = nodes.label(label) != ABSENT
    return has
