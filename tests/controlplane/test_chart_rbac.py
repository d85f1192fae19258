"""The chart's roles on a real API server: every permission is used, and no request needs another one."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Final

import httpx2
import pytest
import yaml

from tests.chart.helm import index_by_name, render_chart
from tests.controlplane import programs, scheduling_scenario
from tests.controlplane.api_client import ApiClient, ApiStatusError, JsonObject, object_key
from tests.controlplane.control_plane import EXTENDER, SCHEDULER, ControlPlane
from tests.controlplane.process import free_ports
from tests.controlplane.programs import make_extender_command
from tests.controlplane.view_only_role import run_audited_control_plane

NAMESPACE: Final = "extender"
TIMEOUT: Final = 30.0
POLL_INTERVAL: Final = 0.1
RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
CONFIGURATION: Final[dict[str, Any]] = {
    "profiles": [{"pluginConfig": [{"name": "VolumeBinding", "args": {"bindTimeoutSeconds": 2}}]}]
}

DISABLED_PLUGINS: Final = ("VolumeBinding", "DynamicResources", "NodeResourcesFit")
"""The plugins that kube-scheduler disables in favour of an extender that binds."""

Permission = tuple[str, str, str]
"""Group, resource and verb."""


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Run a control plane that audits every request of our service account."""
    with run_audited_control_plane(tmp_path_factory.mktemp("control-plane")) as plane:
        yield plane


class ChartRoles:
    """The chart's roles and bindings for our service account, created at the API server."""

    def __init__(self, plane: ControlPlane, api: ApiClient, folder: Path, **values: Any) -> None:
        file = folder / "values.yaml"
        file.write_text(yaml.safe_dump({"fullnameOverride": "extender", **values}))
        self._api = api
        self.audit_start = plane.audit_log.stat().st_size
        self.objects = index_by_name(render_chart(file, namespace=NAMESPACE))
        api.create({"kind": "Namespace", "metadata": {"name": NAMESPACE}})
        self._paths = []
        for obj in self.objects.values():
            if obj["apiVersion"].startswith("rbac."):
                space = obj["metadata"].get("namespace")
                prefix = f"{RBAC}/namespaces/{space}/" if space else f"{RBAC}/"
                plural = f"{obj['kind'].lower()}s"
                api.call("POST", prefix + plural, obj)
                self._paths.append(f"{prefix}{plural}/{obj['metadata']['name']}")

    @property
    def permissions(self) -> set[Permission]:
        """All permissions of the roles."""
        roles = [obj for obj in self.objects.values() if obj["kind"] in {"ClusterRole", "Role"}]
        return {
            (group, resource, verb)
            for role in roles
            for rule in role["rules"]
            for group in rule["apiGroups"]
            for resource in rule["resources"]
            for verb in rule["verbs"]
        }

    def delete(self) -> None:
        """Delete the roles and bindings."""
        for path in self._paths:
            self._api.call("DELETE", path)


def used_permissions(plane: ControlPlane, since: int) -> dict[Permission, set[int]]:
    """Return the permissions that our requests needed, from byte *since* of the audit log on, with status codes."""
    used: dict[Permission, set[int]] = {}
    for line in plane.audit_log.read_bytes()[since:].splitlines():
        event = json.loads(line)
        object_reference = event.get("objectRef", {})
        if event["user"]["username"] == EXTENDER and "resource" in object_reference:
            resource = "/".join(filter(None, (object_reference["resource"], object_reference.get("subresource"))))
            right = (object_reference.get("apiGroup", ""), resource, event["verb"])
            used.setdefault(right, set()).add(event["responseStatus"]["code"])
    return used


UPSTREAM_ROLE_PERMISSION: Final = ("", "configmaps", "get")
"""A permission of a built-in role that the chart only binds."""

UNLOGGED_PERMISSIONS: Final = {
    ("resource.k8s.io", "resourceclaims/binding", "patch"),
    ("resource.k8s.io", "resourceclaims", "get"),
}
"""Permissions that are not in the audit log.

The API server checks the first when a claim's status is written. The second is used after a conflict with another
writer, and after a lost response; see `tests/faults/test_claim_writes.py`.
"""

LATER_PERMISSIONS: Final = (
    {("resource.k8s.io", "devicetaintrules", verb) for verb in ("list", "watch")}
    if programs.RELEASE == "1.36"
    else set()
)
"""The permissions that only later releases use by default."""


