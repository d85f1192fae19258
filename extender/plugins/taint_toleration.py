"""TaintToleration: taints keep pods off nodes, or make nodes less welcome.

**Refuses** for good a node with a taint of effect `NoSchedule` or `NoExecute` that the pod does not tolerate.

**Scores** nodes by how few `PreferNoSchedule` taints they have that the pod does not tolerate: 100 without any, 0 for
the most among the nodes that can take the pod. Where all have none, all get 100.

**Undone by** a node that comes without such taints or loses them, or by new tolerations of the pod.

**Options** none. The feature gate `TaintTolerationComparisonOperators` makes the operators `Gt` and `Lt` known.

Source: B007, B016 to B019.
"""

from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

from extender.cluster.arrays import IntArray
from extender.cluster.node_matching import by_taint_set, untolerated_mask
from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import NodeView
from extender.framework.changes import Action, Change, Hint, Registration, Resource
from extender.framework.normalize import in_proportion
from extender.framework.points import PreScored, Reads
from extender.framework.setup import Setup
from extender.framework.verdict import Code, Reason, Rejection
from extender.objects.affinity import Toleration
from extender.objects.node import Node, Taint
from extender.objects.tolerations import tolerates, untolerated

_PREFER = "PreferNoSchedule"
_UNTOLERATED = Reason("node(s) had untolerated taint(s)", Code.UNRESOLVABLE)


class TaintToleration:
    """Judges each distinct list of taints once and gathers the verdicts for the nodes."""

    name: ClassVar[str] = "TaintToleration"
    kept_for_kin: ClassVar[bool] = True
    filter_reads: ClassVar[Reads] = Reads.NODE
    score_reads: ClassVar[Reads] = Reads.NODE

    def __init__(self, setup: Setup[None]) -> None:
        self._comparisons = "TaintTolerationComparisonOperators" in setup.gates

    def filter_key(self, pod: PodQuery) -> Hashable | None:
        """The pod's tolerations."""
        return pod.shape.tolerations

    def filter(self, pod: PodQuery, nodes: NodeView, notes: Any) -> Sequence[Rejection]:  # noqa: ARG002
        """Source: B016."""
        mask = untolerated_mask(nodes, pod.shape.tolerations, comparison_operators=self._comparisons)
        return (Rejection(mask, _UNTOLERATED),)

    def pre_score(self, pod: PodQuery, nodes: NodeView) -> PreScored:  # noqa: ARG002  the point's signature
        """Never skips. Source: B017."""
        return PreScored(notes=_softening(pod))

    def pre_score_kept(self, pod: PodQuery) -> bool:  # noqa: ARG002  the point's signature
        """Always."""
        return True

    def score_key(self, pod: PodQuery) -> Hashable | None:
        """The tolerations that can concern `PreferNoSchedule` taints."""
        return _softening(pod)

    def score(self, pod: PodQuery, nodes: NodeView, notes: Any) -> IntArray:  # noqa: ARG002  the point's signature
        """How many such taints of each node are not tolerated. Source: B018.

        Raises:
            LookupError: `pre_score` is switched off; as upstream, nothing can be scored then.
        """
        if notes is None:
            raise LookupError('failed to read "PreScoreTaintToleration" from cycleState: not found')
        tolerations: tuple[Toleration, ...] = notes

        def unwelcome(taints: tuple[Taint, ...]) -> int:
            return sum(taint.effect == _PREFER and not self._tolerated(taint, tolerations) for taint in taints)

        return by_taint_set(nodes, unwelcome)

    def _tolerated(self, taint: Taint, tolerations: Sequence[Toleration]) -> bool:
        return any(tolerates(each, taint, comparison_operators=self._comparisons) for each in tolerations)

    def normalize(self, pod: PodQuery, raw: IntArray, nodes: NodeView, notes: Any) -> IntArray:  # noqa: ARG002
        """The fewer, the better. Source: B018."""
        return in_proportion(raw, reverse=True)

    def events(self) -> Sequence[Registration]:
        """Source: B019."""
        return (
            Registration(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT, self._after_node_change),
            Registration(Resource.POD, Action.UPDATE_POD_TOLERATION, _after_toleration_change),
        )

    def _after_node_change(self, pod: PodQuery, change: Change) -> Hint:
        closed_before = change.old is None or self._closed(change.old, pod)
        return Hint.QUEUE if closed_before and not self._closed(change.new, pod) else Hint.SKIP

    def _closed(self, node: Node, pod: PodQuery) -> bool:
        taints = node.spec.taints
        return untolerated(taints, pod.shape.tolerations, comparison_operators=self._comparisons) is not None


def _softening(pod: PodQuery) -> tuple[Toleration, ...]:
    return pod.shape.kin.remember(
        ("TaintToleration", _PREFER),
        lambda: tuple(each for each in pod.shape.tolerations if each.effect in {"", _PREFER}),
    )


def _after_toleration_change(pod: PodQuery, change: Change) -> Hint:
    return Hint.QUEUE if change.new.metadata.uid == pod.pod.metadata.uid else Hint.SKIP
