"""Write objects to the API server, bindings in particular.

Bodies are builtins with the API's field names. Our types have only the fields that scheduling reads, so they are never
sent as whole objects: that would erase the other fields.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final

import msgspec

from extender.api.codec import DecodeError, decode
from extender.api.kinds.pod import Pod
from extender.client.errors import (
    ApiError,
    ConflictError,
    InvalidResponseError,
    NotFoundError,
    ServerError,
    UnreachableError,
)
from extender.client.rest_mapping import ENDPOINTS, Endpoint
from extender.client.transport import CALL_TIMEOUT, JSON, STRATEGIC_MERGE_PATCH, Request, Transport

Body = Mapping[str, Any]
WriteCondition = Callable[[], bool]


RESEND_DELAYS: Final = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Seconds before a binding whose response was lost is sent again."""

_GATEWAY_TIMEOUT: Final = 504
"""The server, or a proxy before it, timed out; the request may still be executed."""


class BindOutcome(Enum):
    """The final outcome of a binding."""

    BOUND = auto()
    """The pod is bound to the node, by this call or an earlier one whose response was lost."""
    ON_OTHER_NODE = auto()
    """The pod is on another node: another client bound it first."""
    POD_REPLACED = auto()
    """A new pod has its name."""
    POD_GONE = auto()
    """The pod does not exist any more."""


def _allow_always() -> bool:
    return True


def make_binding(namespace: str, name: str, uid: str, node: str) -> Body:
    """Return the Binding of a pod to a node; the server accepts it only for the pod with that uid.

    Source: pkg/scheduler/framework/plugins/defaultbinder/default_binder.go, DefaultBinder.Bind (1.36).
    """
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"namespace": namespace, "name": name, "uid": uid},
        "target": {"kind": "Node", "name": node},
    }


