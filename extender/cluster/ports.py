"""Host ports: which a pod wants, which are in use by node. Source: B027, B028."""

from collections.abc import Sequence
from typing import TypeAlias

from extender.basics.cow import CowDict
from extender.objects.pod import ContainerPort, Pod

HostPort: TypeAlias = tuple[str, int, str]
"""Protocol, port and host IP; the IP is never empty (`0.0.0.0` stands for any)."""

ANY_IP = "0.0.0.0"  # noqa: S104  the wildcard of the API, nothing is bound here


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """Host ports of the sidecars and app containers of *pod*. Source: B027."""
    ports: list[ContainerPort] = []
    for container in pod.spec.init_containers:
        if container.is_sidecar:
            ports.extend(container.ports)
    for container in pod.spec.containers:
        ports.extend(container.ports)
    return tuple((p.protocol or "TCP", p.host_port, p.host_ip or ANY_IP) for p in ports if p.host_port > 0)


def in_conflict(ours: tuple[HostPort, ...], theirs: tuple[HostPort, ...]) -> bool:
    """Whether two pods with these ports cannot share a node. Source: B028."""
    return any(
        (protocol, port) == (other_protocol, other_port) and (ip == other_ip or ANY_IP in {ip, other_ip})
        for protocol, port, ip in ours
        for other_protocol, other_port, other_ip in theirs
    )


_Uses: TypeAlias = dict[int, dict[str, int]]


def _copied(uses: _Uses) -> _Uses:
    return {row: dict(ips) for row, ips in uses.items()}


class PortTable:
    """(protocol, port) to the rows that use it, with the host IPs and how many pods use each."""

    __slots__ = ("_uses",)

    def __init__(self) -> None:
        self._uses: CowDict[tuple[str, int], _Uses] = CowDict(_copied)

    def fork(self) -> "PortTable":
        """The same uses, to be written without touching these."""
        child = PortTable()
        child._uses = self._uses.fork()
        return child

    def add(self, row: int, ports: tuple[HostPort, ...]) -> None:
        """A pod with *ports* is on *row*."""
        for protocol, port, ip in ports:
            ips = self._uses.writable((protocol, port), dict).setdefault(row, {})
            ips[ip] = ips.get(ip, 0) + 1

    def remove(self, row: int, ports: tuple[HostPort, ...]) -> None:
        """A pod with *ports* has left *row*."""
        for protocol, port, ip in ports:
            key = (protocol, port)
            if key not in self._uses:
                continue
            uses = self._uses.writable(key, dict)
            ips = uses.get(row, {})
            if ips.get(ip, 0) > 1:
                ips[ip] -= 1
                continue
            ips.pop(ip, None)
            if not ips:
                uses.pop(row, None)
            if not uses:
                self._uses.drop(key)

    def release(self, row: int, ports: tuple[HostPort, ...]) -> None:
        """Nobody has *ports* on *row* any more, however many pods of that row use them.

        While it tries out evictions, kube-scheduler forgets the ports of a pod that goes even if another pod there
        has them too. Source: B028.
        """
        for protocol, port, ip in ports:
            uses = self._uses.get((protocol, port))
            count = 0 if uses is None else uses.get(row, {}).get(ip, 0)
            for _ in range(count):
                self.remove(row, ((protocol, port, ip),))

    def conflicts(self, ports: tuple[HostPort, ...], rows: Sequence[int] | None = None) -> set[int]:
        """The rows on which any of *ports* is taken: same protocol and port, and one IP is any or both are equal.

        Args:
            ports: wanted.
            rows: where to look; None for everywhere.
        """
        taken: set[int] = set()
        for protocol, port, ip in ports:
            uses = self._uses.get((protocol, port)) or {}
            used = uses if rows is None else (row for row in rows if row in uses)
            taken.update(used if ip == ANY_IP else (row for row in used if ANY_IP in uses[row] or ip in uses[row]))
        return taken
