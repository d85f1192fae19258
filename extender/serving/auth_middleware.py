"""ASGI middleware that authenticates and authorizes each request before it is served.

Source: cmd/kube-scheduler/app/server.go, buildHandlerChain (1.36).
"""

from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from extender.basics.input_limits import shorten
from extender.serving.authentication import Authenticator, ReviewError, UserInfo
from extender.serving.authorization import Authorizer
from extender.serving.client_certs import ClientCertVerifier
from extender.serving.http_protocol import CERTIFICATE_EXTENSION
from extender.serving.rejection_log import RejectionLog, format_client

_NO_CACHE: Final = (b"cache-control", b"no-cache, private")


@dataclass(frozen=True, slots=True)
class AuthMiddleware:
    """An ASGI application that passes only authorized requests to `app`.

    Attributes:
        authenticator: authenticates requests to all paths except `verb_paths`.
        authorizer: authorizes requests to all paths except `verb_paths`.
        verb_paths: the paths of the extender verbs, which need no review by the API server.
        client_cert_verifier: verifies the client certificates of requests to `verb_paths`; None: all requests are
            allowed.
    """

    app: ASGIApp
    authenticator: Authenticator
    authorizer: Authorizer
    verb_paths: frozenset[str] = frozenset()
    client_cert_verifier: ClientCertVerifier | None = None
    _caller_log: RejectionLog = field(init=False, default_factory=lambda: RejectionLog("Rejected the caller of a verb"))
    _review_log: RejectionLog = field(init=False, default_factory=lambda: RejectionLog("Access review failed"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_without_caching(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), _NO_CACHE]
            await send(message)

        failure = self._check_verb_caller(scope) if scope["path"] in self.verb_paths else await self._check_user(scope)
        if failure is None:
            await self.app(scope, receive, send_without_caching)
            return
        await _make_failure_response(failure)(scope, receive, send_without_caching)

    def _check_verb_caller(self, scope: Scope) -> dict[str, Any] | None:
        certificate = scope.get("extensions", {}).get(CERTIFICATE_EXTENSION)
        if self.client_cert_verifier is None:
            return None
        reason = self.client_cert_verifier.find_rejection_reason(certificate)
        if not reason:
            return None
        path, caller = scope["path"], format_client(scope.get("client"))
        self._caller_log.log({"path": path, "from": caller, "why": reason}, self.authenticator.now())
        if certificate is None:
            return make_failure_status(401, "Unauthorized", f'Unauthorized: "{path}": {reason}')
        return make_failure_status(403, "Forbidden", f'forbidden: "{path}": {reason}', details={})

    async def _check_user(self, scope: Scope) -> dict[str, Any] | None:
        certificate = scope.get("extensions", {}).get(CERTIFICATE_EXTENSION)
        now = self.authenticator.now
        start_time = now()
        if self.verb_paths and scope["method"] == "POST":  # a wrong urlPrefix
            fields = {"path": shorten(scope["path"]), "from": format_client(scope.get("client"))}
            self._caller_log.log({**fields, "why": "no verb has this path"}, start_time)
        user = await self.authenticator.authenticate(scope["headers"], certificate)
        metrics = self.authenticator.metrics
        metrics.observe_authentication("success" if user else "failure", user.name if user else "", now() - start_time)
        if user is None:
            return make_failure_status(401, "Unauthorized", "Unauthorized")
        verb, path = scope["method"].lower(), scope["path"]
        start_time = now()
        try:
            decision = await self.authorizer.authorize(user, verb, path)
        except ReviewError as error:
            metrics.observe_authorization("error", now() - start_time)
            self._review_log.log({"path": shorten(path), "user": user.name, "err": str(error)}, now())
            return make_failure_status(
                500, "InternalError", f'Internal Server Error: "{path}": the access review failed'
            )
        metrics.observe_authorization("allowed" if decision.allowed else "no-opinion", now() - start_time)
        if decision.allowed:
            return None
        return make_failure_status(
            403, "Forbidden", format_forbidden_message(user, verb, path, decision.reason), details={}
        )


@dataclass(frozen=True, slots=True)
class HiddenPathsMiddleware:
    """An ASGI application that responds 404 to requests for `paths`, and passes all other requests to `app`."""

    app: ASGIApp
    paths: frozenset[str]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http" and scope["path"] in self.paths:
            failure = make_failure_status(404, "NotFound", "the server could not find the requested resource")
            await _make_failure_response(failure)(scope, receive, send)
        else:
            await self.app(scope, receive, send)


def format_forbidden_message(user: UserInfo, verb: str, path: str, reason: str) -> str:
    """Return kube-apiserver's message for a request that is not allowed."""
    message = f'forbidden: User "{user.name}" cannot {verb} path "{path}"'
    return f"{message}: {reason}" if reason else message


def make_failure_status(code: int, reason: str, message: str, **extra: Any) -> dict[str, Any]:
    """Return a metav1.Status of a failure."""
    fields = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return {**fields, "message": message, "reason": reason, **extra, "code": code}


def _make_failure_response(failure: dict[str, Any]) -> Response:
    # The body of a rejected request is not read, so the connection cannot be reused.
    headers = {"x-content-type-options": "nosniff", "connection": "close"}
    return Response(msgspec.json.encode(failure) + b"\n", failure["code"], headers, "application/json")