def assert_permissions_are_used(plane: ControlPlane, roles: ChartRoles) -> None:
    """Assert that no request was forbidden, and that granted and used permissions are equal."""
    deadline = monotonic() + TIMEOUT
    expected = roles.permissions - UNLOGGED_PERMISSIONS - LATER_PERMISSIONS
    while expected - set(used := used_permissions(plane, roles.audit_start)) and monotonic() < deadline:
        sleep(POLL_INTERVAL)  # a watch is logged after it has ended
    assert {right: codes for right, codes in used.items() if 403 in codes} == {}
    assert expected - set(used) == set()
    assert set(used) - roles.permissions - {UPSTREAM_ROLE_PERMISSION} == set()


def make_cluster(api: ApiClient, plane: ControlPlane) -> None:
    """Create the cluster of the scenario and run its controllers."""
    for obj in [*scheduling_scenario.make_nodes(), *scheduling_scenario.make_cluster_objects()]:
        api.create(obj)
    plane.start_controllers(*scheduling_scenario.CONTROLLERS)
    api.wait_until("PersistentVolume", scheduling_scenario.all_volumes_available, "available volumes")


def test_the_standalone_scheduler_uses_all_its_permissions_and_lacks_none(plane: ControlPlane, tmp_path: Path) -> None:
    with plane.client() as api:
        roles = ChartRoles(plane, api, tmp_path, mode="standalone")
        port = free_ports(1)[0]
        try:
            make_cluster(api, plane)
            lease = {"leaderElect": True, "resourceName": "extender", "resourceNamespace": NAMESPACE}
            config = plane.write_configuration({**CONFIGURATION, "leaderElection": lease}, EXTENDER)
            command = make_extender_command("schedule", f"--config={config}", f"--secure-port={port}")
            ours = plane.start_program([*command, f"--authentication-kubeconfig={plane.write_kubeconfig(EXTENDER)}",
                       f"--authorization-kubeconfig={plane.write_kubeconfig(EXTENDER)}"])  # fmt: skip
            scheduling_scenario.run(api)
            check_event_series(api)
            check_extended_resource_claim(api)
            assert get_metrics_status(plane, f"https://127.0.0.1:{port}") == 403
            plane.stop_program(ours)
            assert_permissions_are_used(plane, roles)
        finally:
            plane.stop_other_programs()
            api.delete_created()
            roles.delete()


@pytest.mark.parametrize("bind", [False, True], ids=["without bind", "with bind"])
def test_the_service_uses_all_its_permissions_and_lacks_none(plane: ControlPlane, tmp_path: Path, bind: bool) -> None:
    """kube-scheduler leaves volumes and devices to the extender, which therefore writes their objects."""
    verbs = ["filter", "prioritize", "preempt", *(["bind"] if bind else [])]
    with plane.client() as api:
        roles = ChartRoles(plane, api, tmp_path, mode="service", extender={"verbs": verbs})
        port = free_ports(1)[0]
        try:
            make_cluster(api, plane)
            kubeconfig_flag = f"--kubeconfig={plane.write_kubeconfig(EXTENDER)}"
            ours = plane.start_program(make_extender_command("serve", kubeconfig_flag, f"--port={port}"))
            url = f"http://127.0.0.1:{port}"
            verb_fields = {f"{verb}Verb": verb for verb in verbs} | {"weight": 1, "nodeCacheCapable": True}
            disabled = [{"name": name} for name in (DISABLED_PLUGINS if bind else ())]
            profile = {"plugins": {"multiPoint": {"disabled": disabled}}}
            plane.start_kube_scheduler({"extenders": [{"urlPrefix": url, **verb_fields}], "profiles": [profile]})
            create_and_wait(api, scheduling_scenario.make_pod("plain"))
            if bind:
                create_and_wait(api, scheduling_scenario.make_pod("volume", **scheduling_scenario.volume_spec("local")))
                create_and_wait(
                    api, scheduling_scenario.make_pod("device", node="gamma", **scheduling_scenario.device_spec("gpu"))
                )
                check_extended_resource_claim(api)
                check_selected_node(api)
            assert get_metrics_status(plane, url) == 403
            plane.stop_program(ours)
            assert_permissions_are_used(plane, roles)
        finally:
            plane.stop_other_programs()
            api.delete_created()
            roles.delete()


