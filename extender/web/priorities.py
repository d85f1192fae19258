"""The answer of prioritize: nodes with their scores, kept as numbers and written as extender/v1's HostPriorityList."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from extender.cluster.arrays import IntArray
from extender.objects.extender_v1 import HostPriority
from extender.web.listed import Listed


@dataclass(frozen=True, slots=True, eq=False)
class Priorities:
    """Nodes best first. Source: F020.

    Attributes:
        listed: the nodes.
        order: their places in `listed`, best first; int64, shape (number of nodes,).
        scores: in that order, int64.
    """

    listed: Listed
    order: IntArray
    scores: IntArray

    def __iter__(self) -> Iterator[HostPriority]:
        names = map(self.listed.names.__getitem__, self.order.tolist())
        return map(HostPriority, names, self.scores.tolist())

    def written(self) -> bytes:
        """The answer in JSON, byte for byte what encoding the list of `HostPriority` gives.

        Nodes of one score stand together, so what is between two of their names is the same: a run is one join.
        """
        if not len(self.order):
            return b"[]"
        hosts = self.listed.quoted[self.order].tolist()
        ends = [*(np.flatnonzero(np.diff(self.scores)) + 1).tolist(), len(hosts)]
        runs, start = [], 0
        for end in ends:
            after = b',"Score":%d}' % self.scores[start]
            runs.append(b'{"Host":' + (after + b',{"Host":').join(hosts[start:end]) + after)
            start = end
        return b"[" + b",".join(runs) + b"]"
