"""Decode the requests of extender/v1.

Keys of a request are case-insensitive, since extenders and their callers have used `NodeNames`, `nodenames` and
`nodeNames` over the years. Responses use the names of the Go fields and always have all of them.

A duplicate key of a request or of its lists is rejected, because decoders differ in the value that they take. In a pod
or node the last value of a key wins, as in Go.

Source: kube-scheduler/extender/v1/types.go, ExtenderArgs, ExtenderFilterResult, HostPriorityList;
pkg/scheduler/scheduler.go, newPodInformer (1.36); pkg/scheduler/api/v1/types.go, ExtenderPreemptionArgs (1.14);
pkg/scheduler/extender.go, HTTPExtender.send (1.36).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Final

import msgspec

from extender.api.codec import DecodeError
from extender.api.extender_v1 import MAX_PDB_VIOLATIONS, RAW_NULL, BindingArgs, MetaVictims, decode_victims
from extender.api.kinds.meta import LabelSelector
from extender.api.kinds.pod import Pod, PodSpec
from extender.api.label_syntax import validate_subdomain
from extender.api.matching import selector_from_label_selector
from extender.basics.byte_lru import ByteLRU
from extender.event_loop.cooperative_iteration import iterate_cooperatively, let_other_tasks_run
from extender.extender_api.json_parts import (
    MAX_VALUES_WITH_NULL,
    BodyForm,
    cut_body,
    decode_as,
    decode_casefolded_fields,
    decode_unique_fields,
)
from extender.extender_api.node_list import NODES_FORM, NodeList, SentNode, decode_cut_nodes, decode_node_list
from extender.extender_api.node_names import NodeNames, cut_names_request
from extender.extender_api.request_limits import (
    DEFAULT_LIMITS,
    MAX_OBJECT_BYTES,
    RequestError,
    RequestLimits,
    check_pod_limits,
    check_raw_object,
)

_MAX_POD_NAME_LENGTH, _MAX_NAMESPACE_LENGTH = 253, 63
"""Source: apimachinery/pkg/util/validation/validation.go, DNS1123SubdomainMaxLength, DNS1123LabelMaxLength (1.36)."""

_BYTES_PER_ITEM: Final = 10
"""Minimum bytes of a name or object, to estimate the items of a body from its size."""

_MAX_NODES_IN_ONE_CALL: Final = 10_000
"""Limit of the nodes with victims in a request in another form than Go's."""

_TOO_LARGE: Final = 413

_VICTIMS_FORMS: Final = {
    "NodeNameToVictims": BodyForm(
        b',"NodeNameToVictims":{', b'},"NodeNameToMetaVictims":null}', b'],"NumPDBViolations":'
    ),
    "NodeNameToMetaVictims": BodyForm(
        b',"NodeNameToVictims":null,"NodeNameToMetaVictims":{', b"}}", b'],"NumPDBViolations":'
    ),
}
"""The forms in which Go encodes the victims of a preempt request.

Source: kube-scheduler/extender/v1/types.go, ExtenderPreemptionArgs, Victims (1.36).
"""

_VICTIMS_FIELDS: Final = ("NodeNameToMetaVictims", "NodeToMetaVictims", "NodeNameToVictims", "NodeToVictims")


@dataclass(frozen=True, slots=True)
class ExtenderArgs:
    """The request of filter and prioritize. Names take precedence over nodes; kube-scheduler sends only one of them.

    Attributes:
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


@dataclass(slots=True)
class DecodeCaches:
    """Caches of decoded parts of filter and prioritize requests, by their JSON.

    kube-scheduler sends each pod and its names twice, and mostly the same nodes again. The caches of pods and nodes are
    limited by an estimate of their memory.

    Attributes:
        nodes: decoded nodes; 256 MiB hold about 4,600 of 12 kB. Of more nodes, a part is decoded again in each request.
        node_names: the node names of the last request with names; None if there was none.
    """

    pods: ByteLRU[Pod] = field(default_factory=lambda: ByteLRU(16 << 20))
    nodes: ByteLRU[SentNode] = field(
        default_factory=lambda: ByteLRU(256 << 20, rng=Random(0))  # noqa: S311  the evicted entries change no result
    )
    node_names: NodeNames | None = None

    def get_node_names(self, raw: bytes) -> NodeNames:
        """Return the node names with the JSON *raw*.

        Raises:
            RequestError: 400, malformed, or a name is empty.
        """
        if self.node_names is None or self.node_names.raw != raw:
            self.node_names = _decode_node_names(raw)
        return self.node_names


@dataclass(frozen=True, slots=True)
class PreemptionArgs:
    """The request of preempt. Victims by uid take precedence over whole victims; kube-scheduler sends only one form.

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


