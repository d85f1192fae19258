"""What a scheduler sends and what it is answered: the payloads of extender/v1.

Keys of a request are matched whatever their case, since extenders and their callers have used `NodeNames`, `nodenames`
and `nodeNames` over the years; answers use the names of the Go fields, all of them always. Source: F017 to F025,
C086, C087.

A key that is there twice is refused: of two readers of such a request each may take another value. That is looked at in
the request itself, its lists and its pod; whole nodes are too big for it, and of theirs the last one counts.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import msgspec

from extender.basics.recent import Recent
from extender.objects.codec import DecodeError, decode
from extender.objects.extender_v1 import NULL, BindingArgs, MetaVictims, victims
from extender.objects.node import Node
from extender.objects.pod import Pod
from extender.web.listed import Listed

T = TypeVar("T")

MAX_NAMES_BYTES = 8 << 20
"""The most a request with node names may weigh: 50,000 names of 150 bytes."""

MAX_NODES_BYTES = 256 << 20
"""The most any request may weigh: 15,000 nodes of 16 KiB."""


MOST_VIOLATIONS = 2**31 - 1
"""The most pods on one node that a disruption budget may protect."""


class RequestError(Exception):
    """A request that gets no answer but a status and one line.

    Attributes:
        status: the HTTP status.
        message: what is wrong and, where it can be told, in which field.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass(slots=True)
class SentNode:
    """A node as it was sent, decoded; an equal one may take its place, so that the two are kept once."""

    node: Node


@dataclass(frozen=True, slots=True)
class NodeList:
    """Whole nodes, as sent.

    Attributes:
        nodes: decoded, each with a name of its own.
        raw: the same nodes byte for byte.
        rest: what else the list holds (its metadata, kind and apiVersion), byte for byte.
    """

    nodes: list[SentNode]
    raw: list[msgspec.Raw]
    rest: Mapping[str, msgspec.Raw] = field(default_factory=dict)

    def only(self, kept: list[msgspec.Raw]) -> dict[str, Any]:
        """The list with these nodes of it."""
        return {**self.rest, "items": kept}


@dataclass(frozen=True, slots=True)
class ExtenderArgs:
    """The request of filter and prioritize. Names win where both forms are sent; kube-scheduler sends one of them.

    Attributes:
        pod: asks for a node.
        names: of the nodes asked about; None if whole nodes were sent, or nothing.
        nodes: asked about; None if names were sent, or nothing.
    """

    pod: Pod
    names: Listed | None = None
    nodes: NodeList | None = None

    @property
    def key(self) -> str:
        """`namespace/name` of the pod."""
        return self.pod.key


@dataclass(frozen=True, slots=True)
class Familiar:
    """What requests of filter and prioritize had lately and other requests are likely to have again.

    kube-scheduler asks twice about each pod, and mostly about the nodes it asked about before.

    Attributes:
        pods: decoded, by their JSON.
        lists: of names, by their JSON.
        nodes: decoded, by their JSON; room for about 6,000 as large as real ones.
    """

    pods: Recent[Pod] = field(default_factory=lambda: Recent(2 << 20))
    lists: Recent[Listed] = field(default_factory=lambda: Recent(4 << 20))
    nodes: Recent[SentNode] = field(default_factory=lambda: Recent(80 << 20))


@dataclass(frozen=True, slots=True)
class PreemptionArgs:
    """The request of preempt. Victims known by uid win where both forms are sent; kube-scheduler sends one of them.

    Attributes:
        pod: wants room.
        victims: by node name, by uid; None if none were sent in either form.
    """

    pod: Pod
    victims: Mapping[str, MetaVictims] | None = None

    @property
    def key(self) -> str:
        """`namespace/name` of the pod."""
        return self.pod.key


def _decoded(data: bytes | bytearray, kind: type[T], path: str) -> T:
    """JSON as an object of *kind*.

    Raises:
        RequestError: 400, with the field.
    """
    try:
        return decode(data, kind)
    except DecodeError as fault:
        separator = "." if path and fault.path and not fault.path.startswith("[") else ""
        where = f"{path}{separator}{fault.path}"
        raise RequestError(400, f"{where or 'the body'}: {fault.message}") from fault


class _Key:
    """A key as written, equal to no other: a dictionary by such keys has those that come twice."""

    __slots__ = ("name",)

    def __init__(self, _kind: type, name: str) -> None:
        self.name = name


