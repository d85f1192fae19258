"""Reads of TLS connections: no read allocates more than a record."""

import contextlib
import ssl
import tracemalloc

import trustme

from extender.basics.tls_reads import limit_reads

_READ_LIMIT = 256 << 10
"""The limit of a read by asyncio and uvloop."""


def connect() -> tuple[ssl.SSLObject, ssl.SSLObject]:
    """Return a client whose reads are limited, and its server, connected in memory."""
    authority = trustme.CA()
    client_context, server_context = ssl.create_default_context(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.configure_trust(client_context)
    authority.issue_cert("localhost").configure_cert(server_context)
    limit_reads(client_context)
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context.wrap_bio(to_client, to_server, server_hostname="localhost")
    server = server_context.wrap_bio(to_server, to_client, server_side=True)
    for end in (client, server, client, server):
        with contextlib.suppress(ssl.SSLWantReadError):
            end.do_handshake()
    return client, server


def test_a_read_allocates_at_most_a_record() -> None:
    client, server = connect()
    server.write(b"x" * 300)
    tracemalloc.start()
    try:
        assert client.read(_READ_LIMIT) == b"x" * 300
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20_000


def test_reads_return_all_bytes_of_larger_messages() -> None:
    client, server = connect()
    message = bytes(range(250)) * 200
    assert server.write(message) == len(message) == 50_000
    parts = [client.read(_READ_LIMIT) for _ in range(4)]
    assert [len(part) for part in parts] == [16_384, 16_384, 16_384, 848]
    assert b"".join(parts) == message


def test_a_read_into_a_buffer_fills_it() -> None:
    client, server = connect()
    server.write(b"abc")
    buffer = bytearray(5)
    assert client.read(5, buffer) == 3
    assert buffer == b"abc\0\0"
