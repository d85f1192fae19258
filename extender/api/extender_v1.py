"""The extender/v1 payloads that the scheduler and the extender exchange.

Keys are the names of the Go fields. Encoding writes every field. As in Go's decoder, decoding ignores the case of keys,
and a field may be missing or null.

Source: pkg/scheduler/extender.go, HTTPExtender.send (1.36).
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec
from msgspec import field

from extender.api.codec import DecodeError, decode, from_builtins, has_more_values
from extender.api.kinds.meta import Int64

RAW_NULL = msgspec.Raw(b"null")

MAX_PDB_VIOLATIONS: Final = 2**31 - 1
"""Limit of NumPDBViolations."""

NonEmptyString = Annotated[str, msgspec.Meta(min_length=1)]
PodObject = Annotated[
    dict[str, Any], msgspec.Meta(description="A v1 Pod in the JSON of the Kubernetes API. Unknown fields are ignored.")
]
PdbViolationCount = Annotated[int, msgspec.Meta(ge=0, le=MAX_PDB_VIOLATIONS)]


class NodeMetadata(msgspec.Struct, gc=False):
    """The part of a node's metadata that a request must have."""

    name: NonEmptyString


class NodeObject(msgspec.Struct, gc=False):
    """A v1 Node in the JSON of the Kubernetes API. Unknown fields are ignored."""

    metadata: NodeMetadata


class NodeListObject(msgspec.Struct, gc=False):
    """A v1 NodeList."""

    metadata: dict[str, Any] | None = None
    items: list[NodeObject] | None = None


class ArgsByNames(msgspec.Struct, rename="pascal"):
    """The arguments of filter and prioritize from a scheduler with nodeCacheCapable: true. Up to 8 MiB.

    Source: kube-scheduler/extender/v1/types.go, ExtenderArgs (1.36).
    """

    pod: PodObject
    node_names: list[NonEmptyString]


class ArgsByNodes(msgspec.Struct, rename="pascal"):
    """The arguments of filter and prioritize from a scheduler with nodeCacheCapable: false. Up to 256 MiB.

    Source: kube-scheduler/extender/v1/types.go, ExtenderArgs (1.36).
    """

    pod: PodObject
    nodes: NodeListObject
    node_names: None = None


class VictimByUid(msgspec.Struct, gc=False):
    """A victim, identified by its uid."""

    uid: NonEmptyString = field(name="UID")


class VictimMetadata(msgspec.Struct, gc=False):
    """The part of a victim's metadata that is read."""

    uid: NonEmptyString


class VictimObject(msgspec.Struct, gc=False):
    """A victim as a whole pod, of which only metadata.uid is read."""

    metadata: VictimMetadata


class VictimsByUid(msgspec.Struct, rename="pascal"):
    """The pods to evict on one node by uid, and the number of them that a disruption budget protects."""

    pods: list[VictimByUid] | None = None
    num_pdb_violations: PdbViolationCount | None = field(default=0, name="NumPDBViolations")


class VictimsByPod(msgspec.Struct, rename="pascal"):
    """The pods to evict on one node as whole pods, and the number of them that a disruption budget protects."""

    pods: list[VictimObject] | None = None
    num_pdb_violations: PdbViolationCount | None = field(default=0, name="NumPDBViolations")


class PreemptionArgsByUid(msgspec.Struct, rename="pascal"):
    """The arguments of preempt from a scheduler with nodeCacheCapable: true.

    Source: kube-scheduler/extender/v1/types.go, ExtenderPreemptionArgs (1.36).
    """

    pod: PodObject
    node_name_to_meta_victims: dict[str, VictimsByUid | None]


class PreemptionArgsByPod(msgspec.Struct, rename="pascal"):
    """The arguments of preempt from a scheduler with nodeCacheCapable: false.

    Source: kube-scheduler/extender/v1/types.go, ExtenderPreemptionArgs (1.36).
    """

    pod: PodObject
    node_name_to_victims: dict[str, VictimsByPod | None]
    node_name_to_meta_victims: None = None


class FilterResult(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="pascal"):
    """The result of filter. It has node names if the request had node names, and nodes otherwise.

    Attributes:
        nodes: the NodeList of the nodes that passed.
        node_names: the names of the nodes that passed.
        failed_nodes: reasons by node name, for nodes where preemption may help.
        failed_and_unresolvable_nodes: reasons by node name, for nodes where preemption cannot help.
        error: the error message; if it is set, the other fields are empty.

    Source: kube-scheduler/extender/v1/types.go, ExtenderFilterResult (1.36).
    """

    nodes: dict[str, Any] | None = None
    node_names: list[str] | None = None
    failed_nodes: dict[str, str] = {}
    failed_and_unresolvable_nodes: dict[str, str] = {}
    error: str = ""


class HostPriority(msgspec.Struct, frozen=True, gc=False, rename="pascal"):
    """The score of one node in the result of prioritize.

    Source: kube-scheduler/extender/v1/types.go, HostPriorityList (1.36).
    """

    host: str = ""
    score: Int64 = 0


class MetaPod(msgspec.Struct, frozen=True, gc=False):
    """A pod, identified by its uid."""

    uid: str = field(default="", name="UID")


