"""Which nodes a request asks about: names, looked up in the cluster as it is, or whole nodes, imagined into it."""

from dataclasses import dataclass

import numpy as np

from extender.cluster.arrays import BoolArray, IntArray
from extender.cluster.hypothesis import Hypothesis
from extender.cluster.snapshot import Snapshot
from extender.decide.engine import Engine
from extender.web.listed import Listed, Places
from extender.web.wire import NodeList, RequestError


@dataclass(frozen=True, slots=True)
class Asked:
    """The nodes of one request.

    Attributes:
        cluster: the cluster they are judged in.
        engine: judges them.
        listed: their names, in the order of the request.
        places: where they are in the cluster.
    """

    cluster: Snapshot
    engine: Engine
    listed: Listed
    places: Places

    @property
    def names(self) -> list[str]:
        """Of the nodes asked about, in the order of the request."""
        return self.listed.names

    @property
    def rows(self) -> IntArray:
        """Of each name, -1 where it is unknown; int64."""
        return self.places.rows

    @property
    def known(self) -> BoolArray:
        """Whether each name is known."""
        return self.places.known

    @property
    def unknown(self) -> int:
        """How many names are not known."""
        return self.places.unknown

    def mask(self) -> BoolArray:
        """The rows asked about: a new bool array, shape (number of nodes,)."""
        mask = np.zeros(len(self.cluster), dtype=np.bool_)
        mask[self.rows[self.known]] = True
        return mask

    def of(self, column: BoolArray) -> BoolArray:
        """The entries of *column* (bool, by row) for the nodes asked about; False for unknown ones."""
        if not len(column):
            return np.zeros(len(self.rows), dtype=np.bool_)
        found: BoolArray = column[self.rows] & self.known
        return found


def by_names(listed: Listed, cluster: Snapshot, engine: Engine) -> Asked:
    """The nodes of these names in *cluster*."""
    return Asked(cluster, engine, listed, listed.places(cluster))


def by_nodes(sent: NodeList, cluster: Snapshot, engine: Engine) -> Asked:
    """Whole nodes, each in place of the one *cluster* knows by its name, which stays as it is.

    The pods that *cluster* knows on them still count, and so do its other nodes: kube-scheduler leaves out nodes that
    it has refused already, but their pods matter for affinity and spread.

    Args:
        sent: the nodes.
        cluster: the cluster as it is; empty if there is none.
        engine: asks about an imagined cluster, so it should keep no answers.

    Raises:
        RequestError: 400, a node holds a value that cannot be read.
    """
    imagined = Hypothesis(cluster)
    known = cluster.nodes
    names = []
    for index, each in enumerate(sent.nodes):
        node = each.node
        names.append(node.metadata.name)
        row = cluster.row(node.metadata.name)
        if row is not None and (known[row] is node or known[row] == node):
            each.node = known[row]
            continue
        try:
            imagined.put_node(node)
        except ValueError as wrong:
            raise RequestError(400, f"Nodes.items[{index}].status.allocatable: {wrong}") from wrong
    return by_names(Listed(names), imagined.snapshot(), engine)
