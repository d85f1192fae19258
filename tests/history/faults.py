"""The faults of a run, by name. Each is applied repeatedly, and ends with everything restored."""

import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from time import monotonic
from typing import Final

from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.scheduler_processes import ApiServerLink
from tests.history.cluster_actors import KubeletActor, OperationRunner
from tests.history.error_proxy import ErrorProxy
from tests.history.observer import Observer
from tests.history.replicas import Replica, find_leader

_INTERVAL: Final = 0.1
_LEASE_SECONDS: Final = 4.0


@dataclass
class Environment:
    """What a fault can reach.

    Attributes:
        plane: the control plane.
        observer: records the history.
        rng: the source of random durations.
        replicas: the schedulers.
        actors: the threads that change the cluster.
        proxy: the HTTP proxy of the first replica, if the fault needs one.
        applied: the number of faults that took effect.
    """

    plane: ControlPlane
    observer: Observer
    rng: Random
    replicas: list[Replica] = field(default_factory=list)
    actors: list[OperationRunner | KubeletActor] = field(default_factory=list)
    proxy: ErrorProxy | None = None
    applied: int = 0

    def wait(self, seconds: float) -> None:
        """Let the cluster run, and start replicas that ended again.

        Raises:
            ActorError: a thread failed.
        """
        waited_until = monotonic() + seconds
        while (remaining := waited_until - monotonic()) > 0:
            for replica in self.replicas:
                replica.restart_if_ended()
            for actor in self.actors:
                actor.is_running()
            assert self.plane._etcd is not None
            self.plane._etcd.pause(min(remaining, _INTERVAL))

    def wait_randomly(self, low: float, high: float) -> None:
        """Wait for a random number of seconds."""
        self.wait(self.rng.uniform(low, high))

    def leader(self) -> Replica:
        """Return the replica that holds the lease."""
        return find_leader(self.replicas, self.observer)


def _no_fault(environment: Environment) -> None:
    environment.wait(1.0)


def _kill_scheduler(environment: Environment) -> None:
    environment.leader().kill()
    environment.wait_randomly(1.0, 4.0)


def _restart_api_server(environment: Environment) -> None:
    environment.plane.stop_api_server(signal.SIGKILL)
    environment.wait_randomly(0.0, 3.0)
    environment.plane.start_api_server()


def _pause_etcd(environment: Environment) -> None:
    etcd = environment.plane._etcd
    assert etcd is not None
    etcd.signal(signal.SIGSTOP)
    try:
        environment.wait_randomly(0.5, 5.0)
    finally:
        etcd.signal(signal.SIGCONT)


def _link(environment: Environment) -> ApiServerLink:
    link = environment.leader().link
    assert isinstance(link, ApiServerLink)
    return link


def _reset_connections(environment: Environment) -> None:
    for _ in range(environment.rng.randint(1, 4)):
        _link(environment).restore()
        environment.wait_randomly(0.1, 0.6)


def _stall_connections(environment: Environment) -> None:
    link = _link(environment)
    link.stall()
    environment.wait_randomly(1.0, 4.0)
    if environment.rng.random() < 0.5:
        link.restore()
    else:
        link._relay.signal(signal.SIGCONT)


def _respond_with(status: int) -> Callable[[Environment], None]:
    def apply(environment: Environment) -> None:
        assert environment.proxy is not None
        environment.proxy.status = status
        if environment.rng.random() < 0.5:
            environment.proxy.reset()
        environment.wait_randomly(1.0, 5.0)
        environment.proxy.status = 0

    return apply


def _lose_binding_responses(environment: Environment) -> None:
    assert environment.proxy is not None
    environment.proxy.loses_bindings = True
    environment.wait_randomly(1.0, 4.0)
    environment.proxy.loses_bindings = False


def _stall_leader(environment: Environment) -> None:
    """Stall the connections of the leader until the standby holds the lease."""
    leader, link = environment.leader(), _link(environment)
    link.stall()
    _wait_for_other_leader(environment, leader)
    link.restore()


def _terminate_leader(environment: Environment) -> None:
    """Terminate the leader, in half of the cases while etcd is paused; it ends its bindings and releases the lease."""
    etcd, leader = environment.plane._etcd, environment.leader()
    assert etcd is not None
    if environment.rng.random() < 0.5:
        etcd.signal(signal.SIGSTOP)
        environment.wait_randomly(0.0, 1.0)
    leader.process.signal(signal.SIGTERM)
    try:
        environment.wait_randomly(0.0, 2.0)
    finally:
        etcd.signal(signal.SIGCONT)
    environment.wait(1.0)


def _pause_leader(environment: Environment) -> None:
    """Stop the leader for longer than the lease; it continues while the standby schedules."""
    leader = environment.leader()
    leader.process.signal(signal.SIGSTOP)
    _wait_for_other_leader(environment, leader)
    environment.wait_randomly(0.0, 1.0)
    leader.process.signal(signal.SIGCONT)
    environment.wait(1.0)


def _wait_for_other_leader(environment: Environment, leader: Replica) -> None:
    deadline = monotonic() + 10 * _LEASE_SECONDS
    while environment.leader() is leader:
        environment.wait(0.2)
        assert monotonic() < deadline, "the standby does not take the lease"


@dataclass(frozen=True, slots=True)
class Fault:
    """A kind of fault.

    Attributes:
        apply: applies the fault once and restores everything.
        replicas: the number of schedulers; two have leader election.
        link: `relay` or `proxy` between the schedulers and the API server, or empty.
        may_exit: whether a scheduler may end by itself, because it lost the lease.
        pause: the seconds between two faults, at least and at most.
    """

    apply: Callable[[Environment], None]
    replicas: int = 1
    link: str = ""
    may_exit: bool = False
    pause: tuple[float, float] = (1.0, 3.0)


FAULTS: Final = {
    "none": Fault(_no_fault),
    "scheduler-kill": Fault(_kill_scheduler),
    "api-server-kill": Fault(_restart_api_server, pause=(2.0, 6.0)),
    "etcd-pause": Fault(_pause_etcd),
    "connection-reset": Fault(_reset_connections, link="relay"),
    "connection-stall": Fault(_stall_connections, link="relay"),
    "unauthorized": Fault(_respond_with(401), link="proxy"),
    "forbidden": Fault(_respond_with(403), link="proxy"),
    "unavailable": Fault(_respond_with(503), link="proxy"),
    "lost-binding-response": Fault(_lose_binding_responses, link="proxy"),
    "leader-kill": Fault(_kill_scheduler, replicas=2),
    "leader-terminate": Fault(_terminate_leader, replicas=2, may_exit=True),
    "leader-stall": Fault(_stall_leader, replicas=2, link="relay", may_exit=True),
    "leader-pause": Fault(_pause_leader, replicas=2, may_exit=True),
}
"""All faults by name."""
