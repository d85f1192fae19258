"""The registry and its rendering in the Prometheus text format."""

from pathlib import Path

import pytest
from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge

from extender.metrics.exposition import (
    LinuxProcessCollector,
    StalenessCollector,
    make_registry,
    parse_address_space_limit,
    parse_netstat,
    render_metrics,
)


def test_the_registry_has_process_metrics_and_no_creation_times() -> None:
    text = b"".join(render_metrics(make_registry())).decode()
    assert "process_cpu_seconds_total " in text
    assert "_created" not in text


def test_a_page_has_the_metrics_that_a_plugin_registers_in_the_default_registry_once() -> None:
    registry = make_registry()
    rejections = Counter("example_rejections_total", "Rejected nodes.", ("plugin",))  # before or after the registry
    try:
        rejections.labels("Affordable").inc()
        lines = b"".join(render_metrics(registry)).decode().splitlines()
    finally:
        REGISTRY.unregister(rejections)
    assert 'example_rejections_total{plugin="Affordable"} 1.0' in lines
    assert len([line for line in lines if line.startswith("# TYPE process_cpu_seconds_total ")]) == 1


def test_a_metric_of_a_plugin_that_raises_does_not_hide_our_metrics(caplog: pytest.LogCaptureFixture) -> None:
    registry = make_registry()
    Counter("our_total", "Ours.", registry=registry).inc()
    broken = Gauge("example_price", "Raises when it is read.")
    broken.set_function(lambda: 1 / 0)
    try:
        text = b"".join(render_metrics(registry)).decode()
    finally:
        REGISTRY.unregister(broken)
    assert "our_total 1.0" in text
    assert "process_cpu_seconds_total " in text
    assert [type(record.exc_info[1]) for record in caplog.records if record.exc_info] == [ZeroDivisionError]


NETSTAT = "TcpExt: SyncookiesSent\nTcpExt: 0\nIpExt: InNoRoutes InOctets OutOctets\nIpExt: 0 1500 700\n"
LIMITS = "Limit                     Soft Limit           Hard Limit           Units\n"


def test_the_ip_counters_are_read_by_name() -> None:
    assert parse_netstat(NETSTAT) == {"InNoRoutes": 0.0, "InOctets": 1500.0, "OutOctets": 700.0}


def test_a_netstat_file_without_ip_counters_has_none() -> None:
    assert parse_netstat("TcpExt: SyncookiesSent\nTcpExt: 0\n") == {}


def test_the_soft_limit_of_the_address_space_is_in_bytes() -> None:
    assert parse_address_space_limit(f"{LIMITS}Max address space         1048576    unlimited    bytes\n") == 1048576.0
    assert parse_address_space_limit(f"{LIMITS}Max address space         unlimited  unlimited    bytes\n") == float(
        2**64
    )
    assert parse_address_space_limit(LIMITS) is None


def test_the_collector_reads_the_files_that_exist(tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "netstat").write_text(NETSTAT)
    values = {family.name: family.samples[0].value for family in LinuxProcessCollector(tmp_path).collect()}
    assert values == {"process_network_receive_bytes": 1500.0, "process_network_transmit_bytes": 700.0}


def test_a_page_has_the_current_seconds_of_the_current_kinds() -> None:
    registry, seconds_by_kind = CollectorRegistry(), {"Pod": float("inf")}
    registry.register(StalenessCollector(lambda: seconds_by_kind))
    head = (
        "# HELP extender_cache_staleness_seconds "
        "Time since the last response of the API server for a kind; +Inf before the first.\n"
        "# TYPE extender_cache_staleness_seconds gauge\n"
    )
    assert b"".join(render_metrics(registry)).decode() == head + 'extender_cache_staleness_seconds{kind="Pod"} +Inf\n'
    seconds_by_kind |= {"Pod": 1.5, "Node": 3.0}
    assert b"".join(render_metrics(registry)).decode() == (
        head + 'extender_cache_staleness_seconds{kind="Pod"} 1.5\nextender_cache_staleness_seconds{kind="Node"} 3.0\n'
    )
