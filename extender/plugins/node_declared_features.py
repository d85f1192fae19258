"""NodeDeclaredFeatures: a pod that needs a feature of the kubelet goes where it is declared.

**Refuses** for good a node whose `status.declaredFeatures` lack one that the pod needs:
`RestartAllContainersOnContainerExits` for a container with a restart rule of action `RestartAllContainers`,
`UserNamespacesHostNetworkSupport` for `hostNetwork: true` with `hostUsers: false`. Not asked for pods that need none.

**Scores** none.

**Undone by** a new node, a change of a node's declared features, or an update of the pod that changes what it needs.

**Options** none. Does nothing without the feature gate `NodeDeclaredFeatures`.

Source: B127 to B129.
"""

from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

import numpy as np

from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import NodeView, Snapshot
from extender.framework.changes import Action, Change, Hint, Registration, Resource
from extender.framework.points import SKIP, PreFiltered, Reads
from extender.framework.setup import Setup
from extender.framework.verdict import Code, Reason, Rejection
from extender.objects.pod import PodSpec

_LACKING = Reason("node(s) didn't match Pod's required features", Code.UNRESOLVABLE)
_UNPREPARED = Reason('error reading "PreFilterNodeDeclaredFeatures" from cycle-state: not found', Code.ERROR)


class NodeDeclaredFeatures:
    """Compares what a pod needs with each distinct set of declared features."""

    name: ClassVar[str] = "NodeDeclaredFeatures"
    kept_for_kin: ClassVar[bool] = True
    filter_reads: ClassVar[Reads] = Reads.NODE

    def __init__(self, setup: Setup[None]) -> None:
        self._on = "NodeDeclaredFeatures" in setup.gates

    def pre_filter(self, pod: PodQuery, cluster: Snapshot) -> PreFiltered:  # noqa: ARG002  the point's signature
        """Source: B127."""
        return PreFiltered(notes=True) if self._on and _needed(pod) else SKIP

    def pre_filter_kept(self, pod: PodQuery) -> bool:  # noqa: ARG002  the point's signature
        """Always: the pod alone says what it needs."""
        return True

    def filter_key(self, pod: PodQuery) -> Hashable | None:
        """The features that the pod needs."""
        return _needed(pod)

    def filter(self, pod: PodQuery, nodes: NodeView, notes: Any) -> Sequence[Rejection]:
        """As upstream, an error on every node if `pre_filter` is switched off. Source: B128."""
        if not self._on:
            return ()
        if notes is None:
            return (Rejection(np.ones(len(nodes), dtype=np.bool_), _UNPREPARED),)
        needed = _needed(pod)
        declared = nodes.snapshot.vocabulary.feature_sets
        lacking = np.array([not needed <= features for features in declared], dtype=np.bool_)
        return (Rejection(lacking[nodes.feature_set], _LACKING),)

    def events(self) -> Sequence[Registration]:
        """Source: B129."""
        if not self._on:
            return ()
        return (
            Registration(Resource.NODE, Action.ADD | Action.UPDATE_NODE_DECLARED_FEATURE, _after_node_change),
            Registration(Resource.POD, Action.UPDATE, _after_pod_update),
        )


def _needed(pod: PodQuery) -> frozenset[str]:
    return pod.shape.kin.remember("NodeDeclaredFeatures", lambda: _inferred(pod.shape.spec))


def _inferred(spec: PodSpec) -> frozenset[str]:
    """The features that *spec* needs. Source: B127."""
    found: set[str] = set()
    rules = (rule for each in (*spec.containers, *spec.init_containers) for rule in each.restart_policy_rules)
    if any(rule.action == "RestartAllContainers" for rule in rules):
        found.add("RestartAllContainersOnContainerExits")
    if spec.host_network and spec.host_users is False:
        found.add("UserNamespacesHostNetworkSupport")
    return frozenset(found)


def _after_node_change(pod: PodQuery, change: Change) -> Hint:  # noqa: ARG001  a hint's signature
    same = change.old is not None and change.old.status.declared_features == change.new.status.declared_features
    return Hint.SKIP if same else Hint.QUEUE


def _after_pod_update(pod: PodQuery, change: Change) -> Hint:
    if change.new.metadata.uid != pod.pod.metadata.uid:
        return Hint.SKIP
    return Hint.SKIP if _inferred(change.old.spec) == _inferred(change.new.spec) else Hint.QUEUE
