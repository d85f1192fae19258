"""The open connections of a port, and the order in which they are closed if there are too many."""

from collections import OrderedDict
from collections.abc import Callable


class OpenConnection:
    """An open connection. It is idle until its first request, and after each response.

    Attributes:
        abort: the function that closes the connection at once.
    """

    __slots__ = ("_connections", "abort")

    def __init__(self, connections: "OpenConnections", abort: Callable[[], object]) -> None:
        self._connections, self.abort = connections, abort

    def start_request(self) -> None:
        """Do not close the connection to make room while it has a request in progress."""
        self._connections.set_busy(self)

    def end_request(self, *, is_authenticated: bool) -> None:
        """Close the connection to make room if it is idle for longer than others."""
        self._connections.set_idle(self, is_authenticated=is_authenticated)

    def remove(self) -> None:
        """Remove the connection, which is closed. It may be removed already."""
        self._connections.remove(self)


class OpenConnections:
    """The open connections of a port.

    If a new one needs room, the connection is closed that has been idle for longest, among those that never completed
    an authenticated request; if there is none, among the others. A connection with a request in progress is never
    closed. So a client with thousands of connections cannot keep others from being served. All methods take constant
    time.
    """

    __slots__ = ("_all", "_authenticated", "_unauthenticated")

    def __init__(self) -> None:
        self._all: set[OpenConnection] = set()
        self._unauthenticated: OrderedDict[OpenConnection, None] = OrderedDict()
        self._authenticated: OrderedDict[OpenConnection, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._all)

    def add(self, abort: Callable[[], object]) -> OpenConnection:
        """Add a new connection, which *abort* closes at once."""
        connection = OpenConnection(self, abort)
        self._all.add(connection)
        self._unauthenticated[connection] = None
        return connection

    def make_room(self) -> bool:
        """Close and remove one connection; return False if all have a request in progress."""
        for idle_connections in (self._unauthenticated, self._authenticated):
            if idle_connections:
                connection, _ = idle_connections.popitem(last=False)
                self._all.discard(connection)
                connection.abort()
                return True
        return False

    def set_busy(self, connection: OpenConnection) -> None:
        """Record that a request of *connection* starts."""
        self._unauthenticated.pop(connection, None)
        self._authenticated.pop(connection, None)

    def set_idle(self, connection: OpenConnection, *, is_authenticated: bool) -> None:
        """Record that no request of *connection* is in progress."""
        if connection in self._all:
            self.set_busy(connection)
            (self._authenticated if is_authenticated else self._unauthenticated)[connection] = None

    def remove(self, connection: OpenConnection) -> None:
        """Remove *connection*, unless it is removed already."""
        self.set_busy(connection)
        self._all.discard(connection)
