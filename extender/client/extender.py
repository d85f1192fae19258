"""The client of a configured HTTP extender: filter, prioritize, preempt and bind.

Responses are validated without the state of the cluster; `scheduler` applies them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import msgspec

from extender.api.codec import DecodeError, decode, find_document_end, has_more_values, replace_lone_surrogates
from extender.api.extender_v1 import (
    RAW_NULL,
    BindingArgs,
    HostPriority,
    MetaPod,
    MetaVictims,
    decode_fields_ignoring_case,
    decode_victims,
)
from extender.api.kinds.meta import KubernetesObject
from extender.api.kinds.node import Node
from extender.api.kinds.pod import Container, Pod
from extender.client.extender_transport import ExtenderError, ExtenderTransport
from extender.config.model import Extender
from extender.event_loop.turn_budget import wait_for_turn

T = TypeVar("T")

RawObjectGetter = Callable[[KubernetesObject], msgspec.Raw]
"""Returns an object as raw JSON (`cache.raw_objects.RawObjectCache.get`)."""

MAX_ITEMS: Final = 100_000
"""The maximum number of scores or nodes in a response: those of the largest cluster, each several times."""

MAX_VALUES: Final = 1_000_000
"""The maximum number of values in a response with names. Each takes up to a microsecond and 200 bytes."""

MAX_VALUES_WITH_NODES: Final = 4_000_000
"""The maximum number of values in a response with whole nodes: 5,000 nodes of 13 kB have two million."""


MAX_REPLACED_BYTES: Final = 4 << 20
"""The maximum size of a response in which halves of surrogate pairs are replaced: 5,000 reasons of 800 bytes."""


class _GoHostPriority(HostPriority, frozen=True, gc=False, rename="pascal", forbid_unknown_fields=True):
    """A score with the names of the Go fields, and no other ones."""


@dataclass(frozen=True, slots=True)
class ExtenderArgs:
    """The arguments of filter and prioritize.

    Attributes:
        list_raw_nodes: the function that returns the nodes as JSON; called only for an extender without a node cache.
    """

    pod: Pod
    node_names: Sequence[str]
    list_raw_nodes: Callable[[], Sequence[msgspec.Raw]]


@dataclass(frozen=True, slots=True)
class ReturnedNode:
    """A node that an extender returned: decoded, and as raw JSON."""

    node: Node
    raw: msgspec.Raw


@dataclass(frozen=True, slots=True)
class ExtenderFilterResult:
    """The result of filter.

    Attributes:
        node_names: names of the feasible nodes; every node was in the request.
        nodes: the same nodes by name, as returned; None if names were returned.
        failed: the reasons by node name, for nodes on which preemption may help.
        unresolvable: the reasons by node name, for nodes on which preemption cannot help.

    Source: pkg/scheduler/extender.go, HTTPExtender.Filter (1.36).
    """

    node_names: Sequence[str]
    nodes: Mapping[str, ReturnedNode] | None = None
    failed: Mapping[str, str] = field(default_factory=dict)
    unresolvable: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NodeVictims:
    """The victims on one node, and the number of them whose eviction violates a disruption budget."""

    pods: Sequence[Pod]
    num_pdb_violations: int


class HttpExtender:
    """One extender of the configuration.

    Attributes:
        name: the extender's URL, which identifies it in messages.

    Source: pkg/scheduler/extender.go, HTTPExtender.Name (1.36).
    """

    def __init__(self, config: Extender, field_path: str, get_raw_object: RawObjectGetter) -> None:
        """Create the client without opening a connection.

        *field_path* is the extender's path in the configuration, such as `extenders[0]`; *get_raw_object* returns a pod
        as raw JSON.

        Raises:
            ConfigError: the TLS settings are invalid.
        """
        self.name = config.url_prefix
        self.config = config
        self._transport = ExtenderTransport(config, field_path)
        self._get_raw_object = get_raw_object
        self._managed_resources = frozenset(resource.name for resource in config.managed_resources)

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.close()

    def is_interested(self, pod: Pod) -> bool:
        """Return whether the extender is called for *pod*.

        Source: pkg/scheduler/extender.go, HTTPExtender.IsInterested (1.36).
        """
        if not self._managed_resources:
            return True
        return any(map(self._uses_managed_resources, pod.spec.containers)) or any(
            map(self._uses_managed_resources, pod.spec.init_containers)
        )

    def _uses_managed_resources(self, container: Container) -> bool:
        resources = container.resources
        return not (
            self._managed_resources.isdisjoint(resources.requests)
            and self._managed_resources.isdisjoint(resources.limits)
        )

    async def filter(self, args: ExtenderArgs) -> ExtenderFilterResult:
        """Call filter.

        Raises:
            ExtenderError: the call failed, or the extender returned a node that was not requested.

        Source: pkg/scheduler/schedule_one.go, findNodesThatPassExtenders; pkg/scheduler/extender.go,
        HTTPExtender.Filter; kube-scheduler/extender/v1/types.go, ExtenderFilterResult;
        pkg/scheduler/framework/interface.go, NewDefaultNodeToStatus (1.36).
        """
        fields = _decode_fields(await self._post_args(self.config.filter_verb, args))
        error = _decode_field(fields, "error", str)
        if error:
            raise ExtenderError(error)
        failed = _decode_field(fields, "failednodes", dict[str, str])
        unresolvable = _decode_field(fields, "failedandunresolvablenodes", dict[str, str])
        requested_names = frozenset(args.node_names)
        if self.config.node_cache_capable and "nodenames" in fields:
            node_names = _decode_field(fields, "nodenames", list[str])
            self._check_requested(node_names, requested_names)
            return ExtenderFilterResult(node_names, None, failed, unresolvable)
        if "nodes" not in fields:
            return ExtenderFilterResult((), None, failed, unresolvable)
        nodes = await _decode_nodes(fields["nodes"])
        self._check_requested(nodes, requested_names)
        return ExtenderFilterResult(tuple(nodes), nodes, failed, unresolvable)

    def _check_requested(self, names: Sequence[str] | Mapping[str, Any], requested_names: frozenset[str]) -> None:
        for name in names:
            if name not in requested_names:
                raise ExtenderError(
                    f'extender "{self.name}" claims a filtered node "{name}" which is not found in the input node list'
                )

    async def prioritize(self, args: ExtenderArgs) -> Sequence[HostPriority]:
        """Call prioritize; scores may have any range.

        Raises:
            ExtenderError: the call failed, or there are too many scores.

        Source: kube-scheduler/extender/v1/types.go, HostPriorityList; pkg/scheduler/schedule_one.go, prioritizeNodes
        (1.36).
        """
        document = _extract_first_document(await self._post_args(self.config.prioritize_verb, args))
        try:  # Go's form, which most extenders have, takes a thirtieth of the time
            return _check_count(msgspec.json.decode(document, type=list[_GoHostPriority]), "scores")
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            pass  # names in other cases, null, or invalid
        try:
            raw_priorities = _check_count(decode(document, list[msgspec.Raw]), "scores")
            priorities = [decode_fields_ignoring_case(raw) for raw in raw_priorities]
        except DecodeError as error:
            raise ExtenderError(str(error)) from error
        return [_decode_priority(fields) for fields in priorities]

    async def preempt(self, pod: Pod, victims_by_node: Mapping[str, NodeVictims]) -> Mapping[str, MetaVictims]:
        """Call preempt; return the nodes and victims that the extender accepts.

        Raises:
            ExtenderError: the call failed.

        Source: kube-scheduler/extender/v1/types.go, ExtenderPreemptionArgs, ExtenderPreemptionResult;
        pkg/scheduler/extender.go, HTTPExtender.convertPodUIDToPod (1.36).
        """
        body: dict[str, Any] = {
            "Pod": self._get_raw_object(pod),
            "NodeNameToVictims": None,
            "NodeNameToMetaVictims": None,
        }
        if self.config.node_cache_capable:
            body["NodeNameToMetaVictims"] = {
                node: MetaVictims(
                    tuple(MetaPod(victim.metadata.uid) for victim in victims.pods), victims.num_pdb_violations
                )
                for node, victims in victims_by_node.items()
            }
        else:
            body["NodeNameToVictims"] = {
                node: {
                    "Pods": [*map(self._get_raw_object, victims.pods)],
                    "NumPDBViolations": victims.num_pdb_violations,
                }
                for node, victims in victims_by_node.items()
            }
        fields = _decode_fields(await self._post(self.config.preempt_verb, body))
        try:
            return decode_victims(fields.get("nodenametometavictims", msgspec.Raw(b"{}")), max_second_attempt=MAX_ITEMS)
        except DecodeError as error:
            raise ExtenderError(f"NodeNameToMetaVictims: {error}") from error

    async def bind(self, pod: Pod, node: str) -> None:
        """Call bind for *pod* and *node*.

        Raises:
            ExtenderError: the pod is not bound, or the outcome is unknown.

        Source: pkg/scheduler/schedule_one.go, Scheduler.extendersBinding (1.36).
        """
        meta = pod.metadata
        args = BindingArgs(meta.name, meta.namespace, meta.uid, node)
        error = _decode_field(_decode_fields(await self._post(self.config.bind_verb, args)), "error", str)
        if error:
            raise ExtenderError(error)

    async def _post_args(self, verb: str, args: ExtenderArgs) -> bytes:
        """Call filter or prioritize, and return the response's body.

        Source: kube-scheduler/extender/v1/types.go, ExtenderArgs; pkg/scheduler/scheduler.go, newPodInformer (1.36).
        """
        body: dict[str, Any] = {"Pod": self._get_raw_object(args.pod), "Nodes": None, "NodeNames": None}
        if self.config.node_cache_capable:
            body["NodeNames"] = args.node_names
        else:
            body["Nodes"] = {"metadata": {}, "items": args.list_raw_nodes()}
        return await self._post(verb, body)

    async def _post(self, verb: str, body: Any) -> bytes:
        """Post *body* as JSON and return the response's body as UTF-8.

        Invalid bytes are replaced by U+FFFD, and so are halves of surrogate pairs, unless the response is large.

        Raises:
            ExtenderError: the call failed, or the response has too many values.

        Source: Go 1.26, encoding/json/decode.go, unquoteBytes.
        """
        response = await self._transport.post(verb, msgspec.json.encode(body))
        max_values = MAX_VALUES if self.config.node_cache_capable else MAX_VALUES_WITH_NODES
        if len(response) > max_values and has_more_values(response, max_values):
            raise ExtenderError(f"invalid response: more than {max_values} values")
        if len(response) <= MAX_REPLACED_BYTES:
            response = replace_lone_surrogates(response)
        return response if response.isascii() else response.decode(errors="replace").encode()


def encode_object(item: KubernetesObject) -> msgspec.Raw:
    """Return *item* as JSON, without the fields that our types leave out."""
    return msgspec.Raw(msgspec.json.encode(item))


def build_extenders(
    configs: Sequence[Extender], get_raw_object: RawObjectGetter = encode_object
) -> tuple[HttpExtender, ...]:
    """Build the extenders of a configuration in calling order: ignorable extenders are last.

    Raises:
        ConfigError: the TLS settings of an extender are invalid.

    Source: pkg/scheduler/scheduler.go, buildExtenders (1.36).
    """
    extenders = [HttpExtender(config, f"extenders[{index}]", get_raw_object) for index, config in enumerate(configs)]
    return tuple(sorted(extenders, key=lambda extender: extender.config.ignorable))


def _extract_first_document(body: bytes) -> bytes:
    """Return the first JSON document of *body*; the rest is ignored, as in Go's decoder.

    Source: pkg/scheduler/extender.go, HTTPExtender.send (1.36).
    """
    try:
        return body[: find_document_end(body)]
    except (msgspec.DecodeError, RecursionError):
        return body


def _decode_fields(body: bytes) -> Mapping[str, msgspec.Raw]:
    """Return the fields of a response by name in lower case; an empty mapping for null.

    Source: pkg/scheduler/extender.go, HTTPExtender.send (1.36).
    """
    document = _extract_first_document(bytes(body))
    try:
        return {} if document.strip() == b"null" else decode_fields_ignoring_case(document)
    except DecodeError as error:
        raise ExtenderError(f"invalid response: {error}") from error


def _decode_field(fields: Mapping[str, msgspec.Raw], name: str, kind: type[T]) -> T:
    """Decode one field; Go's zero value if it is missing."""
    try:
        return decode(fields.get(name, RAW_NULL), kind)
    except DecodeError as error:
        raise ExtenderError(f"invalid response: {name}: {error}") from error


