"""Runs a workload and a fault against a scheduler, and checks the recorded history."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from time import monotonic
from typing import Final

from tests.controlplane.api_client import ApiClient
from tests.controlplane.control_plane import SCHEDULER, ControlPlane
from tests.controlplane.scheduler_processes import ApiServerLink
from tests.history.checker import (
    PENDING_RULES,
    Violation,
    check_bindings,
    find_assignments,
    find_safety_violations,
    find_unbound_pods,
    find_violations,
    find_wrong_conditions,
)
from tests.history.cluster_actors import KubeletActor, OperationRunner, delete_all
from tests.history.cluster_state import (
    ClusterState,
    History,
    claim_keys,
    device_claim_keys,
    final_state,
    is_terminating,
    node_name,
    uid_of,
)
from tests.history.error_proxy import ErrorProxy
from tests.history.faults import FAULTS, Environment
from tests.history.observer import Observer
from tests.history.replicas import ACTORS, EXTENDER, Replica
from tests.history.shrink import describe_history, shrink, shrink_history
from tests.history.workload import CONTROLLERS, Operation, make_cluster, make_operations

DEFAULT_SECONDS: Final = 12.0
SETTLE_SECONDS: Final = 60.0
"""Seconds after the last fault in which every pod that fits must be bound. The longest back-off of a pod is 10 s."""

_STABLE_SECONDS: Final = 1.5
_POLL_SECONDS: Final = 0.5
_START_SECONDS: Final = 2.0
_CONTROLLERS_STARTED: Final = '"Caches are synced"'


@dataclass(frozen=True, slots=True)
class Run:
    """A run that is finished.

    Attributes:
        fault: the name of the fault.
        seed: the seed of workload and fault.
        operations: the workload.
        history: the recorded history.
        violations: the rules that were broken.
        failures: the processes that ended without a reason, and what was not done in time.
        applied: the number of faults that took effect.
        recovery_seconds: seconds after the last fault until every pod that fits was bound; None if that failed.
    """

    fault: str
    seed: int
    operations: Sequence[Operation]
    history: History
    violations: Sequence[Violation]
    failures: Sequence[str]
    applied: int
    recovery_seconds: float | None

    @property
    def is_correct(self) -> bool:
        """Whether no rule was broken and nothing else failed."""
        return not self.violations and not self.failures

    def summary(self) -> str:
        """Return one line with the measured figures."""
        assigned = sum(1 for _ in find_assignments(self.history))
        evicted = {
            uid_of(change.object)
            for change in self.history.changes
            if change.kind == "Pod" and change.object is not None and _is_preempted(change.object)
        }
        rejected = sum(not binding.accepted for binding in self.history.bindings)
        staleness = max((binding.staleness_seconds for binding in check_bindings(self.history)), default=0.0)
        recovery = "never" if self.recovery_seconds is None else f"{self.recovery_seconds:.1f} s"
        return (
            f"{self.fault} seed {self.seed}: {len(self.operations)} operations, {len(self.history.changes)} changes, "
            f"{assigned} bound, {rejected} bindings rejected, {len(evicted)} preempted, {self.applied} faults, "
            f"{staleness:.2f} s staleness, recovered in {recovery}, {len(self.violations)} violations, "
            f"{len(self.failures)} other failures"
        )

    def report(self) -> str:
        """Return the violations, and the shortest history of the first one of each rule."""
        lines = [self.summary(), *self.failures, *map(str, self.violations)]
        for rule in dict.fromkeys(violation.rule for violation in self.violations):
            violation = next(each for each in self.violations if each.rule == rule)
            if rule not in PENDING_RULES:  # without other objects, every pending pod fits
                shortest = shrink_history(self.history, violation)
                lines += [f"--- shortest history of {violation}", describe_history(shortest)]
            lines += [f"--- changes of the pod, its claims, the node and its pods: {violation}"]
            lines += [describe_history(_about(self.history, violation))]
        return "\n".join(lines)


def _is_preempted(pod: object) -> bool:
    conditions = pod.get("status", {}).get("conditions") or () if isinstance(pod, dict) else ()
    return any(each["type"] == "DisruptionTarget" and each["status"] == "True" for each in conditions)


def _about(history: History, violation: Violation) -> History:
    keys = {("Pod", violation.pod), ("Node", violation.node)} | {
        ("Pod", change.key)
        for change in history.changes
        if violation.node and change.kind == "Pod" and change.object and node_name(change.object) == violation.node
    }
    pods = [each.object for each in history.changes if (each.kind, each.key) == ("Pod", violation.pod) and each.object]
    keys |= {("PersistentVolumeClaim", key) for pod in pods for key in claim_keys(pod)}
    keys |= {("ResourceClaim", key) for pod in pods for key in device_claim_keys(pod)}
    return History([change for change in history.changes if (change.kind, change.key) in keys])


def run(
    plane: ControlPlane,
    fault: str,
    seed: int,
    *,
    seconds: float = DEFAULT_SECONDS,
    program: str = EXTENDER,
    operations: Sequence[Operation] | None = None,
    disabled_filters: Sequence[str] = (),
) -> Run:
    """Run a workload with a fault and check its history.

    Args:
        plane: a control plane without objects.
        fault: a name of `FAULTS`.
        seed: the seed of the workload and of the fault.
        seconds: the duration of the workload and the faults.
        program: `EXTENDER` or `KUBE_SCHEDULER`.
        operations: overrides the workload of the seed.
        disabled_filters: the Filter plugins that are disabled.
    """
    steps = make_operations(seed, seconds) if operations is None else operations
    environment = Environment(plane, Observer(plane), Random(seed))
    with plane.client() as api:
        try:
            with _running(environment, api, fault, program, steps, disabled_filters):
                recovery = _apply_faults_and_settle(environment, fault, seconds)
                history = environment.observer.stop()  # before the schedulers and the kubelets stop
        finally:
            plane.stop_other_programs()
            if plane._api_server is None:  # the run ended while it was down
                plane.start_api_server()
            delete_all(api)
    is_expected = FAULTS[fault].may_exit
    failures = [] if is_expected else [line for replica in environment.replicas for line in replica.exits]
    if recovery is None:
        failures += [
            f"not settled: {line}" for line in describe_remaining_work(final_state(history))[:5] or ["changes"]
        ]
    # A settled cluster had no pending pod that fits; a claim that the controllers release later may let one fit again.
    violations = find_violations(history) if recovery is None else find_safety_violations(history)
    return Run(fault, seed, steps, history, violations, failures, environment.applied, recovery)


@contextmanager
def _running(
    environment: Environment,
    api: ApiClient,
    fault: str,
    program: str,
    operations: Sequence[Operation],
    disabled_filters: Sequence[str],
) -> Iterator[None]:
    """Create the cluster, and run controllers, schedulers and actors."""
    plane, kind = environment.plane, FAULTS[fault]
    for manifest in make_cluster():
        api.create(manifest)
    # A controller manager that starts while the API server is down ends after 10 s, and no claim is bound.
    plane.start_controllers(*CONTROLLERS).wait_for_output(_CONTROLLERS_STARTED, SETTLE_SECONDS)
    links: list[ApiServerLink | ErrorProxy] = []
    try:
        for actor in ACTORS[: kind.replicas]:
            if kind.link == "relay":
                links.append(ApiServerLink(plane))
            elif kind.link == "proxy":
                links.append(ErrorProxy(plane.url, plane.ca_file, plane.token(SCHEDULER, actor)))
            link = links[-1] if links else None
            replica = Replica(
                plane, program, actor, elects=kind.replicas > 1, link=link, disabled_filters=disabled_filters
            )
            environment.replicas.append(replica)
        environment.proxy = next((link for link in links if isinstance(link, ErrorProxy)), None)
        _wait_for_first_bindings(environment, api)
        environment.actors += [
            KubeletActor(plane, environment.observer),
            OperationRunner(plane, environment.observer, operations),
        ]
        yield
    finally:
        for each in environment.actors:
            each.stop()
        for replica in environment.replicas:
            plane.stop_program(replica.process)
        for link in links:
            if isinstance(link, ErrorProxy):
                link.stop()


def _wait_for_first_bindings(environment: Environment, api: ApiClient) -> None:
    """Create a pod and wait until it is bound, so that no fault comes before the scheduler runs."""
    container = {"name": "app", "image": "app"}
    metadata = {"name": "first", "namespace": "default"}
    api.create({"kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}})
    deadline = monotonic() + SETTLE_SECONDS
    while True:
        pod = environment.observer.state().find("Pod", "default/first")
        if pod is not None and pod["spec"].get("nodeName"):
            return
        assert monotonic() < deadline, environment.replicas[0].process.tail()
        environment.wait(_POLL_SECONDS)


def _apply_faults_and_settle(environment: Environment, fault: str, seconds: float) -> float | None:
    """Apply the fault until *seconds* are over, then wait until the cluster is settled; return its duration."""
    kind, start = FAULTS[fault], monotonic()
    environment.wait(_START_SECONDS)
    while monotonic() - start < seconds:
        environment.applied += 1
        kind.apply(environment)
        environment.wait_randomly(*kind.pause)
    runner = next(actor for actor in environment.actors if isinstance(actor, OperationRunner))
    while runner.is_running():
        environment.wait(_POLL_SECONDS)
    if environment.proxy is not None:
        assert environment.proxy.injected, "no response was replaced or lost"
    return _settle(environment)


def _settle(environment: Environment) -> float | None:
    """Wait until nothing is left to do; return the seconds that it took, or None if it took too long."""
    start = monotonic()
    settled_since: float | None = None
    while monotonic() - start < SETTLE_SECONDS:
        environment.wait(_POLL_SECONDS)
        if describe_remaining_work(environment.observer.state()):
            settled_since = None
            continue
        settled_since = settled_since or monotonic()
        if monotonic() - settled_since >= _STABLE_SECONDS:
            return settled_since - start
    return None


def describe_remaining_work(state: ClusterState) -> list[str]:
    """Return what kubelets and the scheduler still have to do, one line per pod."""
    terminating = [f"{key} is terminating" for key, pod in state.pods.items() if is_terminating(pod)]
    starting = [
        f"{key} does not run yet"
        for key, pod in state.pods.items()
        if node_name(pod) and pod.get("status", {}).get("phase") == "Pending"
    ]
    pending = [*find_unbound_pods(state, 0), *find_wrong_conditions(state, 0)]
    return [*terminating, *starting, *map(str, pending)]


def shrink_operations(plane: ControlPlane, failed: Run, max_tries: int, program: str, seconds: float) -> Run:
    """Run parts of the workload of a failed run again, and return the failing run with the fewest operations."""
    smallest = failed
    rules = {violation.rule for violation in failed.violations}

    def still_fails(operations: list[Operation]) -> bool:
        nonlocal smallest
        again = run(plane, failed.fault, failed.seed, seconds=seconds, program=program, operations=operations)
        if not rules & {violation.rule for violation in again.violations}:
            return False
        smallest = again
        return True

    shrink(failed.operations, still_fails, max_tries)
    return smallest
