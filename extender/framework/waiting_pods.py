"""The pods that wait on Permit. Each pod is a state machine. The caller passes the time as an argument.

    waiting --every plugin allows--> allowed
       |------a plugin rejects-----> rejected   (Unschedulable)
       |------timeout--------------> rejected   (Unschedulable)
       +------preempted------------> failed     (Error)

The states allowed, rejected and failed are final.

Source: pkg/scheduler/framework/runtime/waiting_pods_map.go, newWaitingPod (1.36).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from extender.cache.pod_info import PodInfo
from extender.config import durations
from extender.framework.status import SUCCESS, Code, Status

MAX_TIMEOUT = 900.0
"""The longest timeout of a plugin, in seconds.

Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunPermitPlugins (1.36).
"""


class WaitingPodSignal(NamedTuple):
    """A plugin allows or rejects a waiting pod.

    Attributes:
        plugin: the name of the plugin.
        uid: the uid of the pod.
        rejection: the message of the rejection; None allows the pod.
    """

    plugin: str
    uid: str
    rejection: str | None = None


def make_rejections(plugin: str, uids_to_reject: Mapping[str, str]) -> list[WaitingPodSignal]:
    """Return the signals with which *plugin* rejects pods; the messages are by uid."""
    return [WaitingPodSignal(plugin, uid, message) for uid, message in uids_to_reject.items()]


@dataclass(slots=True)
class WaitingPod:
    """A pod that waits for plugins to allow it.

    Attributes:
        pod: the waiting pod.
        node_name: the name of the node on which the pod is assumed.
        pending_plugins: the timeout and the deadline of each plugin that has not allowed the pod yet, by plugin name.
            Both are in seconds; the deadline is a time of the caller's clock.
        status: the result of the wait; None while the pod waits.
    """

    pod: PodInfo
    node_name: str
    pending_plugins: dict[str, tuple[float, float]]
    status: Status | None = field(default=None)

    def allow(self, plugin: str) -> None:
        """Record that *plugin* allows the pod; the wait ends once all plugins allow it."""
        self.pending_plugins.pop(plugin, None)
        if not self.pending_plugins and self.status is None:
            self.status = SUCCESS

    def reject(self, plugin: str, message: str) -> bool:
        """Reject the pod; return False if the wait had already ended."""
        return self._end_wait(Status(Code.UNSCHEDULABLE, (message,), plugin))

    def preempt(self, plugin: str, message: str) -> bool:
        """End the wait because the pod is a preemption victim; return False if the wait had already ended."""
        return self._end_wait(Status(Code.ERROR, (f"waiting on permit for pod: {message}",), plugin))

    def _end_wait(self, status: Status) -> bool:
        if self.status is not None:
            return False
        self.status = status
        return True

    def reject_if_expired(self, now: float) -> None:
        """Reject the pod if the deadline of a plugin has passed at *now*."""
        for plugin, (timeout, deadline) in self.pending_plugins.items():
            if now >= deadline:
                formatted_timeout = durations.render(timeout)
                self.reject(plugin, f"rejected due to timeout after waiting {formatted_timeout} at plugin {plugin}")
                return


class WaitingPods:
    """All waiting pods, by uid."""

    def __init__(self) -> None:
        self._pods: dict[str, WaitingPod] = {}

    def add(self, pod: PodInfo, node_name: str, timeouts: Mapping[str, float], now: float) -> WaitingPod:
        """Add *pod*, which is assumed on a node. *timeouts* are by plugin name, in seconds from *now*."""
        pending_plugins = {plugin: (timeout, now + timeout) for plugin, timeout in timeouts.items()}
        waiting_pod = self._pods[pod.uid] = WaitingPod(pod, node_name, pending_plugins)
        return waiting_pod

    def get(self, uid: str) -> WaitingPod | None:
        """Return the waiting pod with *uid*, or None."""
        return self._pods.get(uid)

    def __iter__(self) -> Iterator[WaitingPod]:
        return iter(list(self._pods.values()))

    def __len__(self) -> int:
        return len(self._pods)

    def send(self, signals: Iterable[WaitingPodSignal]) -> None:
        """Allow and reject pods in the order of *signals*. A signal to a pod that does not wait has no effect.

        Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.GetWaitingPod (1.36).
        """
        for plugin, uid, rejection in signals:
            waiting_pod = self._pods.get(uid)
            if waiting_pod is None:
                continue
            if rejection is None:
                waiting_pod.allow(plugin)
            else:
                waiting_pod.reject(plugin, rejection)

    def pop_decided_pods(self, now: float) -> list[WaitingPod]:
        """Remove and return the pods whose wait has ended at *now*."""
        decided_pods = []
        for uid, waiting_pod in list(self._pods.items()):
            waiting_pod.reject_if_expired(now)
            if waiting_pod.status is not None:
                decided_pods.append(self._pods.pop(uid))
        return decided_pods
