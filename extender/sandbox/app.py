"""The API over HTTP: one ASGI application for all paths. Bodies are JSON or YAML; protobuf is not read or written."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

import msgspec
import yaml
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from extender.sandbox import discovery
from extender.sandbox.api import Api
from extender.sandbox.asked import Asked, read
from extender.sandbox.faults import BrokenConnectionError, Fault, Faults, Spoiled, spoil
from extender.sandbox.refusals import RefusedError, bad_request, expired, status_of, unsupported_media
from extender.sandbox.rendering import Rendering, rendering
from extender.sandbox.reviews import Reviews
from extender.sandbox.served import Object
from extender.sandbox.verbs import MERGE, OPERATIONS, STRATEGIC, done
from extender.sandbox.watching import BOOKMARK_SECONDS, Watch, error

BREAK: Final = "sandbox.break"
"""The extension of ASGI that ends the connection."""

_LOG: Final = logging.getLogger(__name__)
_HEALTH: Final = ("/livez", "/readyz", "/healthz")
_YAML: Final = "application/yaml"
_NO_OPERATIONS: Final = (
    "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"
)
_MEDIA: Final = ("application/json", _YAML, MERGE, STRATEGIC, OPERATIONS, "")
_GONE: Final = "The resourceVersion for the provided list is too old."
_REASONS: Final = {
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}

Sleep = Callable[[float], Awaitable[None]]


class App:
    """Answers requests.

    Attributes:
        api: what they are about.
        faults: what is spoiled.
    """

    def __init__(
        self,
        api: Api,
        faults: Faults,
        reviews: Reviews,
        *,
        bookmarks: float = BOOKMARK_SECONDS,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """Makes the application.

        Args:
            api: the rules and objects.
            faults: what to spoil.
            reviews: who may do what, as far as reviews ask.
            bookmarks: seconds between the bookmarks of a watch.
            sleep: how a fault waits.
        """
        self.api = api
        self.faults = faults
        self._reviews = reviews
        self._bookmarks = bookmarks
        self._sleep = sleep
        self._closing = asyncio.Event()

    def open(self) -> None:
        """Let watches begin."""
        self._closing = asyncio.Event()

    def close(self) -> None:
        """End all watches."""
        self._closing.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if scope["type"] != "http":
            return
        try:
            await self._respond(scope, receive, send)
        except BrokenConnectionError:
            scope["extensions"][BREAK]["close"]()
            while (await receive())["type"] != "http.disconnect":
                continue

    async def _respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            answer = await self._answer(request)
        except RefusedError as refused:
            answer = _refusal(refused)
        except (BrokenConnectionError, ClientDisconnect):
            raise
        except Exception as fault:  # noqa: BLE001  the edge: whatever it is, the caller gets an answer
            _LOG.exception("%s %s", request.method, request.url.path)
            answer = _json(status_of(500, "InternalError", f"Internal error occurred: {fault}"), 500)
        await answer(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        path = request.url.path
        if path.startswith(_HEALTH):
            return Response("ok", media_type="text/plain")
        described = discovery.document(path) if request.method == "GET" else None
        if described is not None:
            return _json(described)
        body = await _body(request) if request.method != "GET" else {}
        reviewed = self._reviews.answer(path, body) if request.method == "POST" else None
        if reviewed is not None:
            return _json(reviewed, 201)
        asked = read(request.method, _raw_path(request), dict(request.query_params))
        how = rendering(request.headers.get("accept", ""), asked.query)
        name = asked.name or str((body.get("metadata") or {}).get("name", ""))
        faults = self.faults.due(asked.verb, asked.resource, name)
        spoilt = await self._before(asked, faults)
        if spoilt is not None:
            return spoilt
        if asked.verb == "watch":
            return self._watched(asked, how, faults)
        now = self.api.clock.now()
        if asked.verb == "list":
            answer = Response(how.page(self.api.store, asked, now), media_type="application/json")
        else:
            made, code, is_object = done(self.api, asked, body, _media(request))
            answer = _json(how.one(asked, made, now) if is_object else made, code)
        await self._after(faults)
        return answer

    async def _before(self, asked: Asked, faults: list[Fault]) -> Response | None:
        """Faults that strike before anything is done: the answer, if one of them is the answer."""
        for fault in faults:
            if fault.what is Spoiled.DELAY:
                await self._sleep(fault.seconds)
            elif fault.what is Spoiled.STATUS:
                status = status_of(fault.code, _REASONS.get(fault.code, ""), f"spoiled on purpose: {fault.code}")
                return _json(status, fault.code, {"Retry-After": fault.retry_after} if fault.retry_after else None)
            elif fault.what is Spoiled.GONE and asked.verb != "watch":
                raise expired(_GONE)
        return None

    async def _after(self, faults: list[Fault]) -> None:
        """Faults that strike when all is done."""
        for fault in faults:
            if fault.what is Spoiled.LOST:
                await self._sleep(fault.seconds)
                message = "Timeout: request did not complete within the allotted timeout"
                raise RefusedError(504, "Timeout", message)
            if fault.what is Spoiled.CUT:
                raise BrokenConnectionError

    def _watched(self, asked: Asked, how: Rendering, faults: list[Fault]) -> Response:
        watch = Watch(self.api.store, asked, self._closing, self._bookmarks)
        lines = self._lines(watch, asked, how)
        gone = how.line(asked, error(expired(_GONE)), 0.0, heads=False)
        spoiled = spoil(lines, faults, gone, self._closing) if faults else _joined(lines)
        return StreamingResponse(spoiled, media_type="application/json")

    async def _lines(self, watch: Watch, asked: Asked, how: Rendering) -> AsyncIterator[list[bytes]]:
        heads = True
        async for together in watch.events():
            now = self.api.clock.now()
            lines = []
            for told in together:
                lines.append(how.line(asked, told, now, heads=heads))
                heads = False
            yield lines


async def _joined(lines: AsyncIterator[list[bytes]]) -> AsyncIterator[bytes]:
    async for together in lines:
        yield b"".join(together)


async def _body(request: Request) -> Any:
    """The body as parsed JSON or YAML, an object or, of a JSON patch, a list; an empty object if there is none.

    Raises:
        RefusedError: 400, or 415 when it is neither.
    """
    raw = await request.body()
    if not raw.strip():
        return {}
    media = _media(request)
    if media not in _MEDIA and request.method != "DELETE":
        raise unsupported_media(() if request.method == "PATCH" else _MEDIA[:2])
    try:
        parsed: Any = yaml.safe_load(raw) if media == _YAML else msgspec.json.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as fault:
        raise bad_request(f"the body of the request cannot be read: {fault}") from fault
    wanted = list if media == OPERATIONS and request.method == "PATCH" else dict
    if not isinstance(parsed, wanted):
        raise bad_request(_NO_OPERATIONS if wanted is list else "the body of the request is not an object")
    return parsed


def _media(request: Request) -> str:
    return str(request.headers.get("content-type", "")).partition(";")[0].strip()


def _raw_path(request: Request) -> str:
    raw: bytes = request.scope.get("raw_path") or request.url.path.encode()
    return raw.decode("latin-1").partition("?")[0]


def _json(made: Object, code: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(made), code, headers, "application/json")


def _refusal(refused: RefusedError) -> Response:
    headers = {"Retry-After": str(refused.retry_after)} if refused.retry_after else None
    return _json(refused.status, refused.code, headers)
