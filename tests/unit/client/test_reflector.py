"""A reflector with a faulty server: its deltas, requests and delays. Time is virtual."""

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

from extender.api.kinds.pod import Pod
from extender.client import reflector as reflector_module
from extender.client.reflector import Delta
from extender.client.transport import Request
from tests.unit.client.builders import (
    PODS,
    added,
    bookmark,
    deleted,
    error_event,
    list_count,
    list_reply,
    make_pod,
    modified,
    run_reflector,
    watch_event,
    watched_versions,
)
from tests.unit.client.scripted_server import CUT, SILENCE, Reply, ScriptedServer, Stream, failure_reply
from tests.unit.client.virtual_time import current_loop, run
from tests.unit.turn_clock import TurnClock

QUIET = Stream([SILENCE])


def test_the_list_is_delivered_before_the_watch_s_deltas() -> None:
    async def main() -> None:
        async with ScriptedServer() as server:
            server.respond(PODS, list_reply(5, make_pod("a", 1), make_pod("b", 2)))
            server.respond(PODS, Stream([modified("a", 6), added("c", 7), deleted("b", 8), SILENCE]))
            async with run_reflector(server) as (reflector, recorded):
                await reflector.synced.wait()
                assert recorded.deltas == ["+a@1", "+b@2"]
                await asyncio.sleep(1)
                assert recorded.deltas[2:] == ["a@1>6", "+c@7", "-b@8"]
                assert (reflector.resource_version, reflector.last_error) == ("8", "")

    run(main())


def test_fault_1_the_watch_resumes_after_a_server_restart() -> None:
    async def main() -> None:
        async with ScriptedServer() as server:
            server.respond(PODS, list_reply(5, make_pod("a", 1)), Stream([modified("a", 6), SILENCE]))
            async with run_reflector(server) as (reflector, recorded):
                await asyncio.sleep(10)
                await server.stop()
                await asyncio.sleep(20)
                assert reflector.synced.is_set()
                assert reflector.last_error.endswith(": connection refused")
                assert reflector.recovered_at == float("-inf")
                start_time = reflector.clock.monotonic()
                await server.start()
                server.respond(PODS, Stream([modified("a", 7), SILENCE]))
                await asyncio.sleep(35)
                assert start_time < reflector.recovered_at <= start_time + 35
                assert (recorded.deltas, reflector.last_error) == (["+a@1", "a@1>6", "a@6>7"], "")
                assert (watched_versions(server), list_count(server)) == (["5", "6"], 1)

    run(main())


def test_fault_1_delays_between_attempts_grow_from_0_8_to_30_seconds() -> None:
    async def main() -> None:
        async with ScriptedServer() as server:
            server.respond(PODS, *[failure_reply(503)] * 8)
            async with run_reflector(server):
                await asyncio.sleep(110)
            at = [request.at for request in server.requests]
            waits = [round(later - earlier, 1) for earlier, later in pairwise(at)]
            assert waits == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0]

    run(main())


def test_a_reflector_retries_once_as_soon_as_another_request_succeeds() -> None:
    async def main() -> None:
        async with ScriptedServer() as server:
            server.respond(PODS, *[failure_reply(503)] * 6)
            server.respond("GET /livez", *[Reply()] * 20)
            async with run_reflector(server) as (reflector, _):
                await asyncio.sleep(15)  # the failures are at 0, 0.8, 2.4, 5.6 and 12 seconds
                assert len(server.requests_to(PODS)) == 5
                for _ in range(20):
                    await reflector.transport.call(Request("GET", "/livez"))
                await asyncio.sleep(0.1)
                assert len(server.requests_to(PODS)) == 6

    run(main())


def test_fault_2_a_watch_that_times_out_is_repeated_without_a_list_or_a_delay() -> None:
    async def main() -> None:
        async with ScriptedServer() as server:
            server.respond(PODS, list_reply(5), Stream([30, added("a", 6), 15]), Stream([45]), QUIET)
            async with run_reflector(server) as (reflector, recorded):
                await asyncio.sleep(100)
                assert recorded.deltas == ["+a@6"]
                assert (watched_versions(server), list_count(server)) == (["5", "6", "6"], 1)
                start_time = server.requests[0].at
                assert [round(request.at - start_time) for request in server.requests[1:]] == [0, 45, 90]
                assert reflector.counts.failures == 0

    run(main())


