"""What scoring knows of the cluster, and which nodes it leaves out. Source: B075 to B077."""

from dataclasses import dataclass

import numpy as np

from extender.cluster.arrays import BoolArray, FloatArray, IntArray
from extender.cluster.nodes import ABSENT
from extender.cluster.snapshot import NodeView
from extender.plugins.pod_topology_spread.constraints import SpreadConstraint


@dataclass(frozen=True, slots=True)
class SoftNotes:
    """The notes of scoring.

    Attributes:
        constraints: the soft constraints.
        needed: nodes without one of these labels are ignored.
        counts: matching pods, for each constraint: by the id of the label value, or by row for the host name.
        weights: what each pod weighs, for each constraint.
    """

    constraints: tuple[SpreadConstraint, ...]
    needed: tuple[str, ...]
    counts: tuple[IntArray, ...]
    weights: tuple[float, ...]


def ignored(nodes: NodeView, needed: tuple[str, ...]) -> BoolArray | None:
    """Which nodes of the view lack a label of *needed*; None if none does."""
    lacking: BoolArray | None = None
    for key in needed:
        missing = nodes.label(key) == ABSENT
        lacking = missing if lacking is None else lacking | missing
    return lacking if lacking is not None and lacking.any() else None


def distinct(nodes: NodeView, key: str, left_out: BoolArray | None) -> int:
    """How many values of label *key* the nodes have that are not *left_out*; no label is the empty value."""
    words = nodes.snapshot.vocabulary.label_values(key)
    labels = nodes.label(key)
    seen = np.zeros(len(words) + 1, dtype=np.bool_)
    seen[labels if left_out is None else labels[~left_out]] = True
    empty = words.find("")
    if empty is not None and seen[ABSENT]:
        seen[empty], seen[ABSENT] = True, False
    return int(np.count_nonzero(seen))


def rounded(numbers: FloatArray) -> IntArray:
    """The nearest integers, halves away from zero as Go rounds; int64."""
    whole = np.trunc(numbers)
    whole += (np.abs(numbers - whole) >= 0.5) * np.sign(numbers)
    return whole.astype(np.int64)
