"""Tests of what is filled in for kinds other than pods when they are created."""

import pytest

from tests.unit.sandbox.calls import Object, an_api

DEFAULTS: dict[str, tuple[str, str, Object, str, object]] = {
    "a volume is retained": ("v1", "PersistentVolume", {}, "spec.persistentVolumeReclaimPolicy", "Retain"),
    "a claim for a volume waits": ("v1", "PersistentVolumeClaim", {}, "status.phase", "Pending"),
    "a storage class binds at once": ("storage.k8s.io/v1", "StorageClass", {}, "volumeBindingMode", "Immediate"),
    "a driver attaches": ("storage.k8s.io/v1", "CSIDriver", {}, "spec.attachRequired", True),
    "a set has one replica": ("apps/v1", "ReplicaSet", {}, "spec.replicas", 1),
    "a service has an address": ("v1", "Service", {}, "spec.type", "ClusterIP"),
    "a namespace bears its name": ("v1", "Namespace", {}, "metadata.labels", {"kubernetes.io/metadata.name": "x"}),
    "a budget allows nothing yet": ("policy/v1", "PodDisruptionBudget", {}, "status.disruptionsAllowed", 0),
    "a class lets its pods preempt": (
        "scheduling.k8s.io/v1",
        "PriorityClass",
        {},
        "preemptionPolicy",
        "PreemptLowerPriority",
    ),
    "a request is for one device": (
        "resource.k8s.io/v1",
        "ResourceClaim",
        {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}},
        "spec.devices.requests",
        [{"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}],
    ),
    "a request for all devices has no count": (
        "resource.k8s.io/v1",
        "ResourceClaimTemplate",
        {"spec": {"spec": {"devices": {"requests": [{"name": "r", "firstAvailable": [{"allocationMode": "All"}]}]}}}},
        "spec.spec.devices.requests",
        [{"name": "r", "firstAvailable": [{"allocationMode": "All"}]}],
    ),
    "a caller's status does not count": (
        "resource.k8s.io/v1",
        "ResourceClaim",
        {"status": {"reservedFor": [{"uid": "u"}]}},
        "status",
        {},
    ),
}


@pytest.mark.parametrize(("version", "kind", "body", "path", "expected"), DEFAULTS.values(), ids=DEFAULTS)
def test_when_it_is_created(version: str, kind: str, body: Object, path: str, expected: object) -> None:
    made: object = an_api().add({"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, **body})
    for part in path.split("."):
        assert isinstance(made, dict)
        made = made[part]
    assert made == expected


def test_a_template_gets_the_defaults_of_templates_only() -> None:
    container = {"name": "c", "image": "a:1", "resources": {"limits": {"cpu": "1"}}}
    spec = {"template": {"spec": {"containers": [container], "hostNetwork": True}}}
    made = an_api().add({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "x"}, "spec": spec})
    filled = made["spec"]["template"]["spec"]
    assert filled["schedulerName"] == "default-scheduler"
    assert "enableServiceLinks" not in filled
    assert filled["containers"][0]["resources"] == {"limits": {"cpu": "1"}}
