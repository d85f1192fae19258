"""ASGI middleware that protects the pages: response headers, and a check of the request's Host header."""

from dataclasses import dataclass
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
"""Scripts, styles and images only from this server, nothing inline, and no framing."""

HEADERS: Final = (
    (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
    (b"x-frame-options", b"DENY"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
LOOPBACK_HOSTS: Final = frozenset(("127.0.0.1", "localhost", "[::1]"))
_MISDIRECTED: Final = b"The Host header names another host. Open the address that extender printed.\n"


@dataclass(frozen=True, slots=True)
class ResponseHeadersMiddleware:
    """An ASGI application that adds the headers to the responses of `app`, the application with the pages."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *HEADERS]
            await send(message)

        await self.app(scope, receive, send_with_headers)


@dataclass(frozen=True, slots=True)
class HostCheckMiddleware:
    """An ASGI application that passes requests to `app`, and rejects those with foreign Host headers.

    A page of another site can send requests to a loopback address under a host name of that site (DNS rebinding). The
    Host header of such a request is that name.

    Attributes:
        hosts: the accepted hosts, without port.
        open_paths: the paths for which every Host header is accepted.
    """

    app: ASGIApp
    hosts: frozenset[str] = LOOPBACK_HOSTS
    open_paths: frozenset[str] = frozenset()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or scope["path"] in self.open_paths or _names_host(scope, self.hosts):
            await self.app(scope, receive, send)
        else:
            await _send_misdirected(send)


def _names_host(scope: Scope, hosts: frozenset[str]) -> bool:
    values = [value for name, value in scope["headers"] if name == b"host"]
    return len(values) == 1 and _remove_port(values[0].decode("latin-1")).lower() in hosts


async def _send_misdirected(send: Send) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": 421, "headers": headers})
    await send({"type": "http.response.body", "body": _MISDIRECTED})


def _remove_port(host: str) -> str:
    """Return a Host header without its port: `[::1]` for `[::1]:8080`."""
    name, separator, port = host.rpartition(":")
    return name if separator and port.isdigit() and not name.endswith(":") else host
