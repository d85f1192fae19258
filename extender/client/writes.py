"""What we write: any object, and in particular bindings.

Bodies are builtins, with the API's own names. Our own types hold only the fields that scheduling reads, so they are
never sent back whole: that would erase the rest.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

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

        If the answer is lost, or says no, the pod is read to learn how it stands.

        Args:
            namespace: of the pod.
            name: of the pod.
            uid: of the pod.
            node: where it goes.
            body: the Binding to send; None makes one.
            may_act: asked immediately before it is sent, also again, after any wait for our own rate.
            seconds: one try may take so long.

        Raises:
            FencedError: *may_act* said no; nothing was sent.
            UnreachableError: no answer, and the pod is on no node yet; with `sent` it may still be bound.
            ApiError: the server refuses, and the pod is on no node.
        """
        binding = body or {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"namespace": namespace, "name": name, "uid": uid},
            "target": {"kind": "Node", "name": node},
        }
        path = ENDPOINTS["Pod"].path(namespace, name, "binding")
        try:
            await self._send("POST", path, binding, JSON, seconds, may_act)
        except NotFoundError:
            return Bound.GONE
        except UnreachableError as fault:
            settled = await self._settled(namespace, name, uid, node, seconds) if fault.sent else None
            if settled is None:
                raise
            return settled
        except (ConflictError, ServerError, AnswerError):
            settled = await self._settled(namespace, name, uid, node, seconds)
            if settled is None:
                raise
            return settled
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