@pytest.mark.parametrize(
    ("values", "binds"),
    [
        pytest.param({"mode": "standalone", "permissions": {"hami": True}}, False, id="standalone"),
        pytest.param(
            {
                "mode": "service",
                "extender": {"verbs": ["filter", "bind"]},
                "permissions": {"hami": True, "dynamicResources": False},
            },
            True,
            id="service that binds",
        ),
    ],
)
def test_gpu_share_may_write_the_gpus_and_the_lock_of_hami(
    plane: ControlPlane, tmp_path: Path, values: dict[str, Any], binds: bool
) -> None:
    """The node has a GPU that HAMi's device plugin registered. No request is forbidden."""
    ignored = {"ignoredResources": ["nvidia.com/gpumem"]}
    profile = {
        "plugins": {"multiPoint": {"enabled": [{"name": "GpuShare"}], "disabled": [{"name": "DynamicResources"}]}},
        "pluginConfig": [{"name": "NodeResourcesFit", "args": ignored}],
    }
    with plane.client() as api:
        roles = ChartRoles(plane, api, tmp_path, **values)
        try:
            api.create(make_hami_node())
            # start_kube_scheduler writes its configuration to the same file
            config = plane.write_configuration({"profiles": [profile]}, EXTENDER).rename(tmp_path / "config.json")
            if binds:
                port = free_ports(1)[0]
                kubeconfig_flag = f"--kubeconfig={plane.write_kubeconfig(EXTENDER)}"
                command = make_extender_command("serve", kubeconfig_flag, f"--config={config}", f"--port={port}")
                plane.start_program(command)
                entry = {"urlPrefix": f"http://127.0.0.1:{port}", "filterVerb": "filter", "bindVerb": "bind"}
                kube_profile = {"pluginConfig": profile["pluginConfig"]}
                plane.start_kube_scheduler(
                    {"extenders": [{**entry, "nodeCacheCapable": True}], "profiles": [kube_profile]}
                )
            else:
                plane.start_program(make_extender_command("schedule", f"--config={config}", "--secure-port=0"))
            limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "4000"}
            pod = scheduling_scenario.make_pod("shared")
            pod["spec"]["containers"][0]["resources"] = {"limits": limits, "requests": {"cpu": "100m", **limits}}
            create_and_wait(api, pod)
            expected, deadline = {("", "nodes", "patch"), ("", "pods/status", "patch")}, monotonic() + TIMEOUT
            while expected - set(used := used_permissions(plane, roles.audit_start)) and monotonic() < deadline:
                sleep(POLL_INTERVAL)
            assert {right: codes for right, codes in used.items() if 403 in codes} == {}
            assert expected <= set(used)
            assert api.get("Node", "gpu")["metadata"]["annotations"]["hami.io/mutex.lock"].endswith(",default,shared")
        finally:
            plane.stop_other_programs()
            api.delete_created()
            roles.delete()


def make_hami_node() -> JsonObject:
    """Make a node with a GPU as HAMi's device plugin registers it."""
    gpu = {"id": "GPU-1", "count": 10, "devmem": 16000, "devcore": 100, "type": "NVIDIA-T4", "health": True}
    capacity = {"cpu": "4", "memory": "8Gi", "pods": "30", "nvidia.com/gpu": "10"}
    metadata = {"name": "gpu", "annotations": {"hami.io/node-nvidia-register": json.dumps([gpu])}}
    return {"kind": "Node", "metadata": metadata, "status": {"capacity": capacity, "allocatable": capacity}}


def check_selected_node(api: ApiClient) -> None:
    """A pod whose volume must be provisioned: its claim gets the annotation of the selected node."""
    api.create(scheduling_scenario.make_pod("promised", node="alpha", **scheduling_scenario.volume_spec("nobody")))
    annotation = "volume.kubernetes.io/selected-node"

    def has_selected_node(claims: Mapping[str, JsonObject]) -> bool:
        return claims["default/nobody"]["metadata"].get("annotations", {}).get(annotation) == "alpha"

    api.wait_until("PersistentVolumeClaim", has_selected_node, "the annotation of the selected node")


def create_and_wait(api: ApiClient, manifest: JsonObject) -> None:
    """Create a pod and wait for its binding."""
    name = object_key(api.create(manifest))
    # On a busy machine the extender may time out; then kube-scheduler retries the pod after its backoff.
    api.wait_until("Pod", lambda pods: bool(pods[name]["spec"].get("nodeName")), f"binding {name}", 3 * TIMEOUT)


def get_metrics_status(plane: ControlPlane, url: str) -> int:
    """Return the status of /metrics for a user without permission."""
    with httpx2.Client(verify=False) as client:
        token = {"Authorization": f"Bearer {plane.token(SCHEDULER)}"}
        return client.get(f"{url}/metrics", headers=token).status_code


