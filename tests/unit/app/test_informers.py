"""The watched kinds: nodes, pods, and the kinds that the enabled plugins need."""

from typing import Any

from extender.app import wiring
from extender.app.informers import list_kinds_to_watch
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_36, RELEASE_1_37, Release


def kinds(profile: dict[str, Any], release: Release = RELEASE_1_36, **feature_gates: bool) -> set[str]:
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }
    gates = FeatureGates(feature_gates, release)
    return {kind.__name__ for kind in list_kinds_to_watch(wiring.build_setup_from_document(document, "test", gates))}


def profile_with_only(*names: str) -> dict[str, Any]:
    enabled = [{"name": name} for name in ("PrioritySort", "DefaultBinder", *names)]
    return {"plugins": {"multiPoint": {"disabled": [{"name": "*"}], "enabled": enabled}}}


def test_the_default_profile_watches_what_kube_scheduler_watches() -> None:
    """Compare with the kinds that kube-scheduler may list and watch.

    Source: pkg/scheduler/eventhandlers.go, addAllEventHandlers;
    plugin/pkg/auth/authorizer/rbac/bootstrappolicy/controller_policy.go, eventsRule;
    plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go, ClusterRoles (1.36).
    """
    assert kinds({}) == {
        "CSIDriver", "CSINode", "CSIStorageCapacity", "DeviceClass", "Namespace", "Node", "PersistentVolume",
        "PersistentVolumeClaim", "Pod", "PodDisruptionBudget", "ReplicaSet", "ReplicationController", "ResourceClaim",
        "ResourceSlice", "Service", "StatefulSet", "StorageClass", "VolumeAttachment",
    }  # fmt: skip


def test_a_small_profile_watches_nodes_and_pods_only() -> None:
    assert kinds(profile_with_only("NodeName", "TaintToleration")) == {"Node", "Pod"}


def test_topology_spread_adds_services_and_pod_controllers() -> None:
    assert kinds(profile_with_only("PodTopologySpread")) == {
        "Node", "Pod", "ReplicaSet", "ReplicationController", "Service", "StatefulSet"
    }  # fmt: skip


def test_device_taint_rules_are_watched_with_their_feature_gate() -> None:
    """The plugin reads the rules only with the gate.

    Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.PreFilter (1.36).
    """
    assert kinds({}, DRADeviceTaintRules=True) - kinds({}) == {"DeviceTaintRule"}
    assert kinds({}, RELEASE_1_37) - kinds({}, RELEASE_1_37, DRADeviceTaintRules=False) == {"DeviceTaintRule"}


def test_pod_groups_are_watched_with_the_feature_gate_generic_workload() -> None:
    """kube-scheduler may watch pod groups only with the gate.

    Source: plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go, ClusterRoles (1.36).
    """
    assert kinds(profile_with_only("NodeName"), GenericWorkload=True) == {"Node", "Pod", "PodGroup"}
    assert kinds({}, GenericWorkload=True, GangScheduling=True) - kinds({}) == {"PodGroup"}
    assert kinds({}, RELEASE_1_37, GenericWorkload=True) - kinds({}, RELEASE_1_37) == {"PodGroup"}
    gates = dict.fromkeys(("GenericWorkload", "TopologyAwareWorkloadScheduling", "CompositePodGroup"), True)
    assert kinds({}, RELEASE_1_37, **gates) - kinds({}, RELEASE_1_37) == {"PodGroup", "CompositePodGroup"}
