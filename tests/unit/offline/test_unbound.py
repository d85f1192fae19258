"""What an explanation says of claims that have no volume."""

from pathlib import Path

import pytest

from extender import wiring
from extender.offline.capture import read_capture
from extender.offline.explain import explain
from extender.offline.explanation import explanation

CLUSTER = """\
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {pods: 9}}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: local}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: fast}
provisioner: example.com/fast
volumeBindingMode: Immediate
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv1}
spec: {storageClassName: local, accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}, hostPath: {path: /x}}
STATUS
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {CLASS accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: a}], volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]}
"""


def explained(path: Path, claim: str, status: str = "status: {phase: Available}") -> list[str]:
    (path / "cluster.yaml").write_text(CLUSTER.replace("STATUS", status).replace("CLASS", claim), encoding="utf-8")
    capture = read_capture([str(path / "cluster.yaml")])
    (found,) = explain(capture, ["web"], wiring.scheduling().profiles, ["default-scheduler"], wiring.engine())
    return explanation(found.examination, found.cluster).splitlines()


@pytest.mark.parametrize(
    ("claim", "status", "why"),
    [
        (
            "storageClassName: local,",
            "",
            "default/data: volume pv1 has no status.phase, and only those that are Available are bound",
        ),
        (
            "storageClassName: local,",
            "status: {phase: Released}",
            "default/data: volume pv1 is Released, and only those that are Available are bound",
        ),
        (
            "storageClassName: fast,",
            "",
            'default/data: its StorageClass "fast" has it bound before the pod is scheduled, and it is not',
        ),
        ("storageClassName: gone,", "", 'default/data: there is no StorageClass "gone"'),
        ("", "", "default/data: it has no StorageClass, so it must be bound beforehand"),
        (
            "storageClassName: local, volumeName: pv1,",
            "",
            "default/data: names pv1 and is not marked as bound: annotate it with pv.kubernetes.io/bind-completed",
        ),
    ],
    ids=[
        "a volume without a phase",
        "a volume that is not available",
        "a class that binds at once",
        "a class that is not there",
        "no class",
        "a claim that names its volume",
    ],
)
def test_what_keeps_a_claim_from_its_volume_is_said(tmp_path: Path, claim: str, status: str, why: str) -> None:
    lines = explained(tmp_path, claim, status)
    at = lines.index("  Claims without a volume")
    assert lines[at + 1 : at + 3] == [f"    {why}", *([""] if at + 2 < len(lines) else [])]


def test_nothing_is_said_of_a_claim_that_can_be_bound(tmp_path: Path) -> None:
    lines = explained(tmp_path, "storageClassName: local,")
    assert lines[1] == "  fits on 1 of 1 node"
    assert "  Claims without a volume" not in lines
