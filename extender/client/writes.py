"""What we write: any object, and in particular bindings.

Bodies are builtins, with the API's own names. Our own types hold only the fields that scheduling reads, so they are
never sent back whole: that would erase the rest.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final

import msgspec

from extender.client.endpoints import ENDPOINTS, Endpoint
from extender.client.errors import (
    AnswerError,
    ApiError,
    ConflictError,
    NotFoundError,
    ServerError,
    UnreachableError,
)
from extender.client.transport import CALL_SECONDS, JSON, STRATEGIC_MERGE_PATCH, Request, Transport
from extender.objects.codec import DecodeError, decode
from extender.objects.pod import Pod

Body = Mapping[str, Any]
Allowed = Callable[[], bool]


UNCLEAR_WAITS: Final = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Seconds before a binding whose answer was lost is sent again."""

_GATEWAY_TIMEOUT: Final = 504
"""The server, or something before it, gave up waiting; what it waited for may still come about."""


class Bound(Enum):
    """How a binding ended, as far as that is known for certain."""

    HERE = auto()
    """The pod is on the node it was bound to, by this call or an earlier one whose answer was lost."""
    ELSEWHERE = auto()
    """It is on another node: someone else was quicker."""
    REPLACED = auto()
    """Another pod bears its name now."""
    GONE = auto()
    """There is no such pod any more."""


def _yes() -> bool:
    return True


