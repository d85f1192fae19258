"""Floods of idle and of half-open connections: other clients are served, and the connections are closed."""

import asyncio
import socket
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import trustme
import uvloop

from extender.extender_api.routes import new_app
from extender.serving import http_server
from extender.serving.serving_options import ServingOptions
from extender.serving.tls import load_serving_certificate
from tests.unit.extender_api.http_harness import (
    TIMEOUT,
    client_tls_context,
    make_service,
    send_request,
    serve_in_thread,
)

CONNECTIONS = 2_000


def open_connections(port: int, stack: ExitStack, count: int) -> list[socket.socket]:
    """Open connections that send nothing."""
    return [stack.enter_context(socket.create_connection(("127.0.0.1", port), TIMEOUT)) for _ in range(count)]


def test_two_thousand_idle_connections_do_not_keep_others_from_being_served() -> None:
    with serve_in_thread(new_app(make_service())) as port, ExitStack() as stack:
        open_connections(port, stack, CONNECTIONS)
        assert send_request(port, "GET", "/livez") == (200, "ok")


@pytest.mark.parametrize("new_event_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_half_open_tls_connections_are_closed_and_do_not_keep_others_from_being_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new_event_loop: Any
) -> None:
    monkeypatch.setattr(http_server, "HANDSHAKE_SECONDS", 1.0)
    ca = trustme.CA()
    issued = ca.issue_cert("localhost")
    issued.cert_chain_pems[0].write_to_path(str(tmp_path / "tls.crt"))
    issued.private_key_pem.write_to_path(str(tmp_path / "tls.key"))
    options = ServingOptions(cert_file=str(tmp_path / "tls.crt"), key_file=str(tmp_path / "tls.key"))
    certificate = load_serving_certificate(options, "")
    with serve_in_thread(new_app(make_service()), certificate, new_event_loop) as port, ExitStack() as stack:
        connections = open_connections(port, stack, 200)
        assert send_request(port, "GET", "/livez", tls=client_tls_context(ca)) == (200, "ok")
        assert [connection.recv(1) for connection in connections] == [b""] * 200
