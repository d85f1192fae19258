"""Manifests that an API server would refuse: each error names the field, and says what is expected."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from extender.analysis.input.input_errors import InputError
from extender.analysis.recorded_cluster import parse_recording, read_recording

DNS_NAME = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'example.com', regex used for validation is"
    r" '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
DNS_LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with"
    " an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is"
    " '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
EFFECTS = 'supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"'


def make_manifest(kind: str, **fields: Any) -> dict[str, Any]:
    versions = {"Deployment": "apps/v1", "ReplicaSet": "apps/v1"}
    versions |= {"Job": "batch/v1", "PriorityClass": "scheduling.k8s.io/v1"}
    return {"apiVersion": versions.get(kind, "v1"), "kind": kind, "metadata": {"name": "a"}, **fields}


def make_workload(
    kind: str = "Deployment",
    *,
    selector: dict[str, Any] | None = {"matchLabels": {"app": "web"}},  # noqa: B006  not changed
    labels: dict[str, str] = {"app": "web"},  # noqa: B006  not changed
    spec: dict[str, Any] = {"containers": [{"name": "app"}]},  # noqa: B006  not changed
) -> dict[str, Any]:
    return make_manifest(kind, spec={"selector": selector, "template": {"metadata": {"labels": labels}, "spec": spec}})


def make_pod(**spec: Any) -> dict[str, Any]:
    return make_manifest("Pod", spec={"containers": [{"name": "app"}], **spec})


def make_container_pod(**container: Any) -> dict[str, Any]:
    return make_pod(containers=[{"name": "app", **container}])


def make_affinity_pod(name: str, when: str, value: Any) -> dict[str, Any]:
    return make_pod(affinity={name: {f"{when}DuringSchedulingIgnoredDuringExecution": value}})


def make_node_affinity_pod(**term: Any) -> dict[str, Any]:
    return make_affinity_pod("nodeAffinity", "required", {"nodeSelectorTerms": [term]})


def find_errors(tmp_path: Path, *manifests: dict[str, Any]) -> list[str]:
    """Return the errors of a file with *manifests*, without the file and the object."""
    file = tmp_path / "c.json"
    file.write_bytes(b"\n".join(map(msgspec.json.encode, manifests)))
    try:
        read_recording([str(file)])
    except InputError as error:
        return [line.path + ": " + line.message for line in error.errors]
    return []


REQUIRED_AFFINITY = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
REFUSED = {
    "a pod without containers": (
        make_manifest("Pod"),
        "spec.containers: Required value: a pod needs a container, such as {name: app, image: nginx}",
    ),
    "a name": (make_manifest("Node", metadata={"name": "N_1"}), f'metadata.name: Invalid value: "N_1": {DNS_NAME}'),
    "a namespace": (
        {**make_pod(), "metadata": {"name": "a", "namespace": "a.b"}},
        f'metadata.namespace: Invalid value: "a.b": {DNS_LABEL}',
    ),
    "a long namespace": (
        {**make_pod(), "metadata": {"name": "a", "namespace": "n" * 64}},
        f'metadata.namespace: Invalid value: "{"n" * 64}": must be no more than 63 bytes',
    ),
    "a label key with two slashes": (
        {**make_pod(), "metadata": {"name": "a", "labels": {"a/b/c": "x"}}},
        'metadata.labels: Invalid value: "a/b/c": a valid label key must consist of alphanumeric characters, '
        "'-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or "
        "'123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS "
        "subdomain prefix and '/' (e.g. 'example.com/MyName')",
    ),
    "a long label value": (
        {**make_pod(), "metadata": {"name": "a", "labels": {"app": "v" * 64}}},
        f'metadata.labels: Invalid value: "{"v" * 64}": must be no more than 63 bytes',
    ),
    "a long value of a node selector": (
        make_pod(nodeSelector={"app": "v" * 64}),
        f'spec.nodeSelector: Invalid value: "{"v" * 64}": must be no more than 63 bytes',
    ),
    "two containers of one name": (
        make_pod(containers=[{"name": "app"}, {"name": "app"}]),
        'spec.containers[1].name: Duplicate value: "app"',
    ),
    "an init container with the name of a container": (
        make_pod(initContainers=[{"name": "app"}]),
        'spec.containers[0].name: Duplicate value: "app"',
    ),
    "a part of a GPU": (
        make_container_pod(resources={"requests": {"example.com/gpu": "0.5"}}),
        'spec.containers[0].resources.requests.example.com/gpu: Invalid value: "0.5": must be an integer',
    ),
    "a request above the limit": (
        make_container_pod(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1500m"}}),
        'spec.containers[0].resources.requests.cpu: Invalid value: "2": '
        "must be less than or equal to cpu limit of 1500m",
    ),
    "a request of GPUs below the limit": (
        make_container_pod(resources={"requests": {"example.com/gpu": 1}, "limits": {"example.com/gpu": 2}}),
        "spec.containers[0].resources.requests.example.com/gpu: Invalid value: 1: "
        "must be equal to example.com/gpu limit of 2",
    ),
    "a part of a huge page": (
        make_container_pod(resources={"limits": {"hugepages-2Mi": "3Mi"}}),
        'spec.containers[0].resources.limits.hugepages-2Mi: Invalid value: "3Mi": '
        "must be a multiple of the page size 2Mi",
    ),
    "a request of the pod above its limit": (
        make_pod(resources={"requests": {"memory": "2Gi"}, "limits": {"memory": "1Gi"}}),
        'spec.resources.requests.memory: Invalid value: "2Gi": must be less than or equal to memory limit of 1Gi',
    ),
    "a host port": (
        make_container_pod(ports=[{"containerPort": 80, "hostPort": 70000}]),
        "spec.containers[0].ports[0].hostPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
    ),
    "a protocol": (
        make_container_pod(ports=[{"containerPort": 80, "protocol": "tcp"}]),
        'spec.containers[0].ports[0].protocol: Unsupported value: "tcp": supported values: "SCTP", "TCP", "UDP"',
    ),
    "a restart policy of a container": (
        make_pod(initContainers=[{"name": "proxy", "restartPolicy": "always"}]),
        'spec.initContainers[0].restartPolicy: Unsupported value: "always": '
        'supported values: "Always", "OnFailure", "Never"',
    ),
    "a restart policy": (
        make_pod(restartPolicy="Sometimes"),
        'spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"',
    ),
    "a preemption policy": (
        make_pod(preemptionPolicy="never"),
        'spec.preemptionPolicy: Unsupported value: "never": supported values: "PreemptLowerPriority", "Never"',
    ),
    "two scheduling gates of one name": (
        make_pod(schedulingGates=[{"name": "a"}, {"name": "a"}]),
        'spec.schedulingGates[1]: Duplicate value: "a"',
    ),
    "a scheduling gate with a long name": (
        make_pod(schedulingGates=[{"name": "g" * 64}]),
        f'spec.schedulingGates[0]: Invalid value: "{"g" * 64}": name part must be no more than 63 bytes',
    ),
    "a maximum skew of 0": (
        make_pod(topologySpreadConstraints=[{**SPREAD, "maxSkew": 0}]),
        "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
    ),
    "a spread constraint without a key": (
        make_pod(topologySpreadConstraints=[{**SPREAD, "topologyKey": ""}]),
        "spec.topologySpreadConstraints[0].topologyKey: Required value: can not be empty",
    ),
    "a spread constraint without an action": (
        make_pod(topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": "zone"}]),
        'spec.topologySpreadConstraints[0].whenUnsatisfiable: Required value: supported values: "DoNotSchedule", '
        '"ScheduleAnyway"',
    ),
    "a spread constraint twice": (
        make_pod(topologySpreadConstraints=[SPREAD, {**SPREAD, "maxSkew": 2}]),
        'spec.topologySpreadConstraints[1].{topologyKey, whenUnsatisfiable}: Duplicate value: "{zone, DoNotSchedule}"',
    ),
    "no minimum of domains": (
        make_pod(topologySpreadConstraints=[{**SPREAD, "minDomains": 0}]),
        "spec.topologySpreadConstraints[0].minDomains: Invalid value: 0: must be greater than zero",
    ),
    "a minimum of domains that has no effect": (
        make_pod(topologySpreadConstraints=[{**SPREAD, "whenUnsatisfiable": "ScheduleAnyway", "minDomains": 2}]),
        "spec.topologySpreadConstraints[0].minDomains: Invalid value: 2: "
        "can only use minDomains if whenUnsatisfiable=DoNotSchedule",
    ),
    "a policy for tainted nodes": (
        make_pod(topologySpreadConstraints=[{**SPREAD, "nodeTaintsPolicy": "Refuse"}]),
        'spec.topologySpreadConstraints[0].nodeTaintsPolicy: Unsupported value: "Refuse": '
        'supported values: "Honor", "Ignore"',
    ),
    "a selector of a spread constraint without values": (
        make_pod(
            topologySpreadConstraints=[
                {**SPREAD, "labelSelector": {"matchExpressions": [{"key": "app", "operator": "In"}]}}
            ]
        ),
        "spec.topologySpreadConstraints[0].labelSelector.matchExpressions[0].values: Required value: "
        "must be specified when `operator` is 'In' or 'NotIn'",
    ),
    "a toleration of all keys with a value": (
        make_pod(tolerations=[{"operator": "Equal", "value": "x"}]),
        'spec.tolerations[0].operator: Invalid value: "Equal": operator must be Exists when `key` is empty, '
        'which means "match all values and all keys"',
    ),
    "a toleration of existence with a value": (
        make_pod(tolerations=[{"key": "a", "operator": "Exists", "value": "x"}]),
        "spec.tolerations[0].value: Invalid value: \"x\": must be empty when `operator` is 'Exists'",
    ),
    "a limited toleration of another effect": (
        make_pod(tolerations=[{"key": "a", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 5}]),
        'spec.tolerations[0].effect: Invalid value: "NoSchedule": '
        "must be 'NoExecute' when `tolerationSeconds` is set",
    ),
    "an effect of a toleration": (
        make_pod(tolerations=[{"key": "a", "operator": "Exists", "effect": "noSchedule"}]),
        f'spec.tolerations[0].effect: Unsupported value: "noSchedule": {EFFECTS}',
    ),
    "a node affinity without terms": (
        make_affinity_pod("nodeAffinity", "required", {"nodeSelectorTerms": []}),
        f"{REQUIRED_AFFINITY}.nodeSelectorTerms: Required value: must have at least one node selector term",
    ),
    "values of an existence": (
        make_node_affinity_pod(matchExpressions=[{"key": "a", "operator": "Exists", "values": ["b"]}]),
        f"{REQUIRED_AFFINITY}.nodeSelectorTerms[0].matchExpressions[0].values: "
        "Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
    ),
    "two values of a comparison": (
        make_node_affinity_pod(matchExpressions=[{"key": "a", "operator": "Gt", "values": ["1", "2"]}]),
        f"{REQUIRED_AFFINITY}.nodeSelectorTerms[0].matchExpressions[0].values: Required value: "
        "must be specified single value when `operator` is 'Lt' or 'Gt'",
    ),
    "an unknown field of a node": (
        make_node_affinity_pod(matchFields=[{"key": "spec.unschedulable", "operator": "In", "values": ["false"]}]),
        f"{REQUIRED_AFFINITY}.nodeSelectorTerms[0].matchFields[0].key: "
        'Invalid value: "spec.unschedulable": not a valid field selector key; want metadata.name',
    ),
    "two names of a node": (
        make_node_affinity_pod(matchFields=[{"key": "metadata.name", "operator": "In", "values": ["a", "b"]}]),
        f"{REQUIRED_AFFINITY}.nodeSelectorTerms[0].matchFields[0].values: Required value: "
        "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
    ),
    "a weight of a node": (
        make_affinity_pod("nodeAffinity", "preferred", [{"weight": 101, "preference": {}}]),
        "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: "
        "Invalid value: 101: must be in the range 1-100",
    ),
    "a weight of a pod affinity": (
        make_affinity_pod("podAffinity", "preferred", [{"podAffinityTerm": {"topologyKey": "zone"}}]),
        "spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: "
        "Invalid value: 0: must be in the range 1-100",
    ),
    "a pod affinity without a key": (
        make_affinity_pod("podAntiAffinity", "required", [{"labelSelector": {"matchLabels": {"app": "a"}}}]),
        "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: "
        "Required value: can not be empty",
    ),
    "a deployment without a template": (
        make_manifest("Deployment", spec={"replicas": 3}),
        "spec.template: Required value: without it, the workload has no pods",
    ),
    "a template without containers": (
        make_workload(spec={"restartPolicy": "Always"}),
        "spec.template.spec.containers: Required value: a pod needs a container, such as {name: app, image: nginx}",
    ),
    "a label of a template": (
        make_workload(labels={"app": "web", "long": "v" * 64}),
        f'spec.template.metadata.labels: Invalid value: "{"v" * 64}": must be no more than 63 bytes',
    ),
    "a deployment without a selector": (
        make_workload(selector=None),
        "spec.selector: Required value: the labels of its pods, such as {matchLabels: {app: web}}",
    ),
    "an empty selector": (
        make_workload("ReplicaSet", selector={}),
        "spec.selector: Invalid value: {}: empty selector is invalid for replicaset",
    ),
    "a selector of other pods": (
        make_workload(selector={"matchLabels": {"app": "wbe"}}),
        'spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`',
    ),
    "an operator of a selector": (
        make_workload(selector={"matchExpressions": [{"key": "app", "operator": "Is", "values": ["web"]}]}),
        "spec.selector.matchExpressions[0].operator: "
        'unknown operator "Is"; want one of In, NotIn, Exists, DoesNotExist',
    ),
    "a taint without an effect": (
        make_manifest("Node", spec={"taints": [{"key": "a"}]}),
        f"spec.taints[0].effect: Required value: {EFFECTS}",
    ),
    "a taint twice": (
        make_manifest(
            "Node", spec={"taints": [{"key": "a", "effect": "NoExecute"}, {"key": "a", "effect": "NoExecute"}]}
        ),
        'spec.taints[1]: Duplicate value: "a:NoExecute": taints must be unique by key and effect pair',
    ),
    "half a pod that a node allows": (
        make_manifest("Node", status={"allocatable": {"pods": "1500m"}}),
        'status.allocatable.pods: Invalid value: "1500m": must be an integer',
    ),
    "a preemption policy of a class": (
        make_manifest("PriorityClass", value=5, preemptionPolicy="Always"),
        'preemptionPolicy: Unsupported value: "Always": supported values: "PreemptLowerPriority", "Never"',
    ),
}


@pytest.mark.parametrize(("manifest", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_a_field_that_an_api_server_refuses_is_an_error(tmp_path: Path, manifest: dict[str, Any], message: str) -> None:
    assert find_errors(tmp_path, manifest) == [message]


def test_a_selector_of_the_wrong_type_is_an_error(tmp_path: Path) -> None:
    manifest = make_workload(selector={"matchLabels": ["app"]})
    assert find_errors(tmp_path, manifest) == ["spec.selector.matchLabels: Expected `object`, got `array`"]


@pytest.mark.parametrize("kind", ["Job", "ReplicationController"])
def test_a_selector_that_the_api_server_sets_may_be_missing(tmp_path: Path, kind: str) -> None:
    assert find_errors(tmp_path, make_workload(kind, selector=None)) == []


@pytest.mark.parametrize(("manifest", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_an_object_of_an_api_server_is_accepted(tmp_path: Path, manifest: dict[str, Any], message: str) -> None:
    del message
    manifest = {**manifest, "metadata": {**manifest["metadata"], "uid": "u"}}
    assert find_errors(tmp_path, manifest) == []


ACCEPTED = {
    "quantities of all kinds": make_container_pod(
        resources={
            "requests": {"cpu": "0.1", "memory": "1.5Gi", "example.com/gpu": "2", "hugepages-2Mi": "4Mi"},
            "limits": {"cpu": 1, "example.com/gpu": 2, "hugepages-2Mi": "4194304"},
        }
    ),
    "a toleration of everything": make_pod(tolerations=[{"operator": "Exists"}]),
    "constraints on one key": make_pod(
        topologySpreadConstraints=[
            {**SPREAD, "minDomains": 2, "nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor"},
            {**SPREAD, "whenUnsatisfiable": "ScheduleAnyway"},
        ]
    ),
    "a node by its name": make_node_affinity_pod(
        matchFields=[{"key": "metadata.name", "operator": "In", "values": ["n1"]}]
    ),
    "a replica set that selects pods": make_manifest("ReplicaSet", spec={"selector": {"matchLabels": {"app": "a"}}}),
    "a sidecar and a host port": make_pod(
        initContainers=[{"name": "proxy", "restartPolicy": "Always"}],
        containers=[{"name": "app", "ports": [{"containerPort": 80, "hostPort": 8080, "protocol": "UDP"}]}],
        schedulingGates=[{"name": "example.com/quota"}],
        preemptionPolicy="Never",
        restartPolicy="OnFailure",
    ),
}


@pytest.mark.parametrize("manifest", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_valid_manifests_are_accepted(tmp_path: Path, manifest: dict[str, Any]) -> None:
    assert find_errors(tmp_path, manifest) == []


def test_a_misspelled_field_is_the_only_error_of_its_pod(tmp_path: Path) -> None:
    pod = make_manifest("Pod", spec={"container": [{"name": "app"}]})
    assert find_errors(tmp_path, pod) == ['spec.container: is no field; did you mean "containers"?']


def test_the_text_of_a_plugin_test_is_not_checked() -> None:
    recording = parse_recording(msgspec.json.encode(make_manifest("Pod")), "cluster of the test")
    assert [obj.metadata.name for obj in recording.objects] == ["a"]
