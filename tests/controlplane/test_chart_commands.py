"""The command lines and configurations of the chart's Deployment, run with the permissions of its roles."""

import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Final

import httpx2
import pytest
import yaml

from tests.controlplane import programs, scheduling_scenario
from tests.controlplane.api_client import ApiClient, JsonObject, find_condition
from tests.controlplane.control_plane import EXTENDER, ControlPlane
from tests.controlplane.process import Process, free_ports
from tests.controlplane.programs import RELEASE
from tests.controlplane.resources import COMPOSITE_POD_GROUP_VERSION, POD_GROUP_VERSION
from tests.controlplane.test_chart_rbac import (
    CONFIGURATION,
    POLL_INTERVAL,
    TIMEOUT,
    UPSTREAM_ROLE_PERMISSION,
    ChartRoles,
    Permission,
    check_extended_resource_claim,
    check_selected_node,
    create_and_wait,
    get_metrics_status,
    make_cluster,
    used_permissions,
)
from tests.controlplane.test_same_pod_groups import ALL_GATES, GROUP_CONDITION
from tests.controlplane.view_only_role import run_audited_control_plane

COMPOSITES: Final = RELEASE != "1.36"
GATES: Final = ALL_GATES + (",CompositePodGroup=true" if COMPOSITES else "")
VERSIONS: Final = (POD_GROUP_VERSION, *((COMPOSITE_POD_GROUP_VERSION,) if COMPOSITES else ()))
PROFILES: Final = [{"schedulerName": "default-scheduler", **CONFIGURATION["profiles"][0]}]
CONFIGURATION_FOLDER: Final = "/etc/extender"

OTHER_PERMISSIONS: Final[set[Permission]] = {
    ("", "events", "patch"),
    ("", "events", "update"),
    ("events.k8s.io", "events", "patch"),
    ("events.k8s.io", "events", "update"),
    ("", "pods/finalizers", "update"),
    ("resource.k8s.io", "resourceclaims", "get"),
    ("resource.k8s.io", "resourceclaims/binding", "patch"),
    ("resource.k8s.io", "resourceclaims/binding", "update"),
    ("resource.k8s.io", "resourceclaims/status", "patch"),
    *({("resource.k8s.io", "devicetaintrules", verb) for verb in ("list", "watch")} if RELEASE == "1.36" else ()),
}
"""Permissions that `beside` has for other releases of kube-scheduler, for repeated events, and for failures."""

