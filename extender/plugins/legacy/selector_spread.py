"""SelectorSpread spreads the pods of a service or controller over nodes and zones.

**Scores** nodes by the number of their pods that match the selectors of the pod's services and controller. Pods of
other namespaces and terminating pods do not count. A node without such pods scores 100. The feasible nodes with the
highest number score 0. If nodes have zones, the node's score counts one third and its zone's score two thirds. If no
selector matches the pod, all nodes get 100. The plugin skips pods with topology spread constraints.

**Options** none. Releases up to 1.24 have this plugin. The default constraints of PodTopologySpread replace it.

Source: pkg/scheduler/framework/plugins/legacy_registry.go, LegacyRegistry.ProcessPriorityPolicy (1.21);
pkg/scheduler/framework/plugins/helper/spread.go, DefaultSelector (1.36).
"""

from typing import Any, ClassVar, Final

import numpy as np

from extender.api.matching import NOTHING
from extender.cache.default_selector import determine_default_selector
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import NodeView
from extender.cache.tables.arrays import IntArray
from extender.cache.tables.node_table import ABSENT
from extender.cache.tables.pod_selectors import PodMatcher, PodSelector
from extender.framework.extension_points import SKIP_SCORE, PreScoreResult
from extender.framework.normalize import MAX_SCORE

_ZONE_WEIGHT: Final = 2.0 / 3.0
_MAX_SPARSE_ZONE_IDS: Final = 1 << 16
"""Zone ids are renumbered only if more ids than this are possible. Renumbering is slower than sparse ids."""

_ZONES: Final = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")
_REGIONS: Final = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")


class SelectorSpread:
    """Scores nodes by the snapshot's pod counts for a selector."""

    name: ClassVar[str] = "SelectorSpread"

    def pre_score(self, pod: PodInfo, nodes: NodeView) -> PreScoreResult:
        """Store the matcher of the pods to count as the state. Store None if the pod has no selector."""
        if pod.spec.topology_spread_constraints:
            return SKIP_SCORE
        selector = determine_default_selector(pod, nodes.snapshot)
        if selector.is_empty:
            return PreScoreResult()
        term = PodSelector(frozenset((pod.namespace,)), NOTHING, selector)
        return PreScoreResult(state=PodMatcher((term,), ignore_terminating_pods=True))

    def score(self, pod: PodInfo, nodes: NodeView, state: PodMatcher | None) -> IntArray:  # noqa: ARG002
        """Return the number of matching pods on each node.

        Source: pkg/scheduler/framework/plugins/selectorspread/selector_spread.go, SelectorSpread.NormalizeScore
        (1.21).
        """
        if state is None:
            return np.zeros(len(nodes), dtype=np.int64)
        snapshot = nodes.snapshot
        return nodes.take(snapshot.counts_by_row(snapshot.pod_counts(state))).copy()

    def normalize_score(self, pod: PodInfo, scores: IntArray, nodes: NodeView, state: Any) -> IntArray:  # noqa: ARG002
        """Return a score from 0 to 100 for each node, rounded down.

        Source: pkg/scheduler/framework/plugins/selectorspread/selector_spread.go, SelectorSpread.NormalizeScore
        (1.21).
        """
        normalized = _compute_spread_scores(scores)
        zone_ids = _get_zone_ids(nodes)
        has_zone = zone_ids != ABSENT
        if has_zone.any():
            counts = np.bincount(zone_ids[has_zone], weights=scores[has_zone]).astype(np.int64)
            zone_scores = _compute_spread_scores(counts)[zone_ids[has_zone]]
            normalized[has_zone] = normalized[has_zone] * (1.0 - _ZONE_WEIGHT) + _ZONE_WEIGHT * zone_scores
        return normalized.astype(np.int64)


def _compute_spread_scores(counts: IntArray) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return 100 for a count of 0, 0 for the highest count, and proportional scores between: float64."""
    max_count = int(counts.max(initial=0))
    if not max_count:
        return np.full(len(counts), float(MAX_SCORE))
    return float(MAX_SCORE) * ((max_count - counts) / float(max_count))


def _get_zone_ids(nodes: NodeView) -> IntArray:
    """Return the id of each node's region and zone, ABSENT if it has neither label: int64, shape (len(nodes),).

    The beta labels take precedence over the stable labels.
    """
    id_by_value: dict[str, int] = {"": 0}
    region_ids, zone_value_ids = (_get_value_ids(nodes, keys, id_by_value) for keys in (_REGIONS, _ZONES))
    combined_ids = region_ids * len(id_by_value) + zone_value_ids
    if len(id_by_value) ** 2 <= _MAX_SPARSE_ZONE_IDS:
        return np.where(combined_ids > 0, combined_ids, np.int64(ABSENT))
    _, zone_ids = np.unique(combined_ids, return_inverse=True)
    return np.where(combined_ids > 0, zone_ids.reshape(-1), np.int64(ABSENT))


def _get_value_ids(nodes: NodeView, keys: tuple[str, str], id_by_value: dict[str, int]) -> IntArray:
    """Return the id of each node's label value; 0 without the label. Add new values to *id_by_value*."""
    beta_ids, stable_ids = (_get_label_value_ids(nodes, key, id_by_value) for key in keys)
    return np.where(nodes.label_value_ids(keys[0]) == ABSENT, stable_ids, beta_ids)


def _get_label_value_ids(nodes: NodeView, key: str, id_by_value: dict[str, int]) -> IntArray:
    label_values = nodes.snapshot.symbols.get_label_values(key)
    node_value_ids = nodes.label_value_ids(key)  # may add values to `label_values`, which the next line reads
    ids = np.array([*(id_by_value.setdefault(value, len(id_by_value)) for value in label_values), 0], dtype=np.int64)
    return ids[node_value_ids]
