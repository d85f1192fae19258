"""In front of the service: who asks, and may they; nothing else is looked at before that is settled. Source: H051."""

import logging
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from extender.web.callers import Authenticator, Caller, ReviewError
from extender.web.clients import Clients
from extender.web.peer import EXTENSION
from extender.web.rights import Authorizer

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

log = logging.getLogger("extender.web")

_NO_CACHE: Final = (b"cache-control", b"no-cache, private")


@dataclass(frozen=True, slots=True)
class Guard:
    """An ASGI application around *app*.

    Attributes:
        app: answers those who may ask.
        authenticator, authorizer: say who asks, and what they may.
        verbs: paths of the extender verbs, about which the API server is not asked.
        clients: say who may use the verbs; None: everybody who gets here.
    """

    app: App
    authenticator: Authenticator
    authorizer: Authorizer
    verbs: frozenset[str] = frozenset()
    clients: Clients | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def sent(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), _NO_CACHE]
            await send(message)

        refusal = self._verb_refusal(scope) if scope["path"] in self.verbs else await self._refusal(scope)
        if refusal is None:
            await self.app(scope, receive, sent)
            return
        await _answer(sent, refusal)

    def _verb_refusal(self, scope: Scope) -> dict[str, Any] | None:
        certificate = scope.get("extensions", {}).get(EXTENSION)
        why = self.clients.refusal(certificate) if self.clients is not None else ""
        if not why:
            return None
        path, caller = scope["path"], scope.get("client")
        log.warning("A caller of a verb was refused", extra={"path": path, "from": caller, "why": why})
        if certificate is None:
            return status(401, "Unauthorized", f'Unauthorized: "{path}": {why}')
        return status(403, "Forbidden", f'forbidden: "{path}": {why}', details={})

    async def _refusal(self, scope: Scope) -> dict[str, Any] | None:
        certificate = scope.get("extensions", {}).get(EXTENSION)
        began, now = self.authenticator.now(), self.authenticator.now
        caller = await self.authenticator.caller(scope["headers"], certificate)
        heard = self.authenticator.heard
        heard.recognised("success" if caller else "failure", caller.name if caller else "", now() - began)
        if caller is None:
            return status(401, "Unauthorized", "Unauthorized")
        verb, path = scope["method"].lower(), scope["path"]
        began = now()
        try:
            answer = await self.authorizer.may(caller, verb, path)
        except ReviewError as fault:
            heard.judged("error", now() - began)
            log.warning("Rights could not be looked up", extra={"path": path, "user": caller.name, "err": str(fault)})
            return status(500, "InternalError", f'Internal Server Error: "{path}": rights could not be looked up')
        heard.judged("allowed" if answer.allowed else "no-opinion", now() - began)
        if answer.allowed:
            return None
        return status(403, "Forbidden", denial(caller, verb, path, answer.reason), details={})


@dataclass(frozen=True, slots=True)
class Without:
    """An ASGI application that is *app*, but for some paths: as if they were not there."""

    app: App
    paths: frozenset[str]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http" and scope["path"] in self.paths:
            await _answer(send, status(404, "NotFound", "the server could not find the requested resource"))
        else:
            await self.app(scope, receive, send)


def denial(caller: Caller, verb: str, path: str, reason: str) -> str:
    """Why *caller* gets nothing, in Kubernetes' words."""
    told = f'forbidden: User "{caller.name}" cannot {verb} path "{path}"'
    return f"{told}: {reason}" if reason else told


def status(code: int, reason: str, message: str, **more: Any) -> dict[str, Any]:
    """A metav1.Status that says no."""
    head = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return {**head, "message": message, "reason": reason, **more, "code": code}


async def _answer(send: Send, refusal: dict[str, Any]) -> None:
    body = msgspec.json.encode(refusal) + b"\n"
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers.append((b"x-content-type-options", b"nosniff"))
    await send({"type": "http.response.start", "status": refusal["code"], "headers": headers})
    await send({"type": "http.response.body", "body": body})
