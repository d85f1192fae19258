"""The node that per-node plugins receive: the typed object, its pods and its resources."""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from extender.api.kinds.node import Node, Taint
from extender.cache.pod_info import AssignedPodInfo
from extender.cache.snapshot import NodeView
from extender.cache.tables.arrays import IntArray
from extender.framework.plugin_inputs import ReadOnlyAssignedPodInfo, ReadOnlyNodeView, make_node_read_only


class _ResourceAmounts:
    """The resource amounts of all nodes of a view. The amounts of a resource are read at their first use."""

    def __init__(self, view: NodeView) -> None:
        self.view = view
        self._amounts: dict[tuple[str, str], list[int]] = {}

    def allocatable(self, resource: str) -> list[int]:
        """Return the allocatable amount of each node."""

        def read() -> IntArray:
            if resource == "pods":
                return self.view.allowed_pods
            return self.view.allocatable(self.view.snapshot.symbols.get_resource_id(resource))

        return self._get_or_read("allocatable", resource, read)

    def requested(self, resource: str) -> list[int]:
        """Return the amount that the pods on each node request, also of a resource that no node has."""

        def read() -> IntArray:
            if resource == "pods":
                return self.view.pod_count
            resource_id = self.view.snapshot.symbols.resources.get(resource)
            return self.view.sum_requests(resource) if resource_id is None else self.view.requested(resource_id)

        return self._get_or_read("requested", resource, read)

    def _get_or_read(self, amount_kind: str, resource: str, read: Callable[[], IntArray]) -> list[int]:
        amounts = self._amounts.get((amount_kind, resource))
        if amounts is None:
            amounts = self._amounts[amount_kind, resource] = read().tolist()
        return amounts


class NodeInfo:
    """A node with its pods and resources; valid only during the plugin call that received it.

    Amounts are whole numbers in base units: milli-CPU for `cpu`, bytes for `memory` and `ephemeral-storage`, counts
    for all other resources, including `pods`. The allocatable amount of a resource that the node does not have is 0.

    Everything that can be read here is read-only: the labels, the fields of `node` and of the pods.
    """

    __slots__ = ("_amounts", "_node", "_position")

    def __init__(self, node: Node, position: int, amounts: _ResourceAmounts) -> None:
        self._node = node
        self._position = position
        self._amounts = amounts

    def __repr__(self) -> str:
        return f"NodeInfo({self.name!r})"

    @property
    def node(self) -> Node:
        """The typed object."""
        return make_node_read_only(self._node, self._amounts.view.snapshot)

    @property
    def name(self) -> str:
        """The node's name."""
        return self._node.metadata.name

    @property
    def labels(self) -> Mapping[str, str]:
        """The node's labels."""
        return MappingProxyType(self._node.metadata.labels)

    @property
    def annotations(self) -> Mapping[str, str]:
        """The node's annotations."""
        return MappingProxyType(self._node.metadata.annotations)

    @property
    def taints(self) -> tuple[Taint, ...]:
        """The node's taints."""
        return self._node.spec.taints

    @property
    def pods(self) -> tuple[AssignedPodInfo, ...]:
        """The pods on the node. `AssignedPodInfo.pod` is the typed object, whose `spec.node_name` is empty."""
        return tuple(map(ReadOnlyAssignedPodInfo, self._amounts.view.snapshot.pods_on(self.name).values()))

    def allocatable(self, resource: str) -> int:
        """Return the node's allocatable amount of *resource*."""
        return self._amounts.allocatable(resource)[self._position]

    def requested(self, resource: str) -> int:
        """Return the amount of *resource* that the pods on the node request; for `pods`, the number of pods."""
        return self._amounts.requested(resource)[self._position]

    def free(self, resource: str) -> int:
        """Return the allocatable minus the requested amount of *resource*; negative if the node is overcommitted."""
        return self.allocatable(resource) - self.requested(resource)


def iter_node_infos(view: NodeView) -> Iterator[NodeInfo]:
    """Yield the nodes of a view, in its order."""
    if isinstance(view, ReadOnlyNodeView):
        view = view.source  # a `NodeInfo` is read-only itself
    amounts = _ResourceAmounts(view)
    for position, node in enumerate(view.nodes):
        yield NodeInfo(node, position, amounts)
