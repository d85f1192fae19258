"""InterPodAffinity filters and scores nodes by the affinity and anti-affinity between pods.

**Rejects**
    The first rule that a node fails determines the reason:

    - `node(s) didn't match pod affinity rules`, unresolvable: the node lacks a topology key of a required affinity
      term, or the domain of one of the keys has no pod that matches all terms. The first pod of a group is an
      exception. If no existing pod matches all terms, but the pod to schedule does, the node needs only the keys.
    - `node(s) didn't match pod anti-affinity rules`: the node's domain has a pod that matches a required anti-affinity
      term. A node without the key is in no domain.
    - `node(s) didn't satisfy existing pods anti-affinity rules`: a pod in the node's domain has a required
      anti-affinity term that matches this pod.

    PreFilter rejects a pod with invalid terms: `parsing pod: ...`. This rejection is unresolvable.

**Scores**
    The raw score is the sum of these weights, for each existing pod in the node's domains:

    - the weight of each preferred term of the incoming pod that matches the existing pod;
    - the weight of each preferred term of the existing pod that matches the incoming pod;
    - `hardPodAffinityWeight` for each required affinity term of the existing pod that matches the incoming pod.

    Weights of anti-affinity terms are negative. The lowest sum is normalized to 0, the highest to 100. If all sums are
    equal, all scores are 0.

**Requeued on**
    Pods that match a term and are added, deleted or relabelled, new nodes, and changed node labels.

**Options** (InterPodAffinityArgs)
    `hardPodAffinityWeight` (1; 0 to 100). `ignorePreferredTermsOfExistingPods` (false): skip scoring of pods without
    preferred terms. For pods with preferred terms, other pods' terms still count.

Source: kube-scheduler/framework/types.go, AffinityTerm.Matches (1.36).
"""

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

import msgspec
import numpy as np

from extender.api.kinds.meta import Int32
from extender.cache.pod_affinity import LastPodTerms
from extender.cache.pod_batch import PodBatch
from extender.cache.pod_info import AssignedPodInfo, PodInfo
from extender.cache.snapshot import NodeView, Snapshot
from extender.cache.tables.affinity_terms import AffinityTerm, TermKind
from extender.cache.tables.arrays import IntArray
from extender.config.errors import FieldError
from extender.config.feature_gates import FeatureGates
from extender.config.validation import make_invalid_value_error
from extender.framework.events import (
    ActionType,
    ClusterEventWithHint,
    EventResource,
    register_pod_events,
)
from extender.framework.extension_points import SKIP, SKIP_SCORE, PreFilterResult, PreScoreResult
from extender.framework.plugin_args import PluginArgs
from extender.framework.status import Code, Reason, Rejection, error_status, reject_all, unresolvable_status
from extender.plugins.inter_pod_affinity.domain_counts import TopologyToMatchedTermCount
from extender.plugins.inter_pod_affinity.filter_state import (
    PreFilterState,
    build_topology_key_iterators,
    count_terms_of_batch,
    find_rejections,
    update_with_pod,
)
from extender.plugins.inter_pod_affinity.pod_terms import compile_terms, has_preferred_terms, matches_own_affinity_terms
from extender.plugins.inter_pod_affinity.queueing_hints import (
    find_concerned_pods,
    is_schedulable_after_node_change,
    is_schedulable_after_pod_change,
)

_NO_STATE = Reason('error reading "PreFilterInterPodAffinity" from cycleState: not found', Code.ERROR)


class InterPodAffinityArgs(msgspec.Struct, frozen=True, rename="camel"):
    """The plugin's options.

    Source: pkg/scheduler/apis/config/validation/validation_pluginargs.go, ValidateInterPodAffinityArgs (1.36).
    """

    hard_pod_affinity_weight: Int32 = 1
    ignore_preferred_terms_of_existing_pods: bool = False

    def validate(self, path: str, _gates: FeatureGates) -> list[FieldError]:
        """Return an error for a weight outside 0 to 100."""
        weight = self.hard_pod_affinity_weight
        if 0 <= weight <= 100:
            return []
        return [make_invalid_value_error(f"{path}.hardPodAffinityWeight", weight, "not in valid range [0, 100]")]


