"""Our extender gone, stopped, slow or broken beside a real kube-scheduler: pods wait or flow, none is bound twice."""

import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.controlplane.api import Api, Thing, condition
from tests.controlplane.beside import Beside, grant, is_placed
from tests.controlplane.candidates import create, nodes, pods, until_bound
from tests.controlplane.front import Front
from tests.controlplane.plane import ControlPlane
from tests.controlplane.recording import Recording
from tests.history import wrong

QUICK = {"podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 1}
STOPPED = 30.0
"""Seconds; connections that nobody answers are given up by then, and asked for anew."""

BOTH = pytest.mark.parametrize("ignorable", [True, False], ids=["ignorable", "not ignorable"])


class Trial:
    """Batches of pods, each to be placed in time."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self._count = 0

    def batch(self, name: str) -> list[Thing]:
        """Five more pods."""
        self._count += 5
        return [self.api.create(pod) for pod in pods(name, 5)]

    def settles(self) -> None:
        """All pods there are come to nodes."""
        until_bound(self.api, self._count)

    def meanwhile(self, batch: list[Thing], *, ignorable: bool) -> None:
        """While we do not answer as we should, pods flow or wait."""
        if ignorable:
            self.settles()
            return
        for pod in batch:
            told = self.api.wait_for(pod, lambda each: bool(condition(each, "PodScheduled")), "a failed attempt")
            assert not is_placed(told)
            assert condition(told, "PodScheduled")["reason"] == "SchedulerError"


@pytest.fixture
def recorded(control_plane: ControlPlane, api: Api) -> Iterator[Recording]:
    """Ten nodes; at the end of the trial every pod is on one, no node is overfull and nothing was bound twice."""
    grant(api)
    recording = Recording(control_plane)
    create(api, nodes(10))
    yield recording
    assert wrong(recording.history()) == []


def started(plane: ControlPlane, entry: dict[str, Any]) -> None:
    plane.scheduler({"extenders": [entry], **QUICK})


@BOTH
def test_a_process_that_is_killed_or_stopped(
    control_plane: ControlPlane, api: Api, recorded: Recording, ignorable: bool
) -> None:
    ours, trial = Beside(control_plane), Trial(api)
    started(control_plane, ours.entry(bindVerb="bind", ignorable=ignorable, httpTimeout="1s"))
    trial.batch("before")
    trial.settles()

    ours.process.signal(signal.SIGKILL)
    trial.meanwhile(trial.batch("gone"), ignorable=ignorable)
    ours.again()
    trial.settles()

    ours.process.signal(signal.SIGSTOP)
    trial.meanwhile(trial.batch("stopped"), ignorable=ignorable)
    ours.process.pause(STOPPED)
    ours.process.signal(signal.SIGCONT)
    trial.batch("after")
    trial.settles()


@BOTH
def test_answers_that_are_late_or_say_500(
    control_plane: ControlPlane, api: Api, recorded: Recording, ignorable: bool
) -> None:
    with Front(Beside(control_plane)) as front:
        trial = Trial(api)
        plain = {"enableHTTPS": False, "tlsConfig": None, "urlPrefix": front.url, "httpTimeout": "1s"}
        started(control_plane, front.ours.entry(bindVerb="bind", ignorable=ignorable, **plain))
        trial.batch("before")
        trial.settles()

        front.broken = True
        trial.meanwhile(trial.batch("broken"), ignorable=ignorable)
        front.broken = False
        trial.settles()

        front.hold()
        trial.meanwhile(trial.batch("late"), ignorable=ignorable)
        front.go()  # and with them the bindings asked for long ago
        trial.batch("after")
        trial.settles()
