"""ServiceAffinity groups the pods of a service by some node labels, and spreads them by other node labels.

**Rejects** a node if a label in `affinityLabels` does not have the required value. The value in the pod's node selector
is required. For a label that is not in the selector, the value on the first matching pod's node is required. The first
matching pod is the first assigned pod of the same namespace that has all labels of the pod. A label that is not in the
selector is checked only if a service selects the pod, a pod matches, and the node of the first matching pod has the
label. Preemption may help.

**Scores** nodes by the pods of the pod's first service. For each label in `antiAffinityLabelsPreference`, a node scores
the percentage of these pods that are not on nodes with its value of the label. A node without the label scores 0. The
node's score is the mean over the labels. Terminating pods and pods on infeasible nodes do not count. If the pod has no
service, the node scores 100 for each of these labels that it has.

**Requeued on** a deleted or changed pod, or a new or changed node.

**Options** `affinityLabels`, `antiAffinityLabelsPreference`: lists of label keys. Releases up to 1.22 have this plugin.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import msgspec
import numpy as np

from extender.api.kinds.workload import Service
from extender.api.matching import NOTHING, Selector, selector_from_labels
from extender.cache.node_matching import match_requirements
from extender.cache.pod_info import AssignedPodInfo, PodInfo
from extender.cache.snapshot import NodeView, Snapshot
from extender.cache.tables.arrays import IntArray
from extender.cache.tables.node_table import ABSENT
from extender.cache.tables.pod_selectors import PodMatcher, PodSelector
from extender.framework.events import ActionType, ClusterEventWithHint, EventResource
from extender.framework.extension_points import SKIP, PreFilterResult
from extender.framework.normalize import MAX_SCORE
from extender.framework.plugin_args import PluginArgs
from extender.framework.status import Reason, Rejection

_SERVICE_AFFINITY: Final = Reason("node(s) didn't match service affinity")


class ServiceAffinityArgs(msgspec.Struct, frozen=True, rename="camel"):
    """Options of ServiceAffinity."""

    affinity_labels: tuple[str, ...] = ()
    anti_affinity_labels_preference: tuple[str, ...] = ()


@dataclass(slots=True)
class _PreFilterState:
    """The PreFilter state.

    Attributes:
        has_service: whether a service selects the pod.
        node_name_by_matching_pod: the node names of the assigned pods with the pod's labels, by pod uid, in node
            order. Pods that a dry run adds come last.
    """

    has_service: bool
    node_name_by_matching_pod: dict[str, str]


class ServiceAffinity:
    """Compares node labels with the labels of the node of the first matching pod."""

    name: ClassVar[str] = "ServiceAffinity"
    options = ServiceAffinityArgs

    def __init__(self, args: PluginArgs[ServiceAffinityArgs]) -> None:
        self._affinity_labels = args.options.affinity_labels
        self._anti_affinity_labels = args.options.anti_affinity_labels_preference

    # -- filtering

    def pre_filter(self, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:
        """Find the assigned pods with the pod's labels. Skip all pods if the option `affinityLabels` is empty."""
        if not self._affinity_labels:
            return SKIP
        has_service = _find_first_service(pod, snapshot) is not None
        needs_first_pod = any(label not in pod.spec.node_selector for label in self._affinity_labels)
        return PreFilterResult(
            state=_PreFilterState(
                has_service, _find_matching_pods(pod, snapshot) if has_service and needs_first_pod else {}
            )
        )

    def filter(self, pod: PodInfo, nodes: NodeView, state: _PreFilterState) -> Sequence[Rejection]:
        """Reject nodes without the required label values.

        Source: pkg/scheduler/framework/plugins/serviceaffinity/service_affinity.go, ServiceAffinity.Filter (1.21).
        """
        selector = pod.spec.node_selector
        required_labels = {label: selector[label] for label in self._affinity_labels if label in selector}
        first_pod_node = next(iter(state.node_name_by_matching_pod.values()), None) if state.has_service else None
        row = None if first_pod_node is None else nodes.snapshot.row(first_pod_node)
        if row is not None:
            node_labels = nodes.snapshot.nodes[row].metadata.labels
            required_labels = {
                label: node_labels[label] for label in self._affinity_labels if label in node_labels
            } | required_labels
        if not required_labels:
            return ()
        return (
            Rejection(
                ~match_requirements(nodes, selector_from_labels(required_labels).requirements), _SERVICE_AFFINITY
            ),
        )

    def clone(self, state: _PreFilterState) -> _PreFilterState:
        """Return a copy that can be updated independently."""
        return _PreFilterState(state.has_service, dict(state.node_name_by_matching_pod))

    def add_pod(
        self, pod: PodInfo, pod_to_add: AssignedPodInfo, row: int, snapshot: Snapshot, state: _PreFilterState
    ) -> None:
        """Append *pod_to_add* to the matching pods if it has the pod's labels."""
        if pod_to_add.namespace == pod.namespace and pod.labels.items() <= pod_to_add.labels.items():
            state.node_name_by_matching_pod[pod_to_add.uid] = snapshot.names[row]

    def remove_pod(
        self,
        pod: PodInfo,  # noqa: ARG002  the extension point's signature
        pod_to_remove: AssignedPodInfo,
        row: int,  # noqa: ARG002
        snapshot: Snapshot,  # noqa: ARG002
        state: _PreFilterState,
    ) -> None:
        """Remove *pod_to_remove* from the matching pods."""
        state.node_name_by_matching_pod.pop(pod_to_remove.uid, None)

    # -- scoring

    def score(self, pod: PodInfo, nodes: NodeView, state: Any) -> IntArray:  # noqa: ARG002  the extension point's signature
        """Return the number of pods of the pod's first service on each node.

        Source: pkg/scheduler/framework/plugins/serviceaffinity/service_affinity.go,
        ServiceAffinity.updateNodeScoresForLabel (1.21).
        """
        service = _find_first_service(pod, nodes.snapshot)
        if service is None:
            return np.zeros(len(nodes), dtype=np.int64)
        selector = selector_from_labels(service.spec.selector)
        snapshot = nodes.snapshot
        counts = snapshot.pod_counts(_make_matcher(pod.namespace, selector, ignore_terminating_pods=True))
        return nodes.take(snapshot.counts_by_row(counts)).copy()

    def normalize_score(self, pod: PodInfo, scores: IntArray, nodes: NodeView, state: Any) -> IntArray:  # noqa: ARG002
        """Return a score from 0 to 100 for each node, rounded down.

        Source: pkg/scheduler/framework/plugins/serviceaffinity/service_affinity.go,
        ServiceAffinity.updateNodeScoresForLabel (1.21).
        """
        mean_scores = np.zeros(len(nodes), dtype=np.float64)
        total_pods = int(scores.sum())
        for label in self._anti_affinity_labels:
            value_ids = nodes.label_value_ids(label)
            has_label = value_ids != ABSENT
            if not has_label.any():
                continue
            label_scores = np.full(int(np.count_nonzero(has_label)), float(MAX_SCORE))
            if total_pods:
                counts = np.bincount(value_ids[has_label], weights=scores[has_label])[value_ids[has_label]]
                label_scores = float(MAX_SCORE) * ((total_pods - counts) / float(total_pods))
            mean_scores[has_label] += label_scores / float(len(self._anti_affinity_labels))
        return mean_scores.astype(np.int64)

    # -- events

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return the events of pods and nodes; none if the option `affinityLabels` is empty."""
        if not self._affinity_labels:
            return ()
        return (
            ClusterEventWithHint(EventResource.POD, ActionType.UPDATE | ActionType.DELETE),
            ClusterEventWithHint(EventResource.NODE, ActionType.ADD | ActionType.UPDATE),
        )


def _find_first_service(pod: PodInfo, snapshot: Snapshot) -> Service | None:
    """Return the first service that selects *pod*. A service without a selector selects no pod."""
    for service in snapshot.objects(Service).values():
        selector = service.spec.selector
        if service.metadata.namespace == pod.namespace and selector and selector.items() <= pod.labels.items():
            return service
    return None


def _make_matcher(namespace: str, selector: Selector, *, ignore_terminating_pods: bool) -> PodMatcher:
    return PodMatcher(
        (PodSelector(frozenset((namespace,)), NOTHING, selector),), ignore_terminating_pods=ignore_terminating_pods
    )


def _find_matching_pods(pod: PodInfo, snapshot: Snapshot) -> dict[str, str]:
    """Return the node names of assigned pods in the namespace with all labels of *pod*, by uid, in node order."""
    matcher = _make_matcher(pod.namespace, selector_from_labels(pod.labels), ignore_terminating_pods=False)
    rows = np.flatnonzero(snapshot.counts_by_row(snapshot.pod_counts(matcher))).tolist()
    return {
        assigned_pod.uid: name
        for name in (snapshot.names[row] for row in rows)
        for assigned_pod in snapshot.pods_on(name).values()
        if assigned_pod.namespace == pod.namespace and pod.labels.items() <= assigned_pod.labels.items()
    }
