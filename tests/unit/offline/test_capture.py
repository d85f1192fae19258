"""Recorded clusters of every form `kubectl get` and people write, read to the same objects."""

import gzip
import io
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from extender.objects.devices import ResourceClaim, ResourceClaimTemplate
from extender.objects.node import Node
from extender.objects.pod import Pod
from extender.objects.storage import StorageClass
from extender.objects.workload import Service
from extender.offline.capture import Capture, load_state, read_capture

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"schedulerName": "default-scheduler"},
}


def captured(tmp_path: Path, text: str | bytes, name: str = "c") -> Capture:
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_capture([str(path)])


def names(capture: Capture) -> list[str]:
    return [f"{type(thing).__name__} {thing.metadata.name}" for thing in capture.objects]


def json_of(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def list_of(*items: Any, kind: str = "List", **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "items": list(items), **more}


YAML = """\
apiVersion: v1
kind: Node
metadata: {name: n1}
---
# a comment between
apiVersion: v1
kind: Pod
metadata:
  name: web
  namespace: shop
"""

FORMS = {
    "a JSON List": json_of(list_of(NODE, POD)),
    "a JSON List over many lines": msgspec.json.format(json_of(list_of(NODE, POD)), indent=4),
    "a List in a List": json_of(list_of(list_of(NODE), list_of(list_of(POD)))),
    "Lists of one kind whose items have none": json_of(
        list_of(
            list_of({"metadata": {"name": "n1"}}, kind="NodeList"),
            list_of({"metadata": {"name": "web", "namespace": "shop"}}, kind="PodList"),
        )
    ),
    "JSON documents one after another": f"{json_of(NODE)}\n{json_of(POD)}\n",
    "JSON documents with separators": f"{json_of(NODE)}\n---\n---\n{json_of(POD)}\n---\n",
    "YAML documents": YAML,
    "YAML documents that begin with a separator": f"---\n{YAML}---\n",
    "a YAML List": "kind: List\napiVersion: v1\nitems:\n- {apiVersion: v1, kind: Node, metadata: {name: n1}}\n"
    "- apiVersion: v1\n  kind: Pod\n  metadata: {name: web, namespace: shop}\n",
    "YAML in braces": "{kind: List, apiVersion: v1, items: [{kind: Node, apiVersion: v1, metadata: {name: n1}},\n"
    " {kind: Pod, apiVersion: v1, metadata: {name: web, namespace: shop}}]}",
    "YAML with aliases and merges": "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n---\n"
    "kind: List\napiVersion: v1\nx: &pod {apiVersion: v1, kind: Pod}\n"
    "items:\n- <<: *pod\n  metadata: {name: web, namespace: shop}\n",
    "gzipped JSON": gzip.compress(json_of(list_of(NODE, POD)).encode()),
    "gzipped YAML": gzip.compress(YAML.encode()),
    "JSON with a byte order mark": b"\xef\xbb\xbf" + json_of(list_of(NODE, POD)).encode(),
}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS.keys())
def test_every_form_is_read_to_the_same_objects(tmp_path: Path, text: str | bytes) -> None:
    capture = captured(tmp_path, text)
    assert names(capture) == ["Node n1", "Pod web"]
    assert capture.objects[1].metadata.namespace == "shop"


def test_several_files_and_standard_input_are_read_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "pods.json"
    path.write_text(json_of(POD))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json_of(NODE).encode())))
    capture = read_capture(["-", str(path)])
    assert names(capture) == ["Node n1", "Pod web"]
    assert capture.sources == ("stdin", str(path))


def test_kinds_that_scheduling_does_not_read_are_skipped_and_counted(tmp_path: Path) -> None:
    text = (
        "kind: List\napiVersion: v1\nitems:\n- {kind: Secret, apiVersion: v1, data: 7}\n"
        "- {kind: Deployment, apiVersion: apps/v1}\n- {kind: Secret, apiVersion: v1}\n"
        "- {kind: PodDisruptionBudget, apiVersion: policy/v1beta1}\n- {kind: AllowList, apiVersion: example.com/v1}\n"
    )
    capture = captured(tmp_path, text)
    assert capture.objects == ()
    assert capture.skipped == Counter(
        {"Secret": 2, "Deployment": 1, "PodDisruptionBudget of policy/v1beta1": 1, "AllowList": 1}
    )


@pytest.mark.parametrize(
    "text",
    [
        json_of(list_of(NODE, config={"kind": "KubeSchedulerConfiguration", "parallelism": 3})),
        "kind: List\napiVersion: v1\nconfig: {kind: KubeSchedulerConfiguration, parallelism: 3}\n",
        "kind: KubeSchedulerConfiguration\napiVersion: v1\nparallelism: 3\n",
        '{"kind":"KubeSchedulerConfiguration","apiVersion":"v1","parallelism":3}',
    ],
    ids=["in a JSON List", "in a YAML List", "a YAML document", "a JSON document"],
)
def test_the_configuration_in_force_is_carried_along(tmp_path: Path, text: str) -> None:
    capture = captured(tmp_path, text)
    assert capture.config["kind"] == "KubeSchedulerConfiguration"
    assert capture.config["parallelism"] == 3
    assert capture.config_place.startswith(f"{tmp_path}/c")


def test_without_a_configuration_there_is_none(tmp_path: Path) -> None:
    assert captured(tmp_path, json_of(list_of(NODE, config=None))).config is None


