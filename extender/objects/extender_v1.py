"""The payloads of extender/v1, as both sides of the wire know them: a scheduler that asks, an extender that answers.

Keys are the names of the Go fields; all of them are always written. What is read may spell its keys in any case, leave
them out or give null for them, as Go's decoder allows. Source: F015 to F025.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import field

from extender.objects.codec import decode, from_builtins
from extender.objects.record import Int64

NULL = msgspec.Raw(b"null")


class FilterResult(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="pascal"):
    """The answer of filter, in the form of the request: names to names, nodes to nodes. Source: F019.

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
    """One node's score in the answer of prioritize. Source: F020."""

    host: str = ""
    score: Int64 = 0


class MetaPod(msgspec.Struct, frozen=True, gc=False):
    """A pod by its uid."""

    uid: str = field(default="", name="UID")


class MetaVictims(msgspec.Struct, frozen=True, gc=False, rename="pascal"):
    """The pods to evict on one node, by uid; how many of them a disruption budget protects. Source: F021, F022."""

    pods: tuple[MetaPod, ...] = ()
    num_pdb_violations: Int64 = field(default=0, name="NumPDBViolations")


class PreemptionResult(msgspec.Struct, frozen=True, rename="pascal"):
    """The answer of preempt: victims by node name. Source: F022."""

    node_name_to_meta_victims: dict[str, MetaVictims] = {}


class BindingArgs(msgspec.Struct, frozen=True, gc=False, rename="pascal"):
    """The request of bind. Source: F023."""

    pod_name: str = ""
    pod_namespace: str = ""
    pod_uid: str = field(default="", name="PodUID")
    node: str = ""

    @property
    def key(self) -> str:
        """`namespace/name` of the pod."""
        return f"{self.pod_namespace}/{self.pod_name}"


class BindingResult(msgspec.Struct, frozen=True, gc=False, rename="pascal"):
    """The answer of bind; an empty `error` means that the pod is on the node. Source: F023."""

    error: str = ""


def folded(data: bytes) -> Mapping[str, msgspec.Raw]:
    """The fields of a JSON object that are not null, undecoded, by their names in lower case.

    Raises:
        DecodeError: malformed JSON, or no object.
    """
    fields = decode(data, dict[str, msgspec.Raw])
    return {name.casefold(): raw for name, raw in fields.items() if raw != NULL}


def victims(data: bytes) -> dict[str, MetaVictims]:
    """Victims by node name, of which only the uids are read. A node with null for its victims has none.

    Pods may be given by uid, or whole: then `metadata.uid` counts.

    Raises:
        DecodeError: malformed JSON, or a value of a wrong type; says where.
    """
    return {name: _of_node(each) for name, each in decode(data, dict[str, Any]).items()}


def _of_node(given: Any) -> MetaVictims:
    fields = _lower(given)
    pods = [_lower(pod) for pod in from_builtins(fields.get("pods"), list[Any])]
    meta = [{"UID": pod.get("uid", _lower(pod.get("metadata")).get("uid"))} for pod in pods]
    return from_builtins({"Pods": meta, "NumPDBViolations": fields.get("numpdbviolations")}, MetaVictims)


def _lower(given: Any) -> dict[str, Any]:
    return {name.casefold(): each for name, each in from_builtins(given, dict[str, Any]).items()}
