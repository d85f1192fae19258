"""Decode the requests of extender/v1.

Keys of a request are case-insensitive, since extenders and their callers have used `NodeNames`, `nodenames` and
`nodeNames` over the years. Responses use the names of the Go fields and always have all of them.

A duplicate key is rejected, because decoders differ in the value that they take. The request itself, its lists and its
pod are checked for duplicates. Whole nodes are too big to be checked; in them the last value of a key wins.

Source: kube-scheduler/extender/v1/types.go, ExtenderArgs, ExtenderFilterResult, HostPriorityList;
pkg/scheduler/scheduler.go, newPodInformer (1.36); pkg/scheduler/api/v1/types.go, ExtenderPreemptionArgs (1.14);
pkg/scheduler/extender.go, HTTPExtender.send (1.36).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import msgspec

from extender.api.codec import DecodeError, decode
from extender.api.extender_v1 import RAW_NULL, BindingArgs, MetaVictims, decode_victims
from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod
from extender.basics.byte_lru import ByteLRU
from extender.extender_api.node_names import NodeNames

T = TypeVar("T")

MAX_NAMES_BYTES = 8 << 20
"""Limit of a request with node names: 50,000 names of 150 bytes."""

MAX_NODES_BYTES = 256 << 20
"""Limit of any request: 15,000 nodes of 16 KiB."""


MAX_PDB_VIOLATIONS = 2**31 - 1
"""Limit of NumPDBViolations."""


class RequestError(Exception):
    """A request is rejected with an HTTP status and one line.

    Attributes:
        status: the HTTP status.
        message: the error, with the field if there is one.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass(slots=True)
class SentNode:
    """A decoded node of a request; it may be replaced by an equal node of the cache, so that only one is in memory."""

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


@dataclass(frozen=True, slots=True)
class ExtenderArgs:
    """The request of filter and prioritize. Names win if both forms are sent; kube-scheduler sends one of them.

    Attributes:
        pod: the pod to schedule.
        names: the names of the requested nodes; None if the request has no names.
        nodes: the requested nodes; None if the request has names or no nodes.
    """

    pod: Pod
    names: NodeNames | None = None
    nodes: NodeList | None = None

    @property
    def key(self) -> str:
        """`namespace/name` of the pod."""
        return self.pod.key


@dataclass(frozen=True, slots=True)
class DecodeCaches:
    """Caches of decoded parts of filter and prioritize requests, by their JSON.

    kube-scheduler sends each pod twice, and mostly the same nodes again.

    Attributes:
        pods: decoded pods.
        node_names: decoded lists of names.
        nodes: decoded nodes; room for about 6,000 of a usual size.
    """

    pods: ByteLRU[Pod] = field(default_factory=lambda: ByteLRU(2 << 20))
    node_names: ByteLRU[NodeNames] = field(default_factory=lambda: ByteLRU(4 << 20))
    nodes: ByteLRU[SentNode] = field(default_factory=lambda: ByteLRU(80 << 20))


@dataclass(frozen=True, slots=True)
class PreemptionArgs:
    """The request of preempt. Victims by uid win if both forms are sent; kube-scheduler sends one of them.

    Attributes:
        pod: the preemptor.
        victims: the proposed victims by node name; None if neither form was sent.
    """

    pod: Pod
    victims: Mapping[str, MetaVictims] | None = None

    @property
    def key(self) -> str:
        """`namespace/name` of the pod."""
        return self.pod.key


def _decode(data: bytes | bytearray, kind: type[T], path: str) -> T:
    """Decode JSON as an object of *kind*.

    Raises:
        RequestError: 400, with the field.
    """
    try:
        return decode(data, kind)
    except DecodeError as error:
        separator = "." if path and error.path and not error.path.startswith("[") else ""
        location = f"{path}{separator}{error.path}"
        raise RequestError(400, f"{location or 'the body'}: {error.message}") from error


class _DistinctKey:
    """A JSON key that is equal to no other, so that a dictionary keeps duplicate keys."""

    __slots__ = ("name",)

    def __init__(self, _kind: type, name: str) -> None:
        self.name = name


_pair_decoder: Final = msgspec.json.Decoder(dict[_DistinctKey, msgspec.Raw], dec_hook=_DistinctKey)