@dataclass(frozen=True, slots=True)
class Writer:
    """Reads and writes objects by name.

    Attributes:
        transport: the transport of the requests.
    """

    transport: Transport

    async def get(self, kind: str | Endpoint, namespace: str, name: str, *, timeout: float = CALL_TIMEOUT) -> bytes:
        """Return an object as JSON.

        Raises:
            ApiError: NotFoundError and others.
        """
        path = _get_endpoint(kind).build_path(namespace, name)
        return await self.transport.call(Request("GET", path, timeout=timeout))

    async def create(
        self,
        kind: str | Endpoint,
        namespace: str,
        body: Body,
        *,
        name: str = "",
        subresource: str = "",
        timeout: float = CALL_TIMEOUT,
        is_allowed: WriteCondition = _allow_always,
    ) -> bytes:
        """Create an object, or post to a *subresource* of the object *name*; return the response's body.

        Raises:
            ApiError: AlreadyExistsError and others.
        """
        path = _get_endpoint(kind).build_path(namespace, name, subresource)
        return await self._send("POST", path, body, JSON, timeout, is_allowed)

    async def update(
        self,
        kind: str | Endpoint,
        namespace: str,
        name: str,
        body: Body,
        *,
        subresource: str = "",
        timeout: float = CALL_TIMEOUT,
        is_allowed: WriteCondition = _allow_always,
    ) -> bytes:
        """Replace an object by *body*, a whole object whose `resourceVersion` must be current.

        Raises:
            ApiError: ConflictError if another client wrote first, and others.
        """
        path = _get_endpoint(kind).build_path(namespace, name, subresource)
        return await self._send("PUT", path, body, JSON, timeout, is_allowed)

    async def patch(
        self,
        kind: str | Endpoint,
        namespace: str,
        name: str,
        body: Body,
        *,
        subresource: str = "",
        content_type: str = STRATEGIC_MERGE_PATCH,
        timeout: float = CALL_TIMEOUT,
        is_allowed: WriteCondition = _allow_always,
    ) -> bytes:
        """Patch an object. `metadata.resourceVersion` and `.uid` in *body* are preconditions.

        Raises:
            ApiError: ConflictError if they fail, and others.
        """
        path = _get_endpoint(kind).build_path(namespace, name, subresource)
        return await self._send("PATCH", path, body, content_type, timeout, is_allowed)

    async def delete(
        self,
        kind: str | Endpoint,
        namespace: str,
        name: str,
        *,
        uid: str = "",
        resource_version: str = "",
        grace_period_seconds: int | None = None,
        is_allowed: WriteCondition = _allow_always,
    ) -> bytes:
        """Delete an object; *uid* and *resource_version* are preconditions.

        Raises:
            ApiError: ConflictError if they fail, NotFoundError and others.
        """
        conditions = {"uid": uid, "resourceVersion": resource_version}
        body: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if preconditions := {key: value for key, value in conditions.items() if value}:
            body["preconditions"] = preconditions
        if grace_period_seconds is not None:
            body["gracePeriodSeconds"] = grace_period_seconds
        path = _get_endpoint(kind).build_path(namespace, name)
        return await self._send("DELETE", path, body, JSON, CALL_TIMEOUT, is_allowed)

    async def _send(
        self, method: str, path: str, body: Body, content_type: str, timeout: float, is_allowed: WriteCondition
    ) -> bytes:
        request = Request(
            method,
            path,
            body=msgspec.json.encode(body),
            content_type=content_type,
            timeout=timeout,
            is_allowed=is_allowed,
        )
        return await self.transport.call(request)

    async def bind(
        self,
        namespace: str,
        name: str,
        uid: str,
        node: str,
        *,
        body: Body | None = None,
        is_allowed: WriteCondition = _allow_always,
        timeout: float = CALL_TIMEOUT,
    ) -> BindOutcome:
        """Bind the pod with that uid to *node*.

        After a failure status the pod is read to find the outcome. If the response is lost, the outcome is unknown:
        the pod is read, and if it has no node, the same binding is sent again, for `RESEND_DELAYS` at most. A binding
        may be executed twice without harm. The pod must stay assumed on *node* until this returns.

        Args:
            namespace: the pod's namespace.
            name: the pod's name.
            uid: the pod's uid; a precondition of the binding.
            node: the node's name.
            body: the Binding to send; None creates one.
            is_allowed: the condition checked immediately before each attempt; if it is false, nothing is sent.
            timeout: the timeout of one attempt in seconds.

        Raises:
            FencedError: *is_allowed* returned False, so the last attempt was not sent.
            UnreachableError: there was no response; with `maybe_sent` the pod may still be bound.
            ApiError: the server rejected the binding, and the pod has no node.
        """
        unknown_outcome_error: ApiError | None = None
        for delay in (*RESEND_DELAYS, None):
            try:
                return await self._bind_once(namespace, name, uid, node, body, is_allowed, timeout)
            except UnreachableError as error:
                if not error.maybe_sent and unknown_outcome_error is None:
                    raise
                unknown_outcome_error = unknown_outcome_error or error
            except InvalidResponseError as error:
                unknown_outcome_error = unknown_outcome_error or error
            outcome = await self._read_outcome(namespace, name, uid, node, timeout)
            if outcome is not None:
                return outcome
            if delay is None:
                break
            await asyncio.sleep(delay)
        assert unknown_outcome_error is not None  # noqa: S101  the loop ends only after an unknown outcome
        raise unknown_outcome_error

    async def _bind_once(
        self,
        namespace: str,
        name: str,
        uid: str,
        node: str,
        body: Body | None,
        is_allowed: WriteCondition,
        timeout: float,
    ) -> BindOutcome:
        path = ENDPOINTS["Pod"].build_path(namespace, name, "binding")
        try:
            await self._send("POST", path, body or make_binding(namespace, name, uid, node), JSON, timeout, is_allowed)
        except NotFoundError:
            return BindOutcome.POD_GONE
        except (ConflictError, ServerError) as error:
            outcome = await self._read_outcome(namespace, name, uid, node, timeout)
            if outcome is not None:
                return outcome
            if error.code == _GATEWAY_TIMEOUT:
                raise InvalidResponseError(error.message, error.code, error.reason) from error
            raise
        return BindOutcome.BOUND

    async def _read_outcome(self, namespace: str, name: str, uid: str, node: str, timeout: float) -> BindOutcome | None:
        """Read the pod to find the outcome; None: it has no node yet, or cannot be read now."""
        try:
            pod = decode(await self.get("Pod", namespace, name, timeout=timeout), Pod)
        except NotFoundError:
            return BindOutcome.POD_GONE
        except (ApiError, DecodeError):
            return None
        if pod.metadata.uid != uid:
            return BindOutcome.POD_REPLACED
        if not pod.spec.node_name:
            return None
        return BindOutcome.BOUND if pod.spec.node_name == node else BindOutcome.ON_OTHER_NODE


def _get_endpoint(kind: str | Endpoint) -> Endpoint:
    return ENDPOINTS[kind] if isinstance(kind, str) else kind
