"""API calls that a plugin returns and the scheduler makes, because plugins do no I/O."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from extender.cache.snapshot import Snapshot
from extender.framework.status import Status, error


@dataclass(frozen=True, slots=True)
class ApiCall:
    """One call to the API server.

    Attributes:
        verb: `create`, `update`, `patch`, `delete` or `bind`.
        kind: the kind of the object, such as `PersistentVolumeClaim`.
        namespace: the object's namespace; empty for a cluster-scoped object.
        name: the object's name.
        body: the request body in plain values.
        subresource: `status`, `binding` or empty.
        strategic: whether a patch is a strategic merge patch; a patch of a pod's status always is.
    """

    verb: str
    kind: str
    namespace: str
    name: str
    body: Mapping[str, Any]
    subresource: str = ""
    strategic: bool = False


_DEADLINE_EXCEEDED = error("context deadline exceeded")

WaitCondition: TypeAlias = Callable[[Snapshot], Status | None]
"""A function of a snapshot: None continues the wait; a status ends it."""


@dataclass(frozen=True, slots=True)
class ApiPlan:
    """The API calls of PreBind or Bind, and the condition to wait for afterwards.

    Attributes:
        calls: the API calls, made in order; the first failure ends the binding.
        wait_for: the wait condition, called after the calls each time the cluster changes, until it returns a status or
            `timeout` expires. Success continues the binding; any other status ends it. None if nothing must be awaited.
        timeout: the timeout of the wait, in seconds.
        timeout_status: the result of a wait that timed out.
        event: the reason and note of an event on the pod, recorded before the wait.
        allocated_devices: the driver of each allocated device, and whether the device has binding conditions; for
            metrics.
    """

    calls: tuple[ApiCall, ...] = ()
    wait_for: WaitCondition | None = None
    timeout: float = 0.0
    timeout_status: Status = _DEADLINE_EXCEEDED
    event: tuple[str, str] | None = None
    allocated_devices: tuple[tuple[str, bool], ...] = ()
