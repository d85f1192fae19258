"""Recorded clusters in the formats of `kubectl get` and of handwritten files, read to the same objects."""

import gzip
import io
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from extender.analysis.input.input_errors import InputError
from extender.analysis.recorded_cluster import Recording, check_nodes, load_cache, read_recording
from extender.api.kinds.devices import ResourceClaim, ResourceClaimTemplate
from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod
from extender.api.kinds.storage import PersistentVolumeClaim, StorageClass
from extender.api.kinds.workload import Service

NODE: dict[str, Any] = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"schedulerName": "default-scheduler", "containers": [{"name": "a"}]},
}


def read_cluster(tmp_path: Path, text: str | bytes, name: str = "c") -> Recording:
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_recording([str(path)])


def names(recording: Recording) -> list[str]:
    return [f"{type(item).__name__} {item.metadata.name}" for item in recording.objects]


def to_json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def make_list(*items: Any, kind: str = "List", **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "items": list(items), **fields}


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
spec:
  containers: [{name: a}]
"""

FORMATS = {
    "a JSON List": to_json(make_list(NODE, POD)),
    "an indented JSON List": msgspec.json.format(to_json(make_list(NODE, POD)), indent=4),
    "a List in a List": to_json(make_list(make_list(NODE), make_list(make_list(POD)))),
    "Lists of one kind whose items have none": to_json(
        make_list(
            make_list({"metadata": {"name": "n1"}}, kind="NodeList"),
            make_list({"metadata": POD["metadata"], "spec": POD["spec"]}, kind="PodList"),
        )
    ),
    "JSON documents one after another": f"{to_json(NODE)}\n{to_json(POD)}\n",
    "JSON documents with separators": f"{to_json(NODE)}\n---\n---\n{to_json(POD)}\n---\n",
    "YAML documents": YAML,
    "YAML documents that begin with a separator": f"---\n{YAML}---\n",
    "a YAML List": "kind: List\napiVersion: v1\nitems:\n- {apiVersion: v1, kind: Node, metadata: {name: n1}}\n"
    "- apiVersion: v1\n  kind: Pod\n  metadata: {name: web, namespace: shop}\n  spec: {containers: [{name: a}]}\n",
    "YAML in braces": "{kind: List, apiVersion: v1, items: [{kind: Node, apiVersion: v1, metadata: {name: n1}},\n"
    " {kind: Pod, apiVersion: v1, metadata: {name: web, namespace: shop}, spec: {containers: [{name: a}]}}]}",
    "YAML with aliases and merges": "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n---\n"
    "kind: List\napiVersion: v1\nx: &pod {apiVersion: v1, kind: Pod}\n"
    "items:\n- <<: *pod\n  metadata: {name: web, namespace: shop}\n  spec: {containers: [{name: a}]}\n",
    "gzipped JSON": gzip.compress(to_json(make_list(NODE, POD)).encode()),
    "gzipped YAML": gzip.compress(YAML.encode()),
    "JSON with a byte order mark": b"\xef\xbb\xbf" + to_json(make_list(NODE, POD)).encode(),
}


@pytest.mark.parametrize("text", FORMATS.values(), ids=FORMATS.keys())
def test_all_formats_are_read_to_the_same_objects(tmp_path: Path, text: str | bytes) -> None:
    recording = read_cluster(tmp_path, text)
    assert names(recording) == ["Node n1", "Pod web"]
    assert recording.objects[1].metadata.namespace == "shop"


def test_several_files_and_standard_input_are_read_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "pods.json"
    path.write_text(to_json(POD))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(to_json(NODE).encode())))
    recording = read_recording(["-", str(path)])
    assert names(recording) == ["Node n1", "Pod web"]
    assert recording.sources == ("stdin", str(path))


def test_kinds_that_scheduling_does_not_read_are_skipped_and_counted(tmp_path: Path) -> None:
    text = (
        "kind: List\napiVersion: v1\nitems:\n- {kind: Secret, apiVersion: v1, data: 7}\n"
        "- {kind: Ingress, apiVersion: networking.k8s.io/v1}\n- {kind: Secret, apiVersion: v1}\n"
        "- {kind: PodDisruptionBudget, apiVersion: policy/v1beta1}\n- {kind: AllowList, apiVersion: example.com/v1}\n"
        "- {kind: Node, apiVersion: v1, metadata: {name: n1}}\n"
    )
    recording = read_cluster(tmp_path, text)
    assert names(recording) == ["Node n1"]
    assert recording.skipped_kinds == Counter(
        {"Secret": 2, "Ingress": 1, "PodDisruptionBudget of policy/v1beta1": 1, "AllowList": 1}
    )


@pytest.mark.parametrize(
    "text",
    [
        to_json(make_list(NODE, config={"kind": "KubeSchedulerConfiguration", "parallelism": 3})),
        "kind: List\napiVersion: v1\nconfig: {kind: KubeSchedulerConfiguration, parallelism: 3}\n",
        "kind: KubeSchedulerConfiguration\napiVersion: v1\nparallelism: 3\n",
        '{"kind":"KubeSchedulerConfiguration","apiVersion":"v1","parallelism":3}',
    ],
    ids=["in a JSON List", "in a YAML List", "a YAML document", "a JSON document"],
)
def test_the_recorded_configuration_is_read(tmp_path: Path, text: str) -> None:
    recording = read_cluster(tmp_path, text)
    assert recording.config["kind"] == "KubeSchedulerConfiguration"
    assert recording.config["parallelism"] == 3
    assert recording.config_location.startswith(f"{tmp_path}/c")


def test_without_a_configuration_there_is_none(tmp_path: Path) -> None:
    assert read_cluster(tmp_path, to_json(make_list(NODE, config=None))).config is None


def test_the_defaults_of_the_api_server_are_applied(tmp_path: Path) -> None:
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
    node, _, pod = read_cluster(tmp_path, text).objects
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


def test_a_storage_class_without_a_binding_mode_binds_immediately(tmp_path: Path) -> None:
    text = "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: fast}\nprovisioner: example.com/disk\n"
    storage_class = read_cluster(tmp_path, text).objects[0]
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
def test_a_device_request_without_a_count_is_for_one_device(tmp_path: Path, kind: str, spec: dict[str, Any]) -> None:
    document = {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": "c"}, "spec": spec}
    claim = read_cluster(tmp_path, to_json(document)).objects[0]
    assert isinstance(claim, ResourceClaim | ResourceClaimTemplate)
    claim_spec = claim.spec if isinstance(claim, ResourceClaim) else claim.spec.spec
    counts = [
        (body.allocation_mode, body.count)
        for request in claim_spec.devices.requests
        for body in (request.exactly, *request.first_available)
        if body is not None
    ]
    assert claim.metadata.namespace == "default"
    assert counts == [("ExactCount", 1), ("ExactCount", 2), ("All", 0), ("ExactCount", 1)]


@pytest.mark.parametrize(
    ("spec", "priority"),
    [
        ("{priorityClassName: system-node-critical, containers: [{name: a}]}", 2_000_001_000),
        ("{priorityClassName: unknown, containers: [{name: a}]}", None),
        ("{priorityClassName: system-node-critical, priority: 5, containers: [{name: a}]}", 5),
    ],
    ids=["a built-in class", "an unknown class", "a priority in the spec"],
)
def test_a_priority_class_is_resolved_unless_the_pod_has_a_priority(
    tmp_path: Path, spec: str, priority: int | None
) -> None:
    pod = read_cluster(tmp_path, f"apiVersion: v1\nkind: Pod\nmetadata: {{name: web}}\nspec: {spec}\n").objects[0]
    assert isinstance(pod, Pod)
    assert pod.spec.priority == priority


def test_a_claim_of_a_file_gets_the_default_class(tmp_path: Path) -> None:
    text = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {resources: {requests: {storage: 1Gi}}}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: fast, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: disks.example.com
"""
    claims = [obj for obj in read_cluster(tmp_path, text).objects if isinstance(obj, PersistentVolumeClaim)]
    assert [(claim.metadata.name, claim.spec.storage_class_name) for claim in claims] == [("data", "fast")]


