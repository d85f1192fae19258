"""The host ports that a pod requests, and the host ports in use on each node."""

from collections.abc import Sequence
from typing import TypeAlias

from extender.api.kinds.pod import ContainerPort, Pod
from extender.basics.copy_on_write import CopyOnWriteDict

HostPort: TypeAlias = tuple[str, int, str]
"""Protocol, port and host IP. The IP is never empty; `0.0.0.0` is the wildcard."""

ANY_IP = "0.0.0.0"  # noqa: S104  the wildcard of the API; nothing listens on it


def get_host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """Return the host ports of the sidecars and app containers of *pod*.

    Source: pkg/scheduler/util/utils.go, GetHostPorts (1.36).
    """
    ports: list[ContainerPort] = []
    for container in pod.spec.init_containers:
        if container.is_sidecar:
            ports.extend(container.ports)
    for container in pod.spec.containers:
        ports.extend(container.ports)
    return tuple(
        (port.protocol or "TCP", port.host_port, port.host_ip or ANY_IP) for port in ports if port.host_port > 0
    )


def host_ports_conflict(first: tuple[HostPort, ...], second: tuple[HostPort, ...]) -> bool:
    """Return whether two pods with these host ports cannot run on one node.

    Two ports conflict if protocol and port are equal, and the IPs are equal or one of them is the wildcard.

    Source: kube-scheduler/framework/types.go, HostPortInfo.CheckConflict (1.36).
    """
    return any(
        (protocol, port) == (other_protocol, other_port) and (ip == other_ip or ANY_IP in {ip, other_ip})
        for protocol, port, ip in first
        for other_protocol, other_port, other_ip in second
    )


_CountByIpByRow: TypeAlias = dict[int, dict[str, int]]


def _copy_counts(counts: _CountByIpByRow) -> _CountByIpByRow:
    return {row: dict(counts_by_ip) for row, counts_by_ip in counts.items()}


class HostPortTable:
    """The number of pods that use each host port, by protocol and port, then by node row, then by host IP."""

    def __init__(self) -> None:
        self._uses: CopyOnWriteDict[tuple[str, int], _CountByIpByRow] = CopyOnWriteDict(_copy_counts)

    def fork(self) -> "HostPortTable":
        """Return a copy-on-write copy of the table."""
        child = HostPortTable()
        child._uses = self._uses.fork()
        return child

    def add(self, row: int, ports: tuple[HostPort, ...]) -> None:
        """Add a pod with *ports* to *row*."""
        for protocol, port, ip in ports:
            counts_by_ip = self._uses.get_writable((protocol, port), dict).setdefault(row, {})
            counts_by_ip[ip] = counts_by_ip.get(ip, 0) + 1

    def remove(self, row: int, ports: tuple[HostPort, ...]) -> None:
        """Remove a pod with *ports* from *row*."""
        for protocol, port, ip in ports:
            key = (protocol, port)
            if key not in self._uses:
                continue
            uses = self._uses.get_writable(key, dict)
            counts_by_ip = uses.get(row, {})
            if counts_by_ip.get(ip, 0) > 1:
                counts_by_ip[ip] -= 1
                continue
            counts_by_ip.pop(ip, None)
            if not counts_by_ip:
                uses.pop(row, None)
            if not uses:
                self._uses.remove(key)

    def free_ports(self, row: int, ports: tuple[HostPort, ...]) -> None:
        """Free *ports* on *row*, even if several pods there use them.

        As upstream, removing a pod in a preemption dry run frees its host ports even if another pod uses them.

        Source: kube-scheduler/framework/types.go, HostPortInfo.CheckConflict (1.36).
        """
        for protocol, port, ip in ports:
            uses = self._uses.get((protocol, port))
            count = 0 if uses is None else uses.get(row, {}).get(ip, 0)
            for _ in range(count):
                self.remove(row, ((protocol, port, ip),))

    def find_conflicting_rows(self, ports: tuple[HostPort, ...], rows: Sequence[int] | None = None) -> set[int]:
        """Return the rows where any of *ports* conflicts with a port in use: see `host_ports_conflict`.

        Only *rows* are checked; None: all.
        """
        conflicts: set[int] = set()
        for protocol, port, ip in ports:
            uses = self._uses.get((protocol, port))
            if not uses:
                continue
            used_rows = uses if rows is None else (row for row in rows if row in uses)
            conflicts.update(
                used_rows if ip == ANY_IP else (row for row in used_rows if ANY_IP in uses[row] or ip in uses[row])
            )
        return conflicts
