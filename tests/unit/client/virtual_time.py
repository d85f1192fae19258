"""An event loop in virtual time: it jumps to the next timer when nothing else can happen, so waits take no real time.

Sockets are real. Time jumps to the next timer when no socket is ready and no thread runs.
"""

import asyncio
import selectors
import socket
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Executor
from typing import Any, TypeVar

from tests.unit.client.counting_sockets import BytesInFlight, CountingSocket

T = TypeVar("T")

STUCK_SECONDS = 20.0
"""Real seconds without an event after which a test is stuck."""

GRACE_SECONDS = 0.0005
"""Real seconds before a jump, for kernel work that is not counted."""

DELIVERY_SECONDS = 0.2
"""Real seconds for the kernel to connect and to deliver bytes; bytes still in flight then have no reader."""


class _TimeJumpingSelector(selectors.BaseSelector):
    """A selector that advances the loop's time instead of waiting."""

    def __init__(self) -> None:
        self.real = selectors.DefaultSelector()
        self.now = 1000.0
        self.threads = 0
        self.bytes_in_flight = BytesInFlight()
        self.connecting: dict[Any, int] = {}
        self._undelivered: dict[Any, int] = {}

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self.real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self.real.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self.real.modify(fileobj, events, data)

    def close(self) -> None:
        self.real.close()

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self.real.get_map()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = self.real.select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None or self.threads:
            ready = self.real.select(STUCK_SECONDS)
            if not ready:
                raise AssertionError("nothing is due, nothing happens: the test is stuck")
            return ready
        ready = self.real.select(GRACE_SECONDS)
        while (
            not ready
            and (in_flight := self.bytes_in_flight.get_counts() | self.connecting)
            and in_flight != self._undelivered
        ):
            self._undelivered = in_flight
            ready = self.real.select(DELIVERY_SECONDS)
        if ready:
            self._undelivered = {}
        else:
            self.now += max(timeout, 0.0)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """The event loop and its clock; `wall_offset` is the difference from monotonic to wall clock time."""

    def __init__(self) -> None:
        self._jumping_selector = _TimeJumpingSelector()
        super().__init__(self._jumping_selector)
        self.wall_offset = 1_790_000_000.0

    def time(self) -> float:
        return self._jumping_selector.now

    def monotonic(self) -> float:
        return self._jumping_selector.now

    def now(self) -> float:
        return self._jumping_selector.now + self.wall_offset

    def suspend(self, seconds: float) -> None:
        """Advance time while nothing runs, like SIGSTOP and SIGCONT."""
        self._jumping_selector.now += seconds

    async def sock_connect(self, sock: socket.socket, address: Any) -> None:
        self._jumping_selector.connecting[sock] = 1
        try:
            await super().sock_connect(sock, address)
        finally:
            del self._jumping_selector.connecting[sock]

    def _make_socket_transport(self, sock: socket.socket, *arguments: Any, **more: Any) -> Any:
        counting_socket = CountingSocket.from_socket(sock, self._jumping_selector.bytes_in_flight)
        return super()._make_socket_transport(counting_socket, *arguments, **more)  # type: ignore[misc]

    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        self._jumping_selector.threads += 1
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(self._thread_ended)
        return future

    async def shutdown_default_executor(self, *arguments: Any) -> None:
        """Wait for the threads. Since Python 3.12, the wait has a timeout, which must not pass at once."""
        self._jumping_selector.threads += 1
        try:
            await super().shutdown_default_executor(*arguments)
        finally:
            self._jumping_selector.threads -= 1

    def _thread_ended(self, _: object) -> None:
        self._jumping_selector.threads -= 1


def current_loop() -> VirtualLoop:
    """Return the running loop, which is also a `Clock`."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a test's coroutine in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
