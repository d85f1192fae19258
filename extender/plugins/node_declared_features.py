"""NodeDeclaredFeatures rejects nodes that do not declare a kubelet feature that the pod requires.

**Rejects** a node if a required feature is missing in its `status.declaredFeatures`. The rejection is unresolvable. A
pod requires `RestartAllContainersOnContainerExits` if a container has a restart rule with the action
`RestartAllContainers`. It requires `UserNamespacesHostNetworkSupport` if it has `hostNetwork: true` and
`hostUsers: false`. It requires `VolumeBindMountOptions` if a volume mount has `bindMountOptions`, a field of 1.37. The
plugin skips pods that require no feature.

**Scores** no node.

**Requeued on** a new node, a change of a node's declared features, or an update of the pod that changes its required
features.

**Options** none. The plugin does nothing without the feature gate `NodeDeclaredFeatures`.

Source: component-helpers/nodedeclaredfeatures/framework.go, Framework.InferForPodScheduling;
component-helpers/nodedeclaredfeatures/features/volumebindmountoptions/feature.go,
volumeBindMountOptionsFeature.InferForScheduling (1.37).
"""

from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

import numpy as np

from extender.api.kinds.pod import PodSpec
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import NodeView, Snapshot
from extender.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    register_pod_events,
)
from extender.framework.extension_points import SKIP, DependsOn, PreFilterResult
from extender.framework.plugin_args import PluginArgs
from extender.framework.status import Code, Reason, Rejection, reject_all

_UNSATISFIED = Reason("node(s) didn't match Pod's required features", Code.UNRESOLVABLE)
_NO_STATE = Reason('error reading "PreFilterNodeDeclaredFeatures" from cycle-state: not found', Code.ERROR)


class NodeDeclaredFeatures:
    """Filters by declared features. Compares the required features once with each distinct set of declared features."""

    name: ClassVar[str] = "NodeDeclaredFeatures"
    cacheable_for_spec_class: ClassVar[bool] = True
    filter_depends_on: ClassVar[DependsOn] = DependsOn.NODE

    def __init__(self, args: PluginArgs[None]) -> None:
        self._release = args.gates.release
        self._enabled = "NodeDeclaredFeatures" in args.gates

    def pre_filter(self, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:  # noqa: ARG002  the extension point's signature
        """Skip pods that require no feature.

        Source: component-helpers/nodedeclaredfeatures/framework.go, Framework.InferForPodScheduling (1.36).
        """
        return PreFilterResult(state=True) if self._enabled and _get_required_features(pod) else SKIP

    def pre_filter_is_cacheable(self, pod: PodInfo) -> bool:  # noqa: ARG002  the extension point's signature
        """Return True: the required features depend only on the pod's spec."""
        return True

    def filter_cache_key(self, pod: PodInfo) -> Hashable | None:
        """Return the pod's required features."""
        return _get_required_features(pod)

    def filter(self, pod: PodInfo, nodes: NodeView, state: Any) -> Sequence[Rejection]:
        """Reject nodes that lack a required feature.

        Return an error for every node if PreFilter is disabled, as upstream.

        Source: pkg/scheduler/framework/plugins/nodedeclaredfeatures/nodedeclaredfeatures.go,
        NodeDeclaredFeatures.Filter (1.36).
        """
        if not self._enabled:
            return ()
        if state is None:
            return reject_all(len(nodes), _NO_STATE)
        required = _get_required_features(pod)
        feature_sets = nodes.snapshot.symbols.feature_sets
        unsatisfied_mask = np.array(
            [not required <= declared_features for declared_features in feature_sets], dtype=np.bool_
        )
        return (Rejection(unsatisfied_mask[nodes.feature_set_ids], _UNSATISFIED),)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return the events of nodes and pods that may change required or declared features.

        Source: pkg/scheduler/framework/plugins/nodedeclaredfeatures/nodedeclaredfeatures.go,
        NodeDeclaredFeatures.EventsToRegister (1.36).
        """
        if not self._enabled:
            return ()
        return (
            ClusterEventWithHint(
                EventResource.NODE,
                ActionType.ADD | ActionType.UPDATE_NODE_DECLARED_FEATURE,
                _is_schedulable_after_node_change,
            ),
            *register_pod_events(self._release, _is_schedulable_after_pod_update, target=ActionType.UPDATE),
        )


def _get_required_features(pod: PodInfo) -> frozenset[str]:
    return pod.signature.spec_class.get_or_create(
        "NodeDeclaredFeatures", lambda: _infer_required_features(pod.signature.spec)
    )


def _infer_required_features(spec: PodSpec) -> frozenset[str]:
    """Return the features that a pod with *spec* requires.

    Source: component-helpers/nodedeclaredfeatures/framework.go, Framework.InferForPodScheduling (1.36).
    """
    features: set[str] = set()
    containers = (*spec.containers, *spec.init_containers)
    rules = (rule for container in containers for rule in container.restart_policy_rules)
    if any(rule.action == "RestartAllContainers" for rule in rules):
        features.add("RestartAllContainersOnContainerExits")
    if any(mount.bind_mount_options for container in containers for mount in container.volume_mounts):
        features.add("VolumeBindMountOptions")
    if spec.host_network and spec.host_users is False:
        features.add("UserNamespacesHostNetworkSupport")
    return frozenset(features)


def _is_schedulable_after_node_change(pod: PodInfo, event: ClusterEvent) -> QueueingHint:  # noqa: ARG001  a hint's signature
    is_unchanged = event.old is not None and event.old.status.declared_features == event.new.status.declared_features
    return QueueingHint.queue_if(not is_unchanged)


def _is_schedulable_after_pod_update(pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    if event.new.metadata.uid != pod.pod.metadata.uid:
        return QueueingHint.SKIP
    return QueueingHint.queue_if(_infer_required_features(event.old.spec) != _infer_required_features(event.new.spec))
