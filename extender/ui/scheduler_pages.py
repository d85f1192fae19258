"""The live pages about the scheduler of this process: Queue and Decisions."""

import time
from collections.abc import Callable

import msgspec
from fastapi import Response
from starlette.exceptions import HTTPException
from starlette.responses import StreamingResponse

from extender.basics.visible_text import make_value_visible
from extender.ui.live_document import (
    DecisionsDocumentMaker,
    LiveCell,
    LiveDocument,
    SchedulerView,
    make_attempt_row,
    make_queue_document,
)
from extender.ui.live_feed import MAX_STREAMS, LiveFeed


class SchedulerPages:
    """The documents and the streams of the pages Queue and Decisions."""

    def __init__(self, view: SchedulerView) -> None:
        """Create the pages of a scheduler; the feeds start with their first readers."""
        self._view, self._decisions_maker = view, DecisionsDocumentMaker(view)
        self._queue_feed = LiveFeed(_make_encoder(self.make_queue_document), time.monotonic)
        self._decisions_feed = LiveFeed(_make_encoder(self.make_decisions_document), time.monotonic)

    def make_queue_document(self) -> LiveDocument:
        """Return the current document of the page Queue."""
        return make_queue_document(self._view)

    def make_decisions_document(self) -> LiveDocument:
        """Return the current document of the page Decisions."""
        return self._decisions_maker.make()

    def list_attempt_rows(self, uid: str) -> list[list[LiveCell]]:
        """Return the rows of the last attempts to schedule a pod, the newest first."""
        attempts = self._view.attempt_history.list_attempts_of_pod(uid)
        return [make_attempt_row(attempt, with_pod=False) for attempt in attempts]

    async def stream_queue(self) -> Response:
        """Stream the documents of the page Queue."""
        return make_stream_response(self._queue_feed)

    async def stream_decisions(self) -> Response:
        """Stream the documents of the page Decisions."""
        return make_stream_response(self._decisions_feed)

    def close(self) -> None:
        """End all streams, because the process stops."""
        self._queue_feed.close()
        self._decisions_feed.close()


def _make_encoder(make_document: Callable[[], LiveDocument]) -> Callable[[], bytes]:
    return lambda: msgspec.json.encode(make_value_visible(msgspec.to_builtins(make_document())))


def make_stream_response(feed: LiveFeed) -> Response:
    """Return a stream of the events of *feed*.

    Raises:
        HTTPException: the feed has too many readers, or is closed.
    """
    if feed.is_full:
        raise HTTPException(503, f"{MAX_STREAMS} live pages are open already.")
    return StreamingResponse(feed.stream(), media_type="text/event-stream", headers={"Cache-Control": "no-store"})