def test_an_object_without_missing_defaults_is_unchanged(tmp_path: Path) -> None:
    pod = read_cluster(tmp_path, to_json(POD)).objects[0]
    assert msgspec.to_builtins(pod) == {
        "metadata": POD["metadata"],
        "spec": {"schedulerName": "default-scheduler", "containers": ({"name": "a"},)},
    }


SCALARS = {
    "a date stays text": ("2026-03-01", "2026-03-01"),
    "a quoted number stays text": ("'010'", "010"),
    "a tagged number becomes text": ("!!str 5", "5"),
    "a commit beyond all numbers is text": ("12e4567", "12e4567"),
    "a block keeps its lines": ("|\n      a\n      b", "a\nb\n"),
}


@pytest.mark.parametrize(("scalar", "value"), SCALARS.values(), ids=SCALARS.keys())
def test_yaml_scalars_are_read_as_kubernetes_reads_them(tmp_path: Path, scalar: str, value: str) -> None:
    text = f"apiVersion: v1\nkind: Service\nmetadata:\n  name: s\n  annotations:\n    a: {scalar}\n"
    service = read_cluster(tmp_path, text).objects[0]
    assert isinstance(service, Service)
    assert service.metadata.annotations == {"a": value}


def test_keys_that_are_not_strings_become_strings(tmp_path: Path) -> None:
    text = "apiVersion: v1\nkind: Service\nmetadata: {name: s, annotations: {true: a, 7: b, !!str 0x_: c}}\n"
    assert read_cluster(tmp_path, text).objects[0].metadata.annotations == {"true": "a", "7": "b", "0x_": "c"}


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        ("0o17", 15), ("017", 15), ("0x1f", 31), ("1_000", 1000), ("-5", -5), ("!!int 7", 7), ("y", True), ("N", False),
        ("1.0", 1), ("1e3", 1000),
    ],
)  # fmt: skip
def test_yaml_numbers_and_booleans_are_read_as_kubernetes_reads_them(tmp_path: Path, scalar: str, value: int) -> None:
    field = "hostNetwork" if isinstance(value, bool) else "priority"
    text = f"apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec: {{{field}: {scalar}, containers: [{{name: a}}]}}\n"
    pod = read_cluster(tmp_path, text).objects[0]
    assert isinstance(pod, Pod)
    assert (pod.spec.host_network if field == "hostNetwork" else pod.spec.priority) == value


