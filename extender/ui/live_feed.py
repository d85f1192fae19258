"""Server-sent events of the live pages: one producer for all readers, at most one event a second."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final

import msgspec
from fastapi import Response
from starlette.exceptions import HTTPException
from starlette.responses import StreamingResponse

from extender.ui.page_source import PageSource

MAX_STREAMS: Final = 100
"""The limit of the streams of a feed."""

STREAM_SECONDS: Final = 600.0
"""The length of a stream. The browser then connects again, and the reader is authorized again."""

HEARTBEAT_SECONDS: Final = 10.0
"""The longest silence of a stream. A browser does not notice that its connection is gone while it only reads."""

_HEADERS: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
"""Proxies such as nginx and ingress-nginx else keep the events of a stream until they have a few kilobytes."""

HEARTBEAT: Final = b"event: alive\ndata: 0\n\n"
"""An event without a document."""

_PERIOD_SECONDS: Final = 1.0
MAX_SHARE: Final = 0.01
"""The largest share of the time that documents may take beside a scheduler. For a long document, the period is longer.
"""


class LiveFeed:
    """Makes documents while there are streams, and sends each of them to all streams.

    A slow reader misses documents. No document is stored for it.
    """

    def __init__(
        self,
        make_document: Callable[[], bytes],
        get_time: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        take_extra_seconds: Callable[[], float] = lambda: 0.0,
        max_share: float = MAX_SHARE,
    ) -> None:
        """Create the feed without a stream.

        Args:
            make_document: returns the current document as JSON in one line.
            get_time: returns monotonic seconds.
            sleep: waits for a number of seconds.
            take_extra_seconds: returns the time that readers' requests after the last event took.
            max_share: the largest share of the time that documents and these requests may take.
        """
        self._make_document, self._get_time, self._sleep = make_document, get_time, sleep
        self._take_extra_seconds, self._max_share = take_extra_seconds, max_share
        self._next_event: asyncio.Future[bytes] | None = None
        self._last_event = b""
        self._producer: asyncio.Task[None] | None = None
        self._closed = False
        self.stream_count = 0

    @property
    def is_full(self) -> bool:
        """Whether no more streams are allowed."""
        return self._closed or self.stream_count >= MAX_STREAMS

    async def respond(self) -> Response:
        """Return a stream of events as the response to a request.

        Raises:
            HTTPException: the feed has too many readers, or is closed.
        """
        if self.is_full:
            raise HTTPException(503, f"{MAX_STREAMS} live pages are open already.")
        return StreamingResponse(self.stream(), media_type="text/event-stream", headers=_HEADERS)

    async def stream(self) -> AsyncIterator[bytes]:
        """Yield events and heartbeats until the feed is closed, or until `STREAM_SECONDS` have passed."""
        end_time = self._get_time() + STREAM_SECONDS
        self.stream_count += 1
        try:
            if self._producer is None:
                self._next_event = asyncio.get_running_loop().create_future()
                self._producer = asyncio.create_task(self._produce())
            elif self._last_event:
                yield self._last_event  # the next one may come later, if documents take long
            next_event = self._next_event
            while not self._closed and next_event is not None and self._get_time() < end_time:
                # Unlike `await next_event`, this does not cancel the future of the other streams with this stream.
                await asyncio.wait({next_event}, timeout=HEARTBEAT_SECONDS)
                if not next_event.done():
                    yield HEARTBEAT
                    continue
                event = next_event.result()
                if not event:
                    return
                yield event
                next_event = self._next_event
        finally:
            self.stream_count -= 1

    async def _produce(self) -> None:
        # Requests before the first stream may have taken hours in all, and the second event would wait for days.
        self._take_extra_seconds()
        try:
            while self.stream_count and not self._closed:
                start_time = self._get_time()
                self._publish(b"data: " + self._make_document() + b"\n\n")
                busy_seconds = self._get_time() - start_time + self._take_extra_seconds()
                await self._sleep(max(_PERIOD_SECONDS, busy_seconds / self._max_share))
        finally:
            self._producer = None
            self._publish(b"")  # also forgets the last event

    def _publish(self, event: bytes) -> None:
        """Send *event* to all streams that wait; an empty event ends them."""
        self._last_event = event
        next_event, self._next_event = self._next_event, asyncio.get_running_loop().create_future()
        if next_event is not None:
            next_event.set_result(event)

    def close(self) -> None:
        """End all streams, and allow no more."""
        self._closed = True
        if self._producer is not None:
            self._producer.cancel()
            self._publish(b"")


class ChangeFeed(LiveFeed):
    """Sends the number of the last change of a cluster, so that a browser reads its pages again.

    Readers request the pages again after a change, which takes more time than an event. The time that `measure`
    measured counts for the feed, so that events are less frequent in a large cluster.
    """

    def __init__(self, source: PageSource, max_share: float = MAX_SHARE) -> None:
        """Create the feed of a cluster; it starts with its first reader.

        The events and the pages after them may take *max_share* of the time.
        """
        self._seconds = 0.0
        super().__init__(
            lambda: msgspec.json.encode({"version": source.get_state().version}),
            time.monotonic,
            take_extra_seconds=self._take_seconds,
            max_share=max_share,
        )

    @contextmanager
    def measure(self) -> Iterator[None]:
        """Count the time of the block for the feed."""
        start_time = time.perf_counter()
        try:
            yield
        finally:
            self._seconds += time.perf_counter() - start_time

    def _take_seconds(self) -> float:
        seconds, self._seconds = self._seconds, 0.0
        return seconds
