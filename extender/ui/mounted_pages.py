"""The pages while they are open, and the ASGI middleware that serves them under `/ui/` and protects them."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from fastapi import FastAPI
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from extender.scheduler.api_writer import do_nothing
from extender.ui.pages import PREFIX


@dataclass(frozen=True, slots=True)
class OpenPages:
    """The pages of `extender ui` while they are open.

    Attributes:
        close: ends the streams of the pages, before the server stops.
        list_problems: returns a line for each missing right and each lost watch.
        watches: the task that watches the cluster, which ends only after an internal error; None for a recording.
    """

    app: FastAPI
    close: Callable[[], None] = do_nothing
    list_problems: Callable[[], Sequence[str]] = tuple
    watches: asyncio.Task[None] | None = None


@dataclass(frozen=True, slots=True)
class MountedPages:
    """An ASGI application that passes requests for `/ui` and the paths below it to `pages`, and all others to `app`.

    Attributes:
        app: the application with all other paths.
        pages: the application with the pages.
        close: ends the streams of the pages, before the server stops.
    """

    app: ASGIApp
    pages: ASGIApp
    close: Callable[[], None] = do_nothing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        is_page = scope["type"] == "http" and f"{scope['path']}/".startswith(f"{PREFIX}/")
        await (self.pages if is_page else self.app)(scope, receive, send)


def find_pattern_of_pages(patterns: Iterable[str]) -> str:
    """Return the first of *patterns* that matches a path of the pages; empty if there is none.

    A `*` at the end of a pattern matches any suffix, as in `AuthorizationOptions.always_allowed_paths`.
    """
    prefix = f"{PREFIX.lstrip('/')}/"
    for pattern in patterns:
        text = pattern.lstrip("/").removesuffix("*")
        if f"{text}/".startswith(prefix) or text.startswith(prefix):
            return pattern
        if pattern.endswith("*") and prefix.startswith(text):
            return pattern
    return ""


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
    (b"cache-control", b"no-cache"),
)
"""Without `no-cache`, a browser uses scripts of an older version for a tenth of the time since that was installed."""

LOOPBACK_HOSTS: Final = frozenset(("127.0.0.1", "localhost", "[::1]"))
_OTHER_SITES: Final = frozenset((b"cross-site", b"same-site"))
_CLOSE: Final = {"connection": "close"}
_MISDIRECTED: Final = "The Host header names another host. Open the address that extender printed.\n"
_EMBEDDED: Final = "A page of another site may link to this page, but not request it in the background.\n"


@dataclass(frozen=True, slots=True)
class ResponseHeadersMiddleware:
    """An ASGI application that adds the headers to the responses of `app`, the application with the pages.

    It rejects requests that pages of other sites make in the background, such as for an image. Such a page could not
    read the answers, but could ask questions that take half a minute each. Links from other sites are allowed.

    Source: W3C, Fetch Metadata Request Headers.
    """

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *HEADERS]
            await send(message)

        if scope["type"] == "http" and _is_background_request(scope):
            await PlainTextResponse(_EMBEDDED, 403, _CLOSE)(scope, receive, send_with_headers)
        else:
            await self.app(scope, receive, send_with_headers)


def _is_background_request(scope: Scope) -> bool:
    """Return whether a page of another site sent the request, and the browser will not show the response as a page."""
    headers = dict(scope["headers"])
    return headers.get(b"sec-fetch-site") in _OTHER_SITES and headers.get(b"sec-fetch-dest") != b"document"


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
            await PlainTextResponse(_MISDIRECTED, 421, _CLOSE)(scope, receive, send)


def _names_host(scope: Scope, hosts: frozenset[str]) -> bool:
    values = [value for name, value in scope["headers"] if name == b"host"]
    return len(values) == 1 and _remove_port(values[0].decode("latin-1")).lower() in hosts


def _remove_port(host: str) -> str:
    """Return a Host header without its port: `[::1]` for `[::1]:8080`."""
    name, separator, port = host.rpartition(":")
    return name if separator and port.isdigit() and not name.endswith(":") else host
