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
        for idle_connections in self._connections.idle:
            idle_connections.pop(self, None)

    def end_request(self, *, is_authenticated: bool) -> None:
        """Close the connection to make room if it is idle for longer than others."""
        if self in self._connections.all:
            self.start_request()
            self._connections.idle[is_authenticated][self] = None

    def remove(self) -> None:
        """Remove the connection, which is closed. It may be removed already."""
        self.start_request()
        self._connections.all.discard(self)


class OpenConnections:
    """The open connections of a port.

    If a new one needs room, the connection is closed that has been idle for longest, among those that never completed
    an authenticated request; if there is none, among the others. A connection with a request in progress is never
    closed. So a client with thousands of connections cannot keep others from being served. All methods take constant
    time.

    Attributes:
        idle: the idle connections that never completed an authenticated request, and the other idle ones; those that
            have been idle for longest are first.
    """

    __slots__ = ("all", "idle")

    def __init__(self) -> None:
        self.all: set[OpenConnection] = set()
        self.idle: tuple[OrderedDict[OpenConnection, None], ...] = OrderedDict(), OrderedDict()

    def __len__(self) -> int:
        return len(self.all)

    def add(self, abort: Callable[[], object]) -> OpenConnection:
        """Add a new connection, which *abort* closes at once."""
        connection = OpenConnection(self, abort)
        self.all.add(connection)
        self.idle[False][connection] = None
        return connection

    def make_room(self) -> bool:
        """Close and remove one connection; return False if all have a request in progress."""
        for idle_connections in self.idle:
            if idle_connections:
                connection, _ = idle_connections.popitem(last=False)
                self.all.discard(connection)
                connection.abort()
                return True
        return False
