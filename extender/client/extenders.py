"""HTTP extenders as kube-scheduler calls them: filter, prioritize, preempt and bind of one that is configured.

What an extender says is checked as far as it can be without knowing the cluster; what follows from it is for the loop.
Source: F011, F013 to F028, F036, F039, F041, F044.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from extender.client.extender_calls import Calls, ExtenderError, Observe, nobody
from extender.client.texts import Texts
from extender.config.model import Extender
from extender.objects.codec import DecodeError, decode
from extender.objects.extender_v1 import NULL, BindingArgs, HostPriority, MetaPod, MetaVictims, folded, victims
from extender.objects.node import Node
from extender.objects.pod import Container, Pod

T = TypeVar("T")

_TRAILING = re.compile(r"JSON is malformed: trailing characters \(byte (\d+)\)")


@dataclass(frozen=True, slots=True)
class Question:
    """A pod and the nodes it is about.

    Attributes:
        pod: asks for a node.
        names: of the nodes.
        texts: gives the nodes as JSON; asked only for an extender without a node cache.
    """

    pod: Pod
    names: Sequence[str]
    texts: Callable[[], Sequence[msgspec.Raw]]


@dataclass(frozen=True, slots=True)
class Returned:
    """A node as an extender gave it back: decoded, and byte for byte."""

    node: Node
    text: msgspec.Raw


@dataclass(frozen=True, slots=True)
class Passed:
    """The answer of filter.

    Attributes:
        names: of the nodes let through, each one asked about.
        nodes: the same by name as they were given back; None where names were given. Source: F028.
        failed: why others were refused, by name, where evicting pods may help.
        unresolvable: the same, where it cannot.
    """

    names: Sequence[str]
    nodes: Mapping[str, Returned] | None = None
    failed: Mapping[str, str] = field(default_factory=dict)
    unresolvable: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Offer:
    """The pods to evict on one node; `violations` of them are protected by a disruption budget."""

    pods: Sequence[Pod]
    violations: int


class HttpExtender:
    """One extender of the configuration.

    Attributes:
        name: its URL, by which it goes in messages. Source: F050.
        config: as configured.
    """

    def __init__(self, config: Extender, path: str, texts: Texts, observe: Observe = nobody) -> None:
        """Opens nothing yet.

        Args:
            config: as configured.
            path: where it stands in the configuration, such as `extenders[0]`.
            texts: pods as they are sent.
            observe: told of each call.

        Raises:
            ConfigError: its TLS settings cannot be used.
        """
        self.name = config.url_prefix
        self.config = config
        self._calls = Calls(config, path, observe)
        self._texts = texts
        self._managed = frozenset(resource.name for resource in config.managed_resources)

    async def close(self) -> None:
        """Close all connections."""
        await self._calls.close()

    def interested(self, pod: Pod) -> bool:
        """Whether it is to be asked about *pod*. Source: F039."""
        if not self._managed:
            return True
        return any(map(self._uses, pod.spec.containers)) or any(map(self._uses, pod.spec.init_containers))

    def _uses(self, container: Container) -> bool:
        resources = container.resources
        return not (self._managed.isdisjoint(resources.requests) and self._managed.isdisjoint(resources.limits))

    async def filter(self, question: Question) -> Passed:
        """Which of the nodes it lets through. Source: F026 to F031.

        Raises:
            ExtenderError: it failed, or answers about nodes that it was not asked about.
        """
        fields = _fields(await self._ask(self.config.filter_verb, question))
        error = _read(fields, "error", str)
        if error:
            raise ExtenderError(error)
        failed = _read(fields, "failednodes", dict[str, str])
        unresolvable = _read(fields, "failedandunresolvablenodes", dict[str, str])
        asked = frozenset(question.names)
        if self.config.node_cache_capable and "nodenames" in fields:
            names = _read(fields, "nodenames", list[str])
            self._known(names, asked)
            return Passed(names, None, failed, unresolvable)
        if "nodes" not in fields:
            return Passed((), None, failed, unresolvable)
        nodes = _returned(fields["nodes"])
        self._known(nodes, asked)
        return Passed(tuple(nodes), nodes, failed, unresolvable)

    def _known(self, names: Sequence[str] | Mapping[str, Any], asked: frozenset[str]) -> None:
        for name in names:
            if name not in asked:
                raise ExtenderError(
                    f'extender "{self.name}" claims a filtered node "{name}" which is not found in the input node list'
                )

    async def prioritize(self, question: Question) -> list[HostPriority]:
        """Its scores of the nodes, whatever their range. Source: F020, F036.

        Raises:
            ExtenderError: it failed.
        """
        answer = _one_document(await self._ask(self.config.prioritize_verb, question))
        try:
            each = [folded(raw) for raw in decode(answer, list[msgspec.Raw])]
        except DecodeError as fault:
            raise ExtenderError(str(fault)) from fault
        return [_priority(fields) for fields in each]

    async def preempt(self, pod: Pod, offers: Mapping[str, Offer]) -> Mapping[str, MetaVictims]:
        """The nodes and victims that it lets pass, or wants instead. Source: F021, F022, F044.

        Raises:
            ExtenderError: it failed.
        """
        body: dict[str, Any] = {"Pod": self._texts.of(pod), "NodeNameToVictims": None, "NodeNameToMetaVictims": None}
        if self.config.node_cache_capable:
            body["NodeNameToMetaVictims"] = {
                node: MetaVictims(tuple(MetaPod(each.metadata.uid) for each in offer.pods), offer.violations)
                for node, offer in offers.items()
            }
        else:
            body["NodeNameToVictims"] = {
                node: {"Pods": [*map(self._texts.of, offer.pods)], "NumPDBViolations": offer.violations}
                for node, offer in offers.items()
            }
        fields = _fields(await self._calls.post(self.config.preempt_verb, msgspec.json.encode(body)))
        try:
            return victims(fields.get("nodenametometavictims", msgspec.Raw(b"{}")))
        except DecodeError as fault:
            raise ExtenderError(f"NodeNameToMetaVictims: {fault}") from fault

    async def bind(self, pod: Pod, node: str) -> None:
        """Have it put *pod* on *node*. Source: F041.

        Raises:
            ExtenderError: it did not, or nobody knows.
        """
        meta = pod.metadata
        body = msgspec.json.encode(BindingArgs(meta.name, meta.namespace, meta.uid, node))
        error = _read(_fields(await self._calls.post(self.config.bind_verb, body)), "error", str)
        if error:
            raise ExtenderError(error)

    async def _ask(self, verb: str, question: Question) -> bytes:
        """The answer to filter or prioritize. Source: F017, F018, F025."""
        body: dict[str, Any] = {"Pod": self._texts.of(question.pod), "Nodes": None, "NodeNames": None}
        if self.config.node_cache_capable:
            body["NodeNames"] = question.names
        else:
            body["Nodes"] = {"metadata": {}, "items": question.texts()}
        return await self._calls.post(verb, msgspec.json.encode(body))


def in_order(
    configured: Sequence[Extender], texts: Texts | None = None, observe: Observe = nobody
) -> tuple[HttpExtender, ...]:
    """The extenders of a configuration in the order they are asked: those that may not fail first. Source: F011.

    Raises:
        ConfigError: TLS settings of one cannot be used.
    """
    known = Texts() if texts is None else texts
    made = [HttpExtender(each, f"extenders[{index}]", known, observe) for index, each in enumerate(configured)]
    return tuple(sorted(made, key=lambda extender: extender.config.ignorable))


def _one_document(answer: bytes) -> bytes:
    """The JSON document that *answer* begins with; what stands behind it is ignored. Source: F015."""
    try:
        msgspec.json.decode(answer, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError) as fault:
        match = _TRAILING.fullmatch(str(fault))
        if match is not None:
            return answer[: int(match[1]) - 1]
    return answer


def _fields(answer: bytes) -> Mapping[str, msgspec.Raw]:
    """The fields of an answer by their names in lower case; none if it is null. Source: F015, F016."""
    document = _one_document(bytes(answer))
    try:
        return {} if document.strip() == b"null" else folded(document)
    except DecodeError as fault:
        raise ExtenderError(f"answer cannot be understood: {fault}") from fault


def _read(fields: Mapping[str, msgspec.Raw], name: str, kind: type[T]) -> T:
    """One field; Go's zero value if it is missing."""
    try:
        return decode(fields.get(name, NULL), kind)
    except DecodeError as fault:
        raise ExtenderError(f"answer cannot be understood: {name}: {fault}") from fault


def _priority(fields: Mapping[str, msgspec.Raw]) -> HostPriority:
    score = _read(fields, "score", int)
    if not -(2**63) <= score < 2**63:
        raise ExtenderError(f"answer cannot be understood: score: {score} is no int64")
    return HostPriority(_read(fields, "host", str), score)


def _returned(data: bytes) -> dict[str, Returned]:
    """The nodes of a list, by name."""
    found: dict[str, Returned] = {}
    for index, raw in enumerate(_read(_fields(data), "items", list[msgspec.Raw])):
        try:
            node = decode(raw, Node)
        except DecodeError as fault:
            raise ExtenderError(f"answer cannot be understood: nodes.items[{index}].{fault}") from fault
        found[node.metadata.name] = Returned(node, raw)
    return found
