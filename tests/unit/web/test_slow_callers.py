"""A thousand callers that never finish what they began, and one beside them that wants answers."""

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPConnection
from statistics import quantiles
from time import perf_counter

import pytest

from extender.web import peer
from extender.web.app import new_app
from tests.unit.web.served import SECONDS, a_site, ask, served

SLOW = 1_000
HEAD = b"POST /filter HTTP/1.1\r\nHost: x\r\nX-Slow: "
BODY = b'POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n{"Pod"'
GOOD = json.dumps({"Pod": {"metadata": {"name": "web"}}, "NodeNames": ["n1"]})
MOST = 0.25
"""Seconds an answer may take here, where server and callers are one process; tests/bench/verbs.py has the figure."""


@pytest.fixture
def port() -> Iterator[int]:
    with served(new_app(a_site())) as found:
        yield found


def open_slow(port: int, stack: ExitStack) -> list[socket.socket]:
    """Half of them stop in their head, half in their body."""
    found = []
    for number in range(SLOW):
        connection = stack.enter_context(socket.create_connection(("127.0.0.1", port), SECONDS))
        connection.sendall(BODY if number % 2 else HEAD)
        found.append(connection)
    return found


def test_slow_callers_delay_nobody(port: int) -> None:
    with ExitStack() as stack:
        slow = open_slow(port, stack)
        caller = HTTPConnection("127.0.0.1", port, timeout=SECONDS)
        stack.callback(caller.close)
        times = []
        for number in range(200):
            slow[number * 5].sendall(b"x")
            began = perf_counter()
            caller.request("POST", "/filter", GOOD)
            answer = caller.getresponse()
            assert (answer.status, answer.read()[:5]) == (200, b'{"Nod')
            times.append(perf_counter() - began)
        assert ask(port, "GET", "/readyz") == (200, "ok")
    assert quantiles(times, n=100)[98] < MOST


def test_slow_callers_are_sent_away_in_the_end(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer, "PATIENCE", 0.5)
    with ExitStack() as stack:
        for connection in open_slow(port, stack):
            assert connection.recv(1) == b""
    wanted = {
        'extender_requests_in_flight{verb="filter"} 0.0',
        'extender_request_duration_seconds_count{code="499",verb="filter"} 500.0',
    }
    until = perf_counter() + SECONDS
    while not wanted <= {*ask(port, "GET", "/metrics")[1].splitlines()}:
        assert perf_counter() < until