BIND_PERMISSIONS: Final[set[Permission]] = {
    ("", "nodes", "patch"),
    ("", "persistentvolumeclaims", "patch"),
    ("", "persistentvolumes", "patch"),
    ("resource.k8s.io", "resourceclaims", "patch"),
}
"""Permissions of `beside` for the verb `bind`, which leaves volumes and devices to kube-scheduler in these tests."""


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Run a control plane with pod groups that audits every request of our service account."""
    versions = ",".join(f"{version}=true" for version in VERSIONS)
    flags = (f"--feature-gates={GATES}", f"--runtime-config={versions}")
    with run_audited_control_plane(tmp_path_factory.mktemp("control-plane"), *flags) as plane:
        yield plane


def start_containers(plane: ControlPlane, objects: dict[str, JsonObject], folder: Path) -> None:
    """Run the containers of the Deployment with their own arguments, as processes with a kubeconfig."""
    kubeconfig = str(plane.write_kubeconfig(EXTENDER))
    for name, text in objects["ConfigMap/extender"]["data"].items():
        document = yaml.safe_load(text)
        document["clientConnection"]["kubeconfig"] = kubeconfig
        (folder / name).write_text(json.dumps(document))
    used = programs.find()
    assert not isinstance(used, str)
    for container in objects["Deployment/extender"]["spec"]["template"]["spec"]["containers"]:
        arguments = [argument.replace(CONFIGURATION_FOLDER, str(folder)) for argument in container["args"]]
        command = [sys.executable, "-m", "extender", *arguments]
        if container["name"] == "kube-scheduler":
            review_flags = (f"--{kind}-kubeconfig={kubeconfig}" for kind in ("authentication", "authorization"))
            command = [used.path("kube-scheduler"), *arguments, *review_flags]
        process = plane.start_program(command, container["name"])
        wait_until_ready(process, container)


def wait_until_ready(process: Process, container: JsonObject) -> None:
    """Wait until the readiness probe of a container succeeds."""
    (port,) = (port["containerPort"] for port in container["ports"])
    path, deadline = container["readinessProbe"]["httpGet"]["path"], monotonic() + 3 * TIMEOUT
    with httpx2.Client(verify=False, trust_env=False) as client:
        while True:
            process.pause(POLL_INTERVAL)
            with suppress(httpx2.TransportError):
                response = client.get(f"https://127.0.0.1:{port}{path}")
                if response.status_code == httpx2.codes.OK:
                    return
            assert monotonic() < deadline, process.tail()


def schedule_pods(api: ApiClient) -> None:
    """Schedule pods with every kind of write: a volume, a device, a rejection, and the eviction of a victim."""
    create_and_wait(api, scheduling_scenario.make_pod("volume", **scheduling_scenario.volume_spec("local")))
    device = scheduling_scenario.make_pod("device", node="gamma", **scheduling_scenario.device_spec("gpu"))
    create_and_wait(api, device)
    victim = scheduling_scenario.make_pod("victim", "3", node="alpha", priorityClassName="low")
    create_and_wait(api, victim)
    api.create(scheduling_scenario.make_pod("preemptor", "4", node="alpha", priorityClassName="high"))
    api.wait_until(
        "Pod",
        lambda pods: bool(
            pods["default/victim"]["metadata"].get("deletionTimestamp")
            and pods["default/preemptor"]["status"].get("nominatedNodeName")
        ),
        "an eviction and a nomination",
        3 * TIMEOUT,
    )
    for name in ("victim", "preemptor"):
        api.delete({"kind": "Pod", **api.get("Pod", name, "default")})


def schedule_pod_group(api: ApiClient) -> None:
    """Schedule a gang of two pods, and wait for the condition of its group."""
    policy = {"gang": {"minCount": 2}}
    metadata = {"name": "pair", "namespace": "default"}
    api.create({"kind": "PodGroup", "metadata": metadata, "spec": {"schedulingPolicy": policy}})
    for name in ("first-of-pair", "second-of-pair"):
        api.create(scheduling_scenario.make_pod(name, schedulingGroup={"podGroupName": "pair"}))
    for name in ("first-of-pair", "second-of-pair"):
        pod = {"kind": "Pod", **api.get("Pod", name, "default")}
        api.wait_for(pod, lambda pod: bool(pod["spec"].get("nodeName")), f"binding {name}")
    api.wait_until(
        "PodGroup",
        lambda groups: find_condition(groups["default/pair"], GROUP_CONDITION).get("status") == "True",
        "the condition of the pod group",
    )


def assert_permissions_suffice(plane: ControlPlane, roles: ChartRoles, unused: set[Permission]) -> None:
    """Assert that no request was forbidden, and that no permission but *unused* is without use."""
    deadline, expected = monotonic() + TIMEOUT, roles.permissions - unused
    while expected - set(used := used_permissions(plane, roles.audit_start)) and monotonic() < deadline:
        sleep(POLL_INTERVAL)  # a watch is logged after it has ended
    assert {permission: codes for permission, codes in used.items() if 403 in codes} == {}
    assert expected - set(used) == set()
    config_map_reads = {UPSTREAM_ROLE_PERMISSION, ("", "configmaps", "list"), ("", "configmaps", "watch")}
    assert set(used) - roles.permissions - config_map_reads == set()


@pytest.mark.parametrize("verbs", [["filter", "prioritize", "preempt"], ["filter", "preempt", "bind"]], ids=" ".join)
@pytest.mark.parametrize("has_groups", [False, True], ids=["without pod groups", "with pod groups"])
def test_kube_scheduler_with_the_extender_beside_it_lacks_no_permission(
    plane: ControlPlane, tmp_path: Path, verbs: list[str], has_groups: bool
) -> None:
    metrics_port, extender_port, verbs_port = free_ports(3)
    gates = {gate.removesuffix("=true"): True for gate in GATES.split(",")} if has_groups else {}
    values: dict[str, Any] = {
        "mode": "beside",
        "leaderElection": {"resourceName": f"lease-{metrics_port}"},  # the Lease of an earlier case stays
        "schedulerName": "default-scheduler",
        "extender": {"verbs": verbs, "port": verbs_port, "httpTimeout": "30s"},
        "metrics": {"port": metrics_port, "extenderPort": extender_port},
        "scheduler": {"emulatedVersion": RELEASE, "featureGates": gates, "config": {"profiles": PROFILES}},
        "kubeScheduler": {"profiles": PROFILES},
        "permissions": {"hami": True},
    }
    unused = OTHER_PERMISSIONS | (BIND_PERMISSIONS if "bind" in verbs else set())
    with plane.client() as api:
        roles = ChartRoles(plane, api, tmp_path, **values)
        try:
            make_cluster(api, plane)
            start_containers(plane, roles.objects, tmp_path)
            schedule_pods(api)
            check_extended_resource_claim(api)
            check_selected_node(api)
            if has_groups:
                schedule_pod_group(api)
            for port in (metrics_port, extender_port):
                assert get_metrics_status(plane, f"https://127.0.0.1:{port}") == 403
            plane.stop_other_programs()
            assert_permissions_suffice(plane, roles, unused)
        finally:
            plane.stop_other_programs()
            api.delete_created()
            roles.delete()
