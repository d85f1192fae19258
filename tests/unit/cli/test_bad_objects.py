"""Invalid objects and Policies as input of the commands: the pod's status, or one line on standard error."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., tuple[int, str, str]]

NODE = "{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: 2, memory: 4Gi, pods: 10}}}\n"
DEVICES = f"""\
{NODE}---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {{name: s1}}
spec:
  driver: gpu.example.com
  nodeName: n1
  pool: {{name: n1, generation: 1, resourceSliceCount: 1}}
  devices: [{{name: d0, attributes: {{model: {{string: a100}}}}}}]
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {{name: gpu}}
spec: {{selectors: [{{cel: {{expression: 'CLASS'}}}}]}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {{name: c}}
spec:
  devices:
    requests:
    - {{name: r, exactly: {{deviceClassName: gpu, selectors: [{{cel: {{expression: 'CLAIM'}}}}]}}}}
---
apiVersion: v1
kind: Pod
metadata: {{name: web}}
spec:
  containers: [{{name: a, resources: {{claims: [{{name: x}}]}}}}]
  resourceClaims: [{{name: x, resourceClaimName: c}}]
"""


@pytest.mark.parametrize(
    ("placeholder", "selector", "error"),
    [
        ("CLAIM", "1 +", "claim default/c: selector #0: CEL compile error: compilation failed: ERROR: <input>:1:4: "),
        ("CLASS", "nosuch", "class gpu: selector #0: CEL compile error: compilation failed: ERROR: <input>:1:1: "),
        ("CLAIM", "1 + 1", "claim default/c: selector #0: CEL compile error: must evaluate to bool or the unknown"),
        ("CLAIM", 'device.attributes["x.com"].y', "claim default/c: selector #0: CEL runtime error: no such key: y\n"),
        (
            "CLAIM",
            "lists.range(1000000).all(i, i >= 0)",
            "claim default/c: selector #0: CEL runtime error: operation cancelled: actual cost limit exceeded\n",
        ),
    ],
    ids=[
        "a selector that does not compile",
        "a class whose selector has an undeclared name",
        "a selector that returns a number",
        "a selector that reads a missing attribute",
        "a selector that loops over a million elements",
    ],
)
def test_a_selector_error_is_explained_as_the_error_of_the_attempt(
    extender: Command, tmp_path: Path, placeholder: str, selector: str, error: str
) -> None:
    (tmp_path / "c.yaml").write_text(
        DEVICES.replace(placeholder, selector).replace("CLASS", "true").replace("CLAIM", "true")
    )
    status, out, err = extender("explain", "--emulated-version=1.36", "-f", str(tmp_path / "c.yaml"))
    assert (status, err) == (0, "")
    assert out.startswith(
        "Pod default/web\n"
        "  is not scheduled: an error ends the attempt; the pod is retried after a while (reason SchedulerError)\n"
        f'  running "DynamicResources" filter plugin: {error}'
    )


def test_a_claim_with_a_missing_storage_class_keeps_its_pod_pending(extender: Command, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(
        NODE
        + "---\n{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: d}, spec: {storageClassName: gone,"
        + " accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}\n"
        + "---\n{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: a}],"
        + " volumes: [{name: v, persistentVolumeClaim: {claimName: d}}]}}\n"
    )
    status, out, err = extender("explain", "--emulated-version=1.36", "-f", str(tmp_path / "c.yaml"))
    assert (status, err) == (0, "")
    assert "  0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found\n" in out
    assert '  Claims without a volume\n    default/d: there is no StorageClass "gone"\n' in out


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"predicates": [{"name": "Nosuch"}]}, 'predicates[0].name: predicate type not found for "Nosuch"'),
        (
            {"priorities": [{"name": "ImageLocalityPriority", "weight": 0}]},
            "priorities[0].weight: Priority ImageLocalityPriority should have a positive weight applied to it or it has"
            " overflown",
        ),
        (
            {
                "predicates": [
                    {
                        "name": "Two",
                        "argument": {
                            "serviceAffinity": {"labels": ["a"]},
                            "labelsPresence": {"labels": ["b"], "presence": True},
                        },
                    }
                ]
            },
            "predicates[0].argument: exactly 1 predicate argument is required, numArgs: 2, predicate Two",
        ),
        ({"predicates": [], "priority": []}, 'priority: unknown field "priority"; did you mean "priorities"?'),
    ],
    ids=["an unknown predicate", "a zero weight", "two arguments", "an unknown field"],
)
@pytest.mark.parametrize("command", [["config", "check"], ["config", "convert"], ["simulate", "-f", "-", "--config"]])
def test_an_invalid_policy_is_one_line(
    extender: Command, tmp_path: Path, command: list[str], body: dict[str, object], error: str
) -> None:
    path = tmp_path / "policy.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "Policy", **body}))
    assert extender(*command, str(path), stdin=NODE) == (2, "", f"extender: {path}: {error}\n")
