"""Limits of informational responses, of headers, and of data that no request has asked for."""

import asyncio
import re
from collections.abc import Sequence
from contextlib import suppress

import pytest

from extender.client.extender import build_extenders
from extender.client.extender_transport import ExtenderError
from extender.config.model import Extender
from tests.build import make_pod
from tests.unit.client.virtual_time import run

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
