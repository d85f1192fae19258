"""Connections that send as much as they can before authentication take a bounded amount of memory each."""

import json
import re
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from time import monotonic

import pytest
import trustme

from extender.serving.http_protocol import MAX_HEAD_BYTES
from tests.controlplane.process import free_ports
from tests.unit.extender_api.http_harness import TIMEOUT, client_tls_context, send_request
from tests.unit.serving.test_connection_floods import open_connections

CONNECTIONS = 50
MAX_BYTES_PER_CONNECTION = 1 << 20
"""Limit of the memory of one connection: uvloop reads up to 256 KiB of TLS records, decrypts them, and joins
the text.

The request has 64 KiB. A busy server holds all of this for several connections at once.
"""

SENT_BYTES = 4 << 20
GET = b"GET /livez HTTP/1.1\r\nHost: x\r\n"
CHUNKED = b"POST /filter HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"

UNFINISHED_REQUESTS: dict[str, tuple[bytes, bytes, int]] = {
    "the longest head that is not rejected": (GET + b"X-More: ", b"y" * 1000, MAX_HEAD_BYTES - 2000),
    "an endless header": (GET + b"X-More: ", b"y" * 1000, SENT_BYTES),
    "endless small headers": (GET, b"a:\r\n" * 250, SENT_BYTES),
    "endless trailers": (CHUNKED + b"0\r\n", b"X-More: " + b"y" * 990 + b"\r\n", SENT_BYTES),
    "endless small trailers": (CHUNKED + b"0\r\n", b"a:\r\n" * 250, SENT_BYTES),
    "an endless chunk extension": (CHUNKED + b"5;", b"y" * 1000, SENT_BYTES),
    "an endless body": (CHUNKED, b"3e8\r\n" + b"y" * 1000 + b"\r\n", SENT_BYTES),
}
"""The beginning of each request, what follows it again and again, and the number of bytes that are sent."""

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from Linux's /proc")


class TlsServer:
    """A running `extender serve` with client certificates, its port, and the TLS context of an anonymous client."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, context: ssl.SSLContext) -> None:
        self.port, self.context = port, context
        self._status = Path("/proc", str(process.pid), "status")

    def read_bytes(self, field: str) -> int:
        """Return the field VmRSS (resident memory) or VmHWM (its maximum), in bytes."""
        found = re.search(rf"{field}:\s+(\d+) kB", self._status.read_text())
        assert found is not None
        return int(found[1]) * 1024


@pytest.fixture
def server(tmp_path: Path) -> Iterator[TlsServer]:
    ca = trustme.CA()
    issued = ca.issue_cert("localhost")
    issued.cert_chain_pems[0].write_to_path(str(tmp_path / "tls.crt"))
    issued.private_key_pem.write_to_path(str(tmp_path / "tls.key"))
    ca.cert_pem.write_to_path(str(tmp_path / "ca.crt"))
    resources = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {"allocatable": resources}}
    (tmp_path / "cluster.json").write_text(json.dumps(node))
    port, context = free_ports(1)[0], client_tls_context(ca)
    flags = [
        f"-f={tmp_path}/cluster.json",
        f"--port={port}",
        f"--tls-cert-file={tmp_path}/tls.crt",
        f"--tls-private-key-file={tmp_path}/tls.key",
        f"--client-ca-file={tmp_path}/ca.crt",
    ]
    with (
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen([sys.executable, "-m", "extender", "serve", *flags], stderr=log) as process,
    ):
        try:
            deadline = monotonic() + TIMEOUT
            while not is_ready(port, context):
                assert process.poll() is None, (tmp_path / "log").read_text()
                assert monotonic() < deadline, (tmp_path / "log").read_text()
            yield TlsServer(process, port, context)
        finally:
            process.terminate()


def is_ready(port: int, context: ssl.SSLContext) -> bool:
    """Return whether the extender serves requests."""
    try:
        return send_request(port, "GET", "/readyz", tls=context) == (200, "ok")
    except OSError:
        return False


def send_all(connection: ssl.SSLSocket, head: bytes, more: bytes, size: int) -> None:
    """Send *head*, then *more* up to *size* bytes, or until the server closes the connection."""
    with suppress(OSError):
        connection.sendall(head)
        connection.sendall(more * (size // len(more)))


def test_a_connection_takes_bounded_memory_before_authentication(server: TlsServer) -> None:
    """The peak counts, because the memory of a rejected request is freed at once."""
    growths: dict[str, int] = {}
    for name, (head, more, size) in UNFINISHED_REQUESTS.items():
        before = server.read_bytes("VmHWM")
        with ExitStack() as stack:
            for connection in open_connections(server.port, stack, CONNECTIONS):
                client = stack.enter_context(server.context.wrap_socket(connection, server_hostname="localhost"))
                send_all(client, head, more, size)
            assert send_request(server.port, "GET", "/livez", tls=server.context) == (200, "ok")
        growths[name] = (server.read_bytes("VmHWM") - before) // CONNECTIONS
    print({name: f"{growth // 1024} KiB" for name, growth in growths.items()})  # noqa: T201 - shown on failure
    assert {name for name, growth in growths.items() if growth > MAX_BYTES_PER_CONNECTION} == set()
