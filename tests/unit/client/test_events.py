"""The series cache: which events are written, and when."""

from uuid import UUID

import pytest

from extender.api.kinds.meta import ObjectReference
from extender.client import events
from extender.client.events import Event, EventSeriesCache, make_event_key, make_leader_event, truncate_note

POD = ObjectReference(kind="Pod", namespace="shop", name="web", uid="u1", api_version="v1")
FALLBACK = UUID("12345678-1234-5678-1234-567812345678")
WALL_NS = 1_700_000_000_000_000_000


def make_event(note: str = "no room", *, name: str = "web", reason: str = "FailedScheduling") -> Event:
    regarding = ObjectReference(kind="Pod", namespace="shop", name=name, uid="u1", api_version="v1")
    return Event(regarding, "Warning", reason, "Scheduling", note)


def make_cache() -> EventSeriesCache:
    return EventSeriesCache("default-scheduler", "host-1")


def test_the_first_event_is_created() -> None:
    write = make_cache().observe(make_event(), 10.0, WALL_NS, FALLBACK)
    assert write is not None
    assert (write.namespace, write.name, write.patch) == ("shop", f"web.{WALL_NS:x}", None)
    assert (write.body["reportingController"], write.body["note"]) == ("default-scheduler", "no room")


def test_the_second_event_patches_a_series_and_the_third_only_counts() -> None:
    cache = make_cache()
    cache.observe(make_event(), 10.0, WALL_NS, FALLBACK)
    second = cache.observe(make_event("still no room"), 11.0, WALL_NS, FALLBACK)
    assert second is not None
    assert second.patch == {"series": {"count": 2, "lastObservedTime": "2023-11-14T22:13:20.000000Z"}}
    assert cache.observe(make_event(), 12.0, WALL_NS, FALLBACK) is None
    assert [write.patch for write in cache.make_refresh_writes()] == [
        {"series": {"count": 3, "lastObservedTime": "2023-11-14T22:13:20.000000Z"}}
    ]


def test_finished_series_are_written_and_single_events_only_removed() -> None:
    cache = make_cache()
    for now in (0.0, 1.0):
        cache.observe(make_event(), now, WALL_NS, FALLBACK)
    cache.observe(make_event(reason="Other"), 1.0, WALL_NS, FALLBACK)
    assert cache.remove_ended(361.0) == []
    assert [write.body["reason"] for write in cache.remove_ended(361.5)] == ["FailedScheduling"]
    assert len(cache) == 0


def test_events_of_bindings_are_written_but_not_cached() -> None:
    cache = make_cache()
    for number in range(1000):
        write = cache.observe(make_event(name=f"web-{number}", reason="Scheduled"), 10.0, WALL_NS + number, FALLBACK)
        assert write is not None
        assert write.patch is None
    assert len(cache) == 0


def test_the_oldest_event_is_forgotten_beyond_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MAX_CACHED_EVENTS", 2)
    cache = make_cache()
    patches = []
    for name in ("a", "b", "a", "c", "b", "a"):
        write = cache.observe(make_event(name=name), 10.0, WALL_NS, FALLBACK)
        assert write is not None
        patches.append(write.patch is not None)
    assert patches == [False, False, True, False, True, False]
    assert len(cache) == 2


@pytest.mark.parametrize("name", ["Web_1", "x" * 250], ids=["an invalid name", "a long name"])
def test_an_invalid_event_name_becomes_the_fallback(name: str) -> None:
    write = make_cache().observe(make_event(name=name), 0.0, WALL_NS, FALLBACK)
    assert write is not None
    assert write.name == str(FALLBACK)


def test_the_note_is_not_part_of_the_key() -> None:
    assert make_event_key(make_event("a")) == make_event_key(make_event("b"))
    assert make_event_key(make_event()) != make_event_key(make_event(reason="Other"))


def test_a_note_is_truncated_at_a_character() -> None:
    assert truncate_note("x" * 1024) == "x" * 1024
    assert truncate_note("x" * 1025) == "x" * 1020 + " ..."
    assert truncate_note("x" * 1019 + "\u00e9" * 3) == "x" * 1019 + " ..."


def test_a_leader_event_names_the_identity() -> None:
    assert make_leader_event(POD, "host-1", "became leader") == Event(
        POD, "Normal", "LeaderElection", "LeaderElection", "host-1 became leader"
    )
