"""A reflector whose server misbehaves: what is told, what is asked, how long it waits. Time is virtual."""

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from tests.unit.client.scripted import CUT, SILENCE, Reply, Server, Stream, failure
from tests.unit.client.virtual_time import here, run
from tests.unit.client.worlds import (
    PODS,
    a_list,
    a_pod,
    added,
    an_event,
    bookmark,
    deleted,
    in_stream_failure,
    lists,
    modified,
    watches,
    watching,
)

QUIET = Stream([SILENCE])


def test_the_list_comes_first_then_what_changes() -> None:
    async def main() -> None:
        async with Server() as server:
            server.on(PODS, a_list(5, a_pod("a", 1), a_pod("b", 2)))
            server.on(PODS, Stream([modified("a", 6), added("c", 7), deleted("b", 8), SILENCE]))
            async with watching(server) as (reflector, heard):
                await reflector.synced.wait()
                assert heard.told == ["+a@1", "+b@2"]
                await asyncio.sleep(1)
                assert heard.told[2:] == ["a@1>6", "+c@7", "-b@8"]
                assert (reflector.version, reflector.trouble) == ("8", "")

    run(main())


def test_fault_1_a_server_that_restarts_is_found_again_and_the_watch_resumes() -> None:
    async def main() -> None:
        async with Server() as server:
            server.on(PODS, a_list(5, a_pod("a", 1)), Stream([modified("a", 6), SILENCE]))
            async with watching(server) as (reflector, heard):
                await asyncio.sleep(10)
                await server.stop()
                await asyncio.sleep(20)
                assert reflector.synced.is_set()
                assert reflector.trouble.endswith(": connection refused")
                await server.start()
                server.on(PODS, Stream([modified("a", 7), SILENCE]))
                await asyncio.sleep(35)
                assert (heard.told, reflector.trouble) == (["+a@1", "a@1>6", "a@6>7"], "")
                assert (watches(server), lists(server)) == (["5", "6"], 1)

    run(main())


def test_fault_1_waits_between_tries_grow_from_0_8_to_30_seconds() -> None:
    async def main() -> None:
        async with Server() as server:
            server.on(PODS, *[failure(503)] * 8)
            async with watching(server):
                await asyncio.sleep(110)
            at = [asked.at for asked in server.asked]
            waits = [round(later - earlier, 1) for earlier, later in pairwise(at)]
            assert waits == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0]

    run(main())


def test_fault_2_a_watch_that_ends_in_good_order_goes_on_without_a_list_or_a_wait() -> None:
    async def main() -> None:
        async with Server() as server:
            server.on(PODS, a_list(5), Stream([30, added("a", 6), 15]), Stream([45]), QUIET)
            async with watching(server) as (reflector, heard):
                await asyncio.sleep(100)
                assert heard.told == ["+a@6"]
                assert (watches(server), lists(server)) == (["5", "6", "6"], 1)
                began = server.asked[0].at
                assert [round(asked.at - began) for asked in server.asked[1:]] == [0, 45, 90]
                assert reflector.counts.failures == 0

    run(main())


def test_a_server_that_ends_every_watch_at_once_is_not_asked_in_a_hot_loop() -> None:
    async def main() -> None:
        async with Server() as server:
            server.on(PODS, a_list(5), *[Stream()] * 6)
            async with watching(server) as (reflector, _):
                await asyncio.sleep(30)
                assert len(watches(server)) == 6
                assert "ends watches at once" in reflector.trouble

    run(main())


@pytest.mark.parametrize(
    "gone",
    [failure(410, "Expired"), Stream([in_stream_failure(410, "Expired")]), Stream([in_stream_failure(410, "Gone")])],
    ids=["at the start of the watch", "as an event", "as an event, in other words"],
)
def test_fault_3_after_410_the_list_is_compared_and_what_is_missing_was_deleted(gone: Any) -> None:
    async def main() -> None:
        async with Server() as server:
            server.on(PODS, a_list(5, a_pod("a", 1), a_pod("b", 2), a_pod("c", 3)), gone)
            server.on(PODS, a_list(20, a_pod("a", 1), a_pod("c", 12), a_pod("d", 15)), QUIET)
            async with watching(server) as (reflector, heard):
                await asyncio.sleep(5)
                assert heard.told == ["+a@1", "+b@2", "+c@3", "-b@2?", "c@3>12", "+d@15"]
                assert (watches(server), reflector.counts.gone) == (["5", "20"], 1)

    run(main())


