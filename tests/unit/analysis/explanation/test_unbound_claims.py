"""Claims without a volume in the explanation text."""

from pathlib import Path

import pytest

from extender.analysis.explanation.explain_text import format_explanation
from extender.analysis.recorded_cluster import read_recording
from extender.app import wiring
from tests.explain import explain_pods

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


def explain(
    path: Path, claim: str, status: str = "status: {phase: Available}", change: tuple[str, str] = ("", "")
) -> list[str]:
    """Explain the pod; *change* replaces a text of the volume."""
    old, new = change
    cluster = CLUSTER.replace(old, new, 1) if old else CLUSTER
    (path / "cluster.yaml").write_text(cluster.replace("STATUS", status).replace("CLASS", claim), encoding="utf-8")
    recording = read_recording([str(path / "cluster.yaml")])
    (report,) = explain_pods(
        recording, ["web"], wiring.build_setup().profiles, ["default-scheduler"], wiring.make_runtime()
    )
    return format_explanation(report.explanation, report.snapshot).splitlines()


@pytest.mark.parametrize(
    ("claim", "status", "reason"),
    [
        (
            "storageClassName: local,",
            "",
            "default/data: volume pv1 has no status.phase, but only Available volumes are bound",
        ),
        (
            "storageClassName: local,",
            "status: {phase: Released}",
            "default/data: volume pv1 is Released, but only Available volumes are bound",
        ),
        (
            "storageClassName: fast,",
            "",
            'default/data: its StorageClass "fast" binds claims immediately, but this claim is not bound;'
            " kubectl describe pvc data -n default shows why",
        ),
        ("storageClassName: gone,", "", 'default/data: there is no StorageClass "gone"'),
        ("", "", "default/data: it has no StorageClass, so it must be bound beforehand"),
        (
            "storageClassName: local, volumeName: pv1,",
            "",
            "default/data: names pv1, but is not marked as bound;"
            " annotate the claim with pv.kubernetes.io/bind-completed",
        ),
    ],
    ids=[
        "a volume without a phase",
        "a volume that is not available",
        "a class that binds at once",
        "a missing class",
        "no class",
        "a claim that names its volume",
    ],
)
def test_an_unbound_claim_is_listed_with_its_reason(tmp_path: Path, claim: str, status: str, reason: str) -> None:
    lines = explain(tmp_path, claim, status)
    start = lines.index("  Claims without a volume")
    assert lines[start + 1 : start + 3] == [f"    {reason}", *([""] if start + 2 < len(lines) else [])]


@pytest.mark.parametrize(
    ("old", "new", "lack"),
    [
        ("storageClassName: local, accessModes", "storageClassName: other, accessModes", "no volume has the class"),
        (
            "capacity: {storage: 1Gi}",
            "capacity: {storage: 1Gi}, claimRef: {namespace: default, name: old, uid: old}",
            "all volumes of the class are taken",
        ),
        ("capacity: {storage: 1Gi}", "capacity: {storage: 500Mi}", "all free volumes are smaller than 1Gi"),
    ],
    ids=["no volume", "no free volume", "no large volume"],
)
def test_a_class_without_a_provisioner_needs_a_volume(tmp_path: Path, old: str, new: str, lack: str) -> None:
    lines = explain(tmp_path, "storageClassName: local,", change=(old, new))
    start = lines.index("  Claims without a volume")
    assert lines[start + 1] == f'    default/data: its StorageClass "local" creates no volumes, and {lack}'


def test_a_volume_that_is_reserved_for_the_claim_is_not_taken(tmp_path: Path) -> None:
    """No node has the label that the volume wants."""
    terms = "[{matchExpressions: [{key: zone, operator: Exists}]}]"
    affinity = f"nodeAffinity: {{required: {{nodeSelectorTerms: {terms}}}}}"
    reserved = f"capacity: {{storage: 1Gi}}, claimRef: {{namespace: default, name: data}}, {affinity}"
    lines = explain(tmp_path, "storageClassName: local,", change=("capacity: {storage: 1Gi}", reserved))
    assert lines[1] == "  fits on none of 1 node: 1 node cannot have its volumes"
    assert "  Claims without a volume" not in lines


def test_a_claim_that_can_be_bound_is_not_listed(tmp_path: Path) -> None:
    lines = explain(tmp_path, "storageClassName: local,")
    assert lines[1] == "  fits on 1 of 1 node"
    assert "  Claims without a volume" not in lines