def test_what_an_api_server_would_fill_in_is_filled_in(tmp_path: Path) -> None:
    text = """\
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {capacity: {cpu: 4}}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 900
preemptionPolicy: Never
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  priorityClassName: high
  hostNetwork: true
  containers:
  - name: a
    ports: [{containerPort: 80}, {containerPort: 81, hostPort: 9}]
    resources: {limits: {cpu: 2, memory: 1Gi}, requests: {cpu: 1}}
"""
    node, _, pod = captured(tmp_path, text).objects
    assert isinstance(node, Node)
    assert isinstance(pod, Pod)
    assert node.status.allocatable == {"cpu": 4}
    assert pod.key == "default/web"
    assert (pod.spec.scheduler_name, pod.spec.priority, pod.spec.preemption_policy) == (
        "default-scheduler",
        900,
        "Never",
    )
    assert pod.spec.containers[0].resources.requests == {"cpu": 1, "memory": "1Gi"}
    assert [port.host_port for port in pod.spec.containers[0].ports] == [80, 9]


def test_a_storage_class_without_a_binding_mode_binds_at_once(tmp_path: Path) -> None:
    text = "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: fast}\nprovisioner: example.com/disk\n"
    storage_class = captured(tmp_path, text).objects[0]
    assert isinstance(storage_class, StorageClass)
    assert storage_class.volume_binding_mode == "Immediate"


CLAIM_SPEC = {
    "devices": {
        "requests": [
            {"name": "one", "exactly": {"deviceClassName": "gpu"}},
            {"name": "two", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2}},
            {"name": "all", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}},
            {"name": "either", "firstAvailable": [{"name": "big", "deviceClassName": "gpu"}]},
        ]
    }
}


@pytest.mark.parametrize(
    ("kind", "spec"),
    [("ResourceClaim", CLAIM_SPEC), ("ResourceClaimTemplate", {"spec": CLAIM_SPEC})],
    ids=["a claim", "a template"],
)
def test_a_request_that_names_no_count_wants_one_device(tmp_path: Path, kind: str, spec: dict[str, Any]) -> None:
    written = {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": "c"}, "spec": spec}
    claim = captured(tmp_path, json_of(written)).objects[0]
    assert isinstance(claim, ResourceClaim | ResourceClaimTemplate)
    asked = claim.spec if isinstance(claim, ResourceClaim) else claim.spec.spec
    wanted = [
        (body.allocation_mode, body.count)
        for request in asked.devices.requests
        for body in (request.exactly, *request.first_available)
        if body is not None
    ]
    assert claim.metadata.namespace == "default"
    assert wanted == [("ExactCount", 1), ("ExactCount", 2), ("All", 0), ("ExactCount", 1)]


@pytest.mark.parametrize(
    ("spec", "priority"),
    [
        ("{priorityClassName: system-node-critical}", 2_000_001_000),
        ("{priorityClassName: unknown}", None),
        ("{priorityClassName: system-node-critical, priority: 5}", 5),
    ],
    ids=["a class every cluster has", "a class nobody knows", "a priority that is written"],
)
def test_a_priority_follows_from_the_class_only_where_none_is_written(
    tmp_path: Path, spec: str, priority: int | None
) -> None:
    pod = captured(tmp_path, f"apiVersion: v1\nkind: Pod\nmetadata: {{name: web}}\nspec: {spec}\n").objects[0]
    assert isinstance(pod, Pod)
    assert pod.spec.priority == priority


def test_an_object_that_lacks_nothing_comes_back_as_it_is(tmp_path: Path) -> None:
    pod = captured(tmp_path, json_of(POD)).objects[0]
    assert msgspec.to_builtins(pod) == {"metadata": POD["metadata"], "spec": POD["spec"]}


SCALARS = {
    "a date stays text": ("2026-03-01", "2026-03-01"),
    "a quoted number stays text": ("'010'", "010"),
    "a tagged number becomes text": ("!!str 5", "5"),
    "a block keeps its lines": ("|\n      a\n      b", "a\nb\n"),
}


@pytest.mark.parametrize(("written", "value"), SCALARS.values(), ids=SCALARS.keys())
def test_yaml_scalars_are_read_as_kubernetes_reads_them(tmp_path: Path, written: str, value: str) -> None:
    text = f"apiVersion: v1\nkind: Service\nmetadata:\n  name: s\n  labels:\n    a: {written}\n"
    service = captured(tmp_path, text).objects[0]
    assert isinstance(service, Service)
    assert service.metadata.labels == {"a": value}


def test_keys_that_are_no_text_are_read_as_text(tmp_path: Path) -> None:
    text = "apiVersion: v1\nkind: Service\nmetadata: {name: s, labels: {true: a, 7: b, !!str 0x_: c}}\n"
    assert captured(tmp_path, text).objects[0].metadata.labels == {"true": "a", "7": "b", "0x_": "c"}


@pytest.mark.parametrize(
    ("written", "value"),
    [("0o17", 15), ("017", 15), ("0x1f", 31), ("1_000", 1000), ("-5", -5), ("!!int 7", 7)],
)
def test_yaml_numbers_are_read_as_kubernetes_reads_them(tmp_path: Path, written: str, value: int) -> None:
    text = f"apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec: {{priority: {written}}}\n"
    pod = captured(tmp_path, text).objects[0]
    assert isinstance(pod, Pod)
    assert pod.spec.priority == value


def test_the_state_has_nodes_placed_pods_and_waiting_pods_whatever_their_order_in_the_file(tmp_path: Path) -> None:
    placed = {**POD, "metadata": {"name": "on"}, "spec": {"nodeName": "n1"}}
    over = {**POD, "metadata": {"name": "over"}, "status": {"phase": "Succeeded"}}
    state = load_state(captured(tmp_path, json_of(list_of(placed, POD, over, NODE))))
    assert list(state.snapshot().names) == ["n1"]
    assert [pod.key for pod in state.placed.values()] == ["default/on"]
    assert [pod.key for pod in state.waiting.values()] == ["shop/web"]
    assert list(state.snapshot().pods_on("n1")) == ["default/on"]
