"""What `extender schedule` says to input it cannot work with: one line for each fault, status 1, no traceback."""

import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from time import monotonic

import httpx2
import pytest

from tests.controlplane.api import Api, RefusedError
from tests.controlplane.candidates import create, extender, nodes, pods, settings, until_bound
from tests.controlplane.plane import EXTENDER, SCHEDULER, ControlPlane
from tests.controlplane.process import free_ports

FAULTY = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: one
  plugins: {score: {enabled: [{name: Nope}]}}
- schedulerName: one
"""


def told(folder: Path, *words: str) -> list[str]:
    """What the command says before it ends, in an environment that knows no cluster."""
    done = subprocess.run(
        [sys.executable, "-m", "extender", "schedule", *words],
        env={"HOME": str(folder), "PATH": "/usr/bin:/bin", "PYTHONPATH": str(Path.cwd())},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    return done.stderr.splitlines()


def test_no_kubeconfig(tmp_path: Path) -> None:
    assert told(tmp_path) == [
        "extender: no kubeconfig: none given with --kubeconfig, none in KUBECONFIG or ~/.kube/config, "
        "and this is not a pod of a cluster"
    ]


def test_an_unknown_flag(tmp_path: Path) -> None:
    assert told(tmp_path, "--leader-elekt") == [
        'extender: unknown flag: --leader-elekt; did you mean "--leader-elect"?'
    ]


def test_a_configuration_with_bad_profiles(tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(FAULTY)
    assert told(tmp_path, f"--config={file}") == [
        f'extender: {file}: profiles[1].schedulerName: Duplicate value: "profiles[0].schedulerName"',
        f'extender: {file}: profiles[0].plugins.score.enabled: ScorePlugin "Nope" does not exist; '
        "is its package installed?",
    ]


def test_a_server_that_cannot_be_reached_is_tried_for_ten_seconds(tmp_path: Path) -> None:
    server = f"https://127.0.0.1:{free_ports(1)[0]}"
    began = monotonic()
    assert told(tmp_path, f"--master={server}", "--secure-port=0") == [
        f"extender: the API server {server} cannot be reached: cannot connect to {server}: connection refused; "
        "check --kubeconfig, --master and the network"
    ]
    assert monotonic() - began >= 9.0


def test_a_port_in_use(control_plane: ControlPlane, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        flags = [f"--kubeconfig={control_plane.kubeconfig(SCHEDULER)}", f"--secure-port={port}"]
        assert told(tmp_path, *flags, "--bind-address=127.0.0.1") == [
            f"extender: failed to listen on 127.0.0.1:{port}: address already in use; choose another with --secure-port"
        ]


def test_a_token_nobody_knows(control_plane: ControlPlane, tmp_path: Path) -> None:
    file = tmp_path / "unknown.kubeconfig"
    known = control_plane.kubeconfig(SCHEDULER).read_text()
    file.write_text(known.replace(control_plane.token(SCHEDULER), "unknown"))
    assert told(tmp_path, f"--kubeconfig={file}", "--secure-port=0") == [
        f"extender: the API server {control_plane.url} does not accept our credentials: Unauthorized"
    ]


@pytest.fixture
def roles(api: Api) -> Iterator[None]:
    """The service account has the scheduler's role, but not that for volumes: storage classes are closed to it."""
    granted(api, "system:kube-scheduler")
    yield
    for role in ("system:kube-scheduler", "system:volume-scheduler"):
        with suppress(RefusedError):
            api.call("DELETE", f"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/extender-{role}")


def granted(api: Api, role: str) -> None:
    body = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"extender-{role}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": EXTENDER}],
    }
    api.call("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", body)


@pytest.mark.usefixtures("roles")
def test_one_kind_that_is_forbidden_is_named_and_asked_for_again_with_patience(
    control_plane: ControlPlane, api: Api
) -> None:
    """Fault 13: not ready and nothing is bound, until the role is granted."""
    port = free_ports(1)[0]
    configuration = settings(control_plane) | {
        "clientConnection": {"kubeconfig": str(control_plane.kubeconfig(EXTENDER))}
    }
    scheduler = extender(control_plane, configuration, f"--secure-port={port}", "--bind-address=127.0.0.1")
    forbidden = 'resource="storageclasses" err="storageclasses.storage.k8s.io is forbidden'
    scheduler.says(forbidden)
    began = monotonic()
    while scheduler.printed().count(forbidden) < 3:
        scheduler.pause(0.05)
    assert monotonic() - began >= 2.0  # 0.8 and 1.6 s at least
    assert "Traceback" not in scheduler.printed()
    status, page = readiness(port)
    assert status == 500
    assert "[-]informer-sync failed" in page
    assert "[+]shutdown ok" in page

    granted(api, "system:volume-scheduler")
    create(api, [*nodes(1), *pods("app", 1)])
    until_bound(api, 1)
    assert readiness(port)[0] == 200


def readiness(port: int) -> tuple[int, str]:
    """Status and text of /readyz?verbose; the certificate is the scheduler's own."""
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    answer = httpx2.get(f"https://127.0.0.1:{port}/readyz?verbose", verify=trust, trust_env=False)
    return answer.status_code, answer.text
