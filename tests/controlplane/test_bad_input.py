"""`extender schedule` with invalid input: one line per error, status 1, no traceback."""

import functools
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

import httpx2
import pytest

from tests.controlplane.api_client import ApiClient, ApiStatusError
from tests.controlplane.control_plane import EXTENDER, SCHEDULER, ControlPlane
from tests.controlplane.process import free_ports
from tests.controlplane.programs import make_extender_command
from tests.controlplane.scheduler_processes import (
    create_all,
    make_configuration,
    make_nodes,
    make_pods,
    start_scheduler,
    wait_until_bound,
)

INVALID_CONFIGURATION = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: one
  plugins: {score: {enabled: [{name: Nope}]}}
- schedulerName: one
"""


def run_schedule(folder: Path, *arguments: str) -> list[str]:
    """Run the command without a cluster in its environment, and return the lines on stderr."""
    process = subprocess.run(
        make_extender_command("schedule", *arguments),
        env={"HOME": str(folder), "PATH": "/usr/bin:/bin", "PYTHONPATH": str(Path.cwd())},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (process.returncode, process.stdout) == (1, "")
    return process.stderr.splitlines()


def test_no_kubeconfig(tmp_path: Path) -> None:
    assert run_schedule(tmp_path) == [
        "extender: no kubeconfig: none given with --kubeconfig, none in KUBECONFIG or ~/.kube/config, "
        "and this is not a pod of a cluster"
    ]


def test_an_unknown_flag(tmp_path: Path) -> None:
    assert run_schedule(tmp_path, "--leader-elekt") == [
        'extender: unknown flag: --leader-elekt; did you mean "--leader-elect"?'
    ]


def test_a_configuration_with_bad_profiles(tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(INVALID_CONFIGURATION)
    assert run_schedule(tmp_path, f"--config={file}") == [
        f'extender: {file}: profiles[1].schedulerName: Duplicate value: "profiles[0].schedulerName"',
        f'extender: {file}: profiles[0].plugins.score.enabled: ScorePlugin "Nope" does not exist; '
        "is its package installed?",
    ]


def test_an_unreachable_server_is_retried_for_ten_seconds(tmp_path: Path) -> None:
    server = f"https://127.0.0.1:{free_ports(1)[0]}"
    started = monotonic()
    assert run_schedule(tmp_path, f"--master={server}", "--secure-port=0") == [
        f"extender: the API server {server} cannot be reached: connection refused; "
        "check --kubeconfig, --master and the network"
    ]
    assert monotonic() - started >= 9.0


def test_a_port_in_use(control_plane: ControlPlane, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        flags = [f"--kubeconfig={control_plane.write_kubeconfig(SCHEDULER)}", f"--secure-port={port}"]
        assert run_schedule(tmp_path, *flags, "--bind-address=127.0.0.1") == [
            f"extender: failed to listen on 127.0.0.1:{port}: "
            "address already in use; choose another port with --secure-port"
        ]


def test_an_unknown_token(control_plane: ControlPlane, tmp_path: Path) -> None:
    file = tmp_path / "unknown.kubeconfig"
    kubeconfig = control_plane.write_kubeconfig(SCHEDULER).read_text()
    file.write_text(kubeconfig.replace(control_plane.token(SCHEDULER), "unknown"))
    assert run_schedule(tmp_path, f"--kubeconfig={file}", "--secure-port=0") == [
        f"extender: the API server {control_plane.url} does not accept our credentials: Unauthorized"
    ]


@pytest.fixture
def roles(api: ApiClient) -> Iterator[None]:
    """Bind the role of the scheduler to the service account, but not the one for volumes."""
    bind_role(api, "system:kube-scheduler")
    yield
    for role in ("system:kube-scheduler", "system:volume-scheduler"):
        with suppress(ApiStatusError):
            api.call("DELETE", f"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/extender-{role}")


def bind_role(api: ApiClient, role: str) -> None:
    body = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"extender-{role}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": EXTENDER}],
    }
    api.call("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", body)


@pytest.mark.usefixtures("roles")
def test_a_forbidden_kind_is_logged_and_retried_with_backoff(control_plane: ControlPlane, api: ApiClient) -> None:
    """The scheduler is not ready and binds nothing until the role is granted."""
    port = free_ports(1)[0]
    configuration = make_configuration(control_plane) | {
        "clientConnection": {"kubeconfig": str(control_plane.write_kubeconfig(EXTENDER))}
    }
    scheduler = start_scheduler(control_plane, configuration, f"--secure-port={port}", "--bind-address=127.0.0.1")
    forbidden_message = 'resource="storageclasses" err="storageclasses.storage.k8s.io is forbidden'
    scheduler.wait_for_output(forbidden_message)
    started = monotonic()
    while scheduler.output().count(forbidden_message) < 3:
        scheduler.pause(0.05)
    assert monotonic() - started >= 2.0  # 0.8 and 1.6 s at least
    assert "Traceback" not in scheduler.output()
    status, page = get_readyz(port)
    assert status == 500
    assert "[-]informer-sync failed" in page
    assert "[+]shutdown ok" in page

    bind_role(api, "system:volume-scheduler")
    create_all(api, [*make_nodes(1), *make_pods("app", 1)])
    wait_until_bound(api, 1)
    assert get_readyz(port)[0] == 200


def get_readyz(port: int) -> tuple[int, str]:
    """Return status and text of /readyz?verbose; the certificate is self-signed."""
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    response = httpx2.get(f"https://127.0.0.1:{port}/readyz?verbose", verify=trust, trust_env=False)
    return response.status_code, response.text


def make_deep_claim(name: str) -> dict[str, Any]:
    """A claim with parameters in 5,000 levels: the API server allows 10,000, and 10 KiB."""
    levels: list[Any] = []
    parameters = {"levels": functools.reduce(lambda value, _: [value], range(5_000), levels)}
    request = {"name": "gpu", "exactly": {"deviceClassName": "none"}}
    opaque = {"driver": "gpu.example.com", "parameters": parameters}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": [request], "config": [{"opaque": opaque}]}},
    }


@pytest.fixture
def _deep_recursion() -> Iterator[None]:
    """Let the JSON functions of this process write and read thousands of levels."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(12_000)
    yield
    sys.setrecursionlimit(limit)


@pytest.mark.usefixtures("_deep_recursion")
def test_a_deeply_nested_claim_does_not_stop_the_scheduler(control_plane: ControlPlane, api: ApiClient) -> None:
    api.create(make_deep_claim("first"))
    scheduler = start_scheduler(control_plane, make_configuration(control_plane), "--secure-port=0")
    deep_pod = make_pods("before", 1)[0]
    fields: dict[str, Any] = {}
    fields = functools.reduce(lambda value, _: {"f:x": value}, range(2_000), fields)
    deep_pod["metadata"]["managedFields"] = [
        {"manager": "any", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields}
    ]
    create_all(api, [*make_nodes(1), deep_pod])
    wait_until_bound(api, 1)
    assert api.call("GET", "/api/v1/pods").count(b"f:x") == 2_000
    api.create(make_deep_claim("second"))
    scheduler.wait_for_output('object="default/second"')
    create_all(api, make_pods("after", 1))
    wait_until_bound(api, 2)
