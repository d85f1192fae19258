"""The scheduler replicas of a run: `extender schedule`, or kube-scheduler as a control."""

import json
import signal
from collections.abc import Sequence
from typing import Final

from tests.controlplane import programs
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.process import Process, ProcessEndedError
from tests.controlplane.programs import Programs
from tests.controlplane.scheduler_processes import FAST_ELECTION, ApiServerLink, make_configuration
from tests.history.error_proxy import ErrorProxy
from tests.history.observer import Observer

EXTENDER: Final = "extender"
KUBE_SCHEDULER: Final = "kube-scheduler"
ACTORS: Final = ("one", "two")
"""The tokens of the replicas, which identify them in the audit log."""

_MAX_EXITS: Final = 20


class Replica:
    """A scheduler process that is started again when it ends, as a kubelet does.

    Args:
        plane: the control plane.
        program: `EXTENDER` or `KUBE_SCHEDULER`.
        actor: one of `ACTORS`.
        elects: whether leader election is enabled.
        link: the proxy to the API server, if there is one.
        disabled_filters: the Filter plugins that are disabled, so that the scheduler breaks their rules.

    Attributes:
        link: the proxy to the API server, if there is one.
        exits: exit status and last output of each process that ended by itself.
    """

    def __init__(
        self,
        plane: ControlPlane,
        program: str,
        actor: str,
        *,
        elects: bool,
        link: ApiServerLink | ErrorProxy | None,
        disabled_filters: Sequence[str] = (),
    ) -> None:
        self.actor = actor
        self.link = link
        self.exits: list[str] = []
        self._plane = plane
        self._program = program
        server = "" if link is None else link.url
        election = FAST_ELECTION if elects else None
        self._file = plane.folder / f"scheduler-{actor}.json"
        configuration = make_configuration(plane, actor, election=election, server=server)
        plugins = {"filter": {"disabled": [{"name": name} for name in disabled_filters]}}
        configuration["profiles"] = [{"schedulerName": "default-scheduler", "plugins": plugins}]
        self._file.write_text(json.dumps(configuration))
        self.process = self._start()

    def _start(self) -> Process:
        found = programs.find()
        if not isinstance(found, Programs):
            raise TypeError(found)
        is_control = self._program == KUBE_SCHEDULER
        command = [found.path(KUBE_SCHEDULER)] if is_control else programs.make_extender_command("schedule")
        flags = [f"--config={self._file}", "--secure-port=0", "--v=2"]
        return self._plane.start_program([*command, *flags], f"{self._program}-{self.actor}")

    def kill(self) -> None:
        """Kill the process and start a new one."""
        self.process.signal(signal.SIGKILL)
        self.process.wait()
        self._plane.stop_program(self.process)
        self.process = self._start()

    def restart_if_ended(self) -> None:
        """Start a new process if this one ended by itself.

        Raises:
            ProcessEndedError: it ended too often.
        """
        status = self.process._child.poll()
        if status is not None:
            self.exits.append(f"{self.actor} ended with status {status}: {self.process.tail(3)}")
            if len(self.exits) >= _MAX_EXITS:
                raise ProcessEndedError(self.exits[-1])
            self._plane.stop_program(self.process)
            self.process = self._start()


def find_leader(replicas: list[Replica], observer: Observer) -> Replica:
    """Return the replica that renewed the lease last; the first one if no replica did."""
    renewals = observer.history().renewals
    actor = renewals[-1].actor if renewals else ""
    return next((replica for replica in replicas if replica.actor == actor), replicas[0])
