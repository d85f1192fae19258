"""The decision log: the last decisions of each pod, and eviction by memory."""

from extender.extender_api.decision_log import DecisionLog


def verbs_of(log: DecisionLog, key: str) -> list[str]:
    return [decision["verb"] for decision in log.get_decisions(key)]


def test_the_last_decisions_of_each_pod_are_stored() -> None:
    log = DecisionLog(max_per_pod=2)
    for verb in ("filter", "prioritize", "bind"):
        log.add("a/b", verb, dict)
    assert verbs_of(log, "a/b") == ["prioritize", "bind"]
    assert verbs_of(log, "a/c") == []


def test_the_least_recently_requested_pod_is_evicted() -> None:
    log = DecisionLog(max_bytes=4000)
    log.add("a/one", "filter", dict, 1000)
    log.add("a/two", "filter", dict, 1000)
    log.add("a/one", "bind", dict)
    log.add("a/three", "filter", dict, 1000)
    assert [verbs_of(log, key) for key in ("a/one", "a/two", "a/three")] == [["filter", "bind"], [], ["filter"]]


def test_evicted_decisions_free_their_memory() -> None:
    log = DecisionLog(max_bytes=10_000, max_per_pod=1)
    for number in range(1000):
        log.add("a/same", str(number), dict, 5000)
    log.add("a/other", "filter", dict, 1000)
    assert verbs_of(log, "a/same") == ["999"]
    assert verbs_of(log, "a/other") == ["filter"]


def test_decisions_have_their_time() -> None:
    log = DecisionLog(now=lambda: 1_700_000_000.25)
    log.add("a/b", "bind", lambda: {"node": "n1"})
    assert log.get_decisions("a/b") == [{"time": "2023-11-14T22:13:20.250+00:00", "verb": "bind", "node": "n1"}]
