"""Schedulers that share a control plane, each with a token of its own so that the audit log tells them apart."""

import json
import signal
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from tests.controlplane.api import Api
from tests.controlplane.plane import SCHEDULER, ControlPlane
from tests.controlplane.process import Process, free_ports, listening

BRISK: Final = {"leaseDuration": "4s", "renewDeadline": "3s", "retryPeriod": "500ms"}
"""Leader election for tests of rules that do not need the default times."""


def settings(
    plane: ControlPlane,
    copy: str = "",
    *,
    name: str = "default-scheduler",
    election: dict[str, str] | None = None,
    server: str = "",
    rate: int = 1000,
) -> dict[str, object]:
    """A configuration with one profile.

    Args:
        plane: where.
        copy: which of `plane.COPIES` the scheduler is.
        name: the scheduler name.
        election: how leader election differs from the default; None: there is none.
        server: another address of the API server.
        rate: requests a second.
    """
    kubeconfig = str(plane.kubeconfig(SCHEDULER, copy, server=server))
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": name}],
        "leaderElection": {"leaderElect": election is not None, **(election or {})},
        "clientConnection": {"kubeconfig": kubeconfig, "qps": rate, "burst": rate},
    }


def extender(plane: ControlPlane, configuration: dict[str, object], *flags: str, log: str = "extender") -> Process:
    """`extender schedule`, without pages unless flags say where."""
    file = plane.folder / f"{log}.json"
    file.write_text(json.dumps(configuration))
    command = [sys.executable, "-m", "extender", "schedule", f"--config={file}", *(flags or ("--secure-port=0",))]
    return plane.run(command, log)


def pods(prefix: str, count: int, scheduler: str = "default-scheduler", cpu: str = "100m") -> list[dict[str, Any]]:
    """Small pods that are all alike."""
    container = {"name": "app", "image": "app", "resources": {"requests": {"cpu": cpu}}}
    spec = {"schedulerName": scheduler, "terminationGracePeriodSeconds": 0, "containers": [container]}
    return [{"kind": "Pod", "metadata": {"name": f"{prefix}-{number}"}, "spec": spec} for number in range(count)]


def nodes(count: int, cpu: str = "4") -> list[dict[str, Any]]:
    """Nodes that are all alike."""
    room = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    status = {"capacity": room, "allocatable": room}
    return [{"kind": "Node", "metadata": {"name": f"node-{number}"}, "status": status} for number in range(count)]


def create(api: Api, manifests: Iterable[dict[str, Any]]) -> None:
    """Creates all of them."""
    for manifest in manifests:
        api.create(manifest)


def until_bound(api: Api, count: int, seconds: float = 60.0) -> None:
    """Waits until so many pods are on nodes."""
    what = f"binding {count} pods"
    api.wait_until(
        "Pod", lambda found: sum("nodeName" in each["spec"] for each in found.values()) >= count, what, seconds
    )


class Line:
    """The way from a scheduler to the API server; it can be cut, so that nothing passes and nobody is told."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._port = free_ports(1)[0]
        self._relay = self._open()

    @property
    def url(self) -> str:
        """The API server's address by this way."""
        return f"https://127.0.0.1:{self._port}"

    def cut(self) -> None:
        """From now on nothing passes; connections stay open."""
        self._relay.signal(signal.SIGSTOP)

    def mend(self) -> None:
        """It is as new: what was under way is lost, its connections are reset."""
        self._relay.signal(signal.SIGKILL)
        self._relay.wait()
        self._relay = self._open()

    def _open(self) -> Process:
        file = str(Path(__file__).with_name("relay.py"))
        relay = self._plane.run([sys.executable, file, str(self._port), self._plane.url.rpartition(":")[2]], "relay")
        while not listening(self._port):
            relay.pause(0.05)
        return relay
