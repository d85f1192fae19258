"""Listening addresses, and the limit of open files, which limits the connections of a port."""

import resource
import socket

import pytest

from extender.serving import http_server
from extender.serving.http_server import format_listener_url, listen
from extender.serving.rejection_log import format_address

INFINITY = resource.RLIM_INFINITY

needs_ipv6 = pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="the system has no IPv6")


@needs_ipv6
@pytest.mark.parametrize("address", ["0.0.0.0", "::", ""])  # noqa: S104 - a wildcard
def test_a_wildcard_listens_on_ipv4_and_ipv6_as_in_go(address: str) -> None:
    """Written out from Go 1.26, whose listener of 0.0.0.0 has the address [::]."""
    with listen(address, 0) as listener:
        port = listener.getsockname()[1]
        for host in ("127.0.0.1", "::1"):
            socket.create_connection((host, port)).close()
        assert format_address(listener.getsockname()) == f"[::]:{port}"


def test_a_wildcard_means_ipv4_on_a_system_without_ipv6(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: False)
    with listen("0.0.0.0", 0) as listener:  # noqa: S104 - a wildcard
        port = listener.getsockname()[1]
        assert format_address(listener.getsockname()) == f"0.0.0.0:{port}"
        socket.create_connection(("127.0.0.1", port)).close()


@needs_ipv6
@pytest.mark.parametrize(
    ("address", "host", "other"), [("127.0.0.1", "127.0.0.1", "::1"), ("::1", "[::1]", "127.0.0.1")]
)
def test_a_loopback_address_listens_on_one_address(address: str, host: str, other: str) -> None:
    with listen(address, 0) as listener:
        port = listener.getsockname()[1]
        assert format_listener_url(listener, secure=True) == f"https://{host}:{port}"
        socket.create_connection((address, port)).close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((other, port))


@pytest.mark.parametrize(
    ("limits", "connections", "raised"),
    [
        pytest.param((1024, INFINITY), 4096, [(8448, INFINITY)], id="a soft limit is raised"),
        pytest.param((1024, 8448), 4096, [(8448, 8448)], id="a soft limit is raised to the hard limit"),
        pytest.param((8448, 8448), 4096, [], id="a limit that is high enough"),
        pytest.param((INFINITY, INFINITY), 4096, [], id="no limit"),
    ],
)
def test_a_port_has_4096_connections(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    limits: tuple[int, int],
    connections: int,
    raised: list[tuple[int, int]],
) -> None:
    assert find_connection_limit(monkeypatch, limits) == (connections, raised)
    assert caplog.records == []


@pytest.mark.parametrize(("hard_limit", "connections"), [(1024, 384), (256, 1), (64, 1)])
def test_a_hard_limit_that_allows_fewer_connections_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, hard_limit: int, connections: int
) -> None:
    assert find_connection_limit(monkeypatch, (64, hard_limit)) == (connections, [(hard_limit, hard_limit)])
    (record,) = caplog.records
    assert record.message == "The limit of open files allows few connections"
    fields = {name: record.__dict__[name] for name in ("openFiles", "connectionsPerPort", "requiredOpenFiles")}
    assert fields == {"openFiles": hard_limit, "connectionsPerPort": connections, "requiredOpenFiles": 8448}


def find_connection_limit(
    monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int]
) -> tuple[int, list[tuple[int, int]]]:
    """Return the connections of a port, and the limits that were set, if the limits of open files are *limits*."""
    set_limits: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda _, new_limits: set_limits.append(new_limits))
    return http_server._find_max_connections(), set_limits