class MetaVictims(msgspec.Struct, frozen=True, gc=False, rename="pascal"):
    """The victims on one node by uid, and the number of PodDisruptionBudget violations.

    Source: kube-scheduler/extender/v1/types.go, ExtenderPreemptionArgs, ExtenderPreemptionResult (1.36).
    """

    pods: tuple[MetaPod, ...] = ()
    num_pdb_violations: Int64 = field(default=0, name="NumPDBViolations")


class PreemptionResult(msgspec.Struct, frozen=True, rename="pascal"):
    """The result of preempt: victims by node name.

    Source: kube-scheduler/extender/v1/types.go, ExtenderPreemptionResult (1.36).
    """

    node_name_to_meta_victims: dict[str, MetaVictims] = {}


class BindingArgs(msgspec.Struct, frozen=True, gc=False, rename="pascal"):
    """The arguments of bind.

    Source: kube-scheduler/extender/v1/types.go, ExtenderBindingArgs (1.36).
    """

    pod_name: NonEmptyString
    pod_namespace: NonEmptyString
    pod_uid: NonEmptyString = field(name="PodUID")
    node: NonEmptyString

    @property
    def key(self) -> str:
        """`namespace/name` of the pod."""
        return f"{self.pod_namespace}/{self.pod_name}"


class BindingResult(msgspec.Struct, frozen=True, gc=False, rename="pascal"):
    """The result of bind; an empty `error` means that the pod is bound.

    Source: kube-scheduler/extender/v1/types.go, ExtenderBindingResult (1.36).
    """

    error: str = ""


def decode_fields_ignoring_case(data: bytes) -> Mapping[str, msgspec.Raw]:
    """Return the non-null fields of a JSON object as raw JSON, by lower-case key.

    Raises:
        DecodeError: malformed JSON, or not an object.
    """
    fields = decode(data, dict[str, msgspec.Raw])
    return {name.casefold(): raw for name, raw in fields.items() if raw != RAW_NULL}


class _VictimMetadata(msgspec.Struct, gc=False):
    uid: str = ""


class _Victim(msgspec.Struct, gc=False):
    """A victim, as a uid or as a whole pod."""

    uid: str | msgspec.UnsetType = field(default=msgspec.UNSET, name="UID")
    metadata: _VictimMetadata | None = None


class _VictimsOnNode(msgspec.Struct, gc=False, forbid_unknown_fields=True, rename="pascal"):
    """The victims on one node, with the names of the Go fields."""

    pods: list[_Victim] | None = None
    num_pdb_violations: Int64 | None = field(default=0, name="NumPDBViolations")


_victims_decoder = msgspec.json.Decoder(dict[str, _VictimsOnNode | None])


def decode_victims(data: bytes | msgspec.Raw, *, max_second_attempt: int | None = None) -> dict[str, MetaVictims]:
    """Decode `NodeNameToVictims` or `NodeNameToMetaVictims` to victims by node name. A null value means no victims.

    Each pod is either an object with a uid or a whole pod with `metadata.uid`.

    Args:
        data: JSON.
        max_second_attempt: the limit of the values in *data* for a second attempt, which ignores the case of keys;
            None: no limit.

    Raises:
        DecodeError: malformed JSON, or a value of the wrong type.
    """
    try:
        victims_by_node = _victims_decoder.decode(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        if max_second_attempt is not None and has_more_values(bytes(data), max_second_attempt):
            raise DecodeError("", f"more than {max_second_attempt} values, and not in Go's form: {error}") from error
        return _decode_victims_ignoring_case(data)
    result: dict[str, MetaVictims] = {}
    for name, victims in victims_by_node.items():
        pods = tuple(map(_to_meta_pod, victims.pods or ())) if victims is not None else ()
        if not all(pod.uid for pod in pods):
            if max_second_attempt is not None and has_more_values(bytes(data), max_second_attempt):
                raise DecodeError("", f'["{name}"]: a pod has no UID')
            return _decode_victims_ignoring_case(data)
        result[name] = MetaVictims(pods, (victims.num_pdb_violations or 0) if victims is not None else 0)
    return result


def _to_meta_pod(victim: _Victim) -> MetaPod:
    if victim.uid is not msgspec.UNSET:
        return MetaPod(victim.uid)
    return MetaPod(victim.metadata.uid if victim.metadata is not None else "")


def _decode_victims_ignoring_case(data: bytes | msgspec.Raw) -> dict[str, MetaVictims]:
    """Decode victims, ignoring the case of keys. This is ten times slower than decoding exact keys.

    Raises:
        DecodeError: malformed JSON, or a value of the wrong type.
    """
    return {name: _to_meta_victims(value) for name, value in decode(data, dict[str, Any]).items()}


def _to_meta_victims(value: Any) -> MetaVictims:
    fields = _casefold_keys(value)
    pods = [_casefold_keys(pod) for pod in from_builtins(fields.get("pods"), list[Any])]
    meta_pods = [{"UID": pod.get("uid", _casefold_keys(pod.get("metadata")).get("uid"))} for pod in pods]
    return from_builtins({"Pods": meta_pods, "NumPDBViolations": fields.get("numpdbviolations")}, MetaVictims)


def _casefold_keys(value: Any) -> dict[str, Any]:
    return {key.casefold(): item for key, item in from_builtins(value, dict[str, Any]).items()}
