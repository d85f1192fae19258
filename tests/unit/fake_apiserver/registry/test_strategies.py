"""Defaults of new objects other than pods."""

import pytest

from tests.unit.fake_apiserver.builders import Object, make_api

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
def test_a_default_is_set_on_create(version: str, kind: str, body: Object, path: str, expected: object) -> None:
    created: object = make_api().create_from_manifest(
        {"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, **body}
    )
    for field in path.split("."):
        assert isinstance(created, dict)
        created = created[field]
    assert created == expected


def test_a_pod_template_gets_only_the_defaults_of_templates() -> None:
    container = {"name": "c", "image": "a:1", "resources": {"limits": {"cpu": "1"}}}
    spec = {"template": {"spec": {"containers": [container], "hostNetwork": True}}}
    created = make_api().create_from_manifest(
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "x"}, "spec": spec}
    )
    filled = created["spec"]["template"]["spec"]
    assert filled["schedulerName"] == "default-scheduler"
    assert "enableServiceLinks" not in filled
    assert filled["containers"][0]["resources"] == {"limits": {"cpu": "1"}}
