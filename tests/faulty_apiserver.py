"""A fake API server that injects faults into its responses, at random but reproducibly.

Each fault has its own random generator, so adding a fault does not affect the random choices of the other faults.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any, Final

import msgspec
from starlette.requests import ClientDisconnect
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from extender.fake_apiserver.endpoints.http_app import HttpApp
from extender.fake_apiserver.endpoints.watch import make_error_event
from extender.fake_apiserver.registry.api_errors import StatusError, make_failure_status, new_expired
from extender.fake_apiserver.server import FakeApiServer

_BREAK_CONNECTION: Final = "fake_apiserver.break_connection"
"""The name of the ASGI extension whose function `close` closes the connection."""
_GONE: Final = new_expired("The resourceVersion for the provided list is too old.")
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


class FaultKind(StrEnum):
    """The kinds of faults."""

    STATUS = "status"
    """The request is not executed. The response has the status `code`, and Retry-After if `retry_after` is set."""
    DELAY = "delay"
    """The request is executed after `delay_seconds`."""
    TIMEOUT = "timeout"
    """The request is executed. After `delay_seconds`, the response is 504."""
    NO_RESPONSE = "no-response"
    """The request is executed, but the connection is closed without a response."""
    GONE = "gone"
    """A watch gets an ERROR event for a too old resource version. Any other request gets the response 410."""
    BREAK_WATCH = "break-watch"
    """The connection of a watch breaks."""
    END_WATCH = "end-watch"
    """A watch ends normally."""
    STALL_WATCH = "stall-watch"
    """A watch sends no more events, and its connection stays open."""
    TRUNCATE_EVENT = "truncate-event"
    """The connection of a watch breaks in the middle of the next event."""
    DUPLICATE_EVENT = "duplicate-event"
    """A watch sends the next event twice."""
    REPLAY_EVENT = "replay-event"
    """A watch sends the next event, and then repeats the preceding event."""
    INVALID_JSON = "invalid-json"
    """A watch sends a line that is not JSON."""


_INVALID_JSON_LINE: Final = b'{"type":"ADDED","object":{"kind"\n'
_WATCH_FAULTS: Final = frozenset(FaultKind) - {
    FaultKind.STATUS,
    FaultKind.DELAY,
    FaultKind.TIMEOUT,
    FaultKind.NO_RESPONSE,
}


class Fault(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A fault, with the patterns of the requests that get it.

    Attributes:
        verb: the verb (get, list, watch, create, update, patch, delete), with the wildcards `*` and `?`.
        resource: the resource, such as `pods`, `pods/binding` or `leases`, with wildcards.
        name: the name of the object, with wildcards.
        probability: the probability that a matching request gets the fault, from 0 to 1.
        skip: the first `skip` matching requests do not get the fault.
        times: the maximum number of requests that get the fault; 0: unlimited.
        code: the HTTP status of the response.
        retry_after: the header Retry-After, in seconds or, for a STATUS, as a date; empty: no header.
        after_events: the number of events that a watch sends before the fault.
    """

    kind: FaultKind
    verb: str = "*"
    resource: str = "*"
    name: str = "*"
    probability: float = 1.0
    skip: int = 0
    times: int = 0
    code: int = 503
    retry_after: str = ""
    delay_seconds: float = 0.0
    after_events: int = 0


class BrokenConnectionError(ClientDisconnect):
    """An injected fault closes the connection."""


@dataclass(slots=True)
class _FaultState:
    fault: Fault
    rng: random.Random
    matched_requests: int = 0
    injected_faults: int = 0


class FaultInjector:
    """Selects the faults of each request from a list, and counts the matching requests of each fault."""

    def __init__(self, faults: Iterable[Fault] = (), seed: int = 0) -> None:
        """Create an injector of *faults*.

        Equal seeds and requests give equal faults.
        """
        self._states: list[_FaultState] = []
        self._seed = seed
        for fault in faults:
            self.add(fault)

    def add(self, fault: Fault) -> None:
        """Add a fault."""
        rng = random.Random(f"{self._seed}/{len(self._states)}")
        self._states.append(_FaultState(fault, rng))

    def clear(self) -> None:
        """Remove all faults."""
        self._states.clear()

    def match(self, verb: str, resource: str, name: str = "") -> list[Fault]:
        """Return the faults to inject into the response of a request."""
        return [state.fault for state in self._states if _should_inject(state, verb, resource, name)]


def _should_inject(state: _FaultState, verb: str, resource: str, name: str) -> bool:
    """Return whether the fault is injected into the response of a request, and count the request."""
    fault = state.fault
    patterns = ((verb, fault.verb), (resource, fault.resource), (name, fault.name))
    if not all(fnmatchcase(text, pattern) for text, pattern in patterns):
        return False
    if verb != "watch" and fault.kind in _WATCH_FAULTS - {FaultKind.GONE}:
        return False
    state.matched_requests += 1
    is_selected = state.rng.random() < fault.probability
    if (
        state.matched_requests <= fault.skip
        or not is_selected
        or (fault.times and state.injected_faults >= fault.times)
    ):
        return False
    state.injected_faults += 1
    return True


class _WatchEndedError(Exception):
    """An injected fault ends the watch normally."""


