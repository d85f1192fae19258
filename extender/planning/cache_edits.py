"""Changes of a cache that can be undone, so that many scenarios can use one loaded cluster."""

from collections.abc import Callable

from extender.api.kinds.meta import KubernetesObject
from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod
from extender.cache.cache import Cache
from extender.cache.pod_info import AssignedPodInfo


class CacheEdits:
    """Writes a cache and records how to undo each write.

    After `undo` the rows of the nodes are as before, so that equal seeds give equal results.
    """

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._undo_steps: list[Callable[[], None]] = []

    def add_node(self, node: Node) -> None:
        """Add a node, whose name is new."""
        self._cache.add_or_update_node(node)
        self._undo_steps.append(lambda: self._cache.remove_node(node.metadata.name))

    def replace_node(self, node: Node) -> None:
        """Replace the node of the same name."""
        old_node = self.get_node(node.metadata.name)
        self._cache.add_or_update_node(node)
        self._undo_steps.append(lambda: self._cache.add_or_update_node(old_node))

    def get_node(self, name: str) -> Node:
        """Return the node *name*, which exists."""
        node = self._cache.get_node(name)
        if node is None:
            raise KeyError(name)
        return node

    def remove_node(self, name: str) -> None:
        """Remove a node. The last row moves to its row."""
        node, last_node = self.get_node(name), self._cache.nodes[-1]
        self._cache.remove_node(name)
        self._undo_steps.append(lambda: self._restore_node(node, last_node))

    def _restore_node(self, node: Node, last_node: Node) -> None:
        """Add a removed node again, and move it and the node that was in the last row to their old rows."""
        self._cache.add_or_update_node(node)
        if last_node is not node:
            self._cache.remove_node(last_node.metadata.name)
            self._cache.add_or_update_node(last_node)

    def remove_pod(self, pod: AssignedPodInfo) -> None:
        """Remove a pod that is on a node."""
        self._cache.remove_pod(pod.uid)
        self._undo_steps.append(lambda: self._cache.add_or_update_pod(pod.pod_with_node_name))

    def remove_pending_pod(self, pod: Pod) -> None:
        """Remove a pod without a node."""
        self._cache.remove_pod(pod.uid_or_key)
        self._undo_steps.append(lambda: self._cache.add_or_update_pod(pod))

    def add_pod(self, pod: Pod) -> None:
        """Add a pod with a new uid, on a node or pending."""
        self._cache.add_or_update_pod(pod)
        self._undo_steps.append(lambda: self._cache.remove_pod(pod.uid_or_key))

    def put_object(self, obj: KubernetesObject, old_object: KubernetesObject | None = None) -> None:
        """Add *obj*, or replace *old_object* by it."""
        self._cache.add_or_update_object(obj)
        if old_object is None:
            self._undo_steps.append(lambda: self._cache.remove_object(type(obj), obj.metadata.key))
        else:
            self._undo_steps.append(lambda: self._cache.add_or_update_object(old_object))

    def undo(self) -> None:
        """Undo all changes, the last one first."""
        while self._undo_steps:
            self._undo_steps.pop()()
