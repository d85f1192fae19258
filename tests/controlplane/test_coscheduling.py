"""Pod groups of the coscheduling plugin on a real API server with their CustomResourceDefinition."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from time import monotonic, sleep
from typing import Any, Final

import pytest

from tests.controlplane.api_client import ApiClient, ApiStatusError, JsonObject
from tests.controlplane.conftest import running_control_plane
from tests.controlplane.control_plane import ADMIN, SCHEDULER, ControlPlane
from tests.controlplane.process import Process
from tests.controlplane.programs import make_extender_command
from tests.controlplane.scheduler_processes import (
    create_all,
    make_configuration,
    make_nodes,
    make_pods,
    start_scheduler,
)

GROUP: Final = "scheduling.x-k8s.io"
GROUPS: Final = f"/apis/{GROUP}/v1alpha1/namespaces/default/podgroups"
DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DEFINITION_NAME: Final = f"podgroups.{GROUP}"
DEFINITION: Final = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": DEFINITION_NAME,
        "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/scheduler-plugins/pull/50"},
    },
    "spec": {
        "group": GROUP,
        "names": {"kind": "PodGroup", "listKind": "PodGroupList", "plural": "podgroups", "singular": "podgroup"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "minMember": {"type": "integer", "format": "int32", "minimum": 1},
                                    "scheduleTimeoutSeconds": {"type": "integer", "format": "int32"},
                                },
                            },
                            "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
                        },
                    }
                },
            }
        ],
    },
}
PLUGINS: Final = {
    "multiPoint": {"enabled": [{"name": "Coscheduling"}]},
    "queueSort": {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "*"}]},
}


@pytest.fixture(scope="module")
def control_plane(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """Run an API server without the gates of pod groups, whose scheduler may read those of the plugin."""
    with running_control_plane(tmp_path_factory.mktemp("coscheduling"), request.session) as plane:
        meta = {"name": "read-podgroups"}
        rules = [{"apiGroups": [GROUP], "resources": ["podgroups"], "verbs": ["list", "watch"]}]
        subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": SCHEDULER}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "read-podgroups"}
        with plane.client() as api:
            rbac = "/apis/rbac.authorization.k8s.io/v1"
            api.call("POST", f"{rbac}/clusterroles", {"metadata": meta, "rules": rules})
            api.call("POST", f"{rbac}/clusterrolebindings", {"metadata": meta, "subjects": [subject], "roleRef": role})
        yield plane


@pytest.fixture
def definition(api: ApiClient) -> Iterator[None]:
    """Install the CustomResourceDefinition, and wait until its objects are served."""
    install_definition(api)
    yield
    api.call("DELETE", f"{DEFINITIONS}/{DEFINITION_NAME}")
    wait_until_served(api, is_served=False)


def install_definition(api: ApiClient) -> None:
    api.call("POST", DEFINITIONS, DEFINITION)
    wait_until_served(api, is_served=True)


def wait_until_served(api: ApiClient, *, is_served: bool) -> None:
    deadline = monotonic() + 60
    while can_list(api) is not is_served:
        assert monotonic() < deadline
        sleep(0.1)


def can_list(api: ApiClient) -> bool:
    try:
        api.call("GET", GROUPS)
    except ApiStatusError:
        return False
    return True


def create_group(api: ApiClient, min_member: int) -> None:
    spec = {"minMember": min_member, "scheduleTimeoutSeconds": 10}
    head = {"apiVersion": f"{GROUP}/v1alpha1", "kind": "PodGroup", "metadata": {"name": "train"}}
    api.call("POST", GROUPS, {**head, "spec": spec})


def create_members(api: ApiClient, *numbers: int) -> None:
    """Create members of which a node has room for one."""
    container = {"name": "app", "image": "app", "resources": {"requests": {"cpu": "3"}}}
    spec = {"terminationGracePeriodSeconds": 0, "containers": [container]}
    for number in numbers:
        meta = {"name": f"member-{number}", "labels": {f"{GROUP}/pod-group": "train"}}
        api.create({"kind": "Pod", "metadata": meta, "spec": spec})


def start(plane: ControlPlane) -> Process:
    configuration = make_configuration(plane)
    profiles: list[dict[str, Any]] = [{"schedulerName": "default-scheduler", "plugins": PLUGINS}]
    return start_scheduler(plane, {**configuration, "profiles": profiles})


def wait_for_nodes(api: ApiClient, nodes: list[str]) -> None:
    """Wait until the pods have these nodes, sorted; the empty string is no node."""

    def have_nodes(pods: Mapping[str, JsonObject]) -> bool:
        return sorted(pod["spec"].get("nodeName", "") for pod in pods.values()) == nodes

    api.wait_until("Pod", have_nodes, f"nodes {nodes}")


@pytest.mark.usefixtures("definition")
def test_the_members_of_a_group_are_placed_together_once_all_exist(api: ApiClient, control_plane: ControlPlane) -> None:
    create_all(api, make_nodes(3))
    start(control_plane)
    create_group(api, 3)
    create_members(api, 0, 1)
    create_all(api, make_pods("single", 1))
    api.wait_until("Pod", lambda pods: any("nodeName" in pod["spec"] for pod in pods.values()), "the single pod")
    assert sum("nodeName" in pod["spec"] for pod in json.loads(api.list("Pod"))["items"]) == 1

    create_members(api, 2)

    api.wait_until("Pod", lambda pods: all("nodeName" in pod["spec"] for pod in pods.values()), "all pods")
    members = [pod for pod in json.loads(api.list("Pod"))["items"] if pod["metadata"]["name"] != "single-0"]
    assert sorted(pod["spec"]["nodeName"] for pod in members) == ["node-0", "node-1", "node-2"]
    assert "status" not in json.loads(api.call("GET", f"{GROUPS}/train"))


@pytest.mark.usefixtures("definition")
def test_a_group_without_room_waits_and_explain_says_what_is_missing(
    api: ApiClient, control_plane: ControlPlane
) -> None:
    create_all(api, make_nodes(2))
    start(control_plane)
    create_group(api, 3)
    create_members(api, 0, 1, 2)

    def is_rejected(pods: Mapping[str, JsonObject]) -> bool:
        conditions = [condition for pod in pods.values() for condition in pod.get("status", {}).get("conditions", ())]
        return any("pod group is unschedulable" in condition["message"] for condition in conditions)

    api.wait_until("Pod", is_rejected, "the condition of the pods")
    wait_for_nodes(api, ["", "", ""])

    text = explain(control_plane)
    assert "scheduled together with 2 other pods" in text
    assert "the group needs 3 pods with a node at the same time: 0 placed, 2 fitting, 1 missing" in text
    api.create(make_nodes(3)[2])
    wait_for_nodes(api, ["node-0", "node-1", "node-2"])


def explain(plane: ControlPlane) -> str:
    """Return the explanation of a member by the live cluster."""
    file = plane.folder / "explain.json"
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    file.write_text(json.dumps({**head, "profiles": [{"plugins": PLUGINS}]}))
    command = make_extender_command(
        "explain", f"--kubeconfig={plane.write_kubeconfig(ADMIN)}", f"--config={file}", "member-2"
    )
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=120).stdout


def test_a_cluster_without_the_definition_is_named_until_it_is_installed(
    api: ApiClient, control_plane: ControlPlane
) -> None:
    create_all(api, make_nodes(1))
    process = start(control_plane)
    process.wait_for_output("the cluster does not serve podgroups of scheduling.x-k8s.io/v1alpha1; install the")
    install_definition(api)
    create_group(api, 1)
    create_members(api, 0)
    wait_for_nodes(api, ["node-0"])
    api.call("DELETE", f"{DEFINITIONS}/{DEFINITION_NAME}")
    wait_until_served(api, is_served=False)
