"""Look up the names of a request in the snapshot, or add its whole nodes to a hypothesis of the snapshot."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod
from extender.api.pod_limits import MAX_RESOURCE_NAMES, get_resource_names
from extender.basics.intern import Interner
from extender.cache.hypothesis import Hypothesis
from extender.cache.snapshot import Snapshot
from extender.cache.tables.arrays import BoolArray, IntArray, make_mask
from extender.cycle.plugin_runtime import PluginRuntime
from extender.event_loop.cooperative_iteration import iterate_cooperatively, let_other_tasks_run
from extender.extender_api.node_list import NodeList
from extender.extender_api.node_names import NodeNames
from extender.extender_api.request_limits import RequestError


@dataclass(frozen=True, slots=True)
class RequestedNodes:
    """The nodes of one request."""

    snapshot: Snapshot
    runtime: PluginRuntime
    node_names: NodeNames
    rows: IntArray
    known_mask: BoolArray
    unknown_count: int

    @property
    def names(self) -> list[str]:
        """Names of the requested nodes, in the order of the request."""
        return self.node_names.names

    def make_row_mask(self) -> BoolArray:
        """Return a new mask of the requested rows: bool, shape (number of nodes,)."""
        return make_mask(self.rows[self.known_mask], len(self.snapshot))

    def select(self, column: BoolArray) -> BoolArray:
        """Return the entries of *column* (bool, by row) for the requested nodes; False for unknown ones."""
        if not len(column):
            return np.zeros(len(self.rows), dtype=np.bool_)
        entries: BoolArray = column[self.rows] & self.known_mask
        return entries


def find_nodes_by_name(node_names: NodeNames, snapshot: Snapshot, runtime: PluginRuntime) -> RequestedNodes:
    """Look up *node_names* in *snapshot*."""
    return RequestedNodes(snapshot, runtime, node_names, *node_names.find_rows(snapshot))


async def add_requested_nodes(
    pod: Pod, node_list: NodeList, snapshot: Snapshot, runtime: PluginRuntime
) -> RequestedNodes:
    """Add whole nodes to a hypothesis of *snapshot*; each replaces the cached node with its name.

    The snapshot's other nodes and all its pods stay: kube-scheduler does not send nodes that it has already rejected,
    but their pods matter for affinity and spread.

    Only the images of *pod* are indexed. *snapshot* is not modified; it is empty if no cluster is watched. *runtime*
    runs the plugins on the hypothesis, and should not cache results.

    Raises:
        RequestError: 400, a node has a value that cannot be parsed; 413, the nodes have too many resources, and the
            pod requests one of them.
    """
    hypothesis = Hypothesis(snapshot)
    hypothesis.fork_node_sets()
    hypothesis.index_only_images(_find_image_names(pod))
    cached_nodes, requested_resources = snapshot.nodes, get_resource_names(pod.spec)
    names = []
    async for index, sent_node in iterate_cooperatively(enumerate(node_list.nodes)):
        node = sent_node.node
        names.append(node.metadata.name)
        row = snapshot.row(node.metadata.name)
        if row is not None and (cached_nodes[row] is node or cached_nodes[row] == node):
            sent_node.node = cached_nodes[row]
            continue
        node = _drop_new_resources(f"Nodes.items[{index}]", node, snapshot.symbols.resources, requested_resources)
        try:
            hypothesis.add_or_update_node(node)
        except ValueError as error:
            raise RequestError(400, f"Nodes.items[{index}].status.allocatable: {error}") from error
    await let_other_tasks_run(len(names))
    requested_nodes = find_nodes_by_name(NodeNames(names), hypothesis.snapshot(), runtime)
    await let_other_tasks_run(len(names))
    return requested_nodes


def _drop_new_resources(field: str, node: Node, known_resources: Interner[str], requested: Collection[str]) -> Node:
    """Return *node* without the resources that are not known yet if `MAX_RESOURCE_NAMES` are known with them.

    So one node with many resources does not keep other pods from being placed.

    Raises:
        RequestError: 413, the pod requests one of these resources, so the answer would be wrong.
    """
    allocatable = node.status.allocatable
    new_names = {name for name in allocatable if name != "pods" and known_resources.get(name) is None}
    if not new_names or len(known_resources) + len(new_names) <= MAX_RESOURCE_NAMES:
        return node
    if not new_names.isdisjoint(requested):
        raise RequestError(413, f"{field}: the requests have more than {MAX_RESOURCE_NAMES} different resources")
    known_amounts = {name: amount for name, amount in allocatable.items() if name not in new_names}
    return replace(node, status=replace(node.status, allocatable=known_amounts))


def _find_image_names(pod: Pod) -> Iterator[str]:
    """Yield the names of the pod's images, with and without the default tag."""
    spec = pod.spec
    for container in (*spec.init_containers, *spec.containers):
        yield from (container.image, f"{container.image}:latest")
    for volume in spec.volumes:
        if volume.image is not None:
            yield from (volume.image.reference, f"{volume.image.reference}:latest")
