"""API calls that a plugin returns and the scheduler makes, because plugins do no I/O."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from extender.cache.snapshot import Snapshot
from extender.framework.status import Status, error_status


def ignore_version(resource_version: str) -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True)
class ApiCall:
    """One call to the API server.

    Attributes:
        verb: `create`, `update`, `patch`, `delete` or `bind`.
        kind: the kind of the object, such as `PersistentVolumeClaim`: one that the scheduler itself reads or writes.
        namespace: the object's namespace; empty for a cluster-scoped object.
        name: the object's name.
        body: the request body in plain values.
        subresource: `status`, `binding` or empty.
        strategic: whether a patch is a strategic merge patch. The patch of a pod's or pod group's status always is.
        on_written: the function that is called after a write, with the new resource version of the object.
        is_resent: whether a write of unknown outcome is sent again until the server answers. If the server then rejects
            it, or `on_conflict` returns a message, `on_written` is called with the current resource version, because an
            earlier attempt may have been executed. The write must have no other effect if it is executed twice.
        on_conflict: the function that is called after a conflict with the current object in JSON. It updates `body`
            and returns the calls to make before this one is made again, or an error message. It may raise
            `DecodeError`. None: a conflict is an error.
        purpose: what the call does, as the start of the message of its error; empty: the message is the error alone.
    """

    verb: str
    kind: str
    namespace: str
    name: str
    body: Mapping[str, Any]
    subresource: str = ""
    strategic: bool = False
    on_written: Callable[[str], None] = field(default=ignore_version, compare=False)
    is_resent: bool = False
    on_conflict: "Callable[[bytes], Sequence[ApiCall] | str] | None" = field(default=None, compare=False)
    purpose: str = field(default="", compare=False)


_DEADLINE_EXCEEDED = error_status("context deadline exceeded")

WaitCondition: TypeAlias = Callable[[Snapshot], Status | None]
"""A function of a snapshot. If it returns None, the wait continues; a status ends the wait."""


@dataclass(frozen=True, slots=True)
class ApiPlan:
    """The API calls of PreBind, Bind or PostFilter. A PreBind plan may also have a condition to wait for afterwards.

    Attributes:
        calls: the API calls, made in order; no call is made after a failure.
        wait_condition: the function that is polled after the API calls until it returns a status or `timeout` expires.
            SUCCESS continues the binding; any other status ends it. None if the binding continues without a wait.
        timeout: the timeout of the wait, in seconds.
        timeout_status: the result of a wait that timed out.
        event: the reason and note of an event on the pod, recorded before the wait.
        allocated_devices: a pair for each allocated device: its driver, and whether it has binding conditions. Only
            metrics use the pairs.
    """

    calls: tuple[ApiCall, ...] = ()
    wait_condition: WaitCondition | None = None
    timeout: float = 0.0
    timeout_status: Status = _DEADLINE_EXCEEDED
    event: tuple[str, str] | None = None
    allocated_devices: tuple[tuple[str, bool], ...] = ()
