"""The pages of kube-scheduler and of `extender schedule`, asked for in the same cluster: same answers, same metrics."""

import re
import ssl
import sys
from http.client import HTTPSConnection
from pathlib import Path
from time import monotonic
from typing import Final

import pytest
import yaml

from tests.controlplane.api import Api
from tests.controlplane.plane import ADMIN, EXTENDER, SCHEDULER, ControlPlane
from tests.controlplane.process import Process, free_ports

LIST: Final = Path(__file__).parents[1] / "cases" / "kube_scheduler_metrics.yaml"
PATHS: Final = (
    "/", "/healthz", "/livez?verbose", "/livez/ping", "/metrics/resources", "/nope", "/readyz", "/readyz/nope",
    "/readyz/shutdown",
)  # fmt: skip

_PATIENCE: Final = 60.0
_STEP: Final = 0.1

Answer = tuple[int, str]


class Pages:
    """What one scheduler serves.

    Args:
        process: the scheduler.
        port: where.
    """

    def __init__(self, process: Process, port: int) -> None:
        self._process, self._port = process, port
        self._tls = ssl.create_default_context()
        self._tls.check_hostname = False
        self._tls.verify_mode = ssl.CERT_NONE

    def ask(self, path: str, token: str = "", method: str = "GET") -> Answer:
        """Status and text."""
        connection = HTTPSConnection("127.0.0.1", self._port, context=self._tls, timeout=10)
        try:
            connection.request(method, path, headers={"Authorization": f"Bearer {token}"} if token else {})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def wait(self) -> None:
        """Until it is ready."""
        until = monotonic() + _PATIENCE
        while True:
            try:
                if self.ask("/readyz")[0] == 200:
                    return
            except OSError:
                pass
            assert monotonic() < until, self._process.tail()
            self._process.pause(_STEP)

    def until_metrics_say(self, token: str, *lines: str) -> None:
        """Until all *lines* stand on the page of metrics."""
        until = monotonic() + _PATIENCE
        while not set(lines) <= set(self.ask("/metrics", token)[1].splitlines()):
            assert monotonic() < until, f"metrics do not say {lines}"
            self._process.pause(_STEP)


def flags(plane: ControlPlane, port: int) -> list[str]:
    """Where to serve and whom to ask about callers, with the rights of upstream's own role."""
    kubeconfig = plane.kubeconfig(SCHEDULER)
    return [
        f"--secure-port={port}",
        "--bind-address=127.0.0.1",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
    ]


@pytest.fixture
def both(control_plane: ControlPlane, api: Api) -> tuple[Pages, Pages]:
    """kube-scheduler's and ours, ready; they have nothing to do."""
    theirs, ours = free_ports(2)
    upstream = control_plane.scheduler({}, *flags(control_plane, theirs))
    config = control_plane.folder / "kube-scheduler.json"
    command = [sys.executable, "-m", "extender", "schedule", f"--config={config}", *flags(control_plane, ours)]
    pages = Pages(upstream, theirs), Pages(control_plane.run(command), ours)
    for each in pages:
        each.wait()
    return pages


def families(page: str) -> dict[str, str]:
    """Types by name, without those that describe Go's runtime."""
    found = dict(re.findall(r"(?m)^# TYPE (\S+) (\S+)$", page))
    return {name: kind for name, kind in found.items() if not name.startswith("go_")}


def test_metrics_are_those_of_the_list_and_ours_has_them_all(
    control_plane: ControlPlane, both: tuple[Pages, Pages]
) -> None:
    token = control_plane.token(ADMIN)
    theirs, ours = (families(pages.ask("/metrics", token)[1]) for pages in both)
    listed = {name: family["type"] for name, family in yaml.safe_load(LIST.read_text())["families"].items()}
    assert len(theirs) > 50
    assert {name: listed.get(name) for name in theirs} == theirs
    assert {name: ours.get(name) for name in theirs} == theirs


def test_everybody_is_answered_alike(control_plane: ControlPlane, both: tuple[Pages, Pages]) -> None:
    tokens = {"anonymous": "", "wrong": "nonsense", **{user: control_plane.token(user) for user in (ADMIN, EXTENDER)}}
    asked = [(who, path) for who in tokens for path in PATHS]
    theirs, ours = ({(who, path): pages.ask(path, tokens[who]) for who, path in asked} for pages in both)
    assert {answer[0] for answer in theirs.values()} == {200, 401, 403, 404}
    assert ours == theirs