def test_the_cache_has_nodes_assigned_pods_and_pending_pods_in_any_file_order(tmp_path: Path) -> None:
    assigned = {**POD, "metadata": {"name": "on"}, "spec": {**POD["spec"], "nodeName": "n1"}}
    finished = {**POD, "metadata": {"name": "finished"}, "status": {"phase": "Succeeded"}}
    cache = load_cache(read_cluster(tmp_path, to_json(make_list(assigned, POD, finished, NODE))))
    assert list(cache.snapshot().names) == ["n1"]
    assert [pod.key for pod in cache.assigned_pods.values()] == ["default/on"]
    assert [pod.key for pod in cache.pending_pods.values()] == ["shop/web"]
    assert list(cache.snapshot().pods_on("n1")) == ["default/on"]


def test_the_cache_has_the_pending_pods_of_the_named_schedulers_and_all_assigned_pods(tmp_path: Path) -> None:
    def make_member(name: str, scheduler: str, node: str = "") -> dict[str, Any]:
        group = {"podGroupName": "ring"}
        spec = {**POD["spec"], "schedulerName": scheduler, "nodeName": node, "schedulingGroup": group}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}

    members = [make_member("a", "one"), make_member("b", "two"), make_member("c", "two", "n1")]
    cache = load_cache(read_cluster(tmp_path, to_json(make_list(*members, NODE))), scheduler_names=("one",))
    assert [pod.key for pod in cache.pending_pods.values()] == ["default/a"]
    assert cache.snapshot().pod_group("default/ring").count == 2


