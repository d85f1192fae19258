"""What stands between the engine, which asks about all nodes at once, and a plugin that looks at them one by one."""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, Final

import msgspec
import numpy as np

from extender.cluster.arrays import IntArray
from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import NodeView
from extender.framework.changes import Registration
from extender.framework.node_info import each_node
from extender.framework.normalize import in_proportion
from extender.framework.points import Reads
from extender.framework.runner import told
from extender.framework.setup import Setup
from extender.framework.verdict import Reason, Rejection
from extender.objects.meta import ObjectMeta
from extender.objects.pod import Pod, PodStatus

Answer = str | Reason | tuple[str | Reason, ...] | None
"""What a filter says about one node: None takes the pod; a text or a `Reason`, or several in a tuple, say why not."""

Keep = bool | Callable[[Pod], Hashable]

MOST_REASONS: Final = 100
"""How many different reasons one filter may give in one call: each is a group of nodes, counted in messages."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A plugin as its author wrote it.

    Attributes:
        name: as in the configuration.
        make: from a setup to what has the methods `filter` or `score`, or both.
        methods: which of `filter`, `score` and `events` it has.
        options: the type of its options, or None.
        keep: whether answers are kept between cycles; a function gives the key they are kept under.
        normalize: bring scores to 0..100 in proportion to the highest.
        reverse: then turn them round.
        doc: the plugin's manual.
    """

    name: str
    make: Callable[[Setup[Any]], Any]
    methods: frozenset[str]
    options: type[msgspec.Struct] | None = None
    keep: Keep = False
    normalize: bool = False
    reverse: bool = False
    doc: str | None = None


def adapter(definition: Definition) -> type[Any]:
    """The plugin class of *definition*: it satisfies the protocols of `points`."""
    parts: list[type[Any]] = []
    if "filter" in definition.methods:
        parts.append(_KeptFilters if definition.keep else _Filters)
    if "score" in definition.methods:
        parts.append(_KeptScores if definition.keep else _Scores)
        if definition.normalize:
            parts.append(_Normalizes)
    if "events" in definition.methods:
        parts.append(_Wakes)
    body = {"name": definition.name, "options": definition.options, "definition": definition, "__doc__": definition.doc}
    return type(definition.name, tuple(parts), body)


class _Rows:
    """What all adapters share: the author's object, and the pod as it is shown to it."""

    name: ClassVar[str]
    definition: ClassVar[Definition]

    def __init__(self, setup: Setup[Any]) -> None:
        self.rows = self.definition.make(setup)

    def pod(self, query: PodQuery) -> Pod:
        """The pod to look at; without what two pods of one shape may differ in, if answers are kept by shape."""
        return (
            query.shape.remember(_Rows, lambda: _common(query.shape.pod)) if self.definition.keep is True else query.pod
        )

    def key(self, query: PodQuery) -> Hashable | None:
        """What answers are kept under."""
        keep = self.definition.keep
        return keep(query.pod) if callable(keep) else query.shape


class _Filters(_Rows):
    def filter(self, pod: PodQuery, nodes: NodeView, notes: Any) -> Sequence[Rejection]:  # noqa: ARG002  the point's signature
        """Groups of nodes with one reason each."""
        return _refusals(self.rows.filter, self.pod(pod), nodes)


class _KeptFilters(_Filters):
    filter_reads: ClassVar[Reads] = Reads.PODS

    def filter_key(self, pod: PodQuery) -> Hashable | None:
        """The pod's shape, or the author's key."""
        return self.key(pod)


class _Scores(_Rows):
    def score(self, pod: PodQuery, nodes: NodeView, notes: Any) -> IntArray:  # noqa: ARG002  the point's signature
        """One whole number a node."""
        return _scores(self.rows.score, self.pod(pod), nodes)


class _KeptScores(_Scores):
    score_reads: ClassVar[Reads] = Reads.PODS

    def score_key(self, pod: PodQuery) -> Hashable | None:
        """The pod's shape, or the author's key."""
        return self.key(pod)


class _Normalizes(_Rows):
    def normalize(self, pod: PodQuery, raw: IntArray, nodes: NodeView, notes: Any) -> IntArray:  # noqa: ARG002
        """In proportion to the highest. Source: B004."""
        if raw.min(initial=0) < 0:
            at = int(raw.argmin())
            raise ValueError(
                f"node {nodes.names[at]}: the score {raw[at]} is below 0, which cannot be normalized; score from 0 up"
            )
        return in_proportion(raw, reverse=self.definition.reverse)


class _Wakes(_Rows):
    def events(self) -> Sequence[Registration]:
        """As the author says."""
        registrations: Sequence[Registration] = self.rows.events()
        return registrations


def _common(pod: Pod) -> Pod:
    """What all pods of one shape have in common: no name, uid, annotations or times."""
    meta, status = pod.metadata, pod.status
    return Pod(
        metadata=ObjectMeta(namespace=meta.namespace, labels=meta.labels, owner_references=meta.owner_references),
        spec=pod.spec,
        status=PodStatus(
            conditions=tuple(c for c in status.conditions if c.type.startswith("PodResize")),
            container_statuses=status.container_statuses,
            init_container_statuses=status.init_container_statuses,
            resize=status.resize,
            resources=status.resources,
            allocated_resources=status.allocated_resources,
        ),
    )


def _refusals(function: Callable[..., Any], pod: Pod, nodes: NodeView) -> tuple[Rejection, ...]:
    groups: dict[str | Reason, list[int]] = {}
    for at, node in enumerate(each_node(nodes)):
        try:
            answer = function(pod, node)
        except Exception as wrong:
            raise ValueError(f"node {node.name}: {told(wrong)}") from wrong
        if answer is None:
            continue
        for each in answer if isinstance(answer, tuple) else (answer,):
            if not isinstance(each, str | Reason) or not each:
                want = "want None to take the pod or a text that says why not"
                raise ValueError(f"node {node.name}: answered with {_shown(each)}, {want}")
            groups.setdefault(each, []).append(at)
        if len(groups) > MOST_REASONS:
            example = f"such as {_shown(answer)}; leave names and amounts out of them"
            raise ValueError(f"more than {MOST_REASONS} different reasons, {example}")
    return tuple(Rejection(_mask(rows, len(nodes)), _reason(each)) for each, rows in groups.items())


def _mask(rows: list[int], size: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    mask = np.zeros(size, dtype=np.bool_)
    mask[rows] = True
    return mask


def _reason(answer: str | Reason) -> Reason:
    return answer if isinstance(answer, Reason) else Reason(answer)


def _scores(function: Callable[..., Any], pod: Pod, nodes: NodeView) -> IntArray:
    scores = np.empty(len(nodes), dtype=np.int64)
    for at, node in enumerate(each_node(nodes)):
        try:
            score = function(pod, node)
        except Exception as wrong:
            raise ValueError(f"node {node.name}: {told(wrong)}") from wrong
        if type(score) is not int and (isinstance(score, bool) or not isinstance(score, Integral)):
            raise ValueError(f"node {node.name}: the score is {_no_score(score)}")
        try:
            scores[at] = score
        except OverflowError as wrong:
            raise ValueError(f"node {node.name}: the score {score} does not fit into 64 bits") from wrong
    return scores


def _no_score(score: object) -> str:
    if isinstance(score, float):
        return (
            f"{score}, which is no number"
            if math.isnan(score)
            else f"{score}, want a whole number: use int() or round()"
        )
    return f"{_shown(score)}, want a whole number"


def _shown(thing: object) -> str:
    return "None" if thing is None else f"{type(thing).__name__} {thing!r}"[:120]
