"""Attempts to place a pod in a simulation, and the Permit plugins there.

Plugins may allow and reject pods that wait. All other waiting pods time out at the end.

Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunPermitPlugins;
pkg/scheduler/framework/runtime/waiting_pods_map.go, newWaitingPod (1.36).
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from extender.api.kinds.pod import Pod
from extender.cache.cache import Cache
from extender.config import durations
from extender.cycle.binding_cycle import run_permit_plugins, run_unreserve_plugins
from extender.cycle.decision import ScheduleFailure
from extender.cycle.diagnosis import format_rejection_of_one_node
from extender.cycle.plugin_runtime import PluginRuntime
from extender.framework.profiles import Profile
from extender.framework.status import Status, unschedulable_status
from extender.framework.waiting_pods import WaitingPodSignal


@dataclass(frozen=True, slots=True)
class Attempt:
    """The outcome of one attempt to place a pod.

    Attributes:
        node: the node on which the pod is assumed; empty if it was not placed.
        reasons: the reasons why the pod was not placed, sorted, without node counts; empty if it was placed.
        message: kube-scheduler's message; empty if the pod was placed.
        failure: the failed scheduling cycle; None if another step rejected the pod, or if it was placed.
    """

    pod: Pod
    node: str = ""
    reasons: tuple[str, ...] = ()
    message: str = ""
    failure: ScheduleFailure | None = None


def make_late_rejection(pod: Pod, status: Status) -> Attempt:
    """Return the rejection of *pod* by a Reserve or Permit plugin with *status*, which may also be an error."""
    if not status.is_rejected:
        return Attempt(pod, reasons=(status.message,), message=status.message)
    return Attempt(pod, reasons=tuple(sorted(status.reasons)), message=format_rejection_of_one_node(status))


@dataclass(slots=True)
class _WaitingPod:
    """An assumed pod that waits on Permit.

    Attributes:
        timeouts: the timeout in seconds of each plugin that makes the pod wait.
        reasons: the reasons why these plugins make the pod wait.
    """

    pod: Pod
    node: str
    profile: Profile
    cycle_state: dict[str, Any]
    timeouts: dict[str, float]
    reasons: tuple[str, ...]


class PermitSimulation:
    """Runs Permit plugins, and keeps the waiting pods until they are allowed, rejected or time out."""

    def __init__(self, cache: Cache, runtime: PluginRuntime) -> None:
        self._cache, self._runtime = cache, runtime
        self._waiting_pods: dict[str, _WaitingPod] = {}  # by uid
        self._rejected: list[Attempt] = []

    def run_permit(self, pod: Pod, node: str, profile: Profile, cycle_state: dict[str, Any]) -> Attempt | None:
        """Run the Permit plugins for an assumed pod. Return the rejection, or None if the pod is allowed or waits."""
        if not profile.permit_plugins:
            return None
        pod_info = self._cache.make_pod_info(pod)
        with self._cache.read() as snapshot:
            result = run_permit_plugins(pod_info, node, snapshot, profile, self._runtime, cycle_state)
        self.send(result.signals)
        status = result.status
        if status is None:
            return None
        if result.timeouts:
            reasons = status.reasons[:-1] or status.reasons
            waiting_pod = _WaitingPod(pod, node, profile, cycle_state, dict(result.timeouts), reasons)
            self._waiting_pods[pod_info.uid] = waiting_pod
            return None
        self.unreserve(pod, node, profile, cycle_state)
        return make_late_rejection(pod, status)

    def send(self, signals: Iterable[WaitingPodSignal]) -> None:
        """Allow and reject waiting pods in the order of *signals*. A rejected pod leaves its node."""
        queue = deque(signals)
        while queue:
            plugin, uid, rejection = queue.popleft()
            waiting_pod = self._waiting_pods.get(uid)
            if waiting_pod is None:
                continue
            waiting_pod.timeouts.pop(plugin, None)
            if rejection is not None:
                del self._waiting_pods[uid]
                self._rejected.append(make_late_rejection(waiting_pod.pod, unschedulable_status(rejection)))
                queue += self._unreserve_waiting(waiting_pod)
            elif not waiting_pod.timeouts:
                del self._waiting_pods[uid]

    def unreserve(self, pod: Pod, node: str, profile: Profile, cycle_state: dict[str, Any]) -> None:
        """Run the Unreserve plugins for a pod, and forget it if it is assumed. They may reject waiting pods.

        If the pod waits on Permit, its wait ends.
        """
        self._waiting_pods.pop(self._cache.make_pod_info(pod).uid, None)
        self.send(self._unreserve(pod, node, profile, cycle_state))

    def _unreserve_waiting(self, pod: _WaitingPod) -> tuple[WaitingPodSignal, ...]:
        return self._unreserve(pod.pod, pod.node, pod.profile, pod.cycle_state)

    def _unreserve(
        self, pod: Pod, node: str, profile: Profile, cycle_state: dict[str, Any]
    ) -> tuple[WaitingPodSignal, ...]:
        """Run the Unreserve plugins for a pod, forget it, and return the rejections of waiting pods."""
        pod_info = self._cache.make_pod_info(pod)
        outcome = run_unreserve_plugins(pod_info, node, profile, self._runtime, cycle_state)
        self._cache.forget(pod)
        return outcome.rejections

    def end_waits(self) -> Iterator[Attempt]:
        """Time out all waiting pods, and yield the rejection of each, and of those that a plugin rejected."""
        while self._waiting_pods:
            waiting_pod = self._waiting_pods.pop(next(iter(self._waiting_pods)))
            self.send(self._unreserve_waiting(waiting_pod))
            plugin, timeout = min(waiting_pod.timeouts.items(), key=lambda item: item[1])
            text = f"rejected due to timeout after waiting {durations.render(timeout)} at plugin {plugin}"
            message = format_rejection_of_one_node(unschedulable_status(text))
            yield Attempt(waiting_pod.pod, reasons=waiting_pod.reasons, message=message)
        yield from self._rejected
        self._rejected.clear()
