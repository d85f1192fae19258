"""The extender/v1 payloads that the scheduler and the extender exchange.

Keys are the names of the Go fields, and encoding writes all of them. As in Go's decoder, decoding ignores the case of
keys, and keys may be missing or null.

Source: pkg/scheduler/extender.go, HTTPExtender.send; kube-scheduler/extender/v1/types.go, ExtenderArgs,
ExtenderFilterResult, HostPriorityList (1.36).
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import field

from extender.api.codec import decode, from_builtins
from extender.api.kinds.struct_base import Int64

RAW_NULL = msgspec.Raw(b"null")


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

    pod_name: str = ""
    pod_namespace: str = ""
    pod_uid: str = field(default="", name="PodUID")
    node: str = ""

    @property
    def key(self) -> str:
        """`namespace/name` of the pod."""
        return f"{self.pod_namespace}/{self.pod_name}"


class BindingResult(msgspec.Struct, frozen=True, gc=False, rename="pascal"):
    """The result of bind; an empty `error` means that the pod is bound.

    Source: kube-scheduler/extender/v1/types.go, ExtenderBindingResult (1.36).
    """

    error: str = ""


def decode_folded_fields(data: bytes) -> Mapping[str, msgspec.Raw]:
    """Return the non-null fields of a JSON object as raw JSON, by lower-case key.

    Raises:
        DecodeError: malformed JSON, or not an object.
    """
    fields = decode(data, dict[str, msgspec.Raw])
    return {name.casefold(): raw for name, raw in fields.items() if raw != RAW_NULL}


def decode_victims(data: bytes) -> dict[str, MetaVictims]:
    """Decode `NodeNameToVictims` or `NodeNameToMetaVictims` to victims by node name. A null value means no victims.

    Pods are objects with a uid, or whole pods with `metadata.uid`.

    Raises:
        DecodeError: malformed JSON, or a value of the wrong type.
    """
    return {name: _to_meta_victims(value) for name, value in decode(data, dict[str, Any]).items()}


def _to_meta_victims(value: Any) -> MetaVictims:
    fields = _fold_keys(value)
    pods = [_fold_keys(pod) for pod in from_builtins(fields.get("pods"), list[Any])]
    meta_pods = [{"UID": pod.get("uid", _fold_keys(pod.get("metadata")).get("uid"))} for pod in pods]
    return from_builtins({"Pods": meta_pods, "NumPDBViolations": fields.get("numpdbviolations")}, MetaVictims)


def _fold_keys(value: Any) -> dict[str, Any]:
    return {key.casefold(): item for key, item in from_builtins(value, dict[str, Any]).items()}
