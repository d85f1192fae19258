"""The response of prioritize: scores as arrays, encoded as extender/v1's HostPriorityList."""

from collections.abc import Iterator
from dataclasses import dataclass

from extender.api.extender_v1 import HostPriority
from extender.cache.tables.arrays import IntArray
from extender.extender_api.node_names import NodeNames


@dataclass(frozen=True, slots=True, eq=False)
class HostPriorities:
    """Node scores, best node first.

    Attributes:
        node_names: the nodes in the order of the request.
        order: the positions of the listed nodes in `node_names`, best first; int64, shape (number of listed nodes,).
        scores: the scores in the order of `order`, int64.

    Source: kube-scheduler/extender/v1/types.go, HostPriorityList (1.36).
    """

    node_names: NodeNames
    order: IntArray
    scores: IntArray

    def __iter__(self) -> Iterator[HostPriority]:
        names = map(self.node_names.names.__getitem__, self.order.tolist())
        return map(HostPriority, names, self.scores.tolist())

    def to_json(self) -> bytes:
        """Return the JSON of the list of `HostPriority`, faster than an encoder.

        Nodes with equal scores are adjacent, and the text between their names is the same. So one join encodes all
        nodes with the same score.
        """
        if not len(self.order):
            return b"[]"
        hosts = self.node_names.json_strings.take(self.order).tolist()
        ends = [*((self.scores[1:] != self.scores[:-1]).nonzero()[0] + 1).tolist(), len(hosts)]
        parts: list[bytes] = []
        start, opening = 0, b'[{"Host":'
        for end in ends:
            suffix = b',"Score":%d}' % self.scores[start]
            parts += opening, (suffix + b',{"Host":').join(hosts[start:end]), suffix
            start, opening = end, b',{"Host":'
        parts.append(b"]")
        return b"".join(parts)
