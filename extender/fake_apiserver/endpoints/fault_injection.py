"""Inject faults into responses, at random but reproducibly.

Each fault has its own random generator, so adding a fault does not affect the random choices of the other faults.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Final

import msgspec


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
        retry_after: the header Retry-After, in seconds or as a date; empty: no header.
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


class BrokenConnectionError(Exception):
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
        rng = random.Random(f"{self._seed}/{len(self._states)}")  # noqa: S311  repeatable on purpose
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
    line_batches: AsyncIterator[list[bytes]], faults: list[Fault], gone_line: bytes, closing: asyncio.Event
) -> AsyncIterator[bytes]:
    """Yield the lines of a watch with injected faults.

    Args:
        line_batches: the lines in batches. A line is an encoded event with its line feed.
        faults: the faults of this watch.
        gone_line: the line of the ERROR event for a too old resource version.
        closing: is set when the server stops, which ends a stalled watch.

    Raises:
        BrokenConnectionError: a fault closes the connection.
    """
    sent_count, previous_line = 0, b""
    try:
        async for chunk in _inject_after_events(faults, sent_count, gone_line, closing):
            yield chunk
        async for batch in line_batches:
            for line in batch:
                for chunk in _inject_into_event(faults, sent_count, line, previous_line):
                    yield chunk
                sent_count, previous_line = sent_count + 1, line
                async for chunk in _inject_after_events(faults, sent_count, gone_line, closing):
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


async def _inject_after_events(
    faults: list[Fault], sent_count: int, gone_line: bytes, closing: asyncio.Event
) -> AsyncIterator[bytes]:
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
                yield gone_line
                raise _WatchEndedError
            case FaultKind.STALL_WATCH:
                await closing.wait()
                raise _WatchEndedError
            case _:
                continue
