"""The connections of a transport, its pending requests, and its recovery signal."""

import asyncio
import os
import socket
from collections.abc import Callable
from contextlib import ExitStack

import pytest
import uvloop

from extender.client.connections import PendingRequests, RecoverySignal, _make_socket
from extender.client.errors import UnreachableError
from extender.client.transport import Request
from tests.unit.client.scripted_server import SILENCE, Reply, ScriptedServer, Stream, failure_reply, open_transport
from tests.unit.client.virtual_time import current_loop, run


def test_a_success_ends_the_wait_of_all_tasks() -> None:
    async def main() -> None:
        signal = RecoverySignal()
        start_time = current_loop().time()
        tasks = [asyncio.create_task(signal.wait(30, 0)) for _ in range(2)]
        await asyncio.sleep(5)
        signal.record_success()
        assert await asyncio.gather(*tasks) == [True, True]
        assert current_loop().time() == start_time + 5

    run(main())


def test_a_success_before_the_wait_counts_if_it_is_newer_than_the_failure() -> None:
    async def main() -> None:
        signal = RecoverySignal()
        signal.record_success()
        start_time = current_loop().time()
        assert await signal.wait(30, 0) is True
        assert await signal.wait(30, 1) is False
        assert current_loop().time() == start_time + 30

    run(main())


def test_watches_and_other_requests_do_not_share_connections() -> None:
    request = Request("GET", "/api/v1/pods")

    async def main() -> None:
        async with ScriptedServer() as server, open_transport(server) as transport:
            server.respond("GET /api/v1/pods", Stream(({},)), Reply(), Stream(({},)), Reply())
            for _ in range(2):
                async with transport.stream(request, 60) as response:
                    assert [chunk async for chunk in response.content.iter_any()] == [b"{}\n"]
                assert await transport.call(request) == b"{}"
            first_watch, first_call, second_watch, second_call = (each.client_port for each in server.requests)
            assert first_watch == second_watch
            assert first_call == second_call
            assert first_watch != first_call

    run(main())


def test_the_64th_request_takes_the_capacity_and_its_end_is_reported_once() -> None:
    reports: list[int] = []
    pending = PendingRequests()
    pending.on_capacity = lambda: reports.append(pending.count)
    with ExitStack() as first_63, ExitStack() as others:
        for _ in range(63):
            first_63.enter_context(pending.include_request())
        assert pending.has_capacity()
        for _ in range(3):
            others.enter_context(pending.include_request())
        assert not pending.has_capacity()
    assert (reports, pending.count) == ([63], 0)


def test_a_request_is_pending_except_while_it_waits_before_a_retry() -> None:
    path = "/api/v1/pods"

    async def main() -> None:
        async with ScriptedServer() as server, open_transport(server, qps=0.1, burst=1) as transport:
            too_many = failure_reply(429, headers={"Retry-After": "20"})
            server.respond(f"POST {path}", too_many, SILENCE)
            task = asyncio.create_task(transport.call(Request("POST", path, body=b"{}", timeout=5)))
            counts = []
            for seconds in (0.1, 19.8, 0.2, 4.8):  # before and after the ends of the wait and of the second attempt
                await asyncio.sleep(seconds)
                counts.append(transport.pending.count)
            with pytest.raises(UnreachableError):
                await task
            counts.append(transport.pending.count)
            limited = [asyncio.create_task(transport.call(Request("GET", path))) for _ in range(3)]
            await asyncio.sleep(0.1)
            counts.append(transport.pending.count)
            for task in limited:
                task.cancel()
            await asyncio.wait(limited)
            assert [*counts, transport.pending.count] == [0, 0, 1, 1, 0, 3, 0]

    run(main())


@pytest.mark.parametrize("make_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_a_new_socket_gets_no_number_that_a_transport_has(
    make_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def main() -> None:
        own, peer = socket.socketpair()
        transport, _ = await asyncio.get_running_loop().create_connection(asyncio.Protocol, sock=own)
        number = own.fileno()
        os.close(number)
        with peer, socket.socket() as plain_socket:
            assert plain_socket.fileno() == number  # as each socket from now on
            plain_socket.close()
            with _make_socket((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 1))) as made_socket:
                assert made_socket.fileno() not in {-1, number}
        assert os.open(os.devnull, os.O_RDONLY) == number  # for the transport, which closes it
        transport.abort()
        await asyncio.sleep(0)

    with asyncio.Runner(loop_factory=make_loop) as runner:
        runner.run(main())
