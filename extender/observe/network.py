"""What the system says of this process beyond Python's own collector: traffic, and how much memory it may address."""

from collections.abc import Iterator
from pathlib import Path

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

_UNLIMITED = float(2**64 - 1)


class NetworkCollector(Collector):
    """Reads Linux's /proc; elsewhere it has nothing to tell. Bytes are those of the process's network namespace."""

    def __init__(self, proc: Path = Path("/proc/self")) -> None:
        self._proc = proc

    def collect(self) -> Iterator[Metric]:
        """The families, as far as there are figures."""
        counters = traffic(self._read("net/netstat"))
        for way, name, text in (
            ("InOctets", "process_network_receive_bytes", "Bytes received over the network."),
            ("OutOctets", "process_network_transmit_bytes", "Bytes sent over the network."),
        ):
            if way in counters:
                yield CounterMetricFamily(name, text, value=counters[way])
        limit = address_limit(self._read("limits"))
        if limit is not None:
            yield GaugeMetricFamily("process_virtual_memory_max_bytes", "Bytes that may be addressed.", value=limit)

    def _read(self, name: str) -> str:
        try:
            return (self._proc / name).read_text()
        except OSError:
            return ""


def traffic(netstat: str) -> dict[str, float]:
    """The counters of the protocol IP in the text of /proc/self/net/netstat: a line of names, then one of values."""
    lines = [line.split()[1:] for line in netstat.splitlines() if line.startswith("IpExt:")]
    if len(lines) != 2:
        return {}
    return {name: float(value) for name, value in zip(*lines, strict=False)}


def address_limit(limits: str) -> float | None:
    """The soft limit of address space, in bytes, in the text of /proc/self/limits; None if it does not say."""
    for line in limits.splitlines():
        if line.startswith("Max address space"):
            soft = line.removeprefix("Max address space").split()[0]
            return _UNLIMITED if soft == "unlimited" else float(soft)
    return None
