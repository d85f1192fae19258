"""Fault injection: inject a list of faults into responses, at random but reproducibly.

Each fault has its own random generator, so an added fault does not change when other faults occur.
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
    """The request is not executed; the response is `code`, with Retry-After if `retry_after` is set."""
    DELAY = "delay"
    """The request is executed after `seconds`."""
    LOST = "lost"
    """The request is executed, but the response is 504, after `seconds`."""
    CUT = "cut"
    """The request is executed, but the connection is closed without a response."""
    DROP = "drop"
    """Watch: the connection breaks."""
    END = "end"
    """Watch: the watch ends normally."""
    TRUNCATE = "truncate"
    """Watch: the connection breaks in the middle of the next event."""
    GARBAGE = "garbage"
    """Watch: a line is not JSON."""
    GONE = "gone"
    """Watch: an ERROR event for a too old resource version. Other verbs: 410."""
    DUPLICATE = "duplicate"
    """Watch: the next event is sent twice."""
    REPLAY = "replay"
    """Watch: after the next event, the previous one is sent again."""
    STALL = "stall"
    """Watch: no more events, and the connection stays open."""


_GARBAGE: Final = b'{"type":"ADDED","object":{"kind"\n'
_WATCH_FAULTS: Final = frozenset(FaultKind) - {FaultKind.STATUS, FaultKind.DELAY, FaultKind.LOST, FaultKind.CUT}


class Fault(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A fault and the pattern of its requests.

    Attributes:
        kind: the kind of fault.
        verb: the verb (get, list, watch, create, update, patch, delete), with the wildcards `*` and `?`.
        resource: the resource, such as `pods`, `pods/binding` or `leases`, with wildcards.
        name: the name of the object, with wildcards.
        share: the fraction of matching requests that get the fault, from 0 to 1.
        skip: the number of first matching requests without the fault.
        times: the maximum number of requests with the fault; 0: unlimited.
        code: the HTTP status.
        retry_after: the header Retry-After, in seconds or as a date; empty: no header.
        seconds: the delay in seconds.
        after: the number of events that a watch sends before the fault.
    """

    kind: FaultKind
    verb: str = "*"
    resource: str = "*"
    name: str = "*"
    share: float = 1.0
    skip: int = 0
    times: int = 0
    code: int = 503
    retry_after: str = ""
    seconds: float = 0.0
    after: int = 0


class BrokenConnectionError(Exception):
    """The connection must be closed."""


@dataclass(slots=True)
class _FaultState:
    fault: Fault
    rng: random.Random
    matched_requests: int = 0
    injected_faults: int = 0


class FaultInjector:
    """A list of faults, with the number of matched requests per fault."""

    def __init__(self, faults: Iterable[Fault] = (), seed: int = 0) -> None:
        """Create an injector of *faults*.

        Args:
            faults: the faults to inject.
            seed: the seed for `share`; equal seeds and requests give equal faults.
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
        """Return the faults to inject into a request."""
        return [state.fault for state in self._states if _select_fault(state, verb, resource, name)]


def _select_fault(state: _FaultState, verb: str, resource: str, name: str) -> bool:
    fault = state.fault
    patterns = ((verb, fault.verb), (resource, fault.resource), (name, fault.name))
    if not all(fnmatchcase(text, pattern) for text, pattern in patterns):
        return False
    if verb != "watch" and fault.kind in _WATCH_FAULTS - {FaultKind.GONE}:
        return False
    state.matched_requests += 1
    is_selected = state.rng.random() < fault.share
    if (
        state.matched_requests <= fault.skip
        or not is_selected
        or (fault.times and state.injected_faults >= fault.times)
    ):
        return False
    state.injected_faults += 1
    return True


class _WatchEndedError(Exception):
    """The watch must end normally."""


async def inject_watch_faults(
    lines: AsyncIterator[list[bytes]], faults: list[Fault], gone: bytes, closing: asyncio.Event
) -> AsyncIterator[bytes]:
    """Yield the lines of a watch with injected faults.

    Args:
        lines: the batches of encoded events, each with its line feed.
        faults: the faults of this watch.
        gone: the line of the ERROR event for a too old resource version.
        closing: the event that the server stops, which ends a stalled watch.

    Raises:
        BrokenConnectionError: the connection must be closed.
    """
    sent_count, previous_line = 0, b""
    try:
        async for chunk in _inject_after_events(faults, sent_count, gone, closing):
            yield chunk
        async for batch in lines:
            for line in batch:
                for chunk in _inject_into_event(faults, sent_count, line, previous_line):
                    yield chunk
                sent_count, previous_line = sent_count + 1, line
                async for chunk in _inject_after_events(faults, sent_count, gone, closing):
                    yield chunk
    except _WatchEndedError:
        return


def _inject_into_event(faults: list[Fault], sent_count: int, line: bytes, previous_line: bytes) -> Iterator[bytes]:
    """Yield an event with its faults, after *sent_count* events."""
    kinds = [fault.kind for fault in faults if fault.after == sent_count]
    if FaultKind.TRUNCATE in kinds:
        yield line[: len(line) // 2]
        raise BrokenConnectionError
    yield line
    if FaultKind.DUPLICATE in kinds:
        yield line
    if FaultKind.REPLAY in kinds and previous_line:
        yield previous_line


async def _inject_after_events(
    faults: list[Fault], sent_count: int, gone: bytes, closing: asyncio.Event
) -> AsyncIterator[bytes]:
    """Inject the faults after *sent_count* events."""
    for fault in faults:
        if fault.after != sent_count:
            continue
        match fault.kind:
            case FaultKind.DROP:
                raise BrokenConnectionError
            case FaultKind.END:
                raise _WatchEndedError
            case FaultKind.GARBAGE:
                yield _GARBAGE
            case FaultKind.GONE:
                yield gone
                raise _WatchEndedError
            case FaultKind.STALL:
                await closing.wait()
                raise _WatchEndedError
            case _:
                continue
