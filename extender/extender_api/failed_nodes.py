"""The reason why each requested node failed, grouped by reason."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from extender.cache.tables.arrays import BoolArray, IntArray
from extender.cycle.diagnosis import Diagnosis
from extender.extender_api.requested_nodes import RequestedNodes
from extender.framework.status import Code, Status

UNKNOWN_NODE = "node is not known to the extender (yet)"
"""The reason for a name that is not in the cache. kube-scheduler and we see a new node at different times."""

_MAX_TEXT_LENGTH: Final = 1024
"""Limit of the text for one node, in characters. Only a pod that no API server accepts needs a longer text."""


@dataclass(frozen=True, slots=True)
class FailureReason:
    """The reason of a group of failed nodes.

    Attributes:
        text: the message of kube-scheduler's Status; empty for feasible nodes.
        unresolvable: preemption cannot help.
        plugin: the first plugin that rejects the nodes; empty if no plugin rejects them.
    """

    text: str = ""
    unresolvable: bool = False
    plugin: str = ""


FEASIBLE = FailureReason()
"""The placeholder for nodes that did not fail."""


@dataclass(slots=True)
class NodeReasons:
    """The reason for each requested node.

    Attributes:
        reason_indices: the index in `reasons` of each node's reason, int64, in the order of the request.
        reasons: the distinct reasons, `FEASIBLE` first.
        rejection_counts: number of rejected nodes by first rejecting plugin and text; without unknown nodes.
    """

    reason_indices: IntArray
    reasons: list[FailureReason] = field(default_factory=lambda: [FEASIBLE])
    rejection_counts: dict[tuple[str, str], int] = field(default_factory=dict)

    def group_positions(self) -> Iterator[tuple[FailureReason, Sequence[int]]]:
        """Yield each reason with the positions of its nodes in the request."""
        if len(self.reasons) == 1:
            yield FEASIBLE, range(len(self.reason_indices))
            return
        order = np.argsort(self.reason_indices, kind="stable")
        ends = np.cumsum(np.bincount(self.reason_indices, minlength=len(self.reasons))).tolist()
        positions = order.tolist()
        for reason, start, end in zip(self.reasons, [0, *ends], ends, strict=False):
            if start < end:
                yield reason, positions[start:end]

    def set_reason(self, mask: BoolArray, reason: FailureReason) -> None:
        """Set the reason of the nodes in *mask* (bool), which have no reason yet."""
        count = self._assign_reason(mask, reason)
        if count and reason.plugin:
            key = reason.plugin, _shorten(reason).text
            self.rejection_counts[key] = self.rejection_counts.get(key, 0) + count

    def _assign_reason(self, mask: BoolArray, reason: FailureReason) -> int:
        count = int(mask.sum())
        if count:
            self.reason_indices[mask] = len(self.reasons)
            self.reasons.append(_shorten(reason))
        return count

    def append_reason(self, mask: BoolArray, reason: FailureReason) -> None:
        """Append *reason* to the reason of each node in *mask* (bool); the result is unresolvable if either is."""
        for index in np.unique(self.reason_indices[mask]).tolist():
            previous = self.reasons[index]
            self._assign_reason(
                mask & (self.reason_indices == index),
                FailureReason(
                    f"{previous.text}, {reason.text}", previous.unresolvable or reason.unresolvable, previous.plugin
                ),
            )


def _shorten(reason: FailureReason) -> FailureReason:
    """Return *reason* with a text of at most `_MAX_TEXT_LENGTH`, because the response repeats it for each node."""
    if len(reason.text) <= _MAX_TEXT_LENGTH:
        return reason
    return replace(reason, text=reason.text[: _MAX_TEXT_LENGTH - 3] + "...")


def _new_node_reasons(requested_nodes: RequestedNodes) -> NodeReasons:
    reasons = NodeReasons(np.zeros(len(requested_nodes.rows), dtype=np.int64))
    reasons.set_reason(~requested_nodes.known_mask, FailureReason(UNKNOWN_NODE))
    return reasons


def reasons_from_status(status: Status, requested_nodes: RequestedNodes) -> NodeReasons:
    """Return *status*, which rejects the pod on all nodes, as the reason of every known node.

    Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunPreFilterPlugins (1.36).
    """
    reasons = _new_node_reasons(requested_nodes)
    unresolvable = status.code is Code.UNRESOLVABLE
    reasons.set_reason(
        requested_nodes.known_mask, FailureReason(status.message, unresolvable, status.plugin or "PreFilter")
    )
    return reasons


def reasons_from_diagnosis(diagnosis: Diagnosis, requested_nodes: RequestedNodes) -> NodeReasons:
    """Return for each node the reasons of the first plugin that rejects it, in the plugin's order.

    Source: pkg/scheduler/schedule_one.go, findNodesThatPassExtenders (1.36).
    """
    reasons = _new_node_reasons(requested_nodes)
    remaining_mask = requested_nodes.known_mask & ~requested_nodes.select(diagnosis.feasible)
    for rejection in diagnosis.rejections:
        rejected_mask = requested_nodes.select(rejection.nodes)
        reason = FailureReason(rejection.reason.text, rejection.reason.code is Code.UNRESOLVABLE, rejection.plugin)
        reasons.append_reason(rejected_mask & ~remaining_mask, reason)
        reasons.set_reason(rejected_mask & remaining_mask, reason)
        remaining_mask &= ~rejected_mask
    reasons.set_reason(
        remaining_mask,
        FailureReason(
            diagnosis.pre_filter_run.excluded_reason, True, ",".join(diagnosis.pre_filter_run.restricting_plugins)
        ),
    )
    return reasons
