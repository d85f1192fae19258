"""Gives pod groups claims of their own, which their pods share; only for Kubernetes 1.37."""

from typing import Any, Final

from tests.oracle.generator.builder import ClusterBuilder, Raw

_API_GROUP: Final = "scheduling.k8s.io"
_GPU: Final = "gpu.example.com"


def add_group_claims(builder: ClusterBuilder) -> dict[str, bool]:
    """Add claims to some groups that are there and to most of their pods, and return the feature gate."""
    for group in [item for item in builder.items if item["kind"] == "PodGroup"]:
        if builder.chance(0.7):
            _add_claim(builder, group)
    return {"DRAWorkloadResourceClaims": builder.chance(0.9)}


def _add_claim(builder: ClusterBuilder, group: Raw) -> None:
    namespace, name = group["metadata"]["namespace"], group["metadata"]["name"]
    from_template = builder.chance(0.5)
    claim_name = f"{name}-generated" if from_template else f"{name}-claim"
    entry = {"name": "shared", "resourceClaimName": claim_name}
    if from_template:
        entry = {"name": "shared", "resourceClaimTemplateName": "template"}
        if builder.chance(0.9):
            group["status"] = {"resourceClaimStatuses": [{"name": "shared", "resourceClaimName": claim_name}]}
    group["spec"]["resourceClaims"] = [entry]
    for pod in builder.items:
        in_group = pod["kind"] == "Pod" and pod["metadata"]["namespace"] == namespace
        if in_group and pod["spec"].get("schedulingGroup", {}).get("podGroupName") == name and builder.chance(0.9):
            own = dict(entry, name="other") if builder.chance(0.05) else entry  # then the claim is reserved for the pod
            pod["spec"].setdefault("resourceClaims", []).append(own)
            if from_template and builder.chance(0.95):
                status = {"name": own["name"], "resourceClaimName": claim_name}
                pod["status"].setdefault("resourceClaimStatuses", []).append(status)
    if builder.chance(0.97):
        _add_claim_object(builder, group, claim_name, is_owned=from_template and builder.chance(0.95))


def _add_claim_object(builder: ClusterBuilder, group: Raw, name: str, *, is_owned: bool) -> None:
    meta = group["metadata"]
    metadata: dict[str, Any] = {}
    if is_owned:
        owner = {"apiVersion": f"{_API_GROUP}/v1beta1", "kind": "PodGroup", "name": meta["name"], "uid": meta["uid"]}
        metadata["ownerReferences"] = [{**owner, "controller": True}]
    exactly: Raw = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": builder.pick((1, 1, 2))}
    status: Raw = {}
    if builder.nodes and builder.chance(0.5):
        node = builder.pick(builder.nodes)["metadata"]["name"]
        term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
        result = {"request": "r0", "driver": _GPU, "pool": node, "device": builder.pick(("gpu-0", "gpu-1"))}
        exactly["count"] = 1
        status["allocation"] = {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": [term]}}
        consumer = {"apiGroup": _API_GROUP, "resource": "podgroups", "name": meta["name"], "uid": meta["uid"]}
        others = {"resource": "pods", "name": "finished", "uid": "uid-finished"}
        status["reservedFor"] = builder.pick(([], [consumer], [consumer], [consumer], [others], [consumer, others]))
    spec = {"devices": {"requests": [{"name": "r0", "exactly": exactly}]}}
    namespace = meta["namespace"]
    builder.add("resource.k8s.io/v1", "ResourceClaim", name, namespace, metadata=metadata, spec=spec, status=status)
