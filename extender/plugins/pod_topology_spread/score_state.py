"""The PreScore state of PodTopologySpread, and the nodes that scoring ignores.

Source: pkg/scheduler/framework/plugins/podtopologyspread/scoring.go, PodTopologySpread.PreScore,
topologyNormalizingWeight, PodTopologySpread.Score (1.36).
"""

from dataclasses import dataclass

import numpy as np

from extender.cache.snapshot import NodeView
from extender.cache.tables.arrays import BoolArray, FloatArray, IntArray
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
    """Return the nodes that lack one of *required_topology_keys*; None if no node does."""
    ignored: BoolArray | None = None
    for key in required_topology_keys:
        lacks_label = nodes.label_value_ids(key) == ABSENT
        ignored = lacks_label if ignored is None else ignored | lacks_label
    return ignored if ignored is not None and ignored.any() else None


def count_topology_values(nodes: NodeView, key: str, ignored: BoolArray | None) -> int:
    """Return the number of values of label *key* on nodes that are not *ignored*. A missing label is an empty value."""
    label_values = nodes.snapshot.symbols.get_label_values(key)
    value_ids = nodes.label_value_ids(key)
    is_used = np.zeros(len(label_values) + 1, dtype=np.bool_)
    is_used[value_ids if ignored is None else value_ids[~ignored]] = True
    empty_value_id = label_values.get("")
    if empty_value_id is not None and is_used[ABSENT]:
        is_used[empty_value_id], is_used[ABSENT] = True, False
    return int(np.count_nonzero(is_used))


def round_half_away_from_zero(values: FloatArray) -> IntArray:
    """Return *values* rounded to integers, halves away from zero as in Go: int64."""
    rounded = np.trunc(values)
    rounded += (np.abs(values - rounded) >= 0.5) * np.sign(values)
    return rounded.astype(np.int64)
