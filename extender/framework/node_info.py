"""One node as a plugin that works row at a time sees it: the typed object, the pods on it, and what is left."""

from collections.abc import Callable, Iterator, Mapping

from extender.cluster.arrays import IntArray
from extender.cluster.pods import PlacedPod
from extender.cluster.snapshot import NodeView
from extender.objects.node import Node, Taint


class _Amounts:
    """The amounts of all nodes of a view, each resource read once a call, and only if somebody asks for it."""

    __slots__ = ("_kept", "view")

    def __init__(self, view: NodeView) -> None:
        self.view = view
        self._kept: dict[tuple[str, str], list[int]] = {}

    def allocatable(self, resource: str) -> list[int]:
        """What each node offers."""
        return self._of("allocatable", resource, self.view.allocatable, lambda: self.view.allowed_pods)

    def requested(self, resource: str) -> list[int]:
        """What the pods on each node ask for."""
        return self._of("requested", resource, self.view.requested, lambda: self.view.pod_count)

    def _of(self, what: str, resource: str, read: Callable[[int], IntArray], pods: Callable[[], IntArray]) -> list[int]:
        kept = self._kept.get((what, resource))
        if kept is None:
            if resource == "pods":
                kept = pods().tolist()
            else:
                number = self.view.snapshot.vocabulary.resources.find(resource)
                kept = [0] * len(self.view) if number is None else read(number).tolist()
            self._kept[what, resource] = kept
        return kept


class NodeInfo:
    """A node with what is on it; valid during the call it was made for.

    Amounts are whole numbers in base units: milli-CPU for `cpu`, bytes for `memory` and `ephemeral-storage`, counts
    for everything else, `pods` included. A resource the node does not have counts 0.

    Attributes:
        node: the object.
    """

    __slots__ = ("_amounts", "_at", "node")

    def __init__(self, node: Node, at: int, amounts: _Amounts) -> None:
        self.node = node
        self._at = at
        self._amounts = amounts

    def __repr__(self) -> str:
        return f"NodeInfo({self.name!r})"

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.metadata.name

    @property
    def labels(self) -> Mapping[str, str]:
        """The node's labels; never change them."""
        return self.node.metadata.labels

    @property
    def annotations(self) -> Mapping[str, str]:
        """The node's annotations; never change them."""
        return self.node.metadata.annotations

    @property
    def taints(self) -> tuple[Taint, ...]:
        """The node's taints."""
        return self.node.spec.taints

    @property
    def pods(self) -> tuple[PlacedPod, ...]:
        """The pods on the node; `.pod` is the typed object, whose `spec.node_name` is empty."""
        return tuple(self._amounts.view.snapshot.pods_on(self.name).values())

    def allocatable(self, resource: str) -> int:
        """What the node offers of *resource*."""
        return self._amounts.allocatable(resource)[self._at]

    def requested(self, resource: str) -> int:
        """What the pods on the node ask for of *resource*; of `pods`, how many there are."""
        return self._amounts.requested(resource)[self._at]

    def free(self, resource: str) -> int:
        """What is left of *resource*: below 0 if the node is overcommitted."""
        return self.allocatable(resource) - self.requested(resource)


def each_node(nodes: NodeView) -> Iterator[NodeInfo]:
    """The nodes of a view one by one, in its order."""
    amounts = _Amounts(nodes)
    for at, node in enumerate(nodes.nodes):
        yield NodeInfo(node, at, amounts)
