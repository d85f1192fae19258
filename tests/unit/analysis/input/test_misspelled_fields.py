"""Misspelled fields of manifests are found; fields that scheduling does not read are accepted."""

from typing import Any

import pytest
import yaml

from extender.analysis.input.input_errors import InputError
from extender.analysis.input.misspelled_fields import _find_similar_field, find_misspelled_fields
from extender.analysis.input.workloads import Workload
from extender.analysis.recorded_cluster import read_recording
from extender.api.kinds.pod import Pod

NO_RESOURCE = (
    "is no resource of a container; want cpu, memory, ephemeral-storage, hugepages-SIZE, "
    "or a name with a domain such as nvidia.com/gpu"
)

MISSPELLED = {
    "a field of the spec": (
        {"spec": {"container": []}},
        [("spec.container", 'is no field; did you mean "containers"?')],
    ),
    "the wrong case": (
        {"spec": {"nodeselector": {}}},
        [("spec.nodeselector", 'is no field; did you mean "nodeSelector"?')],
    ),
    "a field in a list": (
        {"spec": {"containers": [{}, {"resources": {"requets": {}}}]}},
        [("spec.containers[1].resources.requets", 'is no field; did you mean "requests"?')],
    ),
    "requests outside of the resources": (
        {"spec": {"containers": [{"requests": {"cpu": 1}}]}},
        [("spec.containers[0].requests", "is no field; did you mean resources.requests?")],
    ),
    "containers outside of the spec": (
        {"metadata": {"name": "a"}, "containers": [{"name": "a"}]},
        [("containers", "is no field; did you mean spec.containers?")],
    ),
    "a resource": (
        {"spec": {"containers": [{"resources": {"requests": {"cpus": 1}}}]}},
        [("spec.containers[0].resources.requests.cpus", NO_RESOURCE)],
    ),
    "a resource without a domain": (
        {"spec": {"containers": [{"resources": {"limits": {"gpu": 1}}}]}},
        [("spec.containers[0].resources.limits.gpu", NO_RESOURCE)],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("value", "errors"), MISSPELLED.values(), ids=MISSPELLED)
def test_a_misspelled_name_is_found(value: dict[str, Any], errors: list[tuple[str, str]]) -> None:
    assert list(find_misspelled_fields(value, Pod)) == errors


def test_a_misspelled_field_of_a_template_is_found() -> None:
    value: dict[str, Any] = {"spec": {"template": {"spec": {"toleration": []}}}}
    assert list(find_misspelled_fields(value, Workload)) == [
        ("spec.template.spec.toleration", 'is no field; did you mean "tolerations"?')
    ]


def test_containers_outside_of_the_spec_of_a_template_are_found() -> None:
    value: dict[str, Any] = {"spec": {"template": {"containers": []}}}
    assert list(find_misspelled_fields(value, Workload)) == [
        ("spec.template.containers", "is no field; did you mean spec.containers?")
    ]


ACCEPTED = yaml.safe_load("""
apiVersion: v1
kind: Pod
metadata: {name: a, labels: {nmae: a}, annotations: {container: b}, finalizers: []}
spec:
  serviceAccount: a
  dnsPolicy: ClusterFirst
  hostAliases: []
  readinessGates: []
  ephemeralContainers: []
  securityContext: {fsGroup: 1}
  volumes: [{name: a, nfs: {path: /}}, {name: b, fc: {}}, {name: c, secret: {}}, {name: d, emptyDir: {}}]
  containers:
  - args: [a]
    env: [{name: a}]
    envFrom: []
    tty: true
    stdin: true
    stdinOnce: true
    command: [a]
    lifecycle: {}
    imagePullPolicy: Always
    volumeMounts: [{name: a, mountPath: /, subPath: b}]
    resources: {requests: {cpu: 1, memory: 1, ephemeral-storage: 1, hugepages-2Mi: 1, example.com/gpus: 1}}
""")


def test_fields_that_scheduling_does_not_read_are_accepted() -> None:
    assert list(find_misspelled_fields(ACCEPTED, Pod)) == []


def test_a_field_beside_the_one_that_it_resembles_is_accepted() -> None:
    assert list(find_misspelled_fields({"spec": {"container": [], "containers": []}}, Pod)) == []


def test_repeated_unknown_fields_are_compared_once() -> None:
    value = {"spec": {"containers": [{"lifecycel": {}, "dnsPolicy": ""}] * 1000}}
    _find_similar_field.cache_clear()
    assert list(find_misspelled_fields(value, Pod)) == []
    assert _find_similar_field.cache_info().misses == 2


def test_a_long_name_is_neither_compared_nor_cached() -> None:
    _find_similar_field.cache_clear()
    assert list(find_misspelled_fields({"spec": {"x" * 65: 1}}, Pod)) == []
    assert _find_similar_field.cache_info().currsize == 0


def test_a_file_with_a_misspelled_field_is_an_error(tmp_path: Any) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text('{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"container": []}}')
    with pytest.raises(InputError) as caught:
        read_recording([str(file)])
    assert str(caught.value) == f'{file}: Pod default/a: spec.container: is no field; did you mean "containers"?'


def test_an_object_of_an_api_server_is_not_checked(tmp_path: Any) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text('{apiVersion: v1, kind: Pod, metadata: {name: a, uid: "1"}, spec: {container: []}}')
    assert len(read_recording([str(file)]).objects) == 1
