"""The three rules by which nodes are refused, each node for the first that applies. Source: B057 to B059."""

from functools import partial, reduce

import numpy as np

from extender.cluster.arrays import BoolArray
from extender.cluster.snapshot import NodeView
from extender.framework.verdict import Code, Reason, Rejection
from extender.plugins.inter_pod_affinity.apart import MovedTally
from extender.plugins.inter_pod_affinity.tally import DomainTally

_AFFINITY = Reason("node(s) didn't match pod affinity rules", Code.UNRESOLVABLE)
_ANTI_AFFINITY = Reason("node(s) didn't match pod anti-affinity rules")
_EXISTING = Reason("node(s) didn't satisfy existing pods anti-affinity rules")


def rejections(
    near_keys: tuple[str, ...],
    first: BoolArray | bool,
    nodes: NodeView,
    tallies: tuple[DomainTally | MovedTally, DomainTally | MovedTally, DomainTally | MovedTally],
) -> list[Rejection]:
    """The nodes that each rule refuses and no rule before it, groups without any left out.

    Args:
        near_keys: the topology keys of the pod's required affinity terms.
        first: where the pod would be the first of its kind: bool, shape (len(nodes),), or False for nowhere.
        nodes: the view.
        tallies: those of `Placement`.
    """
    groups: list[Rejection] = []
    near, apart, refusing = tallies
    rules = (
        (_AFFINITY, near_keys, partial(_away, nodes, near, first)),
        (_ANTI_AFFINITY, apart.keys, partial(apart.is_positive, nodes)),
        (_EXISTING, refusing.keys, partial(refusing.is_positive, nodes)),
    )
    refused: BoolArray | None = None
    for reason, keys, by_key in rules:
        if not keys:
            continue
        violated = reduce(np.logical_or, map(by_key, keys))
        if np.count_nonzero(violated):
            mine = violated if refused is None else violated & ~refused
            refused = violated if refused is None else violated | refused
            groups.append(Rejection(mine, reason))
    return groups


def _away(nodes: NodeView, near: DomainTally | MovedTally, first: BoolArray | bool, key: str) -> BoolArray:
    """Where the pods that it must be near to are not; where it would be the *first*, only the label must be there."""
    lacking = ~near.is_positive(nodes, key)
    return lacking if first is False else np.where(first, nodes.label(key) < 0, lacking)
