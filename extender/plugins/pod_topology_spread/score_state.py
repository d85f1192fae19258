"""The PreScore state of PodTopologySpread, and the nodes that scoring ignores.

Source: pkg/scheduler/framework/plugins/podtopologyspread/scoring.go, PodTopologySpread.PreScore,
topologyNormalizingWeight, PodTopologySpread.Score (1.36).
"""

from dataclasses import dataclass

import numpy as np

from extender.cache.snapshot import NodeView
from extender.cache.tables.arrays import BoolArray, FloatArray, IntArray, make_mask
from extender.cache.tables.node_table import ABSENT
from extender.plugins.pod_topology_spread.constraints import SpreadConstraint


@dataclass(frozen=True, slots=True)
class PreScoreState:
    """The PreScore state.

    Attributes:
        constraints: the `ScheduleAnyway` constraints.
        required_topology_keys: the label keys that a node must have; other nodes are ignored.
        pod_counts: the matching pods of each constraint, by the id of the label value, or by row for the host name.
        topology_normalizing_weights: the weight of each constraint.
    """

    constraints: tuple[SpreadConstraint, ...]
    required_topology_keys: tuple[str, ...]
    pod_counts: tuple[IntArray, ...]
    topology_normalizing_weights: tuple[float, ...]


def find_ignored_nodes(nodes: NodeView, required_topology_keys: tuple[str, ...]) -> BoolArray | None:
    """Return a mask of the nodes that lack one of *required_topology_keys*, bool per node; None if no node does."""
    ignored_mask: BoolArray | None = None
    for key in required_topology_keys:
        lacks_label = nodes.label_value_ids(key) == ABSENT
        ignored_mask = lacks_label if ignored_mask is None else ignored_mask | lacks_label
    return ignored_mask if ignored_mask is not None and ignored_mask.any() else None


def count_topology_values(nodes: NodeView, key: str, ignored_mask: BoolArray | None) -> int:
    """Return the number of values of label *key* on nodes that are not masked. A missing label is an empty value."""
    label_values = nodes.snapshot.symbols.get_label_values(key)
    value_ids = nodes.label_value_ids(key)
    is_used = make_mask(value_ids if ignored_mask is None else value_ids[~ignored_mask], len(label_values) + 1)
    empty_value_id = label_values.get("")
    if empty_value_id is not None and is_used[ABSENT]:
        is_used[empty_value_id], is_used[ABSENT] = True, False
    return int(np.count_nonzero(is_used))


def round_half_away_from_zero(values: FloatArray) -> IntArray:
    """Return *values* rounded to integers, halves away from zero as in Go: int64."""
    rounded_values = np.trunc(values)
    rounded_values += (np.abs(values - rounded_values) >= 0.5) * np.sign(values)
    return rounded_values.astype(np.int64)
