"""Decode the whole nodes of a request."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from extender.api.kinds.node import Node
from extender.basics.byte_lru import ByteLRU
from extender.event_loop.cooperative_iteration import iterate_cooperatively, let_other_tasks_run
from extender.extender_api.json_parts import BodyForm, CutBody, decode_as, decode_non_null_fields, decode_unique_fields
from extender.extender_api.request_limits import RequestError, RequestLimits, check_raw_object

NODES_FORM: Final = BodyForm(b',"Nodes":{"metadata":{},"items":[', b']},"NodeNames":null}', b'},{"metadata":{')
"""The form in which Go encodes the whole nodes of a filter or prioritize request.

Source: kube-scheduler/extender/v1/types.go, ExtenderArgs; pkg/scheduler/extender.go, HTTPExtender.Filter (1.36).
"""

_MIN_NODE_BYTES: Final = 25
"""Bytes of a node with an empty name and its comma in a list of nodes in JSON."""

_NO_METADATA: Final = {"metadata": msgspec.Raw(b"{}")}


class _ObjectName(msgspec.Struct, gc=False):
    """The name in an object's metadata."""

    name: str


class _NamedObject(msgspec.Struct, gc=False):
    """The part of a node that is decoded to count the nodes of a list."""

    metadata: _ObjectName


@dataclass(slots=True)
class SentNode:
    """A decoded node of a request. An equal node of the snapshot may replace `node`, so that memory has only one."""

    node: Node


@dataclass(frozen=True, slots=True)
class NodeList:
    """The whole nodes of a request.

    Attributes:
        nodes: the decoded nodes, with distinct names.
        raw: the same nodes as raw JSON.
        other_fields: the list's other fields (metadata, kind and apiVersion) as raw JSON.
    """

    nodes: list[SentNode]
    raw: list[msgspec.Raw]
    other_fields: Mapping[str, msgspec.Raw] = field(default_factory=dict)

    def with_items(self, items: list[msgspec.Raw]) -> dict[str, Any]:
        """Return the list with *items* as its nodes."""
        return {**self.other_fields, "items": items}


async def decode_cut_nodes(cut_body: CutBody, cache: ByteLRU[SentNode], limits: RequestLimits) -> NodeList:
    """Decode the nodes of a body in the form that Go encodes.

    Raises:
        RequestError: 400, a node is malformed or has no name or a duplicate name; 413, there are too many nodes.
    """
    return await _decode_nodes(_NO_METADATA, cut_body.iterate_parts(), cache, limits)


async def decode_node_list(data: msgspec.Raw, cache: ByteLRU[SentNode], limits: RequestLimits) -> NodeList:
    """Decode the field `Nodes` of a request.

    Raises:
        RequestError: as for `decode_cut_nodes`.
    """
    other_fields = dict(decode_non_null_fields(data, "Nodes"))
    await let_other_tasks_run(len(bytes(data)) // _MIN_NODE_BYTES)
    if "metadata" in other_fields:
        decode_unique_fields(other_fields["metadata"], "Nodes.metadata")
    items_key = next((name for name in other_fields if name.casefold() == "items"), None)
    items = [] if items_key is None else await _cut_items(bytes(other_fields.pop(items_key)), limits)
    return await _decode_nodes(other_fields, map(bytes, items), cache, limits)


async def _cut_items(raw: bytes, limits: RequestLimits) -> list[msgspec.Raw]:
    """Return the items of a list of nodes in JSON.

    Raises:
        RequestError: 400, it is not a list, or it has many items and one is not an object with a name; 413, it has too
            many items.
    """
    if raw.count(b",") >= limits.max_nodes:  # else there are not more items
        limits.check_nodes("Nodes", len(decode_as(raw, list[_NamedObject], "Nodes.items")))
        await let_other_tasks_run(len(raw) // _MIN_NODE_BYTES)
    return decode_as(raw, list[msgspec.Raw], "Nodes.items")


async def _decode_nodes(
    other_fields: Mapping[str, msgspec.Raw], items: Iterable[bytes], cache: ByteLRU[SentNode], limits: RequestLimits
) -> NodeList:
    nodes: list[SentNode] = []
    raw_nodes: list[msgspec.Raw] = []
    names: set[str] = set()

    def decode_node(raw: bytes) -> SentNode:
        check_raw_object(f"Nodes.items[{len(nodes)}]", raw)
        return SentNode(decode_as(raw, Node, f"Nodes.items[{len(nodes)}]"))

    async for index, raw in iterate_cooperatively(enumerate(items)):
        limits.check_nodes("Nodes", index + 1)
        sent_node = cache.get_or_create(raw, decode_node)
        name = sent_node.node.metadata.name
        if not name or name in names:
            problem = f'"{name}" is a duplicate name' if name else "is missing; every node needs a name"
            raise RequestError(400, f"Nodes.items[{index}].metadata.name: {problem}")
        names.add(name)
        nodes.append(sent_node)
        raw_nodes.append(msgspec.Raw(raw))
    return NodeList(nodes, raw_nodes, other_fields)
