"""Write objects to the API server, bindings in particular.

Bodies are builtins with the API's field names. Our types have only the fields that scheduling reads, so they are never
sent as whole objects: that would erase the other fields.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from itertools import chain, repeat
from typing import Any, Final

import msgspec

from extender.api.codec import DecodeError, decode_deeply_nested
from extender.api.kinds.pod import Pod
from extender.client.errors import (
    ApiError,
    ApiStatus,
    ConflictError,
    FencedError,
    InvalidResponseError,
    NotFoundError,
    ServerError,
    UnreachableError,
)
from extender.client.rest_mapping import ENDPOINTS, Endpoint
from extender.client.transport import CALL_TIMEOUT, JSON, STRATEGIC_MERGE_PATCH, Request, Transport

Body = Mapping[str, Any]
WriteCondition = Callable[[], bool]
"""Returns whether a request may be sent now, for example because this process leads."""

ResendCondition = Callable[[], Awaitable[bool]]
"""Returns whether a binding whose response was lost may be sent again."""

RESEND_DELAYS: Final = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Seconds before each repetition of a binding whose response was lost."""

BIND_TIMEOUT: Final = 15.0
"""Seconds after which the client and the API server give up one attempt to bind a pod.

The query parameter `timeout` sets the deadline of the API server. Its default is a minute.

Source: apiserver/pkg/endpoints/filters/request_deadline.go, withRequestDeadline;
apiserver/pkg/server/config.go, NewConfig, RequestTimeout (1.36).
"""

ETCD_TIMEOUT: Final = 7.0
"""Seconds after the end of a request in the API server until etcd has executed or dropped the request's transaction.

Source: etcd, server/config/config.go, ServerConfig.ReqTimeout (3.6).
"""

BINDING_RETRY_DELAYS: Final = (0.01, 0.05, 0.25)
"""Seconds before each repetition of a rejected binding in releases that repeat it.

Source: client-go/util/retry/util.go, DefaultBackoff; pkg/scheduler/util/utils.go, BindPod (1.37).
"""

_RETRIABLE_CODES: Final = frozenset((500, 503))
"""The codes after which a rejected binding may be sent again. Source: pkg/scheduler/util/utils.go, Retriable (1.37)."""

_GATEWAY_TIMEOUT: Final = 504
"""The server, or a proxy before it, timed out; the request may still be executed."""


class BindOutcome(Enum):
    """The outcome of a binding. `Writer.bind` returns neither NOT_BOUND nor UNKNOWN."""

    BOUND = auto()
    """The pod is bound to the node, by this call or an earlier one whose response was lost."""
    ON_OTHER_NODE = auto()
    """The pod is on another node: another client bound it first."""
    POD_REPLACED = auto()
    """The pod was deleted, and a new pod has its name."""
    POD_GONE = auto()
    """The pod does not exist any more."""
    NOT_BOUND = auto()
    """The pod has no node."""
    UNKNOWN = auto()
    """The API server does not answer."""

    @property
    def is_final(self) -> bool:
        """Whether no later request can change the outcome."""
        return self not in {BindOutcome.NOT_BOUND, BindOutcome.UNKNOWN}


