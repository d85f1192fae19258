"""What a scheduler sends and what it is answered: the payloads of extender/v1.

Keys of a request are matched whatever their case, since extenders and their callers have used `NodeNames`, `nodenames`
and `nodeNames` over the years; answers use the names of the Go fields, all of them always. Source: F017 to F020, F024,
F025, C086, C087.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from extender.objects.codec import DecodeError, decode
from extender.objects.node import Node
from extender.objects.pod import Pod

T = TypeVar("T")

MAX_NAMES_BYTES = 8 << 20
"""The most a request with node names may weigh: 50,000 names of 150 bytes."""

MAX_NODES_BYTES = 256 << 20
"""The most any request may weigh: 15,000 nodes of 16 KiB."""

_NULL = msgspec.Raw(b"null")


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


@dataclass(frozen=True, slots=True)
class NodeList:
    """Whole nodes, as sent.

    Attributes:
        nodes: decoded, each with a name of its own.
        raw: the same nodes byte for byte.
        rest: what else the list holds (its metadata, kind and apiVersion), byte for byte.
    """

    nodes: list[Node]
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
    names: list[str] | None = None
    nodes: NodeList | None = None


class FilterResult(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="pascal"):
    """The answer of filter, in the form of the request: names to names, nodes to nodes.

    Attributes:
        nodes: the list that was sent, less the refused nodes.
        node_names: the names that were sent, less the refused ones.
        failed_nodes: why the others are refused, where evicting pods may help.
        failed_and_unresolvable_nodes: why the others are refused, where it cannot.
        error: what went wrong; then nothing else is said.
    """

    nodes: dict[str, Any] | None = None
    node_names: list[str] | None = None
    failed_nodes: dict[str, str] = {}
    failed_and_unresolvable_nodes: dict[str, str] = {}
    error: str = ""


class HostPriority(msgspec.Struct, frozen=True, gc=False, rename="pascal"):
    """One node's score in the answer of prioritize."""

    host: str
    score: int


def _decoded(data: bytes, kind: type[T], path: str) -> T:
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


def _present(data: bytes, path: str) -> Mapping[str, msgspec.Raw]:
    """The fields of a JSON object that are not null, undecoded, by their names as written.

    Raises:
        RequestError: 400, it is no object.
    """
    fields = _decoded(data, dict[str, msgspec.Raw], path)
    return {name: raw for name, raw in fields.items() if raw != _NULL}


def decode_args(body: bytes) -> ExtenderArgs:
    """The request in *body*.

    Raises:
        RequestError: 400, malformed or of wrong types; 413, too many names.
    """
    fields = {name.casefold(): raw for name, raw in _present(body, "").items()}
    if "pod" not in fields:
        raise RequestError(400, "Pod: is missing; want the pod to place")
    pod = _decoded(fields["pod"], Pod, "Pod")
    if "nodenames" in fields:
        if len(body) > MAX_NAMES_BYTES:
            raise RequestError(413, f"a request with NodeNames may have {MAX_NAMES_BYTES} bytes, this has {len(body)}")
        return ExtenderArgs(pod, names=_decoded(fields["nodenames"], list[str], "NodeNames"))
    if "nodes" in fields:
        return ExtenderArgs(pod, nodes=_node_list(fields["nodes"]))
    return ExtenderArgs(pod)


def _node_list(data: bytes) -> NodeList:
    rest = dict(_present(data, "Nodes"))
    written = next((name for name in rest if name.casefold() == "items"), None)
    if written is None:
        return NodeList([], [], rest)
    raw = _decoded(rest.pop(written), list[msgspec.Raw], "Nodes.items")
    nodes: list[Node] = []
    names: set[str] = set()
    for index, each in enumerate(raw):
        node = _decoded(each, Node, f"Nodes.items[{index}]")
        name = node.metadata.name
        if not name or name in names:
            wrong = f'"{name}" is the name of a second node' if name else "is missing; every node needs a name"
            raise RequestError(400, f"Nodes.items[{index}].metadata.name: {wrong}")
        names.add(name)
        nodes.append(node)
    return NodeList(nodes, raw, rest)
