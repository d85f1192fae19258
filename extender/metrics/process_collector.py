"""Process metrics of Linux that prometheus_client lacks: network traffic and the address space limit."""

from collections.abc import Iterator
from pathlib import Path

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

_UNLIMITED = float(2**64 - 1)


class LinuxProcessCollector(Collector):
    """Reads Linux's /proc; yields no metrics on other systems. Traffic is counted per network namespace."""

    def __init__(self, proc: Path = Path("/proc/self")) -> None:
        self._proc = proc

    def collect(self) -> Iterator[Metric]:
        """Yield the families whose values are available."""
        counters = parse_netstat(self._read("net/netstat"))
        for counter, name, help_text in (
            ("InOctets", "process_network_receive_bytes", "Bytes received over the network."),
            ("OutOctets", "process_network_transmit_bytes", "Bytes sent over the network."),
        ):
            if counter in counters:
                yield CounterMetricFamily(name, help_text, value=counters[counter])
        limit = parse_address_space_limit(self._read("limits"))
        if limit is not None:
            yield GaugeMetricFamily("process_virtual_memory_max_bytes", "Bytes that may be addressed.", value=limit)

    def _read(self, name: str) -> str:
        try:
            return (self._proc / name).read_text()
        except OSError:
            return ""


def parse_netstat(netstat: str) -> dict[str, float]:
    """Return the IP counters of /proc/self/net/netstat, which has a line of names and a line of values."""
    lines = [line.split()[1:] for line in netstat.splitlines() if line.startswith("IpExt:")]
    if len(lines) != 2:
        return {}
    return {name: float(value) for name, value in zip(*lines, strict=False)}


def parse_address_space_limit(limits: str) -> float | None:
    """Return the soft limit of the address space in bytes from /proc/self/limits; None if it is missing."""
    for line in limits.splitlines():
        if line.startswith("Max address space"):
            soft_limit = line.removeprefix("Max address space").split()[0]
            return _UNLIMITED if soft_limit == "unlimited" else float(soft_limit)
    return None
