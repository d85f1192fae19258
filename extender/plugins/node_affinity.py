"""NodeAffinity compares nodes with the pod's node selector and node affinity, and with an affinity added to all pods.

**Rejects** a node that does not match the pod's `spec.nodeSelector`, its required node affinity, or the required part
of `addedAffinity`. The rejection is unresolvable. An invalid term matches no node. If all terms of a pod select nodes
by `metadata.name`, only those nodes are checked. If such terms conflict, the pod is rejected in PreFilter.

**Scores** nodes by the summed weights of the matching preferred terms of the pod and of `addedAffinity`. The highest
sum becomes 100. Scoring is skipped if neither has preferred terms. An invalid preferred term is an error.

**Requeued on** a new node that matches, or a change of labels that makes a node match.

**Options** `addedAffinity`: a required and preferred node affinity that applies to every pod in addition to its own.

Source: component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go, RequiredNodeAffinity.Match (1.36).
"""

from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

import msgspec
import numpy as np

from extender.api.kinds.affinity import NodeAffinity as ApiNodeAffinity
from extender.api.kinds.affinity import NodeSelectorTerm
from extender.api.kinds.node import Node
from extender.api.matching import (
    CompiledNodeSelector,
    CompiledPreferredTerm,
    compile_node_selector,
    compile_node_selector_term,
    compile_preferred_terms,
)
from extender.cache.node_matching import (
    get_compiled_required_node_affinity,
    match_node_selector,
    match_node_selector_term,
    match_required_node_affinity,
)
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import NodeView, Snapshot
from extender.cache.tables.arrays import IntArray
from extender.config.errors import FieldError, child, item
from extender.config.feature_gates import FeatureGates
from extender.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, EventResource, QueueingHint
from extender.framework.extension_points import PASS, SKIP, SKIP_SCORE, DependsOn, PreFilterResult, PreScoreResult
from extender.framework.normalize import default_normalize_score
from extender.framework.plugin_args import PluginArgs
from extender.framework.status import Code, Reason, Rejection, Status, error_status, unresolvable_status

_ADDED_AFFINITY = Reason("node(s) didn't match scheduler-enforced node affinity", Code.UNRESOLVABLE)
_POD_AFFINITY = Reason("node(s) didn't match Pod's node affinity/selector", Code.UNRESOLVABLE)
_CONFLICT = unresolvable_status("pod affinity terms conflict")
_NAME_FIELD = "metadata.name"

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class NodeAffinityArgs(msgspec.Struct, frozen=True, rename="camel"):
    """Options of NodeAffinity.

    Source: pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go, New (1.36).
    """

    added_affinity: ApiNodeAffinity | None = None

    def validate(self, path: str, gates: FeatureGates) -> list[FieldError]:  # noqa: ARG002  signature of all options
        """Return an error for each invalid term.

        Source: pkg/scheduler/apis/config/validation/validation_pluginargs.go, ValidateNodeAffinityArgs (1.36).
        """
        added_affinity = self.added_affinity
        if added_affinity is None:
            return []
        field_path = child(path, "addedAffinity")
        errors: list[FieldError] = []
        required = added_affinity.required_during_scheduling_ignored_during_execution
        for index, term in enumerate(required.node_selector_terms if required else ()):
            errors += _validate_term(term, item(child(field_path, f"{_REQUIRED}.nodeSelectorTerms"), index))
        for index, preferred_term in enumerate(added_affinity.preferred_during_scheduling_ignored_during_execution):
            if preferred_term.weight:
                errors += _validate_term(preferred_term.preference, item(child(field_path, _PREFERRED), index))
        return errors


def _validate_term(term: NodeSelectorTerm, path: str) -> list[FieldError]:
    compiled_term = compile_node_selector_term(term)
    if compiled_term is None:
        return []
    messages = (error.partition(": ") for error in compiled_term.errors)
    return [FieldError(child(path, field), message) for field, _, message in messages]