async def decode_args(
    body: bytes | bytearray, limits: RequestLimits = DEFAULT_LIMITS, caches: DecodeCaches | None = None
) -> ExtenderArgs:
    """Decode a filter or prioritize request. Parts that are in *caches* are not decoded again.

    Raises:
        RequestError: 400, malformed or of wrong types; 413, the pod, the names or the nodes exceed a limit.
    """
    caches = caches or DecodeCaches()
    if (parts := cut_names_request(body)) is not None:
        try:
            limits.check_names(len(body), parts[1])
            pod = caches.pods.get_or_create(parts[0], _decode_pod)
            await let_other_tasks_run(len(body) // _BYTES_PER_ITEM)
            return ExtenderArgs(pod, names=caches.get_node_names(parts[1]))
        except RequestError as error:
            if error.status == _TOO_LARGE:
                raise  # else the body is decoded again, because a part is not one JSON value, or is invalid
        await let_other_tasks_run(len(body) // _BYTES_PER_ITEM)
    cut = cut_body(body, NODES_FORM)
    if cut is not None:
        try:
            pod = _decode_pod_field(decode_casefolded_fields(cut.body_without_parts), caches.pods)
            return ExtenderArgs(pod, nodes=await decode_cut_nodes(cut, caches.nodes, limits))
        except RequestError as error:
            if len(body) > MAX_OBJECT_BYTES or error.status == _TOO_LARGE:
                raise  # else the body is decoded again, because the cut may be wrong
    fields = decode_casefolded_fields(body)
    await let_other_tasks_run(len(body) // _BYTES_PER_ITEM)
    pod = _decode_pod_field(fields, caches.pods)
    await let_other_tasks_run(len(body) // _BYTES_PER_ITEM)
    if "nodenames" in fields:
        raw_names = bytes(fields["nodenames"])
        limits.check_names(len(body), raw_names)
        return ExtenderArgs(pod, names=caches.get_node_names(raw_names))
    if "nodes" in fields:
        return ExtenderArgs(pod, nodes=await decode_node_list(fields["nodes"], caches.nodes, limits))
    return ExtenderArgs(pod)


async def decode_preemption_args(body: bytes | bytearray, limits: RequestLimits = DEFAULT_LIMITS) -> PreemptionArgs:
    """Decode a preempt request; the former names `NodeToVictims` and `NodeToMetaVictims` are accepted too.

    Raises:
        RequestError: 400, malformed or of wrong types, or a victim without a uid; 413, the pod or the victims exceed a
            limit.
    """
    for name, form in _VICTIMS_FORMS.items():
        cut = cut_body(body, form)
        if cut is not None:
            try:
                pod = _decode_pod_field(decode_casefolded_fields(cut.body_without_parts))
                return PreemptionArgs(pod, await _decode_victims(name, cut.iterate_parts(), limits))
            except RequestError as error:
                if len(body) > MAX_OBJECT_BYTES or error.status == _TOO_LARGE:
                    raise  # else the body is decoded again, because the cut may be wrong
    fields = decode_casefolded_fields(body)
    await let_other_tasks_run(len(body) // _BYTES_PER_ITEM)
    pod = _decode_pod_field(fields)
    for name in _VICTIMS_FIELDS:
        if (raw := fields.get(name.casefold())) is not None:
            await let_other_tasks_run(len(body) // _BYTES_PER_ITEM)
            raw_victims_by_node = decode_unique_fields(raw, name, min(limits.max_nodes + 1, _MAX_NODES_IN_ONE_CALL))
            await let_other_tasks_run(len(body) // _BYTES_PER_ITEM)
            parts = (msgspec.json.encode(node) + b":" + bytes(raw) for node, raw in raw_victims_by_node.items())
            return PreemptionArgs(pod, await _decode_victims(name, parts, limits))
    return PreemptionArgs(pod)


async def _decode_victims(field_name: str, parts: Iterable[bytes], limits: RequestLimits) -> dict[str, MetaVictims]:
    """Decode victims by node name. Each of *parts* has the victims on one node, as a field of a JSON object."""
    victims_by_node: dict[str, MetaVictims] = {}
    victim_count = 0
    async for part in iterate_cooperatively(parts):
        limits.check_victims_on_node(field_name, part)
        try:
            victims_on_nodes = decode_victims(b"{%b}" % part, max_second_attempt=MAX_VALUES_WITH_NULL)
        except DecodeError as error:
            raise RequestError(400, f"{field_name}: {error}") from error
        for node, victims in victims_on_nodes.items():
            victim_count += len(victims.pods)
            limits.check_victims(field_name, victim_count)
            limits.check_nodes(field_name, len(victims_by_node) + 1)
            if not all(victim.uid for victim in victims.pods):
                raise RequestError(400, f'{field_name}["{node}"]: a pod has no UID')
            if not 0 <= victims.num_pdb_violations <= MAX_PDB_VIOLATIONS:
                raise RequestError(400, f'{field_name}["{node}"].NumPDBViolations: want 0 to {MAX_PDB_VIOLATIONS}')
            if node in victims_by_node:
                raise RequestError(400, f'{field_name}: duplicate key "{node[:64]}"')
            victims_by_node[node] = victims
    return victims_by_node


async def decode_binding_args(body: bytes | bytearray) -> BindingArgs:
    """Decode a bind request.

    Raises:
        RequestError: 400, malformed or of wrong types, or a field is missing.
    """
    fields = decode_casefolded_fields(body)
    names = ("PodName", "PodNamespace", "PodUID", "Node")
    values = [decode_as(fields.get(name.casefold(), RAW_NULL), str, name) for name in names]
    for name, value in zip(names, values, strict=True):
        if not value:
            raise RequestError(400, f"{name}: is missing; want a pod and its node")
    args = BindingArgs(*values)
    _check_path_segment("PodName", args.pod_name, _MAX_POD_NAME_LENGTH)
    _check_path_segment("PodNamespace", args.pod_namespace, _MAX_NAMESPACE_LENGTH)
    return args


def _check_path_segment(name: str, value: str, max_length: int) -> None:
    """Check a name that becomes part of a path of the API server."""
    if len(value) > max_length or validate_subdomain(value):
        raise RequestError(
            400, f'{name}: want at most {max_length} lower-case letters, digits, "-" and ".", as in a Kubernetes name'
        )


def _decode_node_names(raw: bytes) -> NodeNames:
    names = decode_as(raw, list[str], "NodeNames")
    if "" in names:
        raise RequestError(400, f"NodeNames[{names.index('')}]: is missing; every node needs a name")
    return NodeNames(names, raw)


def _decode_pod_field(fields: Mapping[str, msgspec.Raw], cache: ByteLRU[Pod] | None = None) -> Pod:
    if "pod" not in fields:
        raise RequestError(400, "Pod: is missing; want the pod to schedule")
    raw = bytes(fields["pod"])
    return _decode_pod(raw) if cache is None else cache.get_or_create(raw, _decode_pod)


def _decode_pod(raw: bytes) -> Pod:
    check_raw_object("Pod", raw)
    pod = decode_as(raw, Pod, "Pod")
    check_pod_limits(pod)
    for selector in _iterate_label_selectors(pod.spec):
        try:
            selector_from_label_selector(selector)
        except ValueError as error:
            raise RequestError(400, f"Pod.spec: a label selector is invalid: {error}") from error
    return pod


def _iterate_label_selectors(spec: PodSpec) -> Iterator[LabelSelector | None]:
    """Yield the selectors of the pod's affinity terms and topology spread constraints."""
    if spec.affinity is not None:
        for term in spec.affinity.iterate_pod_terms():
            yield from (term.label_selector, term.namespace_selector)
    for constraint in spec.topology_spread_constraints:
        yield constraint.label_selector
