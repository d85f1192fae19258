"""NodeLabel filters and scores nodes by the presence of labels, independently of the pod.

**Rejects** a node that lacks a label of `presentLabels` or has a label of `absentLabels`. The rejection is
unresolvable. Label values do not matter.

**Scores** nodes by the percentage of their satisfied preferences. A label of `presentLabelsPreference` is satisfied if
the node has it. A label of `absentLabelsPreference` is satisfied if the node lacks it. Scores are not normalized.

**Requeued on** a new node, or changed node labels.

**Options** `presentLabels`, `absentLabels`, `presentLabelsPreference`, `absentLabelsPreference`: lists of label keys. A
key must not be both in the present and in the absent list. Releases up to 1.22 have this plugin.
"""

from collections.abc import Hashable, Sequence
from typing import Any, ClassVar, Final

import msgspec
import numpy as np

from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import NodeView
from extender.cache.tables.arrays import BoolArray, IntArray
from extender.cache.tables.node_table import ABSENT
from extender.config.errors import FieldError, child
from extender.config.feature_gates import FeatureGates
from extender.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, EventResource, QueueingHint
from extender.framework.extension_points import DependsOn
from extender.framework.normalize import MAX_SCORE
from extender.framework.plugin_args import PluginArgs
from extender.framework.status import Code, Reason, Rejection

_LABELS_MISMATCH: Final = Reason("node(s) didn't have the requested labels", Code.UNRESOLVABLE)


class NodeLabelArgs(msgspec.Struct, frozen=True, rename="camel"):
    """Options of NodeLabel."""

    present_labels: tuple[str, ...] = ()
    absent_labels: tuple[str, ...] = ()
    present_labels_preference: tuple[str, ...] = ()
    absent_labels_preference: tuple[str, ...] = ()

    def validate(self, path: str, gates: FeatureGates) -> list[FieldError]:  # noqa: ARG002
        """Return an error for a label that is in both the present and the absent list."""
        pairs = (
            ("presentLabels", self.present_labels, self.absent_labels),
            ("presentLabelsPreference", self.present_labels_preference, self.absent_labels_preference),
        )
        return [
            FieldError(child(path, key), _format_conflict(conflicting_labels[0], present, absent))
            for key, present, absent in pairs
            if (conflicting_labels := [label for label in present if label in absent])
        ]


def _format_conflict(label: str, present: Sequence[str], absent: Sequence[str]) -> str:
    lists = f"both the present([{' '.join(present)}]) and absent([{' '.join(absent)}]) label list"
    return f'detecting at least one label (e.g., "{label}") that exist in {lists}'


class NodeLabel:
    """Filters and scores by node labels. Results are the same for all pods."""

    name: ClassVar[str] = "NodeLabel"
    options = NodeLabelArgs
    filter_depends_on: ClassVar[DependsOn] = DependsOn.NODE
    score_depends_on: ClassVar[DependsOn] = DependsOn.NODE

    def __init__(self, args: PluginArgs[NodeLabelArgs]) -> None:
        self._options = args.options

    def filter_cache_key(self, pod: PodInfo) -> Hashable | None:  # noqa: ARG002  the extension point's signature
        """Return one key for all pods."""
        return ""

    def filter(self, pod: PodInfo, nodes: NodeView, state: Any) -> Sequence[Rejection]:  # noqa: ARG002
        """Reject nodes without the required labels or with forbidden ones.

        Source: pkg/scheduler/framework/plugins/nodelabel/node_label.go, NodeLabel.Filter (1.21).
        """
        rejected_nodes = np.zeros(len(nodes), dtype=np.bool_)
        for label in self._options.present_labels:
            rejected_nodes |= ~_has_label(nodes, label)
        for label in self._options.absent_labels:
            rejected_nodes |= _has_label(nodes, label)
        return (Rejection(rejected_nodes, _LABELS_MISMATCH),)

    def score_cache_key(self, pod: PodInfo) -> Hashable | None:  # noqa: ARG002  the extension point's signature
        """Return one key for all pods."""
        return ""

    def score(self, pod: PodInfo, nodes: NodeView, state: Any) -> IntArray:  # noqa: ARG002
        """Return a score from 0 to 100 for each node; 0 without preferences.

        Source: pkg/scheduler/framework/plugins/nodelabel/node_label.go, NodeLabel.Score (1.21).
        """
        options = self._options
        scores = np.zeros(len(nodes), dtype=np.int64)
        for label in options.present_labels_preference:
            scores += MAX_SCORE * _has_label(nodes, label)
        for label in options.absent_labels_preference:
            scores += MAX_SCORE * ~_has_label(nodes, label)
        label_count = len(options.present_labels_preference) + len(options.absent_labels_preference)
        return scores // max(1, label_count)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return the events of new nodes and changed node labels."""
        return (
            ClusterEventWithHint(
                EventResource.NODE,
                ActionType.ADD | ActionType.UPDATE_NODE_LABEL,
                self._is_schedulable_after_node_change,
            ),
        )

    def _is_schedulable_after_node_change(self, pod: PodInfo, event: ClusterEvent) -> QueueingHint:  # noqa: ARG002  a hint's signature
        was_rejected = event.old is None or not self._matches_labels(event.old.metadata.labels)
        return QueueingHint.queue_if(was_rejected and self._matches_labels(event.new.metadata.labels))

    def _matches_labels(self, labels: dict[str, str]) -> bool:
        has_present_labels = all(label in labels for label in self._options.present_labels)
        return has_present_labels and not any(label in labels for label in self._options.absent_labels)


def _has_label(nodes: NodeView, label: str) -> BoolArray:
    has_label: BoolArray = nodes.label_value_ids(label) != ABSENT
    return has_label
