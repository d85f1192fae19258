"""Which kinds are watched: what its plugins need, and no other."""

from typing import Any

from extender import wiring
from extender.config.gates import FeatureGates
from extender.watches import kinds_read


def kinds(profile: dict[str, Any], **switched: bool) -> set[str]:
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }
    gates = FeatureGates(switched)
    return {kind.__name__ for kind in kinds_read(wiring.from_builtins(document, "test", gates))}


def only(*names: str) -> dict[str, Any]:
    enabled = [{"name": name} for name in ("PrioritySort", "DefaultBinder", *names)]
    return {"plugins": {"multiPoint": {"disabled": [{"name": "*"}], "enabled": enabled}}}


def test_the_default_profile_watches_what_kube_scheduler_watches() -> None:
    """Source: A130, I008 to I026."""
    assert kinds({}) == {
        "CSIDriver", "CSINode", "CSIStorageCapacity", "DeviceClass", "Namespace", "Node", "PersistentVolume",
        "PersistentVolumeClaim", "Pod", "PodDisruptionBudget", "ReplicaSet", "ReplicationController", "ResourceClaim",
        "ResourceSlice", "Service", "StatefulSet", "StorageClass", "VolumeAttachment",
    }  # fmt: skip


def test_a_small_profile_watches_nodes_and_pods_only() -> None:
    assert kinds(only("NodeName", "TaintToleration")) == {"Node", "Pod"}


def test_topology_spread_adds_who_owns_pods() -> None:
    assert kinds(only("PodTopologySpread")) == {
        "Node", "Pod", "ReplicaSet", "ReplicationController", "Service", "StatefulSet"
    }  # fmt: skip


def test_taint_rules_are_watched_if_they_count() -> None:
    """Source: B112."""
    assert kinds({}, DRADeviceTaintRules=True) - kinds({}) == {"DeviceTaintRule"}


def test_pod_groups_are_watched_only_if_they_are_scheduled_as_such() -> None:
    """Source: I025."""
    assert kinds(only("NodeName"), GenericWorkload=True) == {"Node", "Pod", "PodGroup"}
    assert kinds({}, GenericWorkload=True, GangScheduling=True) - kinds({}) == {"PodGroup"}
