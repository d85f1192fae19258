"""Decode the whole nodes of a request."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from extender.api.extender_v1 import RAW_NULL
from extender.api.kinds.node import Node
from extender.basics.byte_lru import ByteLRU
from extender.extender_api.cooperative_iteration import iterate_cooperatively
from extender.extender_api.json_parts import BodyForm, CutBody, decode_as, decode_non_null_fields
from extender.extender_api.request_limits import RequestError, RequestLimits, check_object_size

NODES_FORM: Final = BodyForm(b',"Nodes":{"metadata":{},"items":[', b']},"NodeNames":null}', b'},{"metadata":{')
"""The form in which Go encodes the whole nodes of a filter or prioritize request.

Source: kube-scheduler/extender/v1/types.go, ExtenderArgs; pkg/scheduler/extender.go, HTTPExtender.Filter (1.36).
"""

_NO_METADATA: Final = {"metadata": msgspec.Raw(b"{}")}


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
    decode_as(other_fields.get("metadata", RAW_NULL), dict[str, msgspec.Raw], "Nodes.metadata")
    items_key = next((name for name in other_fields if name.casefold() == "items"), None)
    items = [] if items_key is None else decode_as(other_fields.pop(items_key), list[msgspec.Raw], "Nodes.items")
    return await _decode_nodes(other_fields, map(bytes, items), cache, limits)


async def _decode_nodes(
    other_fields: Mapping[str, msgspec.Raw], items: Iterable[bytes], cache: ByteLRU[SentNode], limits: RequestLimits
) -> NodeList:
    nodes: list[SentNode] = []
    raw_nodes: list[msgspec.Raw] = []
    names: set[str] = set()

    def decode_node(raw: bytes) -> SentNode:
        return SentNode(decode_as(raw, Node, f"Nodes.items[{len(nodes)}]"))

    async for index, raw in iterate_cooperatively(enumerate(items)):
        limits.check_nodes("Nodes", index + 1)
        check_object_size(f"Nodes.items[{index}]", len(raw))
        sent_node = cache.get_or_create(raw, decode_node)
        name = sent_node.node.metadata.name
        if not name or name in names:
            problem = f'"{name}" is a duplicate name' if name else "is missing; every node needs a name"
            raise RequestError(400, f"Nodes.items[{index}].metadata.name: {problem}")
        names.add(name)
        nodes.append(sent_node)
        raw_nodes.append(msgspec.Raw(raw))
    return NodeList(nodes, raw_nodes, other_fields)
