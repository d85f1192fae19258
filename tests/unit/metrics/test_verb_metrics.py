"""Metrics of the extender's verbs."""

import logging

import pytest
from prometheus_client import CollectorRegistry

from extender.metrics.exposition import render_metrics
from extender.metrics.verb_metrics import VerbMetrics


def exposed_lines(registry: CollectorRegistry) -> set[str]:
    return set(b"".join(render_metrics(registry)).decode().splitlines())


def test_a_request_is_in_flight_until_it_ends() -> None:
    registry = CollectorRegistry()
    metrics = VerbMetrics(registry)
    metrics.observe_request_start("filter")
    assert 'extender_requests_in_flight{verb="filter"} 1.0' in exposed_lines(registry)
    metrics.observe_request_end("filter", 200, 0.25)
    assert {
        'extender_requests_in_flight{verb="filter"} 0.0',
        'extender_request_duration_seconds_sum{code="200",verb="filter"} 0.25',
    } <= exposed_lines(registry)


def test_nodes_are_observed_and_unknown_nodes_are_counted() -> None:
    registry = CollectorRegistry()
    metrics = VerbMetrics(registry)
    metrics.observe_nodes("filter", 10, 4, 0)
    metrics.observe_nodes("filter", 10, 4, 3)
    assert {
        'extender_request_nodes_sum{verb="filter"} 20.0',
        'extender_response_nodes_sum{verb="filter"} 8.0',
        'extender_unknown_nodes_total{verb="filter"} 3.0',
    } <= exposed_lines(registry)


def test_reasons_beyond_the_maximum_are_counted_as_other() -> None:
    registry = CollectorRegistry()
    metrics = VerbMetrics(registry)
    metrics.count_rejected_nodes({("NodePorts", f"reason {number}"): 1 for number in range(200)})
    metrics.count_rejected_nodes({("NodePorts", "reason 0"): 2, ("NodePorts", "one too many"): 5})
    assert {
        'extender_refused_nodes_total{plugin="NodePorts",reason="reason 0"} 3.0',
        'extender_refused_nodes_total{plugin="NodePorts",reason="other"} 5.0',
    } <= exposed_lines(registry)


def test_requests_with_whole_nodes_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    registry = CollectorRegistry()
    metrics = VerbMetrics(registry)
    with caplog.at_level(logging.WARNING, "extender.metrics"):
        metrics.count_whole_nodes_request("filter")
        metrics.count_whole_nodes_request("filter")
    assert len(caplog.records) == 1
    assert 'extender_requests_with_whole_nodes_total{verb="filter"} 2.0' in exposed_lines(registry)


def test_events_and_the_number_of_assumed_pods_are_exposed() -> None:
    registry = CollectorRegistry()
    metrics = VerbMetrics(registry)
    for event in ("chosen", "assumed", "chosen"):
        metrics.count_assumption_event(event)
    metrics.set_assumed_pods_source(lambda: 7)
    assert {
        'extender_assumption_events_total{event="chosen"} 2.0',
        'extender_assumption_events_total{event="assumed"} 1.0',
        "extender_assumed_pods 7.0",
    } <= exposed_lines(registry)
