"""The order in which connections are closed to make room."""

from functools import partial

from extender.serving.open_connections import OpenConnection, OpenConnections


class Port:
    """Connections with the names `a`, `b`, ...

    Attributes:
        closed: the names of the closed connections.
    """

    def __init__(self, names: str) -> None:
        self.connections, self.closed = OpenConnections(), ""
        self.by_name: dict[str, OpenConnection] = {
            name: self.connections.add(partial(self.close, name)) for name in names
        }

    def close(self, name: str) -> None:
        self.closed += name

    def serve(self, name: str, *, is_authenticated: bool = True) -> None:
        """Serve a request."""
        self.by_name[name].start_request()
        self.by_name[name].end_request(is_authenticated=is_authenticated)

    def fill(self) -> str:
        """Make room as often as possible; return the names of the closed connections in order."""
        while self.connections.make_room():
            pass
        return self.closed


def test_connections_without_an_authenticated_request_are_closed_first_and_then_the_longest_idle_ones() -> None:
    port = Port("abcde")
    port.serve("b")
    port.serve("a")
    port.serve("c", is_authenticated=False)
    assert port.fill() == "decba"
    assert len(port.connections) == 0


def test_a_connection_with_a_request_in_progress_is_not_closed() -> None:
    port = Port("ab")
    port.by_name["a"].start_request()
    assert port.fill() == "b"
    assert len(port.connections) == 1
    port.by_name["a"].end_request(is_authenticated=True)
    assert port.fill() == "ba"


def test_a_removed_connection_is_not_closed() -> None:
    port = Port("abc")
    port.by_name["a"].remove()
    port.by_name["b"].start_request()
    port.by_name["b"].remove()
    port.by_name["b"].end_request(is_authenticated=True)  # the response to a client that is gone
    port.by_name["b"].remove()
    assert len(port.connections) == 1
    assert port.fill() == "c"