def check_event_series(api: ApiClient) -> None:
    """Repeated rejections of a pod with the same message become one event series."""
    capacity = {"cpu": "4", "memory": "8Gi", "pods": "30"}
    node_manifest = {
        "kind": "Node",
        "metadata": {"name": "late", "labels": {scheduling_scenario.HOST: "late"}},
    }
    api.create(scheduling_scenario.make_pod("again", "100", node="late"))
    deadline = monotonic() + TIMEOUT
    while not any(event.get("series") for event in _events(api, "again")):
        assert monotonic() < deadline, _events(api, "again")
        node = api.create({**node_manifest, "status": {"capacity": capacity, "allocatable": capacity}})
        event_count = len(_events(api, "again"))
        pause_end = monotonic() + 3  # the backoff of the pod takes a second or two
        while monotonic() < pause_end and len(_events(api, "again")) == event_count:
            sleep(POLL_INTERVAL)
        api.delete(node)


def _events(api: ApiClient, pod: str) -> list[JsonObject]:
    listed = json.loads(api.call("GET", "/apis/events.k8s.io/v1/namespaces/default/events"))["items"]
    return [event for event in listed if event["regarding"].get("name") == pod]


def check_extended_resource_claim(api: ApiClient) -> None:
    """A pod with an extended resource of devices gets a claim, which is deleted if the binding fails."""
    pool = {"name": "alpha", "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": f"ext-{number}"} for number in range(2)]
    slice_spec = {"driver": "ext.example.com", "nodeName": "alpha", "pool": pool, "devices": devices}
    selector = {"cel": {"expression": 'device.driver == "ext.example.com"'}}
    spec = {"selectors": [selector], "extendedResourceName": "example.com/ext"}
    api.create({"kind": "ResourceSlice", "metadata": {"name": "alpha-ext"}, "spec": slice_spec})
    api.create({"kind": "DeviceClass", "metadata": {"name": "ext"}, "spec": spec})
    container = {"resources": {"requests": {"example.com/ext": "1"}, "limits": {"example.com/ext": "1"}}}
    pod = api.create(scheduling_scenario.make_pod("extended", container=container))
    api.wait_for(pod, lambda pod: pod["spec"].get("nodeName") == "alpha", "binding of the pod with the resource")
    with reject_bindings(api, "stuck"):
        api.create(scheduling_scenario.make_pod("stuck", container=container))
        seen_names: set[str] = set()

        def was_created_and_deleted(claims: Mapping[str, JsonObject]) -> bool:
            current_names = {name for name in claims if "stuck" in name}
            seen_names.update(current_names)
            return bool(seen_names) and not current_names

        api.wait_until("ResourceClaim", was_created_and_deleted, "the creation and deletion of the claim")


@contextmanager
def reject_bindings(api: ApiClient, name: str) -> Iterator[None]:
    """Have the API server reject bindings of the pod *name* in the block."""
    group = "/apis/admissionregistration.k8s.io/v1"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/binding"]}
    rejection = {"expression": f"request.name != '{name}'", "message": "not this pod"}
    policy = {"metadata": {"name": "unbindable"}, "spec": {
        "failurePolicy": "Fail", "matchConstraints": {"resourceRules": [rule]},
        "validations": [rejection]}}  # fmt: skip
    binding = {"metadata": {"name": "unbindable"}, "spec": {"policyName": "unbindable", "validationActions": ["Deny"]}}
    objects = (("validatingadmissionpolicies", policy), ("validatingadmissionpolicybindings", binding))
    for plural, body in objects:
        api.call("POST", f"{group}/{plural}", body)
    probe = api.create(scheduling_scenario.make_pod(name, schedulerName="nobody"))
    target = {"metadata": {"name": name}, "target": {"kind": "Node", "name": "nowhere"}}
    deadline = monotonic() + TIMEOUT
    while "not this pod" not in _dry_run_binding(api, target):  # a policy takes effect after a moment
        assert monotonic() < deadline
    api.delete(probe)
    yield
    for plural, _ in objects:
        api.call("DELETE", f"{group}/{plural}/unbindable")


def _dry_run_binding(api: ApiClient, binding: JsonObject) -> str:
    """Return the response of the API server to a binding as a dry run."""
    path = f"/api/v1/namespaces/default/pods/{binding['metadata']['name']}/binding?dryRun=All"
    try:
        return api.call("POST", path, binding).decode()
    except ApiStatusError as error:
        return str(error)
