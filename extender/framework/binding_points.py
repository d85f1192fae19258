"""The extension points from Reserve to PostBind, one Protocol each. They run after a node was selected for the pod.

The results declare what the scheduler does to other pods: allow or reject waiting pods, and activate queued pods.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from extender.api.kinds.pod import Pod
from extender.api.read_only import ReadOnlyDict
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import Snapshot
from extender.framework.api_plan import ApiCall, ApiPlan
from extender.framework.extension_points import NamedPlugin
from extender.framework.status import Status


@dataclass(frozen=True, slots=True)
class UnreserveResult:
    """The result of Unreserve.

    Attributes:
        api_calls: the API calls that undo those of `pre_bind`.
        uids_to_reject: as in `PermitResult`, for example the other pods of a gang.
        pods_to_activate: queued pods to move to the active queue.

    Source: kube-scheduler/framework/interface.go, Handle, PodActivator, WaitingPod (1.36).
    """

    api_calls: Sequence[ApiCall] = ()
    uids_to_reject: Mapping[str, str] = field(default_factory=ReadOnlyDict, hash=False)
    pods_to_activate: tuple[Pod, ...] = ()


class Reserve(NamedPlugin, Protocol):
    """Reserves resources for the pod on its node, before binding.

    Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunReservePluginsReserve (1.36).
    """

    def reserve(self, pod: PodInfo, node_name: str, snapshot: Snapshot, state: Any) -> Status | None:
        """Reserve resources; a status other than success undoes the reservations of all plugins."""

    def unreserve(self, pod: PodInfo, node_name: str, state: Any) -> UnreserveResult | Sequence[ApiCall] | None:
        """Undo `reserve` if it ran, and return the API calls that undo those of `pre_bind`.

        A sequence of API calls is an `UnreserveResult` with these calls. Plugins are called in reverse order. The
        method must not raise. A failed API call does not prevent the next.
        """


@runtime_checkable
class AssumeExtensions(NamedPlugin, Protocol):
    """A Reserve plugin that modifies the assumed pod, for example to add resources that the pod does not request.

    Source: pkg/scheduler/schedule_one.go, Scheduler.assume (1.36).
    """

    def make_assumed_pod(self, pod: Pod, node_name: str, state: Any) -> Pod:
        """Return the pod to assume on the node: a modified copy of *pod*."""


@dataclass(frozen=True, slots=True)
class PermitResult:
    """The result of Permit.

    Attributes:
        status: None approves the pod; WAIT makes it wait; any other code rejects it.
        timeout: the timeout of the wait, in seconds; at most 900.
        uids_to_allow: the uids of waiting pods that this plugin allows now.
        pods_to_activate: queued pods to move to the active queue.
        uids_to_reject: the uids of waiting pods that this plugin rejects now, each with the message of its rejection. A
            pod that is also in `uids_to_allow` is rejected. A pod that does not wait, such as the plugin's own pod, is
            ignored.

    Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunPermitPlugins (1.36);
    pkg/scheduler/framework/plugins/gangscheduling/gangscheduling.go, GangScheduling.Permit (1.36);
    pkg/scheduler/framework/runtime/waiting_pods_map.go, waitingPod.Reject (1.36).
    """

    status: Status | None = None
    timeout: float = 0.0
    uids_to_allow: tuple[str, ...] = ()
    pods_to_activate: tuple[Pod, ...] = ()
    uids_to_reject: Mapping[str, str] = field(default_factory=ReadOnlyDict, hash=False)


ALLOW = PermitResult()


class Permit(NamedPlugin, Protocol):
    """Approves, rejects or delays the binding of a pod."""

    def permit(self, pod: PodInfo, node_name: str, snapshot: Snapshot, state: Any) -> PermitResult:
        """Approve or reject the pod, or make it wait. In *snapshot* the pod is assumed on the node."""


@dataclass(frozen=True, slots=True)
class PreBindPreFlightResult:
    """The result of PreBindPreFlight.

    Attributes:
        allow_parallel: whether PreBind may run in parallel with adjacent plugins that allow it too.
        skip: whether PreBind is skipped.
    """

    allow_parallel: bool = False
    skip: bool = False


@runtime_checkable
class PreBindPreFlight(Protocol):
    """A PreBind plugin that reports in advance whether its `pre_bind` must run.

    Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunPreBindPreFlights,
    frameworkImpl.getPreBindPluginGroups (1.36).
    """

    def pre_bind_pre_flight(self, pod: PodInfo, node_name: str, state: Any) -> PreBindPreFlightResult | Status:
        """Return a result, or a status. The status SKIP means `PreBindPreFlightResult(skip=True)`."""


class PreBind(NamedPlugin, Protocol):
    """Prepares the node before the pod is bound to it.

    Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunPreBindPlugins (1.36).
    """

    def pre_bind(self, pod: PodInfo, node_name: str, snapshot: Snapshot, state: Any) -> ApiPlan | Status:
        """Return the API calls to make, or a status that ends the binding."""


class Bind(NamedPlugin, Protocol):
    """Binds the pod to the node. The first Bind plugin that does not return SKIP is used.

    Source: pkg/scheduler/schedule_one.go, Scheduler.bind; pkg/scheduler/framework/runtime/framework.go,
    frameworkImpl.RunBindPlugins (1.36).
    """

    def bind(self, pod: PodInfo, node_name: str) -> ApiPlan | Status:
        """Return the API calls that bind the pod; after the status SKIP the next plugin is called."""


@dataclass(frozen=True, slots=True)
class PostBindResult:
    """The result of PostBind.

    Attributes:
        pods_to_activate: queued pods to move to the active queue, after all PostBind plugins.

    Source: pkg/scheduler/schedule_one.go, Scheduler.bindingCycle; pkg/scheduler/framework/interface.go,
    PodsToActivate (1.36).
    """

    pods_to_activate: tuple[Pod, ...] = ()


class PostBind(NamedPlugin, Protocol):
    """Runs after the pod was bound.

    Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunPostBindPlugins (1.36).
    """

    def post_bind(self, pod: PodInfo, node_name: str, state: Any) -> PostBindResult | None:
        """Clean up. The pod stays bound, whatever the result is."""
