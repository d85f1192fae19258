"""The connections of a transport, and its recovery signal: waiting tasks wake when a request succeeds."""

import asyncio

from extender.client.connections import RecoverySignal
from extender.client.transport import Request
from tests.unit.client.scripted_server import Reply, ScriptedServer, Stream, open_transport
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
                async with transport.stream(request, 60) as body:
                    assert [chunk async for chunk in body] == [b"{}\n"]
                assert await transport.call(request) == b"{}"
            first_watch, first_call, second_watch, second_call = (each.client_port for each in server.requests)
            assert first_watch == second_watch
            assert first_call == second_call
            assert first_watch != first_call

    run(main())