def _decode_non_null_fields(data: bytes | bytearray, path: str) -> Mapping[str, msgspec.Raw]:
    """Return the raw fields of a JSON object that are not null, by name.

    Raises:
        RequestError: 400, it is not an object, or has a duplicate key; case is ignored.
    """
    try:
        pairs = _pair_decoder.decode(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return _decode(data, dict[str, msgspec.Raw], path)  # raises with the error's field
    _check_unique_keys([(key.name.casefold(), raw) for key, raw in pairs.items()], path)
    return {key.name: raw for key, raw in pairs.items() if raw != RAW_NULL}


def _check_unique_keys(pairs: list[tuple[str, Any]], path: str) -> None:
    """Check that all keys are distinct.

    Raises:
        RequestError: 400, a key is a duplicate.
    """
    if len(dict(pairs)) == len(pairs):
        return
    seen_keys: set[str] = set()
    for key, _ in pairs:
        if key in seen_keys:
            raise RequestError(400, f'{path or "the body"}: duplicate key "{key[:64]}"')
        seen_keys.add(key)


def decode_args(
    body: bytes | bytearray, max_names_bytes: int = MAX_NAMES_BYTES, caches: DecodeCaches | None = None
) -> ExtenderArgs:
    """Decode a filter or prioritize request; with names it may have *max_names_bytes* bytes.

    Parts that are in *caches* are not decoded again.

    Raises:
        RequestError: 400, malformed or of wrong types; 413, too many names.
    """
    caches = caches or DecodeCaches()
    go_args = _decode_go_args(body)
    fields = _decode_casefolded_fields(body) if go_args is None else go_args.collect_fields()
    pod = _decode_pod_field(fields, caches.pods)
    if "nodenames" in fields:
        if len(body) > max_names_bytes:
            raise RequestError(413, f"a request with NodeNames may have {max_names_bytes} bytes, this has {len(body)}")
        return ExtenderArgs(pod, names=caches.node_names.get_or_create(bytes(fields["nodenames"]), _decode_node_names))
    if go_args is not None and go_args.nodes is not None:
        other_fields, items = {"metadata": go_args.nodes.metadata}, go_args.nodes.items
    elif "nodes" in fields:
        other_fields, items = _split_node_list(fields["nodes"])
    else:
        return ExtenderArgs(pod)
    return ExtenderArgs(pod, nodes=_decode_nodes(other_fields, items, caches.nodes))


def decode_preemption_args(body: bytes | bytearray) -> PreemptionArgs:
    """Decode a preempt request; the former names `NodeToVictims` and `NodeToMetaVictims` are accepted too.

    Raises:
        RequestError: 400, malformed or of wrong types, or a victim without a uid.
    """
    fields = _decode_casefolded_fields(body)
    pod = _decode_pod_field(fields)
    for name in ("NodeNameToMetaVictims", "NodeToMetaVictims", "NodeNameToVictims", "NodeToVictims"):
        raw = fields.get(name.casefold())
        if raw is None:
            continue
        _decode_non_null_fields(raw, name)
        try:
            victims_by_node = decode_victims(raw)
        except DecodeError as error:
            raise RequestError(400, f"{name}: {error}") from error
        for node, victims_on_node in victims_by_node.items():
            if not all(victim.uid for victim in victims_on_node.pods):
                raise RequestError(400, f'{name}["{node}"]: a pod has no UID')
            if not 0 <= victims_on_node.num_pdb_violations <= MAX_PDB_VIOLATIONS:
                raise RequestError(400, f'{name}["{node}"].NumPDBViolations: want 0 to {MAX_PDB_VIOLATIONS}')
        return PreemptionArgs(pod, victims_by_node)
    return PreemptionArgs(pod)


def decode_binding_args(body: bytes | bytearray) -> BindingArgs:
    """Decode a bind request.

    Raises:
        RequestError: 400, malformed or of wrong types, or a field is missing.
    """
    fields = _decode_casefolded_fields(body)
    names = ("PodName", "PodNamespace", "PodUID", "Node")
    values = [_decode(fields.get(name.casefold(), RAW_NULL), str, name) for name in names]
    for name, value in zip(names, values, strict=True):
        if not value:
            raise RequestError(400, f"{name}: is missing; want a pod and its node")
    return BindingArgs(*values)


class _GoNodes(msgspec.Struct, forbid_unknown_fields=True):
    """A list of nodes as Go encodes it."""

    metadata: msgspec.Raw
    items: list[msgspec.Raw]


class _GoArgs(msgspec.Struct, rename="pascal", forbid_unknown_fields=True):
    """A request of filter or prioritize as Go encodes it."""

    pod: msgspec.Raw
    nodes: _GoNodes | None
    node_names: msgspec.Raw

    def collect_fields(self) -> dict[str, msgspec.Raw]:
        """Return the fields like `_decode_casefolded_fields`, without the nodes."""
        return {name: raw for name, raw in (("pod", self.pod), ("nodenames", self.node_names)) if raw != RAW_NULL}


_go_args_decoder: Final = msgspec.json.Decoder(_GoArgs)
_ARGS_SYNTAX_BYTES: Final = len('{"Pod":,"Nodes":,"NodeNames":}')
_NODES_SYNTAX_BYTES: Final = len('{"metadata":{},"items":[]}')
_NO_METADATA: Final = msgspec.Raw(b"{}")


def _decode_go_args(body: bytes | bytearray) -> _GoArgs | None:
    """Decode a request in the form that Go encodes: without duplicate keys and whitespace; return None for other forms.

    This takes one pass over a body of many megabytes; other requests take three. The decoder accepts duplicate keys and
    whitespace, but then the body is longer than the sum of the decoded parts.

    Source: kube-scheduler/extender/v1/types.go, ExtenderArgs (1.36).
    """
    try:
        args = _go_args_decoder.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None
    size = _ARGS_SYNTAX_BYTES + _get_byte_size(args.pod) + _get_byte_size(args.node_names)
    if args.nodes is None:
        size += len("null")
    else:
        items = args.nodes.items
        size += _NODES_SYNTAX_BYTES + sum(map(_get_byte_size, items)) + max(0, len(items) - 1)
        if args.nodes.metadata != _NO_METADATA:
            return None
    return args if size == len(body) else None


def _get_byte_size(raw: msgspec.Raw) -> int:
    return memoryview(raw).nbytes


def _decode_casefolded_fields(body: bytes | bytearray) -> Mapping[str, msgspec.Raw]:
    """Return the raw fields of a request that are not null, by name in lower case."""
    return {name.casefold(): raw for name, raw in _decode_non_null_fields(body, "").items()}


def _decode_node_names(raw: bytes) -> NodeNames:
    names = _decode(raw, list[str], "NodeNames")
    if "" in names:
        raise RequestError(400, f"NodeNames[{names.index('')}]: is missing; every node needs a name")
    return NodeNames(names)


def _decode_pod_field(fields: Mapping[str, msgspec.Raw], cache: ByteLRU[Pod] | None = None) -> Pod:
    if "pod" not in fields:
        raise RequestError(400, "Pod: is missing; want the pod to schedule")
    raw = bytes(fields["pod"])
    return _decode_pod(raw) if cache is None else cache.get_or_create(raw, _decode_pod)


def _decode_pod(raw: bytes) -> Pod:
    pod = _decode(raw, Pod, "Pod")
    if _round_trips(raw):
        return pod
    try:
        # Numbers stay strings, because a field that is not decoded may have any number of digits.
        json.loads(raw, object_pairs_hook=_check_unique_pod_keys, parse_int=str, parse_float=str)
    except RecursionError as error:
        raise RequestError(400, "Pod: nested too deeply") from error
    return pod


def _round_trips(raw: bytes) -> bool:
    """Return whether decoding and encoding returns *raw*. If so, as for most pods from Go, no key is a duplicate."""
    try:
        return msgspec.json.encode(msgspec.json.decode(raw)) == raw
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return False


def _check_unique_pod_keys(pairs: list[tuple[str, Any]]) -> None:
    _check_unique_keys(pairs, "Pod")


def _split_node_list(data: bytes) -> tuple[dict[str, msgspec.Raw], list[msgspec.Raw]]:
    """Return the fields of a list of nodes other than its items, and the raw items."""
    other_fields = dict(_decode_non_null_fields(data, "Nodes"))
    _decode(other_fields.get("metadata", RAW_NULL), dict[str, msgspec.Raw], "Nodes.metadata")
    items_key = next((name for name in other_fields if name.casefold() == "items"), None)
    if items_key is None:
        return other_fields, []
    items = _decode(other_fields.pop(items_key), list[msgspec.Raw], "Nodes.items")
    return other_fields, items


def _decode_nodes(
    other_fields: Mapping[str, msgspec.Raw], items: list[msgspec.Raw], cache: ByteLRU[SentNode]
) -> NodeList:
    nodes: list[SentNode] = []
    names: set[str] = set()

    def decode_node(raw: bytes) -> SentNode:
        return SentNode(_decode(raw, Node, f"Nodes.items[{len(nodes)}]"))

    for index, raw in enumerate(items):
        sent_node = cache.get_or_create(bytes(raw), decode_node)
        name = sent_node.node.metadata.name
        if not name or name in names:
            problem = f'"{name}" is a duplicate name' if name else "is missing; every node needs a name"
            raise RequestError(400, f"Nodes.items[{index}].metadata.name: {problem}")
        names.add(name)
        nodes.append(sent_node)
    return NodeList(nodes, items, other_fields)