class InterPodAffinity:
    """Filters and scores by affinity and anti-affinity between pods."""

    name: ClassVar[str] = "InterPodAffinity"
    pod_changes_are_reversible: ClassVar[bool] = True
    options = InterPodAffinityArgs

    def __init__(self, args: PluginArgs[InterPodAffinityArgs]) -> None:
        self._ignore_preferred_terms_of_existing_pods = args.options.ignore_preferred_terms_of_existing_pods
        self._node_actions = ActionType.ADD | ActionType.UPDATE_NODE_LABEL
        if "SchedulerQueueingHints" not in args.gates:
            self._node_actions |= ActionType.UPDATE_NODE_TAINT
        self._release = args.gates.release
        self._hard_pod_affinity_weight = args.options.hard_pod_affinity_weight

    # -- filtering

    def pre_filter(self, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:
        """Count matched terms by domain.

        Skip a pod that has no required terms and that no existing pod's required anti-affinity term matches.

        Source: pkg/scheduler/framework/plugins/interpodaffinity/filtering.go, preFilterState,
        InterPodAffinity.PreFilter (1.36).
        """
        terms = pod.signature.pod_affinity_terms
        if terms.error is not None:
            return PreFilterResult(unresolvable_status(f"parsing pod: {terms.error}"))
        existing_anti_affinity_counts = TopologyToMatchedTermCount(
            snapshot.sum_by_domain(
                (term.topology_key, term_counts, 1)
                for term, term_counts in snapshot.listed_affinity_terms_matching(pod.signature.pod_labels)
                if term.kind is TermKind.REQUIRED_ANTI_AFFINITY
            )
        )
        if not terms.required_affinity and not terms.required_anti_affinity and existing_anti_affinity_counts.is_empty:
            return SKIP
        compiled_terms = compile_terms(pod, self._release)
        affinity_counts = TopologyToMatchedTermCount()
        if compiled_terms.affinity_matcher is not None:
            pod_counts = snapshot.pod_counts(compiled_terms.affinity_matcher)
            affinity_counts = TopologyToMatchedTermCount(
                snapshot.sum_by_domain((key, pod_counts, 1) for key in compiled_terms.affinity_keys)
            )
        anti_affinity_counts = TopologyToMatchedTermCount(
            snapshot.sum_by_domain(
                (term.topology_key, snapshot.pod_counts(matcher), 1)
                for term, matcher in compiled_terms.anti_affinity_matchers
            )
        )
        return PreFilterResult(
            state=PreFilterState(affinity_counts, anti_affinity_counts, existing_anti_affinity_counts)
        )

    def clone(self, state: PreFilterState) -> PreFilterState:
        """Return a copy that can be updated independently."""
        return PreFilterState(
            state.affinity_counts.clone(),
            state.anti_affinity_counts.clone(),
            state.existing_anti_affinity_counts.clone(),
        )

    def add_pod(
        self, pod: PodInfo, pod_to_add: AssignedPodInfo, row: int, snapshot: Snapshot, state: PreFilterState
    ) -> None:
        """Add *pod_to_add* on *row* to the counts.

        Source: pkg/scheduler/framework/plugins/interpodaffinity/filtering.go, preFilterState.updateWithPod (1.36).
        """
        key_iterators = build_topology_key_iterators(pod, snapshot, self._release)
        update_with_pod(key_iterators, pod_to_add, row, snapshot, state, multiplier=1)

    def remove_pod(
        self, pod: PodInfo, pod_to_remove: AssignedPodInfo, row: int, snapshot: Snapshot, state: PreFilterState
    ) -> None:
        """Subtract *pod_to_remove* on *row* from the counts.

        Source: pkg/scheduler/framework/plugins/interpodaffinity/filtering.go, preFilterState.updateWithPod (1.36).
        """
        key_iterators = build_topology_key_iterators(pod, snapshot, self._release)
        update_with_pod(key_iterators, pod_to_remove, row, snapshot, state, multiplier=-1)

    def apply_pod_changes(
        self, pod: PodInfo, changed_pods: PodBatch, deltas: IntArray, snapshot: Snapshot, state: PreFilterState
    ) -> PreFilterState:
        """Return a copy in which the counts for each node include only the changes of the pods on that node.

        Source: pkg/scheduler/framework/plugins/interpodaffinity/filtering.go, preFilterState.updateWithPod (1.36).
        """

        def count_terms() -> list[dict[str, IntArray]]:
            key_iterators = build_topology_key_iterators(pod, snapshot, self._release)
            return [count_terms_of_batch(changed_pods, iter_keys, snapshot) for iter_keys in key_iterators]

        term_counts = changed_pods.get_or_create((self, pod.signature), count_terms)
        changed, size = self.clone(state), len(snapshot)
        for counts, terms_by_key in zip(changed.all_counts, term_counts, strict=True):
            counts.deltas_by_row = {
                key: changed_pods.sum_by_row(terms * deltas, size) for key, terms in terms_by_key.items()
            }
        return changed

    def filter(self, pod: PodInfo, nodes: NodeView, state: PreFilterState | None) -> Sequence[Rejection]:
        """Reject nodes by the three filter rules.

        Return an error for every node if PreFilter is disabled, as upstream.

        Source: pkg/scheduler/framework/plugins/interpodaffinity/filtering.go, InterPodAffinity.Filter,
        satisfyPodAntiAffinity (1.36).
        """
        if state is None:
            return reject_all(len(nodes), _NO_STATE)
        snapshot, release = nodes.snapshot, self._release
        affinity_keys = compile_terms(pod, release).affinity_keys
        is_first_pod = state.affinity_counts.is_empty_by_node(nodes) if affinity_keys else False
        if is_first_pod is not False and not matches_own_affinity_terms(pod, snapshot, release):
            is_first_pod = False
        return find_rejections(affinity_keys, is_first_pod, nodes, state.all_counts)

    # -- scoring

    def pre_score(self, pod: PodInfo, nodes: NodeView) -> PreScoreResult:
        """Sum the weights of matched terms by domain.

        Skip the pod if none of its terms matches an existing pod and no existing pod's scored term matches it.

        Source: pkg/scheduler/framework/plugins/interpodaffinity/scoring.go, InterPodAffinity.PreScore,
        InterPodAffinity.processExistingPod (1.36).
        """
        snapshot, terms = nodes.snapshot, pod.signature.pod_affinity_terms
        if self._ignore_preferred_terms_of_existing_pods and not has_preferred_terms(pod):
            return SKIP_SCORE
        if terms.error is not None:
            return PreScoreResult(status=error_status(f"failed to parse pod: {terms.error}"))
        weighted_counts = [
            (term.topology_key, snapshot.pod_counts(matcher), signed_weight)
            for term, matcher, signed_weight in compile_terms(pod, self._release).preferred_matchers
        ]
        list_terms = (
            snapshot.affinity_terms_matching if has_preferred_terms(pod) else snapshot.listed_affinity_terms_matching
        )
        weighted_counts += [
            (term.topology_key, term_counts, weight)
            for term, term_counts in list_terms(pod.signature.pod_labels)
            if (weight := self._get_term_weight(term)) is not None
        ]
        scores = snapshot.sum_by_domain(weighted_counts)
        return PreScoreResult(state=TopologyToMatchedTermCount(scores)) if scores else SKIP_SCORE

    def _get_term_weight(self, term: AffinityTerm) -> int | None:
        """Return the weight of another pod's term that matches this pod; None if the term is not scored."""
        match term.kind:
            case TermKind.REQUIRED_AFFINITY:
                return self._hard_pod_affinity_weight or None
            case TermKind.PREFERRED_AFFINITY:
                return term.weight
            case TermKind.PREFERRED_ANTI_AFFINITY:
                return -term.weight
            case TermKind.REQUIRED_ANTI_AFFINITY:
                return None

    def score(self, _pod: PodInfo, nodes: NodeView, state: TopologyToMatchedTermCount | None) -> IntArray:
        """Return the sum of weights over each node's domains. Sums may be negative or above 100.

        Raises:
            LookupError: PreScore is disabled; scoring fails as upstream.

        Source: pkg/scheduler/framework/plugins/interpodaffinity/scoring.go, InterPodAffinity.Score (1.36).
        """
        if state is None:
            raise LookupError('failed to read "PreScoreInterPodAffinity" from cycleState: not found')
        scores = np.zeros(len(nodes), dtype=np.int64)
        for key in state.topology_keys:
            scores += state.get_counts_by_node(nodes, key)
        return scores

    def normalize_score(
        self, _pod: PodInfo, scores: IntArray, _nodes: NodeView, _state: TopologyToMatchedTermCount
    ) -> IntArray:
        """Scale the sums to the range 0 to 100. If all sums are equal, return 0 for all nodes.

        Source: pkg/scheduler/framework/plugins/interpodaffinity/scoring.go, InterPodAffinity.NormalizeScore (1.36).
        """
        if not len(scores):
            return scores
        min_score, max_score = scores.min(), scores.max()
        if min_score == max_score:
            return np.zeros(len(scores), dtype=np.int64)
        normalized: IntArray = (100.0 * ((scores - min_score) / float(max_score - min_score))).astype(np.int64)
        return normalized

    # -- events

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return the events of pods and nodes that may change matched terms.

        Source: pkg/scheduler/framework/plugins/interpodaffinity/plugin.go, InterPodAffinity.EventsToRegister (1.36).
        """
        pod_actions = ActionType.ADD | ActionType.UPDATE_POD_LABEL | ActionType.DELETE
        one_suffices = self._release.one_anti_affinity_term_suffices
        compile_terms_of_last_pod = LastPodTerms().get
        pod_hint = partial(
            is_schedulable_after_pod_change,
            one_anti_affinity_term_suffices=one_suffices,
            compile_terms=compile_terms_of_last_pod,
        )
        return (
            *register_pod_events(
                self._release,
                pod_hint,
                assigned=pod_actions,
                target=ActionType.UPDATE_POD_LABEL,
                per_signature=True,
                find_concerned=partial(find_concerned_pods, compile_terms=compile_terms_of_last_pod),
            ),
            ClusterEventWithHint(
                EventResource.NODE, self._node_actions, is_schedulable_after_node_change, per_signature=True
            ),
        )
