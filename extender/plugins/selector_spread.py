"""SelectorSpread spreads the pods of services and controllers over nodes and zones.

**Scores** nodes by how few pods they hold that the pod's services and its controller all select: of the same
namespace and not being deleted. 100 without any, 0 for the most on one node among those that can take the pod. Where
such nodes have zones, a node's own share counts one third and that of its zone two thirds. If nothing selects the pod
all nodes get 100. A pod with topology spread constraints of its own is not scored.

**Options** none. A plugin of releases up to 1.24; the default constraints of PodTopologySpread came in its place.

Source: C052, C053, B068.
"""

from typing import Any, ClassVar, Final

import numpy as np

from extender.cluster.arrays import IntArray
from extender.cluster.nodes import ABSENT
from extender.cluster.pods import PodQuery
from extender.cluster.selecting import PodMatcher, PodTerm
from extender.cluster.snapshot import NodeView
from extender.cluster.workload_selector import workload_selector
from extender.framework.normalize import MAX_SCORE
from extender.framework.points import SKIP_SCORE, PreScored
from extender.objects.matching import NOTHING

_ZONE_WEIGHT: Final = 2.0 / 3.0
_FEW: Final = 1 << 16
"""Zones that are numbered with gaps, which is faster."""

_ZONES: Final = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")
_REGIONS: Final = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")


class SelectorSpread:
    """Reads counts of pods that are kept by selector."""

    name: ClassVar[str] = "SelectorSpread"

    def pre_score(self, pod: PodQuery, nodes: NodeView) -> PreScored:
        """Notes whom to count; None counts nobody."""
        if pod.spec.topology_spread_constraints:
            return SKIP_SCORE
        selector = workload_selector(pod, nodes.snapshot)
        if selector.is_empty:
            return PreScored()
        term = PodTerm(frozenset((pod.namespace,)), NOTHING, selector)
        return PreScored(notes=PodMatcher((term,), live_only=True))

    def score(self, pod: PodQuery, nodes: NodeView, notes: PodMatcher | None) -> IntArray:  # noqa: ARG002
        """Pods on each node that are selected as the pod is. Source: C052."""
        if notes is None:
            return np.zeros(len(nodes), dtype=np.int64)
        cluster = nodes.snapshot
        return nodes.take(cluster.count_rows(cluster.counts(notes))).copy()

    def normalize(self, pod: PodQuery, raw: IntArray, nodes: NodeView, notes: Any) -> IntArray:  # noqa: ARG002
        """0 to 100 a node, rounded down. Source: C052."""
        scores = _emptiness(raw)
        zones = _zone_numbers(nodes)
        zoned = zones != ABSENT
        if zoned.any():
            counts = np.bincount(zones[zoned], weights=raw[zoned]).astype(np.int64)
            emptiness = _emptiness(counts)[zones[zoned]]
            scores[zoned] = scores[zoned] * (1.0 - _ZONE_WEIGHT) + _ZONE_WEIGHT * emptiness
        return scores.astype(np.int64)


def _emptiness(counts: IntArray) -> np.ndarray[Any, np.dtype[np.float64]]:
    """100 for a count of 0, 0 for the greatest, in proportion between: float64, one a count."""
    most = int(counts.max(initial=0))
    if not most:
        return np.full(len(counts), float(MAX_SCORE))
    return float(MAX_SCORE) * ((most - counts) / float(most))


def _zone_numbers(nodes: NodeView) -> IntArray:
    """A number for each node's region and zone together, `ABSENT` for a node with neither: int64, shape (len(nodes),).

    The older label goes before the newer one of the same meaning.
    """
    names: dict[str, int] = {"": 0}
    region, zone = (_numbers(nodes, keys, names) for keys in (_REGIONS, _ZONES))
    both = region * len(names) + zone
    if len(names) ** 2 <= _FEW:
        return np.where(both > 0, both, np.int64(ABSENT))
    _, numbers = np.unique(both, return_inverse=True)
    return np.where(both > 0, numbers.reshape(-1), np.int64(ABSENT))


def _numbers(nodes: NodeView, keys: tuple[str, str], names: dict[str, int]) -> IntArray:
    """The number in *names* of each node's label, 0 without; *names* grows."""
    older, newer = (_named(nodes, key, names) for key in keys)
    return np.where(nodes.label(keys[0]) == ABSENT, newer, older)


def _named(nodes: NodeView, key: str, names: dict[str, int]) -> IntArray:
    words = nodes.snapshot.vocabulary.label_values(key)
    column = nodes.label(key)  # before its values are listed: the first to ask makes them known
    numbers = np.array([*(names.setdefault(word, len(names)) for word in words), 0], dtype=np.int64)
    return numbers[column]
