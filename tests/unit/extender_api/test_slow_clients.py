"""A thousand clients that never finish their requests do not delay another client."""

import asyncio
import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPConnection
from statistics import median, quantiles
from time import perf_counter, process_time
from typing import Any

import pytest

from extender.extender_api import endpoint
from extender.extender_api.body_reader import BodyReader
from extender.extender_api.routes import new_app
from extender.serving import http_protocol
from tests.unit.extender_api.http_harness import TIMEOUT, make_service, send_request, serve_in_thread

SLOW = 1_000
HEAD = b"POST /filter HTTP/1.1\r\nHost: x\r\nX-Slow: "
BODY = b'POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n{"Pod"'
GOOD = json.dumps({"Pod": {"metadata": {"name": "web"}}, "NodeNames": ["n1"]})
MOST = 0.25
"""Seconds for a response here, where server and clients are one process; tests/bench/verbs.py measures it.

Other processes may delay some responses, but not half of them, and they do not change the CPU time.
"""


@pytest.fixture
def port() -> Iterator[int]:
    with serve_in_thread(new_app(make_service())) as connections:
        yield connections


def open_slow(port: int, stack: ExitStack) -> list[socket.socket]:
    """Open connections that stop in the head or in the body of a request."""
    connections = []
    for number in range(SLOW):
        connection = stack.enter_context(socket.create_connection(("127.0.0.1", port), TIMEOUT))
        connection.sendall(BODY if number % 2 else HEAD)
        connections.append(connection)
    return connections


def test_slow_clients_do_not_delay_others(port: int) -> None:
    with ExitStack() as stack:
        slow = open_slow(port, stack)
        client = HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
        stack.callback(client.close)
        times, cpu_times = [], []
        for number in range(200):
            slow[number * 5].sendall(b"x")
            start_time, start_cpu_time = perf_counter(), process_time()
            client.request("POST", "/filter", GOOD)
            response = client.getresponse()
            assert (response.status, response.read()[:5]) == (200, b'{"Nod')
            times.append(perf_counter() - start_time)
            cpu_times.append(process_time() - start_cpu_time)
        assert send_request(port, "GET", "/readyz") == (200, "ok")
    assert median(times) < MOST
    assert quantiles(cpu_times, n=100)[98] < MOST


def test_slow_clients_are_disconnected(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "TRANSFER_TIMEOUT", 0.5)
    with ExitStack() as stack:
        for connection in open_slow(port, stack):
            assert connection.recv(1) == b""
    wanted = {
        'extender_requests_in_flight{verb="filter"} 0.0',
        'extender_request_duration_seconds_count{code="499",verb="filter"} 500.0',
    }
    until = perf_counter() + TIMEOUT
    while not wanted <= {*send_request(port, "GET", "/metrics")[1].splitlines()}:
        assert perf_counter() < until


def test_a_big_response_that_is_read_too_slowly_is_not_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client reads a part of the response, so no write is idle for 30 seconds, and never the whole response."""
    monkeypatch.setattr(endpoint, "TRANSFER_TIMEOUT", 0.05)
    status_of_node = {"allocatable": {"pods": "9"}}
    node = {"status": status_of_node, "metadata": {"name": "n1", "annotations": {"a": "x" * (1 << 20)}}}
    nodes = {"metadata": {}, "items": [node]}
    body = json.dumps({"Pod": {"metadata": {"name": "web"}}, "Nodes": nodes, "NodeNames": None}).encode()
    body_reader = BodyReader()
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": body}

    async def send(message: Any) -> None:
        sent.append(message)
        if len(sent) == 3:
            await asyncio.Event().wait()

    service = make_service(body_reader=body_reader)
    scope = {"type": "http", "method": "POST", "path": "/filter", "headers": [], "query_string": b""}
    asyncio.run(new_app(service)(scope, receive, send))
    assert [message.get("more_body") for message in sent] == [None, True, True]
    assert body_reader.current_total_bytes == 0
    page = b"".join(service.render_metrics()).decode()
    assert 'extender_request_duration_seconds_count{code="499",verb="filter"} 1.0' in page.splitlines()
