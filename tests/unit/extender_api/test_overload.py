"""More requests than the limit: some wait, others are rejected at once, and health checks are served in between."""

import socket
import threading
from collections import Counter
from contextlib import ExitStack
from typing import Any

import pytest

from extender.extender_api import limiter as limiter_module
from extender.extender_api.limiter import RequestLimiter
from extender.extender_api.routes import new_app
from tests.fake_plugins import make_profile
from tests.unit.extender_api.http_harness import TIMEOUT, make_service, serve_in_thread

CALLERS = 12
BODY = b'{"Pod":{"metadata":{"name":"web"}},"NodeNames":["n1"]}'
REQUEST = b"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY


PROBE = b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"


class SlowPlugin:
    """Blocks the event loop in its first call until it is released, and for some seconds in each call.

    Attributes:
        calls: the number of calls so far.
        probed_before_last: whether the health check was answered before the call for the last caller ended.
    """

    name = "TakesLong"

    def __init__(self, seconds: float) -> None:
        self.seconds, self.calls, self.probed_before_last = seconds, 0, False
        self.begun, self.let_go, self.probed = threading.Event(), threading.Event(), threading.Event()

    def filter(self, *_: Any) -> tuple[()]:
        self.calls += 1
        self.begun.set()
        self.let_go.wait(TIMEOUT)
        threading.Event().wait(self.seconds)
        if self.calls == CALLERS:
            self.probed_before_last = self.probed.wait(TIMEOUT)
        return ()


def status_counts(plugin: SlowPlugin, limiter: RequestLimiter) -> Counter[int]:
    """Return the count of each status for concurrent requests, with a health check that is sent among them."""
    with (
        serve_in_thread(new_app(make_service(make_profile(plugin), decision_limiter=limiter))) as port,
        ExitStack() as stack,
    ):
        clients = [stack.enter_context(socket.create_connection(("127.0.0.1", port), TIMEOUT)) for _ in range(CALLERS)]
        probe = stack.enter_context(socket.create_connection(("127.0.0.1", port), TIMEOUT))
        clients[0].sendall(REQUEST)
        assert plugin.begun.wait(TIMEOUT)
        for client in clients[1:]:
            client.sendall(REQUEST)
        probe.sendall(PROBE)
        plugin.let_go.set()
        assert probe.recv(100).startswith(b"HTTP/1.1 200 ")
        plugin.probed.set()
        return Counter(int(client.recv(100).split()[1]) for client in clients)


@pytest.fixture
def loop_is_never_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each request wait for those that arrived during the last decision, however slow the machine is."""
    monkeypatch.setattr(limiter_module, "monotonic", lambda: 0.0)


@pytest.mark.usefixtures("loop_is_never_idle")
def test_requests_beyond_the_queue_are_rejected_at_once() -> None:
    counts = status_counts(SlowPlugin(0.0), RequestLimiter(max_waiting=3))
    assert counts[200] >= 4
    assert counts[503] == CALLERS - counts[200] > 0


@pytest.mark.usefixtures("loop_is_never_idle")
def test_requests_that_wait_too_long_are_rejected() -> None:
    counts = status_counts(SlowPlugin(0.2), RequestLimiter(timeout=0.5))
    assert counts[200] >= 1
    assert counts[503] == CALLERS - counts[200] > 0


def test_a_health_check_is_served_between_two_decisions() -> None:
    plugin = SlowPlugin(0.0)
    assert status_counts(plugin, RequestLimiter()) == {200: CALLERS}
    assert plugin.probed_before_last