def test_a_server_that_ends_every_watch_at_once_causes_no_hot_loop() -> None:
    async def main() -> None:
        async with ScriptedServer() as server:
            server.respond(PODS, list_reply(5), *[Stream(), Stream([bookmark(5)])] * 3)
            async with run_reflector(server) as (reflector, _):
                await asyncio.sleep(30)
                assert len(watched_versions(server)) == 6
                assert "ended the watch immediately" in reflector.last_error

    run(main())


@pytest.mark.parametrize(
    "gone",
    [failure_reply(410, "Expired"), Stream([error_event(410, "Expired")]), Stream([error_event(410, "Gone")])],
    ids=["at the start of the watch", "as an event", "as an event, in other words"],
)
def test_fault_3_after_410_objects_missing_from_the_list_are_deleted(gone: Any) -> None:
    async def main() -> None:
        async with ScriptedServer() as server:
            server.respond(PODS, list_reply(5, make_pod("a", 1), make_pod("b", 2), make_pod("c", 3)), gone)
            server.respond(PODS, list_reply(20, make_pod("a", 1), make_pod("c", 12), make_pod("d", 15)), QUIET)
            async with run_reflector(server) as (reflector, recorded):
                await asyncio.sleep(5)
                assert recorded.deltas == ["+a@1", "+b@2", "+c@3", "-b@2?", "c@3>12", "+d@15"]
                assert (watched_versions(server), reflector.counts.failures) == (["5", "20"], 1)

    run(main())


def test_fault_3_after_410_the_list_is_read_at_once_but_not_again_and_again() -> None:
    async def main() -> None:
        async with ScriptedServer() as server:
            forgotten = [failure_reply(410, "Expired"), list_reply(20)]
            server.respond(PODS, list_reply(5), *forgotten * 4, Stream([15, CUT]), *forgotten, QUIET)
            async with run_reflector(server):
                await asyncio.sleep(60)
            start_time = server.requests[0].at
            listed = [round(request.at - start_time, 1) for request in server.requests if "watch" not in request.query]
            assert listed == [0.0, 0.0, 0.8, 2.4, 5.6, 27.0]

    run(main())


def test_fault_3_an_object_created_again_meanwhile_is_two_deltas() -> None:
    async def main() -> None:
        async with ScriptedServer() as server:
            server.respond(PODS, list_reply(5, make_pod("a", 1)), failure_reply(410, "Expired"))
            server.respond(PODS, list_reply(20, make_pod("a", 12, uid="second")))
            server.respond(PODS, Stream([modified("a", 21, uid="third"), SILENCE]))
            async with run_reflector(server) as (_, recorded):
                await asyncio.sleep(5)
                assert recorded.deltas == ["+a@1", "-a@1?", "+a@12", "-a@12?", "+a@21"]

    run(main())


def test_fault_4_after_an_hour_of_bookmarks_the_watch_resumes_from_the_last() -> None:
    async def main() -> None:
        async with ScriptedServer() as server:
            hour = [step for minute in range(1, 61) for step in (50, bookmark(100 + minute))]
            server.respond(PODS, list_reply(5), Stream([*hour, CUT]), QUIET)
            async with run_reflector(server) as (reflector, recorded):
                await asyncio.sleep(3010)
                assert (watched_versions(server), list_count(server)) == (["5", "160"], 1)
                assert (recorded.deltas, reflector.resource_version) == ([], "160")

    run(main())


def test_fault_5_nothing_is_delivered_of_half_a_list() -> None:
    async def main() -> None:
        async with ScriptedServer() as server:
            server.respond(PODS, list_reply(5, make_pod("a", 1)), failure_reply(410, "Expired"))
            server.respond(PODS, list_reply(9, make_pod("b", 7), more="t"), CUT, CUT, failure_reply(500))
            server.respond(PODS, list_reply(10, make_pod("a", 1), make_pod("b", 8)), QUIET)
            async with run_reflector(server) as (_, recorded):
                await asyncio.sleep(1)
                assert recorded.deltas == ["+a@1"]
                await asyncio.sleep(10)
                assert recorded.deltas == ["+a@1", "+b@8"]

    run(main())


