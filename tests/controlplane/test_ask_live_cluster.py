"""Commands that answer questions, on a real API server with a view-only role; the audit log shows what they list.

The variables ASK_NODES and ASK_PODS change the size of the cluster.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any, Final

import pytest

from tests.controlplane.api_client import ApiClient
from tests.controlplane.control_plane import EXTENDER, ControlPlane
from tests.controlplane.programs import MODULE, RELEASE, make_extender_command
from tests.controlplane.scheduler_processes import create_all, make_nodes, make_pods
from tests.controlplane.view_only_role import grant_view_only_role, list_requests, run_audited_control_plane

NODES: Final = int(os.environ.get("ASK_NODES", "12"))
PODS: Final = int(os.environ.get("ASK_PODS", "30"))


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Run a control plane that audits every request of our user, with a view-only role and a cluster."""
    with run_audited_control_plane(tmp_path_factory.mktemp("control-plane")) as plane:
        with plane.client() as api:
            grant_view_only_role(api)
            create_cluster(api)
        yield plane


def create_cluster(api: ApiClient) -> None:
    create_all(api, make_nodes(NODES))
    placed_pods = make_pods("placed", PODS)
    for number, pod in enumerate(placed_pods):
        pod["spec"] = {**pod["spec"], "nodeName": f"node-{number % NODES}"}  # the pods share one spec
    create_all(api, placed_pods)
    (waiting_pod,) = make_pods("waiting", 1, cpu="64")
    (claim_pod,) = make_pods("claim", 1)
    claim_pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    secret_pod = make_pods("secret", 1)[0]
    secret_pod["metadata"]["annotations"] = {"example.com/note": "internal-note"}
    secret_pod["spec"]["containers"][0]["env"] = [{"name": "PASSWORD", "value": "hunter2"}]
    create_all(api, [waiting_pod, claim_pod, secret_pod])
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "a", "image": "app"}]}}
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    api.call("POST", "/apis/apps/v1/namespaces/default/deployments", deployment)


def ask(plane: ControlPlane, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command with the kubeconfig of the view-only user."""
    flags = [f"--kubeconfig={plane.write_kubeconfig(EXTENDER)}", *arguments]
    words = make_extender_command(command, *flags)
    if command == "record":
        words = [word for word in words if not word.startswith("--emulated-version")]
    return subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)


def audit_size(plane: ControlPlane) -> int:
    return plane.audit_log.stat().st_size if plane.audit_log.exists() else 0


def test_explain_of_one_pod_lists_only_nodes_and_pods(plane: ControlPlane) -> None:
    since, start = audit_size(plane), perf_counter()
    result = ask(plane, "explain", "waiting-0")
    print(f"explain of one pod: {perf_counter() - start:.2f} s, {NODES} nodes, {PODS} pods")  # noqa: T201
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith(
        f"Pod default/waiting-0\n  fits on none of {NODES} nodes: {NODES} nodes have too little cpu\n"
    )
    assert list_requests(plane, since) == ["list nodes", "list pods"]


def test_a_right_that_is_missing_is_named_with_the_answer_that_it_affects(plane: ControlPlane) -> None:
    result = ask(plane, "explain", "pod/claim-0", "-o", "json")
    (values,) = json.loads(result.stdout)["pods"].values()
    assert values["notRecorded"] == ["persistentvolumeclaims"]
    assert values["warnings"][0].startswith(
        'not readable: persistentvolumeclaims; grant the verb "list" on persistentvolumeclaims ('
    )


def test_a_deployment_without_pods_is_explained_with_a_pod_that_it_would_make(plane: ControlPlane) -> None:
    result = ask(plane, "explain", "deployment/web", "-o", "json", "--exit-code")
    assert (result.returncode, result.stderr) == (0, "")
    (values,) = json.loads(result.stdout)["pods"].values()
    assert len(values["feasible"]) == NODES


def test_a_recording_gives_the_same_answer_and_has_no_secrets(plane: ControlPlane, tmp_path: Path) -> None:
    file = tmp_path / "cluster.json"
    recorded = ask(plane, "record", "-o", str(file))
    assert recorded.returncode == 0
    assert "not readable: persistentvolumeclaims; grant the verb" in recorded.stderr
    text = file.read_text()
    assert json.loads(text)["kubernetesVersion"] == MODULE.version()
    assert "hunter2" not in text
    assert "internal-note" not in text
    assert file.stat().st_mode & 0o077 == 0
    offline = subprocess.run(
        make_extender_command("explain", "-f", str(file), "waiting-0"), capture_output=True, text=True, check=True
    )
    assert offline.stdout == ask(plane, "explain", "waiting-0").stdout


def test_without_the_flag_the_release_is_that_of_the_api_server(plane: ControlPlane) -> None:
    """Only 1.36 has a reason if no claim is deallocated."""
    command = [sys.executable, "-m", "extender", "explain", f"--kubeconfig={plane.write_kubeconfig(EXTENDER)}"]
    result = subprocess.run(
        [*command, "waiting-0", "-o", "json"], capture_output=True, text=True, timeout=120, check=True
    )
    message = json.loads(result.stdout)["pods"]["default/waiting-0"]["message"]
    assert ("no new claims to deallocate" in message) == (RELEASE == "1.36")
    assert result.stdout == ask(plane, "explain", "waiting-0", "-o", "json").stdout


def test_simulate_places_the_pending_pods_of_the_live_cluster(plane: ControlPlane) -> None:
    values: dict[str, Any] = json.loads(ask(plane, "simulate", "-o", "json").stdout)
    placements = {placement["pod"]: placement["node"] for placement in values["placements"]}
    assert placements["default/waiting-0"] is None
    assert placements["default/secret-0"] is not None


def test_what_if_and_fits_read_the_live_cluster_and_name_what_they_may_not_list(
    plane: ControlPlane, tmp_path: Path
) -> None:
    what_if = ask(plane, "what-if", "--drain", "node-0", "-o", "json")
    values: dict[str, Any] = json.loads(what_if.stdout)
    lost = [f"default/placed-{number}" for number in range(0, PODS, NODES)]
    assert sorted(entry["pod"] for entry in values["lost"]) == sorted(lost)
    assert [line.split(";")[0] for line in what_if.stderr.splitlines()] == [
        "extender: not readable: persistentvolumeclaims"
    ]
    (pod,) = make_pods("web", 1)
    (tmp_path / "pod.json").write_text(json.dumps({"apiVersion": "v1", "kind": "Pod", **pod}))
    fits = ask(plane, "fits", "-p", str(tmp_path / "pod.json"), "-o", "json", "--limit", "5")
    assert (fits.returncode, json.loads(fits.stdout)["fits"]) == (0, 5)


def test_an_unknown_context_and_a_dead_server_are_one_line(plane: ControlPlane, tmp_path: Path) -> None:
    unknown = ask(plane, "explain", "--context", "gone")
    assert (unknown.returncode, unknown.stdout, len(unknown.stderr.splitlines())) == (2, "", 1)
    config = json.loads(plane.write_kubeconfig(EXTENDER).read_text())
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    dead = tmp_path / "kubeconfig"
    dead.write_text(json.dumps(config))
    result = ask(plane, "explain", "--kubeconfig", str(dead))
    assert (result.returncode, len(result.stderr.splitlines())) == (2, 1)
    assert result.stderr.startswith("extender: https://127.0.0.1:1: cannot connect: connection refused; check")
