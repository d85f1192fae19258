"""Limit concurrent requests: a few run, some more wait for a short time, and further ones are rejected at once.

A decision blocks the event loop. Between two decisions the loop reads its sockets, so health probes do not wait for the
whole queue of verbs. A scheduler's request times out after 5 seconds by default, so a request that would take longer is
rejected early.

Source: kube-scheduler/config/v1/types.go, Extender.HTTPTimeout; pkg/scheduler/extender.go, DefaultExtenderTimeout
(1.36).
"""

import asyncio
from dataclasses import dataclass, field
from time import monotonic
from types import TracebackType
from typing import Final

from extender.extender_api.request_limits import RequestError

SERVICE_UNAVAILABLE: Final = 503

_LOOP_ITERATIONS: Final = 5
"""Event loop iterations before a request runs. Requests that arrived during the last decision are queued or rejected in
these iterations; the loop accepts one connection per iteration. The iterations end after a millisecond, because five of
them take 20 ms if the same process handles a drain."""

_IDLE_SECONDS: Final = 0.001
"""The iterations are skipped if more than this time has passed since the last request ended: the loop was then idle.
A single scheduler waits longer than this between two requests."""


@dataclass(slots=True)
class RequestLimiter:
    """An asynchronous context manager around the handling of one request.

    Attributes:
        max_concurrent: the maximum number of requests that run at a time.
        max_waiting: the maximum number of waiting requests.
        timeout: the maximum wait of a request, in seconds.
    """

    max_concurrent: int = 1
    max_waiting: int = 64
    timeout: float = 2.0
    _semaphore: asyncio.Semaphore = field(init=False)
    _waiting_count: int = field(init=False, default=0)
    _last_end_time: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        self._semaphore = asyncio.Semaphore(self.max_concurrent)

    async def __aenter__(self) -> None:
        """Wait until the request may run.

        Raises:
            RequestError: 503, too many requests wait, or this one waited too long.
        """
        await self._acquire()
        try:
            now = monotonic()
            if now < self._last_end_time + _IDLE_SECONDS:
                for _ in range(_LOOP_ITERATIONS):
                    await asyncio.sleep(0)
                    if monotonic() > now + _IDLE_SECONDS:
                        break
        except BaseException:
            self._semaphore.release()
            raise

    async def _acquire(self) -> None:
        if not self._semaphore.locked():
            await self._semaphore.acquire()
            return
        if self._waiting_count >= self.max_waiting:
            raise RequestError(SERVICE_UNAVAILABLE, f"{self._waiting_count} requests are already waiting; retry later")
        self._waiting_count += 1
        try:
            async with asyncio.timeout(self.timeout):
                await self._semaphore.acquire()
        except TimeoutError as error:
            raise RequestError(
                SERVICE_UNAVAILABLE, f"the request waited {self.timeout:g} seconds in the queue; retry later"
            ) from error
        finally:
            self._waiting_count -= 1

    async def __aexit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let the next request run."""
        self._last_end_time = monotonic()
        self._semaphore.release()