_pairs: Final = msgspec.json.Decoder(dict[_Key, msgspec.Raw], dec_hook=_Key)


def _present(data: bytes | bytearray, path: str) -> Mapping[str, msgspec.Raw]:
    """The fields of a JSON object that are not null, undecoded, by their names as written.

    Raises:
        RequestError: 400, it is no object, or a name is there twice, in whatever case.
    """
    try:
        pairs = _pairs.decode(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return _decoded(data, dict[str, msgspec.Raw], path)  # says what is wrong
    _no_twins([(key.name.casefold(), raw) for key, raw in pairs.items()], path)
    return {key.name: raw for key, raw in pairs.items() if raw != NULL}


def _no_twins(pairs: list[tuple[str, Any]], path: str) -> None:
    """See that no key is there twice.

    Raises:
        RequestError: 400, one is.
    """
    if len(dict(pairs)) == len(pairs):
        return
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise RequestError(400, f'{path or "the body"}: the key "{key[:64]}" is there twice')
        seen.add(key)


def decode_args(
    body: bytes | bytearray, most_names: int = MAX_NAMES_BYTES, familiar: Familiar | None = None
) -> ExtenderArgs:
    """The request in *body*, which may weigh *most_names* bytes if it has names.

    What is *familiar* is not decoded again; that changes no answer.

    Raises:
        RequestError: 400, malformed or of wrong types; 413, too many names.
    """
    familiar = familiar or Familiar()
    written = _as_go_writes(body)
    fields = _folded(body) if written is None else written.fields()
    pod = _pod(fields, familiar.pods)
    if "nodenames" in fields:
        if len(body) > most_names:
            raise RequestError(413, f"a request with NodeNames may have {most_names} bytes, this has {len(body)}")
        return ExtenderArgs(pod, names=familiar.lists.of(bytes(fields["nodenames"]), _listed))
    if written is not None and written.nodes is not None:
        rest, items = {"metadata": written.nodes.metadata}, written.nodes.items
    elif "nodes" in fields:
        rest, items = _items(fields["nodes"])
    else:
        return ExtenderArgs(pod)
    return ExtenderArgs(pod, nodes=_node_list(rest, items, familiar.nodes))


def decode_preemption_args(body: bytes | bytearray) -> PreemptionArgs:
    """The request of preempt in *body*; the names `NodeToVictims` and `NodeToMetaVictims` of old will do as well.

    Raises:
        RequestError: 400, malformed or of wrong types, or a victim without a uid.
    """
    fields = _folded(body)
    pod = _pod(fields)
    for name in ("NodeNameToMetaVictims", "NodeToMetaVictims", "NodeNameToVictims", "NodeToVictims"):
        raw = fields.get(name.casefold())
        if raw is None:
            continue
        _present(raw, name)
        try:
            offered = victims(raw)
        except DecodeError as fault:
            raise RequestError(400, f"{name}: {fault}") from fault
        for node, each in offered.items():
            if not all(victim.uid for victim in each.pods):
                raise RequestError(400, f'{name}["{node}"]: a pod has no UID')
            if not 0 <= each.num_pdb_violations <= MOST_VIOLATIONS:
                raise RequestError(400, f'{name}["{node}"].NumPDBViolations: want 0 to {MOST_VIOLATIONS}')
        return PreemptionArgs(pod, offered)
    return PreemptionArgs(pod)


def decode_binding_args(body: bytes | bytearray) -> BindingArgs:
    """The request of bind in *body*.

    Raises:
        RequestError: 400, malformed or of wrong types, or something is missing.
    """
    fields = _folded(body)
    names = ("PodName", "PodNamespace", "PodUID", "Node")
    values = [_decoded(fields.get(name.casefold(), NULL), str, name) for name in names]
    for name, value in zip(names, values, strict=True):
        if not value:
            raise RequestError(400, f"{name}: is missing; want which pod to put on which node")
    return BindingArgs(*values)


class _GoNodes(msgspec.Struct, forbid_unknown_fields=True):
    """A list of nodes as Go writes it."""

    metadata: msgspec.Raw
    items: list[msgspec.Raw]


class _GoArgs(msgspec.Struct, rename="pascal", forbid_unknown_fields=True):
    """A request of filter or prioritize as Go writes it."""

    pod: msgspec.Raw
    nodes: _GoNodes | None
    node_names: msgspec.Raw

    def fields(self) -> dict[str, msgspec.Raw]:
        """As `_folded` has them, without the nodes."""
        return {name: raw for name, raw in (("pod", self.pod), ("nodenames", self.node_names)) if raw != NULL}


_go_args: Final = msgspec.json.Decoder(_GoArgs)
_AROUND_ARGS: Final = len('{"Pod":,"Nodes":,"NodeNames":}')
_AROUND_NODES: Final = len('{"metadata":{},"items":[]}')
_NO_METADATA: Final = msgspec.Raw(b"{}")


def _as_go_writes(body: bytes | bytearray) -> _GoArgs | None:
    """The request, if it is written as Go writes it: each key once, and no space between them. Source: F017, F025.

    That takes one pass over what may weigh dozens of megabytes, where requests of any other form take three. This
    decoder takes the last of two twins; but then, and with any space, the body is longer than what was found in it.
    """
    try:
        args = _go_args.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None
    size = _AROUND_ARGS + _size(args.pod) + _size(args.node_names)
    if args.nodes is None:
        size += len("null")
    else:
        items = args.nodes.items
        size += _AROUND_NODES + sum(map(_size, items)) + max(0, len(items) - 1)
        if args.nodes.metadata != _NO_METADATA:
            return None
    return args if size == len(body) else None


def _size(raw: msgspec.Raw) -> int:
    return memoryview(raw).nbytes


def _folded(body: bytes | bytearray) -> Mapping[str, msgspec.Raw]:
    """The fields of a request that are not null, undecoded, by their names in lower case."""
    return {name.casefold(): raw for name, raw in _present(body, "").items()}


def _listed(raw: bytes) -> Listed:
    names = _decoded(raw, list[str], "NodeNames")
    if "" in names:
        raise RequestError(400, f"NodeNames[{names.index('')}]: is missing; every node needs a name")
    return Listed(names)


def _pod(fields: Mapping[str, msgspec.Raw], known: Recent[Pod] | None = None) -> Pod:
    if "pod" not in fields:
        raise RequestError(400, "Pod: is missing; want the pod to place")
    raw = bytes(fields["pod"])
    return _sound_pod(raw) if known is None else known.of(raw, _sound_pod)


def _sound_pod(raw: bytes) -> Pod:
    pod = _decoded(raw, Pod, "Pod")
    if _as_we_write(raw):
        return pod
    try:
        # Numbers stay text: what has no meaning for us may have as many digits as it likes.
        json.loads(raw, object_pairs_hook=_no_twins_in_pod, parse_int=str, parse_float=str)
    except RecursionError as fault:
        raise RequestError(400, "Pod: nested too deeply") from fault
    return pod


def _as_we_write(raw: bytes) -> bool:
    """Whether encoding what *raw* holds gives *raw* again, as with most pods from Go: then no key is there twice."""
    try:
        return msgspec.json.encode(msgspec.json.decode(raw)) == raw
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return False


def _no_twins_in_pod(pairs: list[tuple[str, Any]]) -> None:
    _no_twins(pairs, "Pod")


def _items(data: bytes) -> tuple[dict[str, msgspec.Raw], list[msgspec.Raw]]:
    """What a list of nodes holds beside its nodes, and them."""
    rest = dict(_present(data, "Nodes"))
    _decoded(rest.get("metadata", NULL), dict[str, msgspec.Raw], "Nodes.metadata")
    written = next((name for name in rest if name.casefold() == "items"), None)
    if written is None:
        return rest, []
    items = _decoded(rest.pop(written), list[msgspec.Raw], "Nodes.items")
    return rest, items


def _node_list(rest: Mapping[str, msgspec.Raw], items: list[msgspec.Raw], known: Recent[SentNode]) -> NodeList:
    nodes: list[SentNode] = []
    names: set[str] = set()

    def read(raw: bytes) -> SentNode:
        return SentNode(_decoded(raw, Node, f"Nodes.items[{len(nodes)}]"))

    for index, each in enumerate(items):
        sent = known.of(bytes(each), read)
        name = sent.node.metadata.name
        if not name or name in names:
            wrong = f'"{name}" is the name of a second node' if name else "is missing; every node needs a name"
            raise RequestError(400, f"Nodes.items[{index}].metadata.name: {wrong}")
        names.add(name)
        nodes.append(sent)
    return NodeList(nodes, items, rest)
