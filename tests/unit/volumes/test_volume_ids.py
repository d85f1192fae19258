"""The volumes that a node must attach for a pod, by CSI driver and handle.

Source: pkg/scheduler/framework/plugins/nodevolumelimits/csi.go, CSILimits.filterAttachableVolumes (1.36).
"""

from typing import Any

import pytest

from extender.volumes.volume_ids import AttachableVolumes, find_attachable_volumes, may_need_attachment
from tests.build import make_cluster, make_object, make_pod


def make_claim(name: str, **spec: Any) -> Any:
    meta = {"name": name, "namespace": "default"}
    return make_object({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec})


def make_volume(name: str, **spec: Any) -> Any:
    return make_object({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec})


def make_class(name: str, provisioner: str) -> Any:
    meta = {"name": name}
    return make_object(
        {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": meta, "provisioner": provisioner}
    )


OBJECTS = (
    make_claim("csi", volumeName="csi"),
    make_claim("ebs", volumeName="ebs"),
    make_claim("unbound", storageClassName="csi"),
    make_claim("unbound-ebs", storageClassName="ebs"),
    make_claim("no-class"),
    make_volume("csi", csi={"driver": "d", "volumeHandle": "h"}),
    make_volume("ebs", awsElasticBlockStore={"volumeID": "vol-1"}),
    make_class("csi", "d"),
    make_class("ebs", "kubernetes.io/aws-ebs"),
)


def find_volumes(*volumes: dict[str, Any], translate_in_tree: bool = True, assigned: bool = False) -> AttachableVolumes:
    snapshot = make_cluster(*OBJECTS).snapshot()
    pod = make_pod("p", spec={"volumes": list(volumes)})
    signature = snapshot.make_pod_info(pod).signature
    return find_attachable_volumes(pod, signature, snapshot, translate_in_tree=translate_in_tree, assigned=assigned)


def make_claim_volume(name: str) -> dict[str, Any]:
    return {"name": name, "persistentVolumeClaim": {"claimName": name}}


EBS_DISK = {"name": "disk", "awsElasticBlockStore": {"volumeID": "vol-2"}}
BAD_DISK = {"name": "disk", "awsElasticBlockStore": {"volumeID": "aws://a/disk"}}


@pytest.mark.parametrize(
    ("volume", "migrated", "not_migrated"),
    [
        pytest.param(make_claim_volume("csi"), [("d", "h")], [("d", "h")], id="a CSI volume"),
        pytest.param(make_claim_volume("ebs"), [("ebs.csi.aws.com", "vol-1")], [], id="a volume of an in-tree driver"),
        pytest.param(EBS_DISK, [("ebs.csi.aws.com", "vol-2")], [], id="an inline disk of an in-tree driver"),
        pytest.param(
            make_claim_volume("unbound"),
            [("d", "\0unbound-default/unbound")],
            [("d", "\0unbound-default/unbound")],
            id="a claim without a volume",
        ),
        pytest.param(
            make_claim_volume("unbound-ebs"),
            [("ebs.csi.aws.com", "\0unbound-default/unbound-ebs")],
            [],
            id="a claim without a volume of an in-tree driver",
        ),
        pytest.param(make_claim_volume("no-class"), [], [], id="a claim without volume and class"),
    ],
)
def test_a_volume_has_an_id(
    volume: dict[str, Any], migrated: list[tuple[str, str]], not_migrated: list[tuple[str, str]]
) -> None:
    assert find_volumes(volume) == AttachableVolumes(tuple(migrated))
    assert find_volumes(volume, translate_in_tree=False) == AttachableVolumes(tuple(not_migrated))


def test_a_volume_counts_once() -> None:
    assert find_volumes(make_claim_volume("csi"), {**make_claim_volume("csi"), "name": "again"}).volumes == (
        ("d", "h"),
    )


def test_a_missing_claim_is_an_error_unless_the_pod_is_assigned() -> None:
    error = 'looking up PVC default/gone: persistentvolumeclaim "gone" not found'
    assert find_volumes(make_claim_volume("csi"), make_claim_volume("gone")) == AttachableVolumes(
        error=error, claim_missing=True
    )
    assert find_volumes(make_claim_volume("gone"), make_claim_volume("csi"), assigned=True).volumes == (("d", "h"),)


@pytest.mark.parametrize(
    ("volume", "error"),
    [
        pytest.param(make_claim_volume(""), "PersistentVolumeClaim had no name", id="a claim without a name"),
        pytest.param(
            BAD_DISK,
            "converting volume(disk) from inline to csi: failed to translate Kubernetes ID to EBS Volume ID "
            "Invalid format for AWS volume (aws://a/disk)",
            id="a disk that cannot be translated",
        ),
    ],
)
def test_the_ids_of_a_pod_are_unknown_after_an_error(volume: dict[str, Any], error: str) -> None:
    assert find_volumes(volume, assigned=True) == AttachableVolumes(error=error)


def test_only_claims_and_disks_of_in_tree_drivers_may_need_attachment() -> None:
    snapshot = make_cluster().snapshot()
    volumes = {
        "claim": make_claim_volume("csi"),
        "ephemeral": {"name": "e", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
        "disk": EBS_DISK,
        "empty": {"name": "e", "emptyDir": {}},
    }
    pods = {name: snapshot.make_pod_info(make_pod(spec={"volumes": [volume]})) for name, volume in volumes.items()}
    needed = {name: may_need_attachment(pod.signature) for name, pod in pods.items()}
    assert needed == {"claim": True, "ephemeral": True, "disk": True, "empty": False}
