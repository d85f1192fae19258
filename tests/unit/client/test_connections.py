"""The connections of a transport, its pending requests, and its recovery signal."""

import asyncio
import gc
import os
import re
import socket
import ssl
import stat
import struct
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from typing import Any

import aiohttp
import pytest
import uvloop

from extender.client.connections import PendingRequests, RecoverySignal, _Socket
from extender.client.credentials import Credentials
from extender.client.errors import UnreachableError
from extender.client.extender import build_extenders
from extender.client.extender_transport import ExtenderError
from extender.client.kubeconfig import CredentialSource
from extender.client.transport import Request, Transport, _translate_error
from extender.config.model import ClientConnection, Extender
from tests.build import make_pod
from tests.controlplane.process import free_ports
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


def test_patches_that_wait_for_another_patch_of_their_object_take_no_capacity() -> None:
    """Otherwise, one claim that 64 pods share would stop the scheduling of all other pods."""
    patch = Request("PATCH", "/api/v1/pods", body=b"{}")

    async def main() -> None:
        async with ScriptedServer() as server, open_transport(server) as transport:
            server.respond("PATCH /api/v1/pods", SILENCE, *[Reply()] * 98)
            tasks = [asyncio.create_task(transport.call(patch)) for _ in range(100)]
            await asyncio.sleep(0.5)
            assert (transport.pending.count, transport.pending.has_capacity()) == (1, True)
            tasks[1].cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            assert (transport.pending.count, len(server.requests)) == (0, 99)

    run(main())


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
def test_a_connection_that_was_reset_before_tls_closes_no_other_socket(
    make_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        with socket.create_server(("127.0.0.1", 0)) as listener:
            own = _Socket()
            own.setblocking(False)
            number = own.fileno()
            await loop.sock_connect(own, listener.getsockname())
            peer, _ = listener.accept()
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # `close` sends a reset
            peer.close()
            tls = ssl.create_default_context()
            with pytest.raises(ConnectionResetError):
                await loop.create_connection(asyncio.Protocol, sock=own, ssl=tls, server_hostname="x")
        with socket.socket() as other, socket.socket() as another:
            assert number in {other.fileno(), another.fileno()}
            del own
            await asyncio.sleep(0)
            gc.collect()
            assert [stat.S_ISSOCK(os.fstat(each.fileno()).st_mode) for each in (other, another)] == [True, True]

    with asyncio.Runner(loop_factory=make_loop) as runner:
        runner.run(main())


def test_a_socket_without_a_transport_is_closed_when_it_is_deleted() -> None:
    own = _Socket()
    number = own.fileno()
    del own
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(number)


def test_a_socket_that_cannot_be_opened_is_only_an_error() -> None:
    """As without free file descriptors. pytest would report an exception in the deletion."""
    with pytest.raises(OSError, match="Address family not supported"):
        _Socket(socket.AF_UNSPEC)
    gc.collect()


BOUND = b'HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n{"Error":""}'
TAKEN = b'HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\n{"Error":"taken"}'
EARLY_HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"


def bind(responses: Sequence[bytes], unexpected: bytes = b"") -> tuple[list[str], int]:
    """Call bind of an extender that sends *responses*, and *unexpected* data when the first call has ended.

    Return the errors of the calls, and the number of connections.
    """
    remaining, writers = iter(responses), list[asyncio.StreamWriter]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = re.search(rb"Content-Length: (\d+)", head)
                assert length is not None
                await reader.readexactly(int(length[1]))
                writer.write(next(remaining))
                await writer.drain()
        writer.close()

    async def main() -> tuple[list[str], int]:
        errors: list[str] = []
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            url = "http://{}:{}".format(*server.sockets[0].getsockname())
            (extender,) = build_extenders([Extender(url_prefix=url, bind_verb="bind", http_timeout=60.0)])
            for index in range(len(responses)):
                try:
                    await extender.bind(make_pod("web"), "n1")
                    errors.append("")
                except ExtenderError as error:
                    errors.append(str(error).removeprefix(f'Post "{url}/bind": '))
                if unexpected and not index:
                    writers[0].write(unexpected)
                    await asyncio.sleep(0.05)
            await extender.close()
        return errors, len(writers)

    return run(main())


def test_informational_responses_are_skipped() -> None:
    assert bind([EARLY_HINTS * 100 + BOUND, EARLY_HINTS * 100 + TAKEN]) == (["", "taken"], 1)


def test_a_flood_of_informational_responses_ends_with_an_error() -> None:
    """They stopped all other work until the timeout."""
    errors, _ = bind([b"HTTP/1.1 100 Continue\r\n\r\n" * 100_000])
    assert errors == ["not an HTTP response: more than 100 informational responses"]


def test_unexpected_data_on_an_idle_connection_closes_it() -> None:
    assert bind([BOUND, BOUND], unexpected=TAKEN) == (["", ""], 2)


@pytest.mark.parametrize(
    "headers", [b"A: " + b"b" * 60_000 + b"\r\n", b"A: b\r\n" * 990], ids=["a long header", "many headers"]
)
def test_more_headers_than_those_of_most_servers_are_accepted(headers: bytes) -> None:
    """Source: Go 1.26, net/http/transport.go, Transport.MaxResponseHeaderBytes."""
    assert bind([BOUND.replace(b"\r\n", b"\r\n" + headers, 1)]) == ([""], 1)


@pytest.mark.parametrize(
    "headers", [b"A: " + b"b" * 66_000 + b"\r\n", b"A: b\r\n" * 1_100], ids=["a long header", "many headers"]
)
def test_endless_headers_are_rejected(headers: bytes) -> None:
    ((error,), _) = bind([BOUND.replace(b"\r\n", b"\r\n" + headers, 1)])
    assert error.startswith(("not an HTTP response: Got more than 65536 bytes", "not an HTTP response: Too many"))


def test_bytes_of_another_protocol_are_shortened_in_the_error() -> None:
    """aiohttp's message has the whole line, which may have 64 KiB, and four characters for each byte."""
    ((error,), _) = bind([b"\xff" * 60_000 + b"\r\n\r\n"])
    assert error.startswith("not an HTTP response: ")
    assert len(error) < 1_100
    request_info: Any = None
    response_error = aiohttp.ClientResponseError(request_info, (), message="\xff\n" * 60_000)
    translated_error = _translate_error(response_error, "GET /version", "https://server")
    assert translated_error.message.startswith("GET /version: not an HTTP response: \xff \xff ")
    assert len(translated_error.message) < 1_100


async def get_through_proxy(proxy: str) -> str:
    """Send a request through a proxy that fails; return the message of the error."""
    source = CredentialSource(master="https://api.example.org:6443", environ={"HTTPS_PROXY": proxy})
    transport = Transport(Credentials(source, current_loop()), ClientConnection())
    try:
        with pytest.raises(UnreachableError) as caught:
            await transport.call(Request("POST", "/api/v1/pods"))
    finally:
        await transport.close()
    return caught.value.message


def test_an_error_of_a_proxy_names_the_proxy_and_not_its_password() -> None:
    async def main() -> None:
        closed_port = free_ports(1)[0]
        assert await get_through_proxy(f"http://ann:secret@127.0.0.1:{closed_port}") == (
            f"cannot connect to https://api.example.org:6443: the proxy 127.0.0.1:{closed_port}: connection refused"
        )
        async with ScriptedServer() as server:
            # To `urlsplit`, the host of the target is a scheme.
            server.respond("CONNECT 6443", Reply(status=407))
            assert await get_through_proxy(server.url) == (
                "cannot connect to https://api.example.org:6443: the proxy responded with status 407: Status"
            )

    run(main())
