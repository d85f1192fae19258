"""Answers spoiled on purpose: a short list says which and how, a seed decides when chance does.

Each fault draws from a source of its own, so that adding one does not move the others.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Final

import msgspec


class Spoiled(StrEnum):
    """What is done to an answer."""

    STATUS = "status"
    """Nothing is done; the answer is `code`, with Retry-After if `retry_after` is set."""
    DELAY = "delay"
    """All is done, `seconds` later."""
    LOST = "lost"
    """All is done, but the answer is 504, after `seconds`."""
    CUT = "cut"
    """All is done, but the connection ends instead of an answer."""
    DROP = "drop"
    """A watch: the connection breaks."""
    END = "end"
    """A watch: it ends in good order."""
    TRUNCATE = "truncate"
    """A watch: the connection breaks in the middle of the next event."""
    GARBAGE = "garbage"
    """A watch: a line that is not JSON."""
    GONE = "gone"
    """A watch: the event that says its version is too old. Anything else: 410."""
    DUPLICATE = "duplicate"
    """A watch: the next event is sent twice."""
    REPLAY = "replay"
    """A watch: behind the next event, the one before it comes once more."""
    STALL = "stall"
    """A watch: nothing comes any more, and the connection stays."""


_GARBAGE: Final = b'{"type":"ADDED","object":{"kind"\n'
_OF_WATCHES: Final = frozenset(Spoiled) - {Spoiled.STATUS, Spoiled.DELAY, Spoiled.LOST, Spoiled.CUT}


class Fault(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """One line of the list.

    Attributes:
        what: what is done.
        verb: of the request: get, list, watch, create, update, patch, delete; `*` and `?` stand for any.
        resource: such as `pods`, `pods/binding` or `leases`; `*` and `?` stand for any.
        name: of the object; `*` and `?` stand for any.
        share: of the requests that match, how many are spoiled, from 0 to 1.
        skip: so many that match are left alone first.
        times: at most so many are spoiled; 0: no limit.
        code: the HTTP status.
        retry_after: the header Retry-After, in seconds or as a date; empty: none.
        seconds: how long to wait.
        after: a watch is spoiled when so many of its events were sent: before any of them with 0.
    """

    what: Spoiled
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
    """The connection is to end here."""


@dataclass(slots=True)
class _Planned:
    fault: Fault
    chance: random.Random
    matched: int = 0
    spoiled: int = 0


class Faults:
    """The list, and how far it has come."""

    def __init__(self, faults: Iterable[Fault] = (), seed: int = 0) -> None:
        """Begins the list.

        Args:
            faults: what to spoil.
            seed: of `share`; the same seed and the same requests have the same faults.
        """
        self._planned: list[_Planned] = []
        self._seed = seed
        for fault in faults:
            self.add(fault)

    def add(self, fault: Fault) -> None:
        """Add a line to the list."""
        chance = random.Random(f"{self._seed}/{len(self._planned)}")  # noqa: S311  repeatable on purpose
        self._planned.append(_Planned(fault, chance))

    def clear(self) -> None:
        """Spoil nothing any more."""
        self._planned.clear()

    def due(self, verb: str, resource: str, name: str = "") -> list[Fault]:
        """What is to be done to the answer to a request."""
        return [plan.fault for plan in self._planned if _is_due(plan, verb, resource, name)]


def _is_due(plan: _Planned, verb: str, resource: str, name: str) -> bool:
    fault = plan.fault
    asked = ((verb, fault.verb), (resource, fault.resource), (name, fault.name))
    if not all(fnmatchcase(text, pattern) for text, pattern in asked):
        return False
    if verb != "watch" and fault.what in _OF_WATCHES - {Spoiled.GONE}:
        return False
    plan.matched += 1
    drawn = plan.chance.random() < fault.share
    if plan.matched <= fault.skip or not drawn or (fault.times and plan.spoiled >= fault.times):
        return False
    plan.spoiled += 1
    return True


class _EndedError(Exception):
    """The watch is to end here, in good order."""


async def spoil(
    lines: AsyncIterator[list[bytes]], faults: list[Fault], gone: bytes, closing: asyncio.Event
) -> AsyncIterator[bytes]:
    """The lines of a watch with its faults.

    Args:
        lines: each an event, with its line feed.
        faults: of this watch.
        gone: the line that says the version is too old.
        closing: set when the server stops, so that a stalled watch ends.

    Raises:
        BrokenConnectionError: the connection is to break.
    """
    sent, before = 0, b""
    try:
        async for piece in _struck(faults, sent, gone, closing):
            yield piece
        async for together in lines:
            for line in together:
                for piece in _passed(faults, sent, line, before):
                    yield piece
                sent, before = sent + 1, line
                async for piece in _struck(faults, sent, gone, closing):
                    yield piece
    except _EndedError:
        return


def _passed(faults: list[Fault], sent: int, line: bytes, before: bytes) -> Iterator[bytes]:
    """An event as it is sent, after *sent* others."""
    here = [fault.what for fault in faults if fault.after == sent]
    if Spoiled.TRUNCATE in here:
        yield line[: len(line) // 2]
        raise BrokenConnectionError
    yield line
    if Spoiled.DUPLICATE in here:
        yield line
    if Spoiled.REPLAY in here and before:
        yield before


async def _struck(faults: list[Fault], sent: int, gone: bytes, closing: asyncio.Event) -> AsyncIterator[bytes]:
    """What happens after *sent* events."""
    for fault in faults:
        if fault.after != sent:
            continue
        match fault.what:
            case Spoiled.DROP:
                raise BrokenConnectionError
            case Spoiled.END:
                raise _EndedError
            case Spoiled.GARBAGE:
                yield _GARBAGE
            case Spoiled.GONE:
                yield gone
                raise _EndedError
            case Spoiled.STALL:
                await closing.wait()
                raise _EndedError
            case _:
                continue