async def allow_resend() -> bool:
    """Return True."""
    return True


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Options of a write.

    Attributes:
        subresource: the subresource, such as `status`; empty for the object itself.
        timeout: the timeout in seconds.
        is_allowed: the condition checked until the body is written; if it is false, nothing is sent.
    """

    subresource: str = ""
    timeout: float = CALL_TIMEOUT
    is_allowed: WriteCondition = lambda: True


DEFAULT_OPTIONS: Final = WriteOptions()


@dataclass(frozen=True, slots=True)
class Writer:
    """Reads and writes objects by name."""

    transport: Transport

    async def get(self, kind: str | Endpoint, namespace: str, name: str, *, timeout: float = CALL_TIMEOUT) -> bytes:
        """Return an object as JSON.

        Raises:
            ApiError: NotFoundError and others.
        """
        path = _get_endpoint(kind).build_path(namespace, name)
        return await self.transport.call(Request("GET", path, timeout=timeout))

    async def create(
        self, kind: str | Endpoint, namespace: str, body: Body, options: WriteOptions = DEFAULT_OPTIONS
    ) -> bytes:
        """Create an object and return it as JSON.

        Raises:
            ApiError: AlreadyExistsError and others.
        """
        return await self._send("POST", kind, (namespace, ""), body, options=options)

    async def update(
        self, kind: str | Endpoint, namespace: str, name: str, body: Body, options: WriteOptions = DEFAULT_OPTIONS
    ) -> bytes:
        """Replace an object by *body*, a whole object whose `resourceVersion` must be current.

        Raises:
            ApiError: ConflictError if another client wrote first, and others.
        """
        return await self._send("PUT", kind, (namespace, name), body, options=options)

    async def patch(
        self,
        kind: str | Endpoint,
        namespace: str,
        name: str,
        body: Body,
        *,
        content_type: str = STRATEGIC_MERGE_PATCH,
        options: WriteOptions = DEFAULT_OPTIONS,
    ) -> bytes:
        """Patch an object. `metadata.resourceVersion` and `.uid` in *body* are preconditions.

        Raises:
            ApiError: ConflictError if a precondition fails, and others.
        """
        return await self._send("PATCH", kind, (namespace, name), body, content_type=content_type, options=options)

    async def delete(
        self,
        kind: str | Endpoint,
        namespace: str,
        name: str,
        *,
        uid: str = "",
        grace_period_seconds: int | None = None,
        is_allowed: WriteCondition = lambda: True,
    ) -> bytes:
        """Delete an object; *uid* is a precondition.

        Raises:
            ApiError: ConflictError if the precondition fails, NotFoundError and others.
        """
        body: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if uid:
            body["preconditions"] = {"uid": uid}
        if grace_period_seconds is not None:
            body["gracePeriodSeconds"] = grace_period_seconds
        options = WriteOptions(is_allowed=is_allowed)
        return await self._send("DELETE", kind, (namespace, name), body, options=options)

    async def _send(
        self,
        method: str,
        kind: str | Endpoint,
        namespace_and_name: tuple[str, str],
        body: Body,
        *,
        content_type: str = JSON,
        options: WriteOptions,
    ) -> bytes:
        path = _get_endpoint(kind).build_path(*namespace_and_name, options.subresource)
        request = Request(
            method,
            path,
            body=msgspec.json.encode(body),
            content_type=content_type,
            timeout=options.timeout,
            is_allowed=options.is_allowed,
        )
        return await self.transport.call(request)

    async def bind(
        self,
        namespace: str,
        name: str,
        body: Body,
        *,
        is_allowed: WriteCondition = lambda: True,
        may_resend: ResendCondition = allow_resend,
        retry_delays: Iterable[float] = (),
    ) -> BindOutcome:
        """Bind a pod with the Binding *body*.

        After a failure status the pod is read to find the outcome. If the response is lost, the outcome is unknown.
        The pod is then read repeatedly until the outcome is known. Meanwhile the same binding is sent again after
        each of `RESEND_DELAYS`. A binding may be executed twice without harm. The pod must stay assumed on its node
        until this method returns.

        A pod without a node counts as not bound only when the request can no longer be executed. This is
        `ETCD_TIMEOUT` after an error of the API server. Without a response, it is `ETCD_TIMEOUT` after the deadline
        of the API server.

        Args:
            namespace: the pod's namespace.
            name: the pod's name.
            body: the Binding, with the node and the pod's uid, which is a precondition.
            is_allowed: the condition checked until each attempt is written; if it is false, nothing is sent.
            may_resend: the function that is called before the binding is sent again; if it returns False, the pod is
                only read.
            retry_delays: the seconds before each repetition of a binding that an error of the API server rejected (500
                or 503) or that was not sent.

        Raises:
            FencedError: *is_allowed* returned False, so the last attempt was not sent.
            UnreachableError: the binding was not sent.
            ApiError: the server rejected the binding, or did not execute it.
        """
        binding = _PodBinding(namespace, name, body, is_allowed, may_resend)
        for delay in retry_delays:
            try:
                return await self._bind_and_resolve(binding)
            except (ServerError, UnreachableError) as error:
                if isinstance(error, ServerError) and error.code not in _RETRIABLE_CODES:
                    raise
                await asyncio.sleep(delay)
                if not is_allowed() or not await may_resend():
                    raise
        return await self._bind_and_resolve(binding)

    async def _bind_and_resolve(self, binding: "_PodBinding") -> BindOutcome:
        """Send the binding, and find its outcome if the response is lost."""
        try:
            return await self._bind_once(binding)
        except (UnreachableError, InvalidResponseError) as error:
            if not is_outcome_unknown(error):
                raise
            return await self._resolve_unknown_outcome(binding, error)

    async def _resolve_unknown_outcome(self, binding: "_PodBinding", first_error: ApiError) -> BindOutcome:
        """Return the outcome of a binding whose response was lost; wait as long as the API server does not answer.

        Raises:
            FencedError: as for `bind`.
            ApiError: the pod has no node, and the API server cannot execute the binding any more.
        """
        loop = asyncio.get_running_loop()
        expiry_time = loop.time() + _get_execution_seconds(first_error)
        for delay in chain(RESEND_DELAYS, repeat(None)):
            outcome = await self._read_outcome(binding)
            if outcome.is_final:
                return outcome
            remaining_seconds = expiry_time - loop.time()
            if outcome is BindOutcome.NOT_BOUND and remaining_seconds <= 0:
                raise ApiError(first_error.message, first_error.code, first_error.reason)
            delay_seconds = delay or RESEND_DELAYS[-1]
            await asyncio.sleep(min(delay_seconds, remaining_seconds) if remaining_seconds > 0 else delay_seconds)
            if not binding.is_allowed():
                raise FencedError(f"the outcome of binding pod {binding.namespace}/{binding.name} is unknown")
            if delay is None or not await binding.may_resend():
                continue
            try:
                return await self._bind_once(binding)
            except FencedError:
                raise
            except ApiError as error:  # a rejection says nothing about the earlier request
                if is_outcome_unknown(error):
                    expiry_time = max(expiry_time, loop.time() + _get_execution_seconds(error))
        raise AssertionError("the delays do not end")

    async def _bind_once(self, binding: "_PodBinding") -> BindOutcome:
        path = ENDPOINTS["Pod"].build_path(binding.namespace, binding.name, "binding")
        request = Request(
            "POST",
            path,
            {"timeout": f"{BIND_TIMEOUT:g}s"},
            body=msgspec.json.encode(binding.body),
            timeout=BIND_TIMEOUT,
            is_allowed=binding.is_allowed,
        )
        try:
            response = await self.transport.call(request)
        except NotFoundError:
            return BindOutcome.POD_GONE
        except (ConflictError, ServerError) as error:
            outcome = await self._read_outcome(binding)
            if outcome.is_final:
                return outcome
            is_unknown = isinstance(error, ServerError) and outcome is BindOutcome.UNKNOWN
            if is_unknown or error.code == _GATEWAY_TIMEOUT:
                raise InvalidResponseError(error.message, error.code, error.reason) from error
            raise
        try:
            msgspec.json.decode(response, type=ApiStatus)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            # A page of a proxy, or a truncated response: the pod shows whether it was bound.
            raise InvalidResponseError(f"POST {path}: the response is no Status: {error}") from error
        return BindOutcome.BOUND

    async def _read_outcome(self, binding: "_PodBinding") -> BindOutcome:
        try:
            body = await self.get("Pod", binding.namespace, binding.name, timeout=BIND_TIMEOUT)
            pod = decode_deeply_nested(body, Pod)
        except NotFoundError:
            return BindOutcome.POD_GONE
        except (ApiError, DecodeError):
            return BindOutcome.UNKNOWN
        if not pod.metadata.uid:
            return BindOutcome.UNKNOWN  # not the response of an API server
        if pod.metadata.uid != binding.body["metadata"]["uid"]:
            return BindOutcome.POD_REPLACED
        if not pod.spec.node_name:
            return BindOutcome.NOT_BOUND
        node_name = binding.body["target"]["name"]
        return BindOutcome.BOUND if pod.spec.node_name == node_name else BindOutcome.ON_OTHER_NODE


@dataclass(frozen=True, slots=True)
class _PodBinding:
    """The arguments of `Writer.bind`."""

    namespace: str
    name: str
    body: Body
    is_allowed: WriteCondition
    may_resend: ResendCondition


def is_outcome_unknown(error: ApiError) -> bool:
    """Return whether the request may have been executed."""
    return isinstance(error, InvalidResponseError) or (isinstance(error, UnreachableError) and error.maybe_sent)


def _get_execution_seconds(error: ApiError) -> float:
    """Return for how many more seconds a request that ended with *error* may be executed."""
    # Only the API server sends a Status with a reason. When it sends one, it has finished the request, unless the
    # Status reports a timeout.
    has_finished = bool(error.reason) and error.code != _GATEWAY_TIMEOUT
    return ETCD_TIMEOUT if has_finished else BIND_TIMEOUT + ETCD_TIMEOUT


def _get_endpoint(kind: str | Endpoint) -> Endpoint:
    if isinstance(kind, Endpoint):
        return kind
    if kind not in ENDPOINTS:
        raise ValueError(f'unknown kind "{kind}", want one of {", ".join(ENDPOINTS)}')
    return ENDPOINTS[kind]
