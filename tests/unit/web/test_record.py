"""The record of decisions: the last of each pod, the oldest pods make room, and nothing weighs nothing."""

from extender.web.record import Record


def verbs(record: Record, key: str) -> list[str]:
    return [each["verb"] for each in record.about(key)]


def test_of_each_pod_the_last_decisions_are_kept() -> None:
    record = Record(each=2)
    for verb in ("filter", "prioritize", "bind"):
        record.note("a/b", verb, dict)
    assert verbs(record, "a/b") == ["prioritize", "bind"]
    assert verbs(record, "a/c") == []


def test_the_pod_asked_about_longest_ago_makes_room() -> None:
    record = Record(most=4000)
    record.note("a/one", "filter", dict, 1000)
    record.note("a/two", "filter", dict, 1000)
    record.note("a/one", "bind", dict)
    record.note("a/three", "filter", dict, 1000)
    assert [verbs(record, key) for key in ("a/one", "a/two", "a/three")] == [["filter", "bind"], [], ["filter"]]


def test_what_goes_takes_its_weight_along() -> None:
    record = Record(most=10_000, each=1)
    for number in range(1000):
        record.note("a/same", str(number), dict, 5000)
    record.note("a/other", "filter", dict, 1000)
    assert verbs(record, "a/same") == ["999"]
    assert verbs(record, "a/other") == ["filter"]


def test_decisions_bear_their_time() -> None:
    record = Record(now=lambda: 1_700_000_000.25)
    record.note("a/b", "bind", lambda: {"node": "n1"})
    assert record.about("a/b") == [{"time": "2023-11-14T22:13:20.250+00:00", "verb": "bind", "node": "n1"}]
