"""Check the node of a binding if the watch of nodes fails."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from extender.api.codec import DecodeError, decode
from extender.api.kinds.node import Node
from extender.basics.clock import Clock
from extender.cache.cache import Cache
from extender.client.errors import ApiError
from extender.client.reflector import Reflector
from extender.client.writer import Writer

MAX_AGE_SECONDS: Final = 1.0
"""If the watch of nodes fails, the cached nodes are stale after this time without contact."""

WAIT_SECONDS: Final = 5.0
"""Time to wait for the watch before the node is read."""

RECOVERY_SECONDS: Final = 5.0
"""The time after a failed watch works again in which nodes are read: the changes that it missed may arrive late."""

_POLL_SECONDS: Final = 0.1


@dataclass(frozen=True, slots=True)
class NodeFreshness:
    """Checks whether a node of the cache is up to date.

    Attributes:
        sleep: the function that waits for a number of seconds.
    """

    get_reflector: Callable[[], Reflector[Node]]
    reader: Writer
    cache: Cache
    clock: Clock
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def find_problem(self, node_name: str) -> str:
        """Return why no pod may be bound to the node now; empty if the node is up to date.

        If the watch of nodes fails, wait for it, and then read the node. The node is read even if the watch works
        again, because its first events may not have arrived yet. For the same reason nodes are read for
        `RECOVERY_SECONDS` after a failure.
        """
        is_recovering = self.clock.monotonic() - self.get_reflector().recovered_at < RECOVERY_SECONDS
        if not self._is_stale() and not is_recovering:
            return ""
        deadline = self.clock.monotonic() + WAIT_SECONDS
        while self._is_stale() and self.clock.monotonic() < deadline:
            await self.sleep(_POLL_SECONDS)
        return await self._compare_with_api_server(node_name)

    def _is_stale(self) -> bool:
        reflector = self.get_reflector()
        return bool(reflector.last_error) and reflector.compute_staleness(self.clock.monotonic()) > MAX_AGE_SECONDS

    async def _compare_with_api_server(self, node_name: str) -> str:
        try:
            node = decode(await self.reader.get("Node", "", node_name), Node)
        except (ApiError, DecodeError) as error:
            return f"node {node_name} may have changed and cannot be read: {error}"
        cached_node = self.cache.get_node(node_name)
        if cached_node is None or _get_scheduling_fields(cached_node) != _get_scheduling_fields(node):
            return f"node {node_name} changed while nodes could not be watched"
        return ""


def _get_scheduling_fields(node: Node) -> tuple[object, ...]:
    """Return the fields that must be unchanged for a binding to the node."""
    return node.metadata.uid, node.metadata.labels, node.spec, node.status.allocatable