def test_an_object_with_generate_name_has_the_prefix_and_a_number(tmp_path: Path) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "job-"}, "spec": POD["spec"]}
    assert names(read_cluster(tmp_path, to_json(make_list(pod, pod)))) == ["Pod job-1", "Pod job-2"]


def test_a_later_object_replaces_an_earlier_one_with_override(tmp_path: Path) -> None:
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    first.write_text(to_json({**NODE, "spec": {"unschedulable": True}}))
    second.write_text(to_json(NODE))
    with pytest.raises(InputError, match="pass --override to use the last one"):
        read_recording([str(first), str(second)], override=False)
    (node,) = read_recording([str(first), str(second)], override=True).objects
    assert isinstance(node, Node)
    assert not node.spec.unschedulable


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (to_json(make_list()), "adds nothing to the cluster: it has no object"),
        (
            to_json({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}),
            "adds nothing to the cluster: scheduling does not read its kinds, such as Secret",
        ),
        (to_json({**NODE, "kind": "Nod"}), 'kind: "Nod" is no kind of v1; did you mean "Node"?'),
        (
            to_json({"apiVersion": "apps/v1", "kind": "Deploymnet", "metadata": {"name": "web"}}),
            'kind: "Deploymnet" is no kind of apps/v1; did you mean "Deployment"?',
        ),
    ],
)
def test_a_file_that_adds_nothing_and_a_misspelled_kind_are_errors(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_cluster(tmp_path, text)
    assert str(caught.value).partition(": ")[2].splitlines()[0].endswith(message)


@pytest.mark.parametrize(("version", "kind"), [("apps/v1beta1", "Deployment"), ("extensions/v1beta1", "DaemonSet")])
def test_a_workload_of_another_version_is_named_with_it(tmp_path: Path, version: str, kind: str) -> None:
    workload = {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}}
    skipped = read_cluster(tmp_path, to_json(make_list(NODE, workload))).skipped_kinds
    assert skipped == Counter({f"{kind} of {version}": 1})


def test_a_similar_kind_of_another_api_group_is_skipped(tmp_path: Path) -> None:
    service = {"apiVersion": "serving.knative.dev/v1", "kind": "Servic", "metadata": {"name": "s"}}
    assert read_cluster(tmp_path, to_json(make_list(NODE, service))).skipped_kinds == Counter({"Servic": 1})


def test_a_node_without_status_is_an_error(tmp_path: Path) -> None:
    recording = read_cluster(tmp_path, to_json(make_list(NODE, POD)))
    with pytest.raises(InputError) as caught:
        check_nodes(recording)
    assert str(caught.value).endswith(
        "Node n1: status.allocatable: is missing; add it, such as {cpu: 4, memory: 8Gi, pods: 110}"
    )
    check_nodes(read_cluster(tmp_path, to_json({**NODE, "status": {"capacity": {"cpu": "4"}}})))


def test_a_recorded_node_may_wait_for_its_first_status(tmp_path: Path) -> None:
    recorded_node = {**NODE, "metadata": {**NODE["metadata"], "uid": "u-1"}}
    check_nodes(read_cluster(tmp_path, to_json(recorded_node)))


def test_the_kinds_of_objects_and_of_empty_typed_lists_are_recorded(tmp_path: Path) -> None:
    empty = {"apiVersion": "v1", "kind": "ServiceList", "items": []}
    assert read_cluster(tmp_path, to_json(NODE) + to_json(empty)).recorded_kinds == {"Node", "Service"}


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ({"recordedKinds": "Node"}, "recordedKinds: want a list of kinds"),
        ({"unreadableKinds": ["Node"]}, "unreadableKinds: want a mapping of kinds to reasons"),
    ],
)
def test_a_malformed_list_of_recorded_kinds_is_an_error(tmp_path: Path, field: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_cluster(tmp_path, to_json({**make_list(NODE), **field}))
    assert str(caught.value).endswith(message)