@pytest.mark.parametrize(
    "line", [b"{]\n", b'{"type":"SURPRISE","object":{}}\n'], ids=["a malformed line", "an unknown type"]
)
def test_fault_6_a_malformed_event_drops_the_connection_and_lists_again(line: bytes) -> None:
    async def main() -> None:
        async with ScriptedServer() as server:
            server.respond(PODS, list_reply(5), Stream([added("a", 6), line, added("never", 7), SILENCE]))
            server.respond(PODS, list_reply(9, make_pod("a", 6), make_pod("b", 8)), QUIET)
            async with run_reflector(server) as (reflector, recorded):
                await asyncio.sleep(5)
                assert recorded.deltas == ["+a@6", "+b@8"]
                assert (reflector.counts.failures, list_count(server)) == (1, 2)

    run(main())


def test_fault_6_a_truncated_event_is_requested_again() -> None:
    async def main() -> None:
        async with ScriptedServer() as server:
            server.respond(PODS, list_reply(5), Stream([added("a", 6), b'{"type":"ADDED","ob', 1, CUT]))
            server.respond(PODS, Stream([added("b", 7), SILENCE]))
            async with run_reflector(server) as (_, recorded):
                await asyncio.sleep(5)
                assert recorded.deltas == ["+a@6", "+b@7"]
                assert (watched_versions(server), list_count(server)) == (["5", "6"], 1)

    run(main())


def test_fault_7_repeated_older_and_reordered_events_change_nothing() -> None:
    async def main() -> None:
        async with ScriptedServer() as server:
            server.respond(PODS, list_reply(5, make_pod("a", 4)))
            events = [added("a", 4), modified("a", 8), modified("a", 8), modified("a", 6), deleted("x", 9)]
            events += [deleted("a", 10), deleted("a", 10), added("a", 7), bookmark(3), modified("b", 11)]
            server.respond(PODS, Stream([*events, SILENCE]))
            async with run_reflector(server) as (reflector, recorded):
                await asyncio.sleep(5)
                assert recorded.deltas == ["+a@4", "a@4>8", "-a@10", "+b@11"]
                assert (reflector.counts.failures, reflector.resource_version) == (0, "11")

    run(main())


def test_versions_are_compared_as_numbers() -> None:
    async def main() -> None:
        async with ScriptedServer() as server:
            server.respond(
                PODS, list_reply(9, make_pod("a", 9)), Stream([modified("a", 10), modified("a", 9), SILENCE])
            )
            async with run_reflector(server) as (_, recorded):
                await asyncio.sleep(5)
                assert recorded.deltas == ["+a@9", "a@9>10"]

    run(main())


def test_fault_12_after_429_the_watch_resumes_from_its_resource_version() -> None:
    async def main() -> None:
        async with ScriptedServer() as server:
            server.respond(
                PODS, list_reply(5), failure_reply(429, headers={"Retry-After": "1"}), failure_reply(429), QUIET
            )
            async with run_reflector(server) as (reflector, _):
                await asyncio.sleep(10)
                assert (watched_versions(server), list_count(server), reflector.last_error) == (["5", "5", "5"], 1, "")

    run(main())


def test_a_list_follows_after_three_server_errors() -> None:
    async def main() -> None:
        async with ScriptedServer() as server:
            server.respond(PODS, list_reply(5), *[failure_reply(500)] * 3, list_reply(9), QUIET)
            async with run_reflector(server):
                await asyncio.sleep(30)
                assert (watched_versions(server), list_count(server)) == (["5", "5", "5", "9"], 2)

    run(main())


def test_a_resource_version_newer_than_the_server_s_is_listed_again() -> None:
    async def main() -> None:
        restored = Reply(504, {"reason": "Timeout", "details": {"causes": [{"reason": "ResourceVersionTooLarge"}]}})
        async with ScriptedServer() as server:
            server.respond(
                PODS, list_reply(500, make_pod("a", 400)), restored, list_reply(100, make_pod("a", 90)), QUIET
            )
            async with run_reflector(server) as (reflector, recorded):
                await asyncio.sleep(30)
                assert (recorded.deltas, reflector.resource_version) == (["+a@400", "a@400>90"], "100")

    run(main())


def test_resource_versions_of_any_length_are_compared() -> None:
    """Python does not convert texts of more than 4,300 digits to integers."""
    assert reflector_module._is_newer("9" * 5000, "10")
    assert not reflector_module._is_newer("9", "10")


