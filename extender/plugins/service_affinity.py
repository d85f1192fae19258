"""ServiceAffinity keeps the pods of a service together by some node labels, and spreads them by others.

**Refuses** a node whose labels `affinityLabels` do not have the values wanted: those of the pod's node selector, and
for labels it does not name those of the node of the first pod placed that has all labels of the pod, in the same
namespace. That node counts only if a service selects the pod; labels it does not have do not count. Preemption may
help.

**Scores** the more, the fewer of the pods of the pod's first service share the node's value of a label in
`antiAffinityLabelsPreference`: 100 for none, 0 for all, the mean over the labels. A node without the label gets 0 for
it. Pods being deleted, and pods on nodes that cannot take the pod, do not count. A pod without a service gets 100.

**Undone by** a pod deleted or changed, a new node, a node that changed.

**Options** `affinityLabels`, `antiAffinityLabelsPreference`: lists of label keys. A plugin of releases up to 1.22.

Source: C035, C066.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import msgspec
import numpy as np

from extender.cluster.arrays import IntArray
from extender.cluster.node_matching import requirements_mask
from extender.cluster.nodes import ABSENT
from extender.cluster.pods import PlacedPod, PodQuery
from extender.cluster.selecting import PodMatcher, PodTerm
from extender.cluster.snapshot import NodeView, Snapshot
from extender.framework.changes import Action, Registration, Resource
from extender.framework.normalize import MAX_SCORE
from extender.framework.points import SKIP, PreFiltered
from extender.framework.setup import Setup
from extender.framework.verdict import Reason, Rejection
from extender.objects.matching import NOTHING, Selector, from_labels
from extender.objects.workload import Service

_ELSEWHERE: Final = Reason("node(s) didn't match service affinity")


class ServiceAffinityArgs(msgspec.Struct, frozen=True, rename="camel"):
    """Options of ServiceAffinity; see the module."""

    affinity_labels: tuple[str, ...] = ()
    anti_affinity_labels_preference: tuple[str, ...] = ()


@dataclass(slots=True)
class _Notes:
    """Whether a service selects the pod; the placed pods like it, by uid, each with its node, in order."""

    served: bool
    like: dict[str, str]


class ServiceAffinity:
    """Finds the first pod of the service and compares label columns with its node's labels."""

    name: ClassVar[str] = "ServiceAffinity"
    options = ServiceAffinityArgs

    def __init__(self, setup: Setup[ServiceAffinityArgs]) -> None:
        self._together = setup.options.affinity_labels
        self._apart = setup.options.anti_affinity_labels_preference

    # -- filtering

    def pre_filter(self, pod: PodQuery, cluster: Snapshot) -> PreFiltered:
        """Notes the pods like this one; skips without `affinityLabels`."""
        if not self._together:
            return SKIP
        served = _first_service(pod, cluster) is not None
        missing = any(label not in pod.spec.node_selector for label in self._together)
        return PreFiltered(notes=_Notes(served, _pods_like(pod, cluster) if served and missing else {}))

    def filter(self, pod: PodQuery, nodes: NodeView, notes: _Notes) -> Sequence[Rejection]:
        """Source: C035."""
        selector = pod.spec.node_selector
        wanted = {label: selector[label] for label in self._together if label in selector}
        model = next(iter(notes.like.values()), None) if notes.served else None
        row = None if model is None else nodes.snapshot.row(model)
        if row is not None:
            there = nodes.snapshot.nodes[row].metadata.labels
            wanted = {label: there[label] for label in self._together if label in there} | wanted
        if not wanted:
            return ()
        return (Rejection(~requirements_mask(nodes, from_labels(wanted).requirements), _ELSEWHERE),)

    def clone(self, notes: _Notes) -> _Notes:
        """A copy that may be changed."""
        return _Notes(notes.served, dict(notes.like))

    def add_pod(self, pod: PodQuery, other: PlacedPod, row: int, cluster: Snapshot, notes: _Notes) -> None:
        """A pod like this one comes last."""
        if other.namespace == pod.namespace and pod.labels.items() <= other.labels.items():
            notes.like[other.uid] = cluster.names[row]

    def remove_pod(self, pod: PodQuery, other: PlacedPod, row: int, cluster: Snapshot, notes: _Notes) -> None:  # noqa: ARG002
        """A pod that is gone is nobody's model."""
        notes.like.pop(other.uid, None)

    # -- scoring

    def score(self, pod: PodQuery, nodes: NodeView, notes: Any) -> IntArray:  # noqa: ARG002  the point's signature
        """Pods of the pod's first service on each node. Source: C066."""
        service = _first_service(pod, nodes.snapshot)
        if service is None:
            return np.zeros(len(nodes), dtype=np.int64)
        return _counts(nodes, pod.namespace, from_labels(service.spec.selector))

    def normalize(self, pod: PodQuery, raw: IntArray, nodes: NodeView, notes: Any) -> IntArray:  # noqa: ARG002
        """0 to 100 a node, rounded down. Source: C066."""
        result = np.zeros(len(nodes), dtype=np.float64)
        total = int(raw.sum())
        for label in self._apart:
            values = nodes.label(label)
            labelled = values != ABSENT
            if not labelled.any():
                continue
            scores = np.full(int(np.count_nonzero(labelled)), float(MAX_SCORE))
            if total:
                counts = np.bincount(values[labelled], weights=raw[labelled])[values[labelled]]
                scores = float(MAX_SCORE) * ((total - counts) / float(total))
            result[labelled] += scores / float(len(self._apart))
        return result.astype(np.int64)

    # -- events

    def events(self) -> Sequence[Registration]:
        """What may change the model or the labels; no label, nothing to wait for."""
        if not self._together:
            return ()
        return (
            Registration(Resource.POD, Action.UPDATE | Action.DELETE),
            Registration(Resource.NODE, Action.ADD | Action.UPDATE),
        )


def _first_service(pod: PodQuery, cluster: Snapshot) -> Service | None:
    """The first service that selects *pod*; one without a selector selects nobody."""
    for service in cluster.objects(Service).values():
        selector = service.spec.selector
        if service.metadata.namespace == pod.namespace and selector and selector.items() <= pod.labels.items():
            return service
    return None


def _matcher(namespace: str, selector: Selector, *, live_only: bool) -> PodMatcher:
    return PodMatcher((PodTerm(frozenset((namespace,)), NOTHING, selector),), live_only=live_only)


def _counts(nodes: NodeView, namespace: str, selector: Selector) -> IntArray:
    cluster = nodes.snapshot
    counts = cluster.counts(_matcher(namespace, selector, live_only=True))
    return nodes.take(cluster.count_rows(counts)).copy()


def _pods_like(pod: PodQuery, cluster: Snapshot) -> dict[str, str]:
    """The pods of the namespace with all labels of *pod*, by uid, each with its node: node by node."""
    matcher = _matcher(pod.namespace, from_labels(pod.labels), live_only=False)
    rows = np.flatnonzero(cluster.count_rows(cluster.counts(matcher))).tolist()
    return {
        other.uid: name
        for name in (cluster.names[row] for row in rows)
        for other in cluster.pods_on(name).values()
        if other.namespace == pod.namespace and pod.labels.items() <= other.labels.items()
    }
