"""The decision log: the last decisions of each pod, and eviction by memory."""

import gc
import json
import tracemalloc

import pytest

from extender.extender_api.decision_log import DecisionLog
from extender.extender_api.payloads import decode_args
from tests.coroutines import run_now
from tests.unit.extender_api.http_harness import make_service


def verbs_of(log: DecisionLog, key: str) -> list[str]:
    return [decision["verb"] for decision in log.get_decisions(key)]


def test_the_last_decisions_of_each_pod_are_stored() -> None:
    log = DecisionLog(max_per_pod=2)
    for verb in ("filter", "prioritize", "bind"):
        log.add("a/b", verb, dict)
    assert verbs_of(log, "a/b") == ["prioritize", "bind"]
    assert verbs_of(log, "a/c") == []


def test_the_least_recently_requested_pod_is_evicted() -> None:
    log = DecisionLog(max_bytes=10_000)
    log.add("a/one", "filter", dict, 1000)
    log.add("a/two", "filter", dict, 1000)
    log.add("a/one", "bind", dict)
    log.add("a/three", "filter", dict, 1000)
    assert [verbs_of(log, key) for key in ("a/one", "a/two", "a/three")] == [["filter", "bind"], [], ["filter"]]


def test_evicted_decisions_free_their_memory() -> None:
    log = DecisionLog(max_bytes=12_000, max_per_pod=1)
    for number in range(1000):
        log.add("a/same", str(number), dict, 5000)
    log.add("a/other", "filter", dict, 1000)
    assert verbs_of(log, "a/same") == ["999"]
    assert verbs_of(log, "a/other") == ["filter"]


def test_decisions_have_their_time() -> None:
    log = DecisionLog(now=lambda: 1_700_000_000.25)
    log.add("a/b", "bind", lambda: {"node": "n1"})
    assert log.get_decisions("a/b") == [{"time": "2023-11-14T22:13:20.250+00:00", "verb": "bind", "node": "n1"}]


def test_decisions_of_the_only_pod_are_evicted_too() -> None:
    log = DecisionLog(max_bytes=14_000)
    for verb in ("filter", "prioritize", "preempt"):
        log.add("a/b", verb, dict, 4000)
    assert verbs_of(log, "a/b") == ["prioritize", "preempt"]
    log.add("a/b", "bind", dict, 14_000)
    assert verbs_of(log, "a/b") == []


@pytest.mark.parametrize("verb", ["filter", "prioritize"])
@pytest.mark.parametrize("node_count", [1, 300])
def test_the_estimate_of_a_decision_is_at_least_its_memory(verb: str, node_count: int) -> None:
    """A decision about one node has the largest share of memory that does not grow with the nodes."""
    names = ["n1", *(f"unknown-{number}" for number in range(1, node_count))]
    verbs = make_service().verbs
    log = verbs.decision_log

    def decide(number: int) -> None:
        pod = {"metadata": {"name": f"p{number}", "namespace": "default", "uid": f"u{number}"}, "spec": {}}
        args = run_now(decode_args(json.dumps({"Pod": pod, "NodeNames": names}).encode()))
        run_now(getattr(verbs, verb)(args))

    for number in range(100):
        decide(number)
    log._decisions_by_pod.clear()
    log._memory_bytes = 0
    gc.collect()
    tracemalloc.start()
    try:
        for number in range(100):
            decide(number)
        gc.collect()
        size_with_decisions, estimate = tracemalloc.get_traced_memory()[0], log._memory_bytes
        log._decisions_by_pod.clear()
        gc.collect()
        size = size_with_decisions - tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert 0.3 * estimate < size < estimate
