"""Sockets that know what is on its way between them, so that time does not jump over bytes the kernel still carries."""

import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

Address = Any


class Wires:
    """What was sent and not yet received, between ends that are both ours."""

    def __init__(self) -> None:
        self._under_way: Counter[tuple[Address, Address]] = Counter()
        self._open: set[tuple[Address, Address]] = set()

    def busy(self) -> dict[tuple[Address, Address], int]:
        """Bytes under way, by sender and receiver; an end of a connection counts as one."""
        return {ends: count for ends, count in self._under_way.items() if count > 0}

    def passed(self, sender: Address, receiver: Address, count: int) -> None:
        """So many bytes were sent, or if negative received."""
        self._under_way[sender, receiver] += count

    def opened(self, one: Address, other: Address) -> None:
        """There is an end at *one*."""
        self._open.add((one, other))

    def ended(self, sender: Address, receiver: Address) -> None:
        """The receiver knows that nothing more will come."""
        self._under_way.pop((sender, receiver), None)

    def closed(self, one: Address, other: Address) -> None:
        """The end at *one* was closed, which the other has yet to learn."""
        self._open.discard((one, other))
        self.ended(other, one)
        if (other, one) in self._open:
            self._under_way[one, other] += 1
        else:
            self.ended(one, other)


class Counted(socket.socket):
    """A connected socket that tells `Wires` what passes through it."""

    wires: Wires
    ends: tuple[Address, Address] = (None, None)

    @classmethod
    def of(cls, sock: socket.socket, wires: Wires) -> "Counted":
        """Takes over a connected socket."""
        ends = sock.getsockname(), sock.getpeername()
        made = cls(sock.family, sock.type, sock.proto, fileno=sock.detach())
        made.wires, made.ends = wires, ends
        wires.opened(*ends)
        made.setblocking(False)
        return made

    def send(self, *arguments: Any) -> int:
        count = super().send(*arguments)
        self.wires.passed(*self.ends, count)
        return count

    def sendmsg(self, *arguments: Any) -> int:
        count = super().sendmsg(*arguments)
        self.wires.passed(*self.ends, count)
        return count

    def recv(self, *arguments: Any) -> bytes:
        with self._until_it_ends():
            data = super().recv(*arguments)
        self._received(len(data))
        return data

    def recv_into(self, *arguments: Any) -> int:
        with self._until_it_ends():
            count = super().recv_into(*arguments)
        self._received(count)
        return count

    def close(self) -> None:
        self.wires.closed(*self.ends)
        super().close()

    def _received(self, count: int) -> None:
        if count:
            self.wires.passed(*reversed(self.ends), -count)
        else:
            self.wires.ended(*reversed(self.ends))

    @contextmanager
    def _until_it_ends(self) -> Iterator[None]:
        try:
            yield
        except BlockingIOError:
            raise
        except OSError:
            self.wires.ended(*reversed(self.ends))
            raise
