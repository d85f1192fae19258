"""Server-sent events: one producer for all streams, at most one event a second."""

import asyncio
from collections.abc import AsyncIterator

from extender.ui.live_feed import MAX_STREAMS, STREAM_SECONDS, LiveFeed


class Harness:
    """A feed with a clock that only `sleep` of the producer and the tests move; documents are numbers."""

    def __init__(self, seconds_per_document: float = 0.0) -> None:
        self.now, self.count, self.sleeps = 0.0, 0, list[float]()
        self._seconds_per_document = seconds_per_document
        self.turn = asyncio.Event()
        self.feed = LiveFeed(self._make_document, lambda: self.now, self._sleep)

    def _make_document(self) -> bytes:
        self.count += 1
        self.now += self._seconds_per_document
        return str(self.count).encode()

    async def _sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        await self.turn.wait()
        self.turn.clear()
        self.now += seconds


async def let_others_run() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def read(stream: AsyncIterator[bytes], events: list[bytes]) -> None:
    async for event in stream:
        events.append(event)  # noqa: PERF401  the test reads the events before the stream ends


def test_all_streams_get_the_documents_of_one_producer() -> None:
    async def main() -> None:
        harness = Harness()
        first, second = list[bytes](), list[bytes]()
        tasks = [asyncio.create_task(read(harness.feed.stream(), events)) for events in (first, second)]
        await let_others_run()
        harness.turn.set()
        await let_others_run()
        assert first == second == [b"data: 1\n\n", b"data: 2\n\n"]
        assert harness.sleeps == [1.0, 1.0]
        harness.feed.close()
        await asyncio.gather(*tasks)

    asyncio.run(main())


def test_no_document_is_made_without_a_stream() -> None:
    async def main() -> None:
        harness = Harness()
        task = asyncio.create_task(read(harness.feed.stream(), []))
        await let_others_run()
        task.cancel()
        await let_others_run()
        assert harness.feed.stream_count == 0
        harness.turn.set()
        await let_others_run()
        assert harness.count == 1
        events: list[bytes] = []
        task = asyncio.create_task(read(harness.feed.stream(), events))
        await let_others_run()
        assert events == [b"data: 2\n\n"]
        harness.feed.close()
        await task

    asyncio.run(main())


def test_documents_that_take_long_are_made_less_often() -> None:
    async def main() -> None:
        harness = Harness(seconds_per_document=0.5)
        task = asyncio.create_task(read(harness.feed.stream(), []))
        await let_others_run()
        assert harness.sleeps == [50.0]
        harness.feed.close()
        await task

    asyncio.run(main())


def test_a_closed_feed_ends_its_streams_and_allows_no_more() -> None:
    async def main() -> None:
        harness = Harness()
        task = asyncio.create_task(read(harness.feed.stream(), []))
        await let_others_run()
        harness.feed.close()
        await asyncio.wait_for(task, 5.0)
        assert harness.feed.is_full

    asyncio.run(main())


def test_a_stream_ends_after_ten_minutes() -> None:
    async def main() -> None:
        harness = Harness()
        task = asyncio.create_task(read(harness.feed.stream(), []))
        await let_others_run()
        harness.now = STREAM_SECONDS
        harness.turn.set()
        await asyncio.wait_for(task, 5.0)

    asyncio.run(main())


def test_an_error_of_the_producer_ends_the_streams() -> None:
    async def main() -> None:
        def fail() -> bytes:
            raise ValueError

        feed = LiveFeed(fail, lambda: 0.0)
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        await asyncio.wait_for(read(feed.stream(), []), 5.0)
        assert feed.stream_count == 0

    asyncio.run(main())


def test_the_number_of_streams_is_limited() -> None:
    async def main() -> None:
        harness = Harness()
        tasks = [asyncio.create_task(read(harness.feed.stream(), [])) for _ in range(MAX_STREAMS)]
        await let_others_run()
        assert harness.feed.is_full
        tasks.pop().cancel()
        await let_others_run()
        assert not harness.feed.is_full
        harness.feed.close()
        await asyncio.gather(*tasks)

    asyncio.run(main())


def test_the_requests_of_the_readers_count_for_the_feed() -> None:
    async def main() -> None:
        harness = Harness()
        harness.feed = LiveFeed(lambda: b"1", lambda: harness.now, harness._sleep, take_extra_seconds=lambda: 0.25)
        task = asyncio.create_task(read(harness.feed.stream(), []))
        await let_others_run()
        assert harness.sleeps == [25.0]
        harness.feed.close()
        await task

    asyncio.run(main())


def test_documents_take_a_larger_share_of_the_time_where_nothing_else_needs_it() -> None:
    async def main() -> None:
        harness = Harness()
        feed = LiveFeed(lambda: b"1", lambda: harness.now, harness._sleep, lambda: 2.0, max_share=0.5)
        task = asyncio.create_task(read(feed.stream(), []))
        await let_others_run()
        assert harness.sleeps == [4.0]
        feed.close()
        await task

    asyncio.run(main())


def test_a_later_reader_gets_the_last_event_at_once() -> None:
    async def main() -> None:
        harness = Harness()
        tasks = [asyncio.create_task(read(harness.feed.stream(), []))]
        await let_others_run()
        events: list[bytes] = []
        tasks.append(asyncio.create_task(read(harness.feed.stream(), events)))
        await let_others_run()
        assert events == [b"data: 1\n\n"]
        harness.turn.set()
        await let_others_run()
        assert events == [b"data: 1\n\n", b"data: 2\n\n"]
        harness.feed.close()
        await asyncio.gather(*tasks)

    asyncio.run(main())
