"""Adapters that turn per-node filters and scores into plugins, which the plugin runner calls for all nodes at once."""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, Final

import msgspec
import numpy as np

from extender.api.kinds.meta import ObjectMeta
from extender.api.kinds.pod import Pod, PodStatus
from extender.api.read_only import copy_read_only
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import NodeView
from extender.cache.tables.arrays import IntArray, make_mask
from extender.framework.events import ClusterEventWithHint
from extender.framework.extension_points import DependsOn
from extender.framework.node_info import iter_node_infos
from extender.framework.normalize import default_normalize_score
from extender.framework.plugin_args import PluginArgs
from extender.framework.plugin_errors import describe_value, format_exception, plugin_exceptions
from extender.framework.plugin_inputs import make_pod_read_only, make_signature_read_only, protect_hints
from extender.framework.status import Reason, Rejection

FilterReasons = str | Reason | tuple[str | Reason, ...] | None
"""The result of a per-node filter: None if the node fits, else one reason or a tuple of reasons."""

Cacheable = bool | Callable[[Pod], Hashable]
"""Whether results are cached across scheduling cycles, or a function that returns the cache key of a pod."""

MAX_REASONS: Final = 100
"""The maximum number of different reasons of a filter in one call. It is limited because messages list every reason."""


@dataclass(frozen=True, slots=True)
class PerNodeDefinition:
    """The definition of a per-node plugin by its author.

    Attributes:
        name: the plugin's name in the configuration.
        create: the function that creates the author's object from the plugin's args; the object has `filter`, `score`
            or both.
        methods: the names of the object's methods: `filter`, `score`, `events_to_register`.
        options: the type of the plugin's options, or None.
        cacheable: whether results are cached across scheduling cycles, or a function that returns the cache key.
        normalize: whether scores are scaled to 0..100 in proportion to the maximum.
        reverse: whether normalized scores are subtracted from 100.
        doc: the plugin's docstring.
    """

    name: str
    create: Callable[[PluginArgs[Any]], Any]
    methods: frozenset[str]
    options: type[msgspec.Struct] | None = None
    cacheable: Cacheable = False
    normalize: bool = False
    reverse: bool = False
    doc: str | None = None


def make_plugin_class(definition: PerNodeDefinition) -> type[Any]:
    """Return the plugin class of *definition*, which implements the protocols of `extension_points`."""
    bases: list[type[Any]] = []
    if "filter" in definition.methods:
        bases.append(_CacheableFilterAdapter if definition.cacheable else _FilterAdapter)
    if "score" in definition.methods:
        bases.append(_CacheableScoreAdapter if definition.cacheable else _ScoreAdapter)
        if definition.normalize:
            bases.append(_NormalizeScoreAdapter)
    if "events_to_register" in definition.methods:
        bases.append(_EnqueueAdapter)
    attributes = {
        "name": definition.name,
        "options": definition.options,
        "definition": definition,
        "__doc__": definition.doc,
    }
    return type(definition.name, tuple(bases), attributes)


class _Adapter:
    """The base class of the adapters. It creates the author's object, and the pods and cache keys for its methods."""

    name: ClassVar[str]
    definition: ClassVar[PerNodeDefinition]
    defining_module: ClassVar[str] = ""

    def __init__(self, args: PluginArgs[Any]) -> None:
        self.per_node_object = self.definition.create(args)

    def get_pod_argument(self, pod: PodInfo) -> Pod:
        """Return the read-only pod for the author's methods. It is reduced to the signature if `cacheable` is True."""
        signature = pod.signature
        if self.definition.cacheable is not True:
            return make_pod_read_only(pod.pod, make_signature_read_only(signature))
        return signature.get_or_create(
            _Adapter, lambda: copy_read_only(_reduce_to_signature(signature.representative_pod))
        )

    def get_cache_key(self, pod: PodInfo) -> Hashable | None:
        """Return the cache key: the pod's signature, or the author's key."""
        cacheable = self.definition.cacheable
        return cacheable(self.get_pod_argument(pod)) if callable(cacheable) else pod.signature


class _FilterAdapter(_Adapter):
    def filter(self, pod: PodInfo, nodes: NodeView, state: Any) -> Sequence[Rejection]:  # noqa: ARG002  contract
        return _filter_nodes(self.per_node_object.filter, self.get_pod_argument(pod), nodes, self.defining_module)


