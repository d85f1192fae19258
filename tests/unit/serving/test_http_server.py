"""The limit of open files limits the connections of a port, and a low limit is logged."""

import resource

import pytest

from extender.serving import http_server

INFINITY = resource.RLIM_INFINITY


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