class NodeAffinity:
    """Filters and scores by node affinity. Evaluates a requirement once for each distinct label value."""

    name: ClassVar[str] = "NodeAffinity"
    cacheable_for_spec_class: ClassVar[bool] = True
    options: ClassVar[type[NodeAffinityArgs]] = NodeAffinityArgs
    filter_depends_on: ClassVar[DependsOn] = DependsOn.NODE
    score_depends_on: ClassVar[DependsOn] = DependsOn.NODE
    normalizes_only_by_scores = True

    def __init__(self, args: PluginArgs[NodeAffinityArgs]) -> None:
        added_affinity = args.options.added_affinity or ApiNodeAffinity()
        required = added_affinity.required_during_scheduling_ignored_during_execution
        self._added_node_selector: CompiledNodeSelector | None = (
            None if required is None else compile_node_selector(required)
        )
        self._has_added_preferred_terms = bool(added_affinity.preferred_during_scheduling_ignored_during_execution)
        self._added_preferred_terms = compile_preferred_terms(
            added_affinity.preferred_during_scheduling_ignored_during_execution
        )

    # -- filter

    def pre_filter(self, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:  # noqa: ARG002  the extension point's signature
        """Skip pods without requirements. Return the node names if all terms select nodes by name.

        Source: pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go, NodeAffinity.PreFilter (1.36).
        """
        if (
            self._added_node_selector is None
            and not pod.signature.spec.node_selector
            and _get_required_terms(pod) is None
        ):
            return SKIP
        return pod.signature.get_or_create(
            (self.name, "pre_filter"), lambda: _select_nodes_by_name(_get_required_terms(pod) or ())
        )

    def pre_filter_is_cacheable(self, pod: PodInfo) -> bool:  # noqa: ARG002  the extension point's signature
        """Return True: the result depends only on the pod's spec."""
        return True

    def filter_cache_key(self, pod: PodInfo) -> Hashable | None:
        """Return the pod's required affinity. Results of pods that select nodes by name are not cached."""
        required = get_compiled_required_node_affinity(pod)
        selects_by_name = required.node_selector is not None and any(
            term.field_requirements for term in required.node_selector.terms
        )
        return None if selects_by_name else required

    def filter(self, pod: PodInfo, nodes: NodeView, state: Any) -> Sequence[Rejection]:  # noqa: ARG002
        """Reject nodes that do not match the added affinity, and nodes that do not match the pod's affinity.

        Source: pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go, NodeAffinity.Filter (1.36).
        """
        mismatches_pod_affinity = ~match_required_node_affinity(nodes, pod)
        if self._added_node_selector is None:
            return (Rejection(mismatches_pod_affinity, _POD_AFFINITY),)
        matches_added_affinity = match_node_selector(nodes, self._added_node_selector)
        return (
            Rejection(~matches_added_affinity, _ADDED_AFFINITY),
            Rejection(mismatches_pod_affinity & matches_added_affinity, _POD_AFFINITY),
        )

    # -- score

    def pre_score(self, pod: PodInfo, nodes: NodeView) -> PreScoreResult:  # noqa: ARG002  the extension point's signature
        """Skip if neither the pod nor the added affinity has preferred terms.

        Source: pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go, NodeAffinity.PreScore (1.36).
        """
        affinity = _get_node_affinity(pod)
        if not self._has_added_preferred_terms and not affinity.preferred_during_scheduling_ignored_during_execution:
            return SKIP_SCORE
        preferred_terms = _get_preferred_terms(pod)
        return PreScoreResult(status=preferred_terms) if isinstance(preferred_terms, Status) else PreScoreResult()

    def pre_score_is_cacheable(self, pod: PodInfo) -> bool:  # noqa: ARG002  the extension point's signature
        """Return True: the result depends only on the pod's spec."""
        return True

    def score_cache_key(self, pod: PodInfo) -> Hashable | None:
        """Return the pod's preferred terms."""
        preferred_terms = _get_preferred_terms(pod)
        return None if isinstance(preferred_terms, Status) else preferred_terms

    def score(self, pod: PodInfo, nodes: NodeView, state: Any) -> IntArray:  # noqa: ARG002  the extension point's signature
        """Return the summed weights of the preferred terms that match each node.

        Raises:
            ValueError: PreScore is disabled, and a preferred term is invalid.

        Source: pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go, NodeAffinity.Score (1.36).
        """
        preferred_terms = _get_preferred_terms(pod)
        if isinstance(preferred_terms, Status):
            raise ValueError(preferred_terms.message)  # noqa: TRY004  the term is invalid, not of a wrong type
        weight_sums = np.zeros(len(nodes), dtype=np.int64)
        for preferred_term in (*self._added_preferred_terms, *preferred_terms):
            weight_sums += match_node_selector_term(nodes, preferred_term.term) * np.int64(preferred_term.weight)
        return weight_sums

    def normalize_score(self, pod: PodInfo, scores: IntArray, nodes: NodeView, state: Any) -> IntArray:  # noqa: ARG002
        """Scale the scores so that the highest is 100.

        Source: pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go, NodeAffinity.NormalizeScore (1.36).
        """
        return default_normalize_score(scores)

    # -- events

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return the events of new nodes and changed node labels.

        Source: pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go,
        NodeAffinity.isSchedulableAfterNodeChange (1.36).
        """
        return (
            ClusterEventWithHint(
                EventResource.NODE,
                ActionType.ADD | ActionType.UPDATE_NODE_LABEL,
                self._is_schedulable_after_node_change,
                per_signature=True,
            ),
        )

    def _is_schedulable_after_node_change(self, pod: PodInfo, event: ClusterEvent) -> QueueingHint:
        node: Node = event.new
        if self._added_node_selector is not None and not self._added_node_selector.matches(
            node.metadata.labels, node.metadata.name
        ):
            return QueueingHint.SKIP
        is_matched = _matches_required_affinity(pod, node)
        if is_matched is not True:
            return QueueingHint.queue_if(is_matched is None)
        was_matched = False if event.old is None else _matches_required_affinity(pod, event.old)
        return QueueingHint.queue_if(not was_matched)


def _matches_required_affinity(pod: PodInfo, node: Node) -> bool | None:
    """Return whether *node* matches the pod's required affinity; None if an invalid term makes this undecidable."""
    required, labels = get_compiled_required_node_affinity(pod), node.metadata.labels
    if required.matches(labels, node.metadata.name):
        return True
    has_invalid_term = required.node_selector is not None and bool(required.node_selector.errors)
    return None if has_invalid_term and required.label_selector.matches(labels) else False


def _get_node_affinity(pod: PodInfo) -> ApiNodeAffinity:
    affinity = pod.signature.spec.affinity
    return (affinity and affinity.node_affinity) or ApiNodeAffinity()


def _get_required_terms(pod: PodInfo) -> tuple[NodeSelectorTerm, ...] | None:
    required = _get_node_affinity(pod).required_during_scheduling_ignored_during_execution
    return None if required is None else required.node_selector_terms


def _select_nodes_by_name(terms: tuple[NodeSelectorTerm, ...]) -> PreFilterResult:
    """Return the node names that *terms* select by `metadata.name`; all nodes if a term does not select by name."""
    names: frozenset[str] = frozenset()
    for term in terms:
        term_names = [
            frozenset(requirement.values)
            for requirement in term.match_fields
            if requirement.key == _NAME_FIELD and requirement.operator == "In"
        ]
        if not term_names:
            return PASS
        names |= frozenset.intersection(*term_names)
    if not terms:
        return PASS
    return PreFilterResult(node_names=names) if names else PreFilterResult(status=_CONFLICT)


def _get_preferred_terms(pod: PodInfo) -> tuple[CompiledPreferredTerm, ...] | Status:
    return pod.signature.get_or_create(
        ("NodeAffinity", "preferred"), lambda: _compile_preferred_terms(_get_node_affinity(pod))
    )


def _compile_preferred_terms(affinity: ApiNodeAffinity) -> tuple[CompiledPreferredTerm, ...] | Status:
    try:
        return compile_preferred_terms(affinity.preferred_during_scheduling_ignored_during_execution)
    except ValueError as invalid_term:
        return error_status(str(invalid_term))
