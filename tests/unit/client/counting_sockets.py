"""Sockets that count the bytes in flight between them, so that virtual time does not jump while the kernel has some."""

import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

Address = Any


class BytesInFlight:
    """Counts bytes that were sent and not yet received, between sockets of this process."""

    def __init__(self) -> None:
        self._in_flight: Counter[tuple[Address, Address]] = Counter()
        self._open: set[tuple[Address, Address]] = set()

    def get_counts(self) -> dict[tuple[Address, Address], int]:
        """Return the bytes in flight by sender and receiver; a closed end counts as one."""
        return {ends: count for ends, count in self._in_flight.items() if count > 0}

    def add(self, sender: Address, receiver: Address, count: int) -> None:
        """Add *count* bytes that were sent, or if negative received."""
        self._in_flight[sender, receiver] += count

    def add_open_end(self, end: Address, other_end: Address) -> None:
        """Record an open end at *one*."""
        self._open.add((end, other_end))

    def add_stream_end(self, sender: Address, receiver: Address) -> None:
        """Record that the receiver has seen the end of the stream."""
        self._in_flight.pop((sender, receiver), None)

    def add_closed_end(self, end: Address, other_end: Address) -> None:
        """Record that the end at *one* was closed, which the other end has not seen yet."""
        self._open.discard((end, other_end))
        self.add_stream_end(other_end, end)
        if (other_end, end) in self._open:
            self._in_flight[end, other_end] += 1
        else:
            self.add_stream_end(end, other_end)


class CountingSocket(socket.socket):
    """A connected socket that counts its bytes in `BytesInFlight`."""

    bytes_in_flight: BytesInFlight
    ends: tuple[Address, Address] = (None, None)

    @classmethod
    def from_socket(cls, sock: socket.socket, bytes_in_flight: BytesInFlight) -> "CountingSocket":
        """Take over the descriptor of a connected socket."""
        ends = sock.getsockname(), sock.getpeername()
        counting_socket = cls(sock.family, sock.type, sock.proto, fileno=sock.detach())
        counting_socket.bytes_in_flight, counting_socket.ends = bytes_in_flight, ends
        bytes_in_flight.add_open_end(*ends)
        counting_socket.setblocking(False)
        return counting_socket

    def send(self, *arguments: Any) -> int:
        count = super().send(*arguments)
        self.bytes_in_flight.add(*self.ends, count)
        return count

    def sendmsg(self, *arguments: Any) -> int:
        count = super().sendmsg(*arguments)
        self.bytes_in_flight.add(*self.ends, count)
        return count

    def recv(self, *arguments: Any) -> bytes:
        with self._end_on_error():
            data = super().recv(*arguments)
        self._count_received(len(data))
        return data

    def recv_into(self, *arguments: Any) -> int:
        with self._end_on_error():
            count = super().recv_into(*arguments)
        self._count_received(count)
        return count

    def close(self) -> None:
        self.bytes_in_flight.add_closed_end(*self.ends)
        super().close()

    def _count_received(self, count: int) -> None:
        if count:
            end, other_end = self.ends
            self.bytes_in_flight.add(other_end, end, -count)
        else:
            self.bytes_in_flight.add_stream_end(*reversed(self.ends))

    @contextmanager
    def _end_on_error(self) -> Iterator[None]:
        try:
            yield
        except BlockingIOError:
            raise
        except OSError:
            self.bytes_in_flight.add_stream_end(*reversed(self.ends))
            raise
