"""Schedulers that share a control plane. Each has a token of its own, which identifies it in the audit log."""

import json
import signal
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from tests.controlplane.api_client import ApiClient
from tests.controlplane.control_plane import SCHEDULER, ControlPlane
from tests.controlplane.process import Process, free_ports, is_listening
from tests.controlplane.programs import make_extender_command

FAST_ELECTION: Final = {"leaseDuration": "4s", "renewDeadline": "3s", "retryPeriod": "500ms"}
"""Leader election with shorter times than the default."""


def make_configuration(
    plane: ControlPlane,
    replica: str = "",
    *,
    name: str = "default-scheduler",
    election: dict[str, str] | None = None,
    server: str = "",
    rate: int = 1000,
) -> dict[str, object]:
    """Make a configuration with one profile.

    Args:
        plane: the control plane.
        replica: one of `REPLICAS`.
        name: the scheduler name.
        election: fields of leader election that differ from the default; None disables it.
        server: overrides the address of the API server.
        rate: requests per second.
    """
    kubeconfig = str(plane.write_kubeconfig(SCHEDULER, replica, server=server))
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": name}],
        "leaderElection": {"leaderElect": election is not None, **(election or {})},
        "clientConnection": {"kubeconfig": kubeconfig, "qps": rate, "burst": rate},
    }


def start_scheduler(
    plane: ControlPlane, configuration: dict[str, object], *flags: str, log_name: str = "extender"
) -> Process:
    """Start `extender schedule`, without a port unless a flag sets it."""
    file = plane.folder / f"{log_name}.json"
    file.write_text(json.dumps(configuration))
    command = make_extender_command("schedule", f"--config={file}", *(flags or ("--secure-port=0",)))
    return plane.start_program(command, log_name)


def make_pods(prefix: str, count: int, scheduler: str = "default-scheduler", cpu: str = "100m") -> list[dict[str, Any]]:
    """Make *count* equal pods."""
    container = {"name": "app", "image": "app", "resources": {"requests": {"cpu": cpu}}}
    spec = {"schedulerName": scheduler, "terminationGracePeriodSeconds": 0, "containers": [container]}
    return [{"kind": "Pod", "metadata": {"name": f"{prefix}-{number}"}, "spec": spec} for number in range(count)]


def make_nodes(count: int, cpu: str = "4") -> list[dict[str, Any]]:
    """Make *count* equal nodes."""
    capacity = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    status = {"capacity": capacity, "allocatable": capacity}
    return [{"kind": "Node", "metadata": {"name": f"node-{number}"}, "status": status} for number in range(count)]


def create_all(api: ApiClient, manifests: Iterable[dict[str, Any]]) -> None:
    """Create all objects."""
    for manifest in manifests:
        api.create(manifest)


def wait_until_bound(api: ApiClient, count: int, seconds: float = 60.0) -> None:
    """Wait until *count* pods are assigned."""
    description = f"binding {count} pods"
    api.wait_until(
        "Pod", lambda pods: sum("nodeName" in pod["spec"] for pod in pods.values()) >= count, description, seconds
    )


class ApiServerLink:
    """A TCP relay between a scheduler and the API server that can stall without closing its connections."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._port = free_ports(1)[0]
        self._relay = self._start_relay()

    @property
    def url(self) -> str:
        """The address of the API server behind the relay."""
        return f"https://127.0.0.1:{self._port}"

    def stall(self) -> None:
        """Forward nothing from now on; connections stay open."""
        self._relay.signal(signal.SIGSTOP)

    def restore(self) -> None:
        """Reset all connections and forward again."""
        self._relay.signal(signal.SIGKILL)
        self._relay.wait()
        self._relay = self._start_relay()

    def _start_relay(self) -> Process:
        file = str(Path(__file__).with_name("tcp_relay.py"))
        relay = self._plane.start_program(
            [sys.executable, file, str(self._port), self._plane.url.rpartition(":")[2]], "relay"
        )
        while not is_listening(self._port):
            relay.pause(0.05)
        return relay