def test_fault_13_without_permission_it_reports_so_and_backs_off() -> None:
    async def main() -> None:
        async with ScriptedServer() as server:
            denied = failure_reply(403, "Forbidden", 'pods is forbidden: User "x" cannot list resource "pods"')
            server.respond(PODS, *[denied] * 7, list_reply(5), QUIET)
            async with run_reflector(server) as (reflector, _):
                await asyncio.sleep(60)
                assert not reflector.synced.is_set()
                assert reflector.last_error == 'pods: pods is forbidden: User "x" cannot list resource "pods"'
                assert len(server.requests) == 7
                await asyncio.sleep(30)
                assert reflector.synced.is_set()
                assert reflector.last_error == ""

    run(main())


@pytest.mark.parametrize("is_optional", [True, False])
def test_an_optional_kind_that_the_server_does_not_serve_has_no_objects_until_it_does(is_optional: bool) -> None:
    async def main() -> None:
        async with ScriptedServer() as server:
            missing = failure_reply(404, "NotFound", "the server could not find the requested resource")
            server.respond(PODS, *[missing] * 7, list_reply(5, make_pod("a", 5)), QUIET)
            async with run_reflector(server) as (reflector, recorded):
                reflector.is_optional = is_optional
                await asyncio.sleep(60)
                assert reflector.synced.is_set() is is_optional
                assert recorded.deltas == []
                await asyncio.sleep(30)
                assert reflector.synced.is_set()
                assert (len(recorded.deltas), reflector.last_error) == (1, "")

    run(main())


def test_a_kind_that_the_server_does_not_serve_has_the_message_that_says_what_to_do() -> None:
    async def main() -> None:
        async with ScriptedServer() as server:
            server.respond(PODS, failure_reply(404, "NotFound", "the server could not find the requested resource"))
            async with run_reflector(server) as (reflector, _):
                reflector.missing_kind_hint = "install its definition"
                await asyncio.sleep(0.5)
                assert reflector.last_error == "pods: install its definition"

    run(main())


def test_fault_16_a_stalled_watch_is_replaced_and_its_age_is_known() -> None:
    async def main() -> None:
        async with ScriptedServer() as server:
            server.respond(PODS, list_reply(5), Stream([added("a", 6), SILENCE]), Stream([added("b", 7), SILENCE]))
            async with run_reflector(server) as (reflector, recorded):
                assert reflector.compute_staleness(current_loop().time()) == float("inf")
                await asyncio.sleep(50)
                assert reflector.compute_staleness(current_loop().time()) == pytest.approx(50.0, abs=0.1)
                await asyncio.sleep(10)
                assert recorded.deltas == ["+a@6", "+b@7"]
                assert (watched_versions(server), list_count(server)) == (["5", "6"], 1)
                assert reflector.compute_staleness(current_loop().time()) < 5.0

    run(main())


def test_an_object_that_cannot_be_decoded_keeps_its_last_state_and_the_watch_goes_on() -> None:
    async def main() -> None:
        bad = modified("a", 6)
        bad["object"]["spec"]["priority"] = "high"
        gone = watch_event(
            "DELETED", {**bad["object"], "metadata": {**bad["object"]["metadata"], "resourceVersion": "8"}}
        )
        async with ScriptedServer() as server:
            server.respond(PODS, list_reply(5, make_pod("a", 1)), Stream([bad, added("b", 7), gone, SILENCE]))
            async with run_reflector(server) as (reflector, recorded):
                await asyncio.sleep(5)
                assert recorded.deltas == ["+a@1", "+b@7", "-a@1"]
                assert (reflector.counts.failures, list_count(server)) == (0, 1)

    run(main())


def test_a_long_list_is_delivered_in_batches_of_50_and_other_tasks_run_after_a_turn_of_4_ms(
    turn_clock: TurnClock,
) -> None:
    batches: list[int | str] = []

    def record_batch(deltas: Sequence[Delta[Pod]]) -> None:
        batches.append(len(deltas))
        turn_clock.seconds += 0.003
        current_loop().call_soon(batches.append, "another")

    async def main() -> None:
        async with ScriptedServer() as server:
            server.respond(PODS, list_reply(5, *(make_pod(f"p{number}", number) for number in range(1, 241))), QUIET)
            async with run_reflector(server) as (reflector, _):
                reflector.deliver = record_batch
                await reflector.synced.wait()
        assert batches == [50, 50, "another", "another", 50, 50, "another", "another", 40, "another"]

    run(main())
