"""Server-sent events for the pages Cluster and Waiting pods: the browser reads them again after a change."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
from fastapi import Response

from extender.ui.live_feed import MAX_SHARE, LiveFeed
from extender.ui.page_source import PageSource
from extender.ui.scheduler_pages import make_stream_response


class ChangeFeed:
    """Sends the number of the last change of a cluster.

    Readers request the pages again after a change, which takes more time than an event. The time that `measure`
    measured counts for the feed, so that events are less frequent in a large cluster.
    """

    def __init__(self, source: PageSource, max_share: float = MAX_SHARE) -> None:
        """Create the feed of a cluster; it starts with its first reader.

        The events and the pages after them may take *max_share* of the time.
        """
        self._seconds = 0.0
        self._feed = LiveFeed(
            lambda: msgspec.json.encode({"version": source.get_version()}),
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

    async def stream(self) -> Response:
        """Stream the events."""
        return make_stream_response(self._feed)

    def close(self) -> None:
        """End all streams, because the process stops."""
        self._feed.close()
