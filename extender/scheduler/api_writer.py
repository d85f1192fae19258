"""Write to the API server: make the API calls of plugins and of the scheduler, and record events."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Final

from extender.api.codec import DecodeError, decode_deeply_nested
from extender.api.kinds.meta import KubernetesObject
from extender.api.kinds.pod import Pod
from extender.cache.group_hierarchy import Group
from extender.client.errors import (
    ApiError,
    ConflictError,
    FencedError,
    InvalidResponseError,
    NotFoundError,
    PodOnOtherNodeError,
    ServerError,
    UnreachableError,
)
from extender.client.event_broadcaster import EventBroadcaster
from extender.client.events import Event, make_object_reference
from extender.client.rest_mapping import Endpoint, get_endpoint
from extender.client.transport import MERGE_PATCH, STRATEGIC_MERGE_PATCH
from extender.client.writer import (
    BINDING_RETRY_DELAYS,
    RESEND_DELAYS,
    BindOutcome,
    ResendCondition,
    WriteOptions,
    Writer,
    allow_resend,
    is_outcome_unknown,
)
from extender.config.releases import DEFAULT_RELEASE, Release
from extender.framework.api_plan import ApiCall, ignore_version

_STRATEGIC_MERGE_KINDS: Final = ("Pod", "PodGroup")
"""Kinds whose status gets a strategic merge patch, which keeps the conditions of other writers."""

_CONFLICT_RETRIES: Final = 4
_CONFLICT_RETRY_DELAY: Final = 0.01
"""Seconds after a conflict. Source: client-go/util/retry/util.go, DefaultRetry (1.37)."""


def do_nothing(*_: object) -> None:
    """Accept any arguments and do nothing."""


def _get_resource_version(body: bytes) -> str:
    """Return the resource version of an object in JSON.

    Raises:
        InvalidResponseError: the response is no object of the API server, but a page of a proxy, for example.
    """
    try:
        if version := decode_deeply_nested(body, KubernetesObject).metadata.resource_version:
            return version
    except DecodeError as error:
        raise InvalidResponseError(f"the response is no object: {error}") from error
    raise InvalidResponseError("the response is an object without a resourceVersion")


@dataclass(slots=True)
class ApiWriter:
    """Makes API calls.

    Attributes:
        writer: the writer that sends the requests to the API server.
        may_act: returns whether this process may write: without leader election always, else as the leader. It is
            called after the wait for the rate limit, just before each call is sent.
        in_flight_call_count: the number of calls in progress.
        release: the emulated release, which determines the API versions of the kinds.
    """

    writer: Writer
    may_act: Callable[[], bool] = lambda: True
    in_flight_call_count: int = 0
    release: Release = DEFAULT_RELEASE

    async def call(
        self,
        api_call: ApiCall,
        check_before_send: Callable[[], None] = do_nothing,
        may_resend: ResendCondition = allow_resend,
        /,
    ) -> None:
        """Make one API call.

        *check_before_send* runs just before the call is sent, and may raise to stop it. *may_resend* returns whether a
        binding of unknown outcome may be sent again.

        Raises:
            ApiError: the call failed, or its outcome is unknown. For a bind call, NotFoundError may mean that another
                pod now has the name, and PodOnOtherNodeError means that another scheduler bound the pod.
        """

        def may_act() -> bool:
            check_before_send()
            return self.may_act()

        self.in_flight_call_count += 1
        try:
            response = await self._send_with_changes(api_call, may_act, may_resend)
            if api_call.on_written is not ignore_version:
                api_call.on_written(_get_resource_version(response))
        except ApiError as error:
            if not api_call.is_resent or not (is_outcome_unknown(error) or isinstance(error, ServerError)):
                raise
            await self._resend(api_call)
        finally:
            self.in_flight_call_count -= 1

    async def _send_with_changes(
        self, api_call: ApiCall, may_act: Callable[[], bool], may_resend: ResendCondition
    ) -> bytes:
        """Send the request and return the response's body. After a conflict, adapt the call to the current object.

        Source: client-go/util/retry/util.go, RetryOnConflict (1.37).
        """
        for _ in range(_CONFLICT_RETRIES):
            try:
                return await self._send(api_call, may_act, may_resend)
            except ConflictError:
                if api_call.on_conflict is None:
                    raise
                await asyncio.sleep(_CONFLICT_RETRY_DELAY)
                await self._adapt(api_call, api_call.on_conflict, may_act)
        return await self._send(api_call, may_act, may_resend)

    async def _adapt(
        self,
        api_call: ApiCall,
        on_conflict: Callable[[bytes], Sequence[ApiCall] | str],
        may_act: Callable[[], bool],
    ) -> None:
        """Read the object of *api_call* again, call *on_conflict* and make the calls that it returns.

        Raises:
            ApiError: a call failed, or *on_conflict* returned a message. *api_call* was not executed.
        """
        namespace, name = api_call.namespace, api_call.name
        try:
            current_object = await self.writer.get(self._get_kind(api_call.kind), namespace, name)
            result = on_conflict(current_object)
            for call in () if isinstance(result, str) else result:
                call.on_written(_get_resource_version(await self._send_with_changes(call, may_act, allow_resend)))
        except (ApiError, DecodeError) as error:
            raise ApiError(f"update {api_call.kind} {namespace}/{name} after conflict: {error}") from error
        if isinstance(result, str):
            if api_call.is_resent:  # the transport may have sent it before, and got an error with Retry-After
                api_call.on_written(_get_resource_version(current_object))
            raise ApiError(result)

    async def _resend(self, api_call: ApiCall) -> None:
        """Send a write of unknown outcome again until the API server answers.

        Raises:
            ApiError: the server rejected the write. An earlier attempt may have been executed, so `on_written` was
                called with the current resource version, unless the object cannot be read.
            FencedError: this process does not lead any more.
        """
        for delay in chain(RESEND_DELAYS, repeat(RESEND_DELAYS[-1])):
            await asyncio.sleep(delay)
            try:
                return await self._send_again(api_call)
            except (UnreachableError, InvalidResponseError):
                continue
        raise AssertionError("the delays do not end")

    async def _send_again(self, api_call: ApiCall) -> None:
        try:
            response = await self._send(api_call, self.may_act, allow_resend)
        except (UnreachableError, InvalidResponseError, FencedError):
            raise
        except ApiError:
            kind = self._get_kind(api_call.kind)
            api_call.on_written(_get_resource_version(await self._read(kind, api_call.namespace, api_call.name)))
            raise
        api_call.on_written(_get_resource_version(response))

    async def _read(self, kind: str | Endpoint, namespace: str, name: str) -> bytes:
        """Return an object in JSON; UnreachableError also stands for an error of the API server."""
        try:
            return await self.writer.get(kind, namespace, name)
        except ServerError as error:
            raise UnreachableError(error.message, maybe_sent=True) from error

    async def _send(self, api_call: ApiCall, may_act: Callable[[], bool], may_resend: ResendCondition) -> bytes:
        """Send the request and return the response's body; empty for a binding.

        Raises:
            ApiError: the call failed, or its outcome is unknown. The message starts with the purpose of the call.
        """
        try:
            return await self._send_request(api_call, may_act, may_resend)
        except ApiError as error:
            if api_call.purpose:
                error.args = (f"{api_call.purpose}: {error}",)
            raise

    async def _send_request(self, api_call: ApiCall, may_act: Callable[[], bool], may_resend: ResendCondition) -> bytes:
        writer = self.writer
        namespace, name, body = api_call.namespace, api_call.name, api_call.body
        kind = self._get_kind(api_call.kind)
        options = WriteOptions(subresource=api_call.subresource, is_allowed=may_act)
        match api_call.verb:
            case "bind":
                await self._bind(api_call, may_act, may_resend)
                return b""
            case "create":
                return await writer.create(kind, namespace, body, options)
            case "update":
                return await writer.update(kind, namespace, name, body, options)
            case "patch":
                merges_lists = api_call.kind in _STRATEGIC_MERGE_KINDS and api_call.subresource == "status"
                is_strategic = api_call.strategic or merges_lists
                content_type = STRATEGIC_MERGE_PATCH if is_strategic else MERGE_PATCH
                return await writer.patch(kind, namespace, name, body, content_type=content_type, options=options)
            case "delete":
                uid = body.get("preconditions", {}).get("uid", "")
                return await writer.delete(kind, namespace, name, uid=uid, is_allowed=may_act)
            case verb:
                raise ValueError(f"unknown verb {verb!r} in an API call of a plugin")

    def _get_kind(self, kind: str) -> str | Endpoint:
        """Return the endpoint of *kind* in the emulated release; *kind* itself if it is the same in all releases."""
        return get_endpoint(kind, self.release) if kind in self.release.api_versions else kind

    async def _bind(self, api_call: ApiCall, may_act: Callable[[], bool], may_resend: ResendCondition) -> None:
        namespace, name = api_call.namespace, api_call.name
        retry_delays = BINDING_RETRY_DELAYS if self.release.retries_bindings else ()
        result = await self.writer.bind(
            namespace, name, api_call.body, is_allowed=may_act, may_resend=may_resend, retry_delays=retry_delays
        )
        pod = f"{namespace}/{name}"
        match result:
            case BindOutcome.BOUND:
                return
            case BindOutcome.ON_OTHER_NODE:
                raise PodOnOtherNodeError(f"pod {pod} is on another node already")
            case BindOutcome.POD_REPLACED:
                raise NotFoundError(f"pod {pod} was deleted and recreated")
            case BindOutcome.POD_GONE:
                raise NotFoundError(f'pods "{name}" not found', 404, "NotFound")


@dataclass(frozen=True, slots=True)
class PodEvent:
    """The contents of an event about a pod.

    Attributes:
        reason: why the action was taken.
        action: what was done.
        note: the text of the event.
        warning: whether the type is Warning instead of Normal.
        related: the object for which the action was taken, such as the preemptor.
    """

    reason: str
    action: str
    note: str
    warning: bool = False
    related: Pod | Group | None = None


@dataclass(frozen=True, slots=True)
class EventRecorder:
    """Records events under the name of the pod's scheduler.

    Attributes:
        broadcasters: the event broadcasters by scheduler name.
        release: the emulated release, which determines the API versions of the kinds.
    """

    broadcasters: dict[str, EventBroadcaster]
    release: Release = DEFAULT_RELEASE

    def event(self, pod: Pod, event: PodEvent, scheduler_name: str = "") -> None:
        """Record *event* about *pod*. *scheduler_name* overrides that of the pod. The call never blocks or raises.

        Source: pkg/scheduler/schedule_one.go, Scheduler.finishBinding;
        pkg/scheduler/framework/preemption/executor.go, NewExecutor;
        pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.PreBind (1.36).
        """
        name = scheduler_name or pod.spec.scheduler_name
        broadcaster = self.broadcasters.get(name) or next(iter(self.broadcasters.values()))
        related, related_reference = event.related, None
        if related is not None:
            kind = type(related).__name__
            related_reference = make_object_reference(related, get_endpoint(kind, self.release).api_version, kind)
        event_type = "Warning" if event.warning else "Normal"
        regarding = make_object_reference(pod, "v1", "Pod")
        broadcaster.record(Event(regarding, event_type, event.reason, event.action, event.note, related_reference))