def binding(namespace: str, name: str, uid: str, node: str) -> Body:
    """The Binding of a pod to a node; the server takes it only for the pod with that uid. Source: B107."""
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"namespace": namespace, "name": name, "uid": uid},
        "target": {"kind": "Node", "name": node},
    }


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes objects.

    Attributes:
        transport: the session to write over.
    """

    transport: Transport

    async def get(self, kind: str | Endpoint, namespace: str, name: str, *, seconds: float = CALL_SECONDS) -> bytes:
        """The object as JSON.

        Raises:
            ApiError: NotFoundError and others.
        """
        path = _endpoint(kind).path(namespace, name)
        return await self.transport.call(Request("GET", path, seconds=seconds))

    async def create(
        self,
        kind: str | Endpoint,
        namespace: str,
        body: Body,
        *,
        name: str = "",
        subresource: str = "",
        seconds: float = CALL_SECONDS,
        allowed: Allowed = _yes,
    ) -> bytes:
        """Create an object, or post to a *subresource* of the object *name*; gives the server's answer.

        Raises:
            ApiError: AlreadyExistsError and others.
        """
        path = _endpoint(kind).path(namespace, name, subresource)
        return await self._send("POST", path, body, JSON, seconds, allowed)

    async def update(
        self,
        kind: str | Endpoint,
        namespace: str,
        name: str,
        body: Body,
        *,
        subresource: str = "",
        seconds: float = CALL_SECONDS,
        allowed: Allowed = _yes,
    ) -> bytes:
        """Replace an object by *body*, which is whole; its `resourceVersion` must be the current one.

        Raises:
            ApiError: ConflictError if someone else wrote first, and others.
        """
        path = _endpoint(kind).path(namespace, name, subresource)
        return await self._send("PUT", path, body, JSON, seconds, allowed)

    async def patch(
        self,
        kind: str | Endpoint,
        namespace: str,
        name: str,
        body: Body,
        *,
        subresource: str = "",
        content_type: str = STRATEGIC_MERGE_PATCH,
        seconds: float = CALL_SECONDS,
        allowed: Allowed = _yes,
    ) -> bytes:
        """Change parts of an object. With `metadata.resourceVersion` or `.uid` in *body* only if they still hold.

        Raises:
            ApiError: ConflictError if they do not, and others.
        """
        path = _endpoint(kind).path(namespace, name, subresource)
        return await self._send("PATCH", path, body, content_type, seconds, allowed)

    async def delete(
        self,
        kind: str | Endpoint,
        namespace: str,
        name: str,
        *,
        uid: str = "",
        resource_version: str = "",
        grace_seconds: int | None = None,
        allowed: Allowed = _yes,
    ) -> bytes:
        """Delete an object, with a *uid* or *resource_version* only that one.

        Raises:
            ApiError: ConflictError if it is another, NotFoundError and others.
        """
        conditions = {"uid": uid, "resourceVersion": resource_version}
        body: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if given := {key: value for key, value in conditions.items() if value}:
            body["preconditions"] = given
        if grace_seconds is not None:
            body["gracePeriodSeconds"] = grace_seconds
        path = _endpoint(kind).path(namespace, name)
        return await self._send("DELETE", path, body, JSON, CALL_SECONDS, allowed)

    async def _send(
        self, method: str, path: str, body: Body, content_type: str, seconds: float, allowed: Allowed
    ) -> bytes:
        request = Request(
            method, path, body=msgspec.json.encode(body), content_type=content_type, seconds=seconds, allowed=allowed
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
        may_act: Allowed = _yes,
        seconds: float = CALL_SECONDS,
    ) -> Bound:
        """Put the pod on *node*, if it still is the one with that uid.

        If the server says no, the pod is read to learn how it stands. If the answer is lost, nobody knows: then the
        pod is read, and if it has no node the same binding is sent again, until there is a clear answer. It may be
        carried out twice without harm, and until then what the pod takes up on *node* must not be given to another.

        Args:
            namespace: of the pod, like *name* and *uid*.
            name: see above.
            uid: see above.
            node: where it goes.
            body: the Binding to send; None makes one.
            may_act: asked immediately before it is sent, after any wait.
            seconds: one try may take so long.

        Raises:
            FencedError: *may_act* said no; nothing was sent (any more).
            UnreachableError: no answer, all along; with `sent` the pod may still be bound.
            ApiError: the server refuses, and the pod is on no node.
        """
        unclear: ApiError | None = None
        for wait in (*UNCLEAR_WAITS, None):
            try:
                return await self._bind_once(namespace, name, uid, node, body, may_act, seconds)
            except UnreachableError as fault:
                if not fault.sent and unclear is None:
                    raise
                unclear = unclear or fault
            except AnswerError as fault:
                unclear = unclear or fault
            settled = await self._settled(namespace, name, uid, node, seconds)
            if settled is not None:
                return settled
            if wait is None:
                break
            await asyncio.sleep(wait)
        assert unclear is not None  # noqa: S101  the loop ends only after an unclear try
        raise unclear

    async def _bind_once(
        self, namespace: str, name: str, uid: str, node: str, body: Body | None, may_act: Allowed, seconds: float
    ) -> Bound:
        path = ENDPOINTS["Pod"].path(namespace, name, "binding")
        try:
            await self._send("POST", path, body or binding(namespace, name, uid, node), JSON, seconds, may_act)
        except NotFoundError:
            return Bound.GONE
        except (ConflictError, ServerError) as fault:
            settled = await self._settled(namespace, name, uid, node, seconds)
            if settled is not None:
                return settled
            if fault.code == _GATEWAY_TIMEOUT:
                raise AnswerError(fault.message, fault.code, fault.reason) from fault
            raise
        return Bound.HERE

    async def _settled(self, namespace: str, name: str, uid: str, node: str, seconds: float) -> Bound | None:
        """How the pod stands; None: on no node yet, or not to be learnt now."""
        try:
            pod = decode(await self.get("Pod", namespace, name, seconds=seconds), Pod)
        except NotFoundError:
            return Bound.GONE
        except (ApiError, DecodeError):
            return None
        if pod.metadata.uid != uid:
            return Bound.REPLACED
        if not pod.spec.node_name:
            return None
        return Bound.HERE if pod.spec.node_name == node else Bound.ELSEWHERE


def _endpoint(kind: str | Endpoint) -> Endpoint:
    return ENDPOINTS[kind] if isinstance(kind, str) else kind