async def inject_watch_faults(
    chunks: AsyncIterator[Any], faults: list[Fault], closing: asyncio.Event
) -> AsyncIterator[bytes]:
    """Yield the lines of a watch with injected faults.

    Args:
        chunks: the lines in batches. A line is an encoded event with its line feed.
        faults: the faults of this watch.
        closing: is set when the server stops, which ends a stalled watch.

    Raises:
        BrokenConnectionError: a fault closes the connection.
    """
    sent_count, previous_line = 0, b""
    try:
        async for chunk in _inject_after_events(faults, sent_count, closing):
            yield chunk
        async for batch in chunks:
            for line in batch.splitlines(keepends=True):
                for chunk in _inject_into_event(faults, sent_count, line, previous_line):
                    yield chunk
                sent_count, previous_line = sent_count + 1, line
                async for chunk in _inject_after_events(faults, sent_count, closing):
                    yield chunk
    except _WatchEndedError:
        return


def _inject_into_event(faults: list[Fault], sent_count: int, line: bytes, previous_line: bytes) -> Iterator[bytes]:
    """Yield the line of the next event with its faults, when *sent_count* events have been sent."""
    kinds = [fault.kind for fault in faults if fault.after_events == sent_count]
    if FaultKind.TRUNCATE_EVENT in kinds:
        yield line[: len(line) // 2]
        raise BrokenConnectionError
    yield line
    if FaultKind.DUPLICATE_EVENT in kinds:
        yield line
    if FaultKind.REPLAY_EVENT in kinds and previous_line:
        yield previous_line


async def _inject_after_events(faults: list[Fault], sent_count: int, closing: asyncio.Event) -> AsyncIterator[bytes]:
    """Yield the lines of the faults between two events, when *sent_count* events have been sent."""
    for fault in faults:
        if fault.after_events != sent_count:
            continue
        match fault.kind:
            case FaultKind.BREAK_WATCH:
                raise BrokenConnectionError
            case FaultKind.END_WATCH:
                raise _WatchEndedError
            case FaultKind.INVALID_JSON:
                yield _INVALID_JSON_LINE
            case FaultKind.GONE:
                yield b'{"type":"ERROR","object":' + make_error_event(_GONE).stored_object.json + b"}\n"
                raise _WatchEndedError
            case FaultKind.STALL_WATCH:
                await closing.wait()
                raise _WatchEndedError
            case _:
                continue


class FaultyHttpApp(HttpApp):
    """The application of the fake API server, with faults in its responses."""

    faults: FaultInjector
    _sleep = staticmethod(asyncio.sleep)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, or close its connection."""
        try:
            await super().__call__(scope, receive, send)
        except BrokenConnectionError:
            scope["extensions"][_BREAK_CONNECTION]["close"]()
            while (await receive())["type"] != "http.disconnect":
                continue

    async def execute(self, verb: str, resource: str, name: str, make_response: Callable[[], Response]) -> Response:
        """Return the result of *make_response* with the faults of the request."""
        faults = self.faults.match(verb, resource, name)
        response = await self._inject_before_execution(verb, faults)
        if response is not None:
            return response
        response = make_response()
        if verb == "watch" and isinstance(response, StreamingResponse):
            chunks: Any = response.body_iterator
            response.body_iterator = inject_watch_faults(chunks, faults, self._closing)
        else:
            await self._inject_after_execution(faults)
        return response

    async def _inject_before_execution(self, verb: str, faults: list[Fault]) -> Response | None:
        """Inject faults before the request is executed; return the response of a fault that prevents the execution."""
        for fault in faults:
            if fault.kind is FaultKind.DELAY:
                await self._sleep(fault.delay_seconds)
            elif fault.kind is FaultKind.STATUS:
                status = make_failure_status(fault.code, _REASONS.get(fault.code, ""), f"injected fault: {fault.code}")
                headers = {"Retry-After": fault.retry_after} if fault.retry_after else None
                return Response(msgspec.json.encode(status), fault.code, headers, "application/json")
            elif fault.kind is FaultKind.GONE and verb != "watch":
                raise _GONE
        return None

    async def _inject_after_execution(self, faults: list[Fault]) -> None:
        """Inject faults after the request was executed."""
        for fault in faults:
            if fault.kind is FaultKind.TIMEOUT:
                await self._sleep(fault.delay_seconds)
                message = "Timeout: request did not complete within the allotted timeout"
                raise StatusError(504, "Timeout", message, retry_after=int(fault.retry_after or 0))
            if fault.kind is FaultKind.NO_RESPONSE:
                raise BrokenConnectionError


class _BreakableHttpProtocol(HttpToolsProtocol):
    """HTTP protocol that lets the application close a connection. Data that was sent before still arrives."""

    def on_message_begin(self) -> None:
        """Start a request."""
        super().on_message_begin()
        self.scope["extensions"] = {_BREAK_CONNECTION: {"close": self.transport.close}}


class FaultyApiServer(FakeApiServer):
    """A fake API server with the injected *faults*; faults can be added while the server runs."""

    app_type = FaultyHttpApp
    http_protocol = _BreakableHttpProtocol
    _app: FaultyHttpApp

    def __init__(self, *, faults: Iterable[Fault] = (), seed: int = 0, **settings: Any) -> None:
        """Create the server; *seed* is also the seed of the faults."""
        super().__init__(seed=seed, **settings)
        self.faults = self._app.faults = FaultInjector(faults, seed)