def _check_count(items: list[T], noun: str) -> list[T]:
    """Return *items*.

    Raises:
        ExtenderError: there are more than `MAX_ITEMS`.
    """
    if len(items) > MAX_ITEMS:
        raise ExtenderError(f"invalid response: more than {MAX_ITEMS} {noun}")
    return items


def _decode_priority(fields: Mapping[str, msgspec.Raw]) -> HostPriority:
    score = _decode_field(fields, "score", int)
    if not -(2**63) <= score < 2**63:
        raise ExtenderError(f"invalid response: score: {score} is not an int64")
    return HostPriority(_decode_field(fields, "host", str), score)


async def _decode_nodes(data: bytes) -> dict[str, ReturnedNode]:
    """Decode a NodeList; return its nodes by name. Other tasks run between the nodes."""
    nodes: dict[str, ReturnedNode] = {}
    items = _check_count(_decode_field(_decode_fields(data), "items", list[msgspec.Raw]), "nodes")
    for index, raw in enumerate(items):
        await wait_for_turn()
        try:
            node = decode(raw, Node, max_second_attempt=MAX_ITEMS)
        except DecodeError as error:
            raise ExtenderError(f"invalid response: nodes.items[{index}].{error}") from error
        nodes[node.metadata.name] = ReturnedNode(node, raw)
    return nodes
