"""The HTTP endpoints of kube-scheduler and of `extender schedule`: equal responses, equal metric families."""

import re
import ssl
from http.client import HTTPSConnection
from pathlib import Path
from time import monotonic
from typing import Final

import pytest
import yaml

from tests.controlplane.api_client import ApiClient
from tests.controlplane.control_plane import ADMIN, EXTENDER, SCHEDULER, ControlPlane
from tests.controlplane.process import Process, free_ports
from tests.controlplane.programs import make_extender_command

METRICS_FILE: Final = Path(__file__).parents[1] / "cases" / "kube_scheduler_metrics.yaml"
PATHS: Final = (
    "/", "/healthz", "/livez?verbose", "/livez/ping", "/metrics/resources", "/nope", "/readyz", "/readyz/nope",
    "/readyz/shutdown",
)  # fmt: skip

_TIMEOUT: Final = 60.0
_POLL_INTERVAL: Final = 0.1

Response = tuple[int, str]


class SchedulerEndpoints:
    """The HTTPS endpoints of a scheduler.

    Args:
        process: the scheduler.
        port: its secure port.
    """

    def __init__(self, process: Process, port: int) -> None:
        self._process, self._port = process, port
        self._tls = ssl.create_default_context()
        self._tls.check_hostname = False
        self._tls.verify_mode = ssl.CERT_NONE

    def get(self, path: str, token: str = "", method: str = "GET") -> Response:
        """Send a request and return status and text."""
        connection = HTTPSConnection("127.0.0.1", self._port, context=self._tls, timeout=10)
        try:
            connection.request(method, path, headers={"Authorization": f"Bearer {token}"} if token else {})
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def wait_until_ready(self) -> None:
        """Wait until /readyz succeeds."""
        deadline = monotonic() + _TIMEOUT
        while True:
            try:
                if self.get("/readyz")[0] == 200:
                    return
            except OSError:
                pass
            assert monotonic() < deadline, self._process.tail()
            self._process.pause(_POLL_INTERVAL)

    def pause(self) -> None:
        """Wait a moment, while the scheduler runs."""
        self._process.pause(_POLL_INTERVAL)

    def wait_for_metrics(self, token: str, *lines: str) -> None:
        """Wait until /metrics contains all *lines*."""
        deadline = monotonic() + _TIMEOUT
        while not set(lines) <= set(self.get("/metrics", token)[1].splitlines()):
            assert monotonic() < deadline, f"/metrics does not contain {lines}"
            self._process.pause(_POLL_INTERVAL)


def serving_flags(plane: ControlPlane, port: int) -> list[str]:
    """Return the flags for port and delegated authentication, with the permissions of system:kube-scheduler."""
    kubeconfig = plane.write_kubeconfig(SCHEDULER)
    return [
        f"--secure-port={port}",
        "--bind-address=127.0.0.1",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
    ]


@pytest.fixture
def both_endpoints(control_plane: ControlPlane, api: ApiClient) -> tuple[SchedulerEndpoints, SchedulerEndpoints]:
    """Start kube-scheduler and our scheduler without pods; return their endpoints when both are ready."""
    upstream_port, own_port = free_ports(2)
    kube_scheduler = control_plane.start_kube_scheduler({}, *serving_flags(control_plane, upstream_port))
    config = control_plane.folder / "kube-scheduler.json"
    flags = serving_flags(control_plane, own_port)
    extender = control_plane.start_program(make_extender_command("schedule", f"--config={config}", *flags))
    both = SchedulerEndpoints(kube_scheduler, upstream_port), SchedulerEndpoints(extender, own_port)
    for endpoints in both:
        endpoints.wait_until_ready()
    return both


def metric_types(metrics: str) -> dict[str, str]:
    """Return the types of the metrics by name, without those of the Go runtime and of shared informers."""
    types = dict(re.findall(r"(?m)^# TYPE (\S+) (\S+)$", metrics))
    return {name: kind for name, kind in types.items() if not name.startswith(("go_", "informer_"))}


def test_all_metrics_of_kube_scheduler_exist_with_the_listed_types(
    control_plane: ControlPlane, both_endpoints: tuple[SchedulerEndpoints, SchedulerEndpoints]
) -> None:
    token = control_plane.token(ADMIN)
    upstream, own = (metric_types(endpoints.get("/metrics", token)[1]) for endpoints in both_endpoints)
    listed = {name: family["type"] for name, family in yaml.safe_load(METRICS_FILE.read_text())["families"].items()}
    assert len(upstream) > 50
    assert {name: listed.get(name) for name in upstream} == upstream
    assert {name: own.get(name) for name in upstream} == upstream


def test_every_user_gets_the_same_responses(
    control_plane: ControlPlane, both_endpoints: tuple[SchedulerEndpoints, SchedulerEndpoints]
) -> None:
    tokens = {"anonymous": "", "invalid": "nonsense", **{user: control_plane.token(user) for user in (ADMIN, EXTENDER)}}
    requests = [(user, path) for user in tokens for path in PATHS]
    upstream, own = (
        {(user, path): endpoints.get(path, tokens[user]) for user, path in requests} for endpoints in both_endpoints
    )
    assert {response[0] for response in upstream.values()} == {200, 401, 403, 404}
    assert own == upstream
