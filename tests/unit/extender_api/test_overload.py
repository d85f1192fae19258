"""More requests than the limit: some wait, others are rejected at once, and health checks are served in between."""

import socket
import threading
from collections import Counter
from contextlib import ExitStack
from time import perf_counter
from typing import Any

from extender.extender_api.limiter import RequestLimiter
from extender.extender_api.routes import new_app
from tests.fake_plugins import make_profile
from tests.unit.extender_api.http_harness import TIMEOUT, make_service, send_request, serve_in_thread

CALLERS = 12
BODY = b'{"Pod":{"metadata":{"name":"web"}},"NodeNames":["n1"]}'
REQUEST = b"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY


class SlowPlugin:
    """Blocks the event loop in its first call until it is released, and for some seconds in each call."""

    name = "TakesLong"

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.begun, self.let_go = threading.Event(), threading.Event()

    def filter(self, *_: Any) -> tuple[()]:
        self.begun.set()
        self.let_go.wait(TIMEOUT)
        threading.Event().wait(self.seconds)
        return ()


def status_counts(plugin: SlowPlugin, limiter: RequestLimiter) -> tuple[Counter[int], float]:
    """Return the count of each status for concurrent requests, and the seconds of a health check among them."""
    with (
        serve_in_thread(new_app(make_service(make_profile(plugin), decision_limiter=limiter))) as port,
        ExitStack() as stack,
    ):
        clients = [stack.enter_context(socket.create_connection(("127.0.0.1", port), TIMEOUT)) for _ in range(CALLERS)]
        clients[0].sendall(REQUEST)
        assert plugin.begun.wait(TIMEOUT)
        for client in clients[1:]:
            client.sendall(REQUEST)
        plugin.let_go.set()
        start_time = perf_counter()
        assert send_request(port, "GET", "/livez") == (200, "ok")
        probe_seconds = perf_counter() - start_time
        return Counter(int(client.recv(100).split()[1]) for client in clients), probe_seconds


def test_requests_beyond_the_queue_are_rejected_at_once() -> None:
    counts, _ = status_counts(SlowPlugin(0.0), RequestLimiter(max_waiting=3))
    assert counts[200] >= 4
    assert counts[503] == CALLERS - counts[200] > 0


def test_requests_that_wait_too_long_are_rejected() -> None:
    counts, _ = status_counts(SlowPlugin(0.2), RequestLimiter(timeout=0.5))
    assert counts[200] >= 1
    assert counts[503] == CALLERS - counts[200] > 0


def test_a_health_check_is_served_between_two_decisions() -> None:
    counts, probe_seconds = status_counts(SlowPlugin(0.1), RequestLimiter())
    assert counts == {200: CALLERS}
    assert probe_seconds < (CALLERS - 2) * 0.1