def test_fault_3_after_410_the_list_is_read_at_once_but_not_again_and_again() -> None:
    async def main() -> None:
        async with Server() as server:
            forgotten = [failure(410, "Expired"), a_list(20)]
            server.on(PODS, a_list(5), *forgotten * 4, Stream([15, CUT]), *forgotten, QUIET)
            async with watching(server):
                await asyncio.sleep(60)
            began = server.asked[0].at
            listed = [round(asked.at - began, 1) for asked in server.asked if "watch" not in asked.query]
            assert listed == [0.0, 0.0, 0.8, 2.4, 5.6, 27.0]

    run(main())


def test_fault_3_an_object_made_again_meanwhile_is_two_changes() -> None:
    async def main() -> None:
        async with Server() as server:
            server.on(PODS, a_list(5, a_pod("a", 1)), failure(410, "Expired"))
            server.on(PODS, a_list(20, a_pod("a", 12, uid="second")))
            server.on(PODS, Stream([modified("a", 21, uid="third"), SILENCE]))
            async with watching(server) as (_, heard):
                await asyncio.sleep(5)
                assert heard.told == ["+a@1", "-a@1?", "+a@12", "-a@12?", "+a@21"]

    run(main())


def test_fault_4_after_an_hour_of_bookmarks_the_watch_resumes_from_the_last() -> None:
    async def main() -> None:
        async with Server() as server:
            hour = [step for minute in range(1, 61) for step in (50, bookmark(100 + minute))]
            server.on(PODS, a_list(5), Stream([*hour, CUT]), QUIET)
            async with watching(server) as (reflector, heard):
                await asyncio.sleep(3010)
                assert (watches(server), lists(server)) == (["5", "160"], 1)
                assert (heard.told, reflector.counts.bookmarks) == ([], 60)

    run(main())


def test_fault_5_nothing_is_told_of_half_a_list() -> None:
    async def main() -> None:
        async with Server() as server:
            server.on(PODS, a_list(5, a_pod("a", 1)), failure(410, "Expired"))
            server.on(PODS, a_list(9, a_pod("b", 7), more="t"), CUT, CUT, failure(500))
            server.on(PODS, a_list(10, a_pod("a", 1), a_pod("b", 8)), QUIET)
            async with watching(server) as (_, heard):
                await asyncio.sleep(1)
                assert heard.told == ["+a@1"]
                await asyncio.sleep(10)
                assert heard.told == ["+a@1", "+b@8"]

    run(main())


@pytest.mark.parametrize(
    "line", [b"{]\n", b'{"type":"SURPRISE","object":{}}\n'], ids=["a malformed line", "an unknown type"]
)
def test_fault_6_a_line_that_cannot_be_read_drops_the_connection_and_lists_again(line: bytes) -> None:
    async def main() -> None:
        async with Server() as server:
            server.on(PODS, a_list(5), Stream([added("a", 6), line, added("never", 7), SILENCE]))
            server.on(PODS, a_list(9, a_pod("a", 6), a_pod("b", 8)), QUIET)
            async with watching(server) as (reflector, heard):
                await asyncio.sleep(5)
                assert heard.told == ["+a@6", "+b@8"]
                assert (reflector.counts.malformed, lists(server)) == (1, 2)

    run(main())


def test_fault_6_a_line_cut_by_the_connection_s_end_is_asked_for_again() -> None:
    async def main() -> None:
        async with Server() as server:
            server.on(PODS, a_list(5), Stream([added("a", 6), b'{"type":"ADDED","ob', 1, CUT]))
            server.on(PODS, Stream([added("b", 7), SILENCE]))
            async with watching(server) as (_, heard):
                await asyncio.sleep(5)
                assert heard.told == ["+a@6", "+b@7"]
                assert (watches(server), lists(server)) == (["5", "6"], 1)

    run(main())


def test_fault_7_repeated_older_and_reordered_events_change_nothing() -> None:
    async def main() -> None:
        async with Server() as server:
            server.on(PODS, a_list(5, a_pod("a", 4)))
            events = [added("a", 4), modified("a", 8), modified("a", 8), modified("a", 6), deleted("x", 9)]
            events += [deleted("a", 10), deleted("a", 10), added("a", 7), bookmark(3), modified("b", 11)]
            server.on(PODS, Stream([*events, SILENCE]))
            async with watching(server) as (reflector, heard):
                await asyncio.sleep(5)
                assert heard.told == ["+a@4", "a@4>8", "-a@10", "+b@11"]
                assert (reflector.counts.ignored, reflector.version) == (6, "11")

    run(main())