class _CacheableFilterAdapter(_FilterAdapter):
    filter_depends_on: ClassVar[DependsOn] = DependsOn.NODE_AND_PODS

    def filter_cache_key(self, pod: PodInfo) -> Hashable | None:
        return self.get_cache_key(pod)


class _ScoreAdapter(_Adapter):
    def score(self, pod: PodInfo, nodes: NodeView, state: Any) -> IntArray:  # noqa: ARG002  contract
        """Return the raw scores, int64, one for each node."""
        return _score_nodes(self.per_node_object.score, self.get_pod_argument(pod), nodes, self.defining_module)


class _CacheableScoreAdapter(_ScoreAdapter):
    score_depends_on: ClassVar[DependsOn] = DependsOn.NODE_AND_PODS

    def score_cache_key(self, pod: PodInfo) -> Hashable | None:
        return self.get_cache_key(pod)


class _NormalizeScoreAdapter(_Adapter):
    def normalize_score(self, pod: PodInfo, scores: IntArray, nodes: NodeView, state: Any) -> IntArray:  # noqa: ARG002
        """Return the scores scaled to 0..100 in proportion to the maximum.

        Source: pkg/scheduler/framework/plugins/helper/normalize_score.go, DefaultNormalizeScore (1.36).
        """
        if scores.min(initial=0) < 0:
            position = int(scores.argmin())
            name, score = nodes.names[position], scores[position]
            raise ValueError(f"node {name}: the score {score} is below 0, which cannot be normalized; score from 0 up")
        return default_normalize_score(scores, reverse=self.definition.reverse)


class _EnqueueAdapter(_Adapter):
    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return protect_hints(self.per_node_object.events_to_register())


def _reduce_to_signature(pod: Pod) -> Pod:
    """Return *pod* without name, uid, annotations and times, which differ between pods of one signature."""
    meta, status = pod.metadata, pod.status
    return Pod(
        metadata=ObjectMeta(namespace=meta.namespace, labels=meta.labels, owner_references=meta.owner_references),
        spec=pod.spec,
        status=PodStatus(
            conditions=tuple(condition for condition in status.conditions if condition.type.startswith("PodResize")),
            container_statuses=status.container_statuses,
            init_container_statuses=status.init_container_statuses,
            resize=status.resize,
            resources=status.resources,
            allocated_resources=status.allocated_resources,
        ),
    )


def _filter_nodes(function: Callable[..., Any], pod: Pod, nodes: NodeView, module: str) -> tuple[Rejection, ...]:
    positions_by_reason: dict[str | Reason, list[int]] = {}
    for position, node in enumerate(iter_node_infos(nodes)):
        try:
            node_reasons = function(pod, node)
        except plugin_exceptions() as error:
            raise ValueError(f"node {node.name}: {format_exception(error, module)}") from error
        if node_reasons is None:
            continue
        for reason in node_reasons if isinstance(node_reasons, tuple) else (node_reasons,):
            if not isinstance(reason, str | Reason) or not reason:
                expectation = "want None if the node fits the pod, else a text with the reason"
                raise ValueError(f"node {node.name}: returned {describe_value(reason)}, {expectation}")
            positions_by_reason.setdefault(reason, []).append(position)
        if len(positions_by_reason) > MAX_REASONS:
            example = f"such as {describe_value(node_reasons)}; leave names and amounts out of them"
            raise ValueError(f"more than {MAX_REASONS} different reasons, {example}")
    return tuple(
        Rejection(make_mask(positions, len(nodes)), reason if isinstance(reason, Reason) else Reason(reason))
        for reason, positions in positions_by_reason.items()
    )


def _score_nodes(function: Callable[..., Any], pod: Pod, nodes: NodeView, module: str) -> IntArray:
    scores = np.empty(len(nodes), dtype=np.int64)
    for position, node in enumerate(iter_node_infos(nodes)):
        try:
            score = function(pod, node)
        except plugin_exceptions() as error:
            raise ValueError(f"node {node.name}: {format_exception(error, module)}") from error
        if type(score) is not int and (isinstance(score, bool) or not isinstance(score, Integral)):
            raise ValueError(f"node {node.name}: the score is {_describe_bad_score(score)}")
        try:
            scores[position] = score
        except OverflowError as error:
            raise ValueError(f"node {node.name}: the score {score} does not fit into 64 bits") from error
    return scores


def _describe_bad_score(score: object) -> str:
    if isinstance(score, float):
        return (
            f"{score}, which is no number"
            if math.isnan(score)
            else f"{score}, want a whole number: use int() or round()"
        )
    return f"{describe_value(score)}, want a whole number"
