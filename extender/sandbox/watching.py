"""Watches: what happens from a version on, line by line, with bookmarks, until the time is up.

Source: the API concepts page of Kubernetes, "Efficient detection of changes"; cacher.go and cache_watcher.go.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Final

from extender.sandbox.asked import Asked
from extender.sandbox.listing import chosen
from extender.sandbox.refusals import RefusedError, invalid_options, too_large
from extender.sandbox.selecting import Selection
from extender.sandbox.served import Object
from extender.sandbox.store import Change, Happened, Kept, Store

BOOKMARK_SECONDS: Final = 60.0
"""Seconds between bookmarks."""

WATCH_SECONDS: Final = 1800.0
"""How long a watch lasts unless the caller says."""

_INITIAL_END: Final = "k8s.io/initial-events-end"
_GRAIN: Final = 1e-6
"""Seconds that are too few to wait: a clock that only moves on by waits would stand still before them."""


@dataclass(frozen=True, slots=True)
class Told:
    """One event of a watch.

    Attributes:
        type: ADDED, MODIFIED, DELETED, BOOKMARK or ERROR.
        kept: the object; of a bookmark only its version, of an error a Status.
    """

    type: str
    kept: Kept


class Watch:
    """One watch of one kind. Use it in the event loop in which the store is written."""

    def __init__(self, store: Store, asked: Asked, closing: asyncio.Event, bookmarks: float = BOOKMARK_SECONDS) -> None:
        """Reads the request.

        Args:
            store: what to watch.
            asked: the request.
            closing: set when the server stops.
            bookmarks: seconds between bookmarks.

        Raises:
            RefusedError: 400, 422, or 504 for a version that is not reached yet.
        """
        self._store = store
        self._asked = asked
        self._closing = closing
        self._wanted = chosen(asked)
        self._bookmarks = bookmarks if asked.yes("allowWatchBookmarks") else 0.0
        self._position = asked.number("resourceVersion")
        seconds = asked.number("timeoutSeconds")
        self._seconds = float(seconds) if seconds else WATCH_SECONDS
        self._streams_list = asked.yes("sendInitialEvents")
        self._check()

    def _check(self) -> None:
        if "sendInitialEvents" in self._asked.query:
            if self._asked.query.get("resourceVersionMatch") != "NotOlderThan":
                message = "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
                raise invalid_options("resourceVersionMatch", message)
        elif self._asked.query.get("resourceVersionMatch"):
            message = "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            raise invalid_options("resourceVersionMatch", message)
        if self._position is not None and self._position > self._store.version:
            raise too_large(self._position, self._store.version)

    async def events(self) -> AsyncIterator[list[Told]]:
        """The events, those that come together in one list, until the watch ends; an error is the last."""
        loop = asyncio.get_running_loop()
        woken = asyncio.Event()
        place = self._asked.kind.place
        deaf = self._store.listen(lambda where: woken.set() if where == place else None)
        stop = asyncio.create_task(self._closing.wait())
        try:
            end, next_bookmark = loop.time() + self._seconds, loop.time() + (self._bookmarks or self._seconds)
            yield self._first()
            while not self._closing.is_set():
                try:
                    told = self._next()
                except RefusedError as refused:
                    yield [error(refused)]
                    return
                if told:
                    yield told
                now = loop.time()
                if now >= end - _GRAIN:
                    break
                if self._bookmarks and now >= next_bookmark - _GRAIN:
                    next_bookmark = now + self._bookmarks
                    yield [self._bookmark()]
                await _either(woken, stop, min(end, next_bookmark if self._bookmarks else end) - loop.time())
                woken.clear()
            if self._bookmarks and not self._closing.is_set():
                yield [self._bookmark()]
        finally:
            deaf()
            stop.cancel()

    def _first(self) -> list[Told]:
        """The objects there are, where the watch does not start at a version."""
        if self._position and not self._streams_list:
            return []
        self._position = self._store.version
        kept = self._store.all(self._asked.kind.place, self._asked.namespace)
        if self._asked.query.get("sendInitialEvents") == "false":
            kept = []
        told = [Told(Happened.ADDED, each) for each in kept if self._wanted.chooses(each.object)]
        if self._streams_list and self._asked.yes("allowWatchBookmarks"):
            told.append(self._bookmark({_INITIAL_END: "true"}))
        return told

    def _next(self) -> list[Told]:
        position = self._position or 0
        told = list(_told(self._store.changes(self._asked.kind.place, position), self._wanted))
        self._position = self._store.version
        return told

    def _bookmark(self, annotations: Object | None = None) -> Told:
        number = self._position or self._store.version
        meta: Object = {"resourceVersion": str(number), "creationTimestamp": None}
        if annotations:
            meta["annotations"] = annotations
        kind = self._asked.kind
        return Told("BOOKMARK", Kept({"kind": kind.kind, "apiVersion": kind.version, "metadata": meta}, number))


def error(refused: RefusedError) -> Told:
    """The event that ends a watch with a Status."""
    return Told("ERROR", Kept(refused.status, 0))


def _told(changes: Iterator[Change], wanted: Selection) -> Iterator[Told]:
    """Changes as one who sees only what is wanted sees them: what stops being wanted is deleted to them."""
    chooses: Callable[[Object], bool] = wanted.chooses
    for change in changes:
        before = change.before is not None and chooses(change.before.object)
        after = change.happened is not Happened.DELETED and chooses(change.kept.object)
        if after:
            yield Told(Happened.MODIFIED if before else Happened.ADDED, change.kept)
        elif before and change.before is not None:
            yield Told(Happened.DELETED, _renumbered(change.before, change.number))


def _renumbered(kept: Kept, number: int) -> Kept:
    meta = {**kept.object["metadata"], "resourceVersion": str(number)}
    return Kept({**kept.object, "metadata": meta}, number)


async def _either(woken: asyncio.Event, stop: "asyncio.Task[bool]", seconds: float) -> None:
    """Wait until something happened, the server stops, or the time is up."""
    waiting = asyncio.create_task(woken.wait())
    try:
        await asyncio.wait({waiting, stop}, timeout=max(seconds, 0.0), return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