def test_versions_are_compared_as_numbers() -> None:
    async def main() -> None:
        async with Server() as server:
            server.on(PODS, a_list(9, a_pod("a", 9)), Stream([modified("a", 10), modified("a", 9), SILENCE]))
            async with watching(server) as (_, heard):
                await asyncio.sleep(5)
                assert heard.told == ["+a@9", "a@9>10"]

    run(main())


def test_fault_12_a_watch_turned_away_with_429_is_tried_again_from_where_it_stood() -> None:
    async def main() -> None:
        async with Server() as server:
            server.on(PODS, a_list(5), failure(429, headers={"Retry-After": "1"}), failure(429), QUIET)
            async with watching(server) as (reflector, _):
                await asyncio.sleep(10)
                assert (watches(server), lists(server), reflector.trouble) == (["5", "5", "5"], 1, "")

    run(main())


def test_a_server_that_cannot_serve_a_version_is_listed_again_after_three_tries() -> None:
    async def main() -> None:
        async with Server() as server:
            server.on(PODS, a_list(5), *[failure(500)] * 3, a_list(9), QUIET)
            async with watching(server):
                await asyncio.sleep(30)
                assert (watches(server), lists(server)) == (["5", "5", "5", "9"], 2)

    run(main())


def test_a_version_newer_than_all_the_server_knows_is_listed_again() -> None:
    async def main() -> None:
        restored = Reply(504, {"reason": "Timeout", "details": {"causes": [{"reason": "ResourceVersionTooLarge"}]}})
        async with Server() as server:
            server.on(PODS, a_list(500, a_pod("a", 400)), restored, a_list(100, a_pod("a", 90)), QUIET)
            async with watching(server) as (reflector, heard):
                await asyncio.sleep(30)
                assert (heard.told, reflector.version) == (["+a@400", "a@400>90"], "100")

    run(main())


def test_fault_13_without_the_right_to_list_it_says_so_and_asks_ever_more_rarely() -> None:
    async def main() -> None:
        async with Server() as server:
            denied = failure(403, "Forbidden", 'pods is forbidden: User "x" cannot list resource "pods"')
            server.on(PODS, *[denied] * 7, a_list(5), QUIET)
            async with watching(server) as (reflector, _):
                await asyncio.sleep(60)
                assert not reflector.synced.is_set()
                assert reflector.trouble == 'pods: pods is forbidden: User "x" cannot list resource "pods"'
                assert len(server.asked) == 7
                await asyncio.sleep(30)
                assert reflector.synced.is_set()
                assert reflector.trouble == ""

    run(main())


def test_fault_16_a_stalled_watch_is_replaced_and_its_age_is_known() -> None:
    async def main() -> None:
        async with Server() as server:
            server.on(PODS, a_list(5), Stream([added("a", 6), SILENCE]), Stream([added("b", 7), SILENCE]))
            async with watching(server) as (reflector, heard):
                assert reflector.stale_for(here().time()) == float("inf")
                await asyncio.sleep(50)
                assert reflector.stale_for(here().time()) == pytest.approx(50.0, abs=0.1)
                await asyncio.sleep(10)
                assert heard.told == ["+a@6", "+b@7"]
                assert (watches(server), lists(server)) == (["5", "6"], 1)
                assert reflector.stale_for(here().time()) < 5.0

    run(main())


def test_an_object_that_cannot_be_held_keeps_its_last_known_state_and_the_watch_goes_on() -> None:
    async def main() -> None:
        bad = modified("a", 6)
        bad["object"]["spec"]["priority"] = "high"
        gone = an_event("DELETED", {**bad["object"], "metadata": {**bad["object"]["metadata"], "resourceVersion": "8"}})
        async with Server() as server:
            server.on(PODS, a_list(5, a_pod("a", 1)), Stream([bad, added("b", 7), gone, SILENCE]))
            async with watching(server) as (reflector, heard):
                await asyncio.sleep(5)
                assert heard.told == ["+a@1", "+b@7", "-a@1"]
                assert (reflector.counts.unreadable, lists(server)) == (1, 1)

    run(main())


def test_a_long_list_is_told_in_parts_between_which_others_have_their_turn() -> None:
    async def main() -> None:
        async with Server() as server:
            server.on(PODS, a_list(5, *(a_pod(f"p{number}", number) for number in range(1, 1201))), QUIET)
            async with watching(server) as (reflector, heard):
                await reflector.synced.wait()
                assert heard.batches == [500, 500, 200]

    run(main())
