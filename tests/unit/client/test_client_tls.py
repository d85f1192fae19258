"""TLS to the API server from a kubeconfig: CAs, client certificates, and certificate files that change."""

import asyncio
import gc
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml

from extender.client.credentials import Credentials
from extender.client.errors import UnreachableError
from extender.client.kubeconfig import CredentialSource
from extender.client.transport import Request, Transport
from extender.config.model import ClientConnection
from tests.unit.client.kubeconfig_files import write_exec_plugin
from tests.unit.client.scripted_server import SILENCE, Reply, ScriptedServer, Stream, failure_reply
from tests.unit.client.virtual_time import current_loop, run

GET = Request("GET", "/api/v1/pods")


class Certificates:
    """A CA, certificates it issued, and a kubeconfig that uses them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = trustme.CA()
        self.authority.cert_pem.write_to_path(folder / "ca.crt")
        self.issue("first")

    def issue(self, name: str) -> None:
        """Replace the client's certificate by a new one."""
        client_cert = self.authority.issue_cert(f"{name}@example.org", common_name=name)
        client_cert.cert_chain_pems[0].write_to_path(self.folder / "me.crt")
        client_cert.private_key_pem.write_to_path(self.folder / "me.key")

    def server(self, name: str = "127.0.0.1") -> ssl.SSLContext:
        """Return the context of a server that requires a client certificate."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.verify_mode = ssl.CERT_REQUIRED
        self.authority.configure_trust(context)
        self.authority.issue_cert(name).configure_cert(context)
        return context

    def kubeconfig(self, url: str, user: dict[str, object] | None = None, **cluster: object) -> CredentialSource:
        trusted = {"server": url, "certificate-authority": "ca.crt", **cluster}
        content = {
            "current-context": "x",
            "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
            "clusters": [{"name": "x", "cluster": trusted}],
            "users": [{"name": "x", "user": user or {"client-certificate": "me.crt", "client-key": "me.key"}}],
        }
        (self.folder / "config").write_text(yaml.safe_dump(content))
        return CredentialSource(str(self.folder / "config"))


@asynccontextmanager
async def connected(source: CredentialSource) -> AsyncIterator[Transport]:
    transport = Transport(Credentials(source, current_loop()), ClientConnection(qps=-1), "x")
    try:
        yield transport
    finally:
        await transport.close()


def test_server_and_client_verify_each_other_s_certificates(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)

    async def main() -> None:
        async with ScriptedServer(tls=certificates.server()) as server:
            server.respond("GET /api/v1/pods", Reply())
            async with connected(certificates.kubeconfig(server.url)) as transport:
                await transport.call(GET)
            assert server.requests[0].client == "first"

    run(main())


def test_the_verified_server_name_may_differ_from_the_address(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)

    async def main() -> None:
        async with ScriptedServer(tls=certificates.server("api.example.org")) as server:
            server.respond("GET /api/v1/pods", Reply())
            source = certificates.kubeconfig(server.url, **dict[str, Any]({"tls-server-name": "api.example.org"}))
            async with connected(source) as transport:
                await transport.call(GET)

    run(main())


@pytest.mark.parametrize("name", ["other.example.org", ""], ids=["another name", "another authority"])
def test_nothing_is_sent_to_an_untrusted_server(tmp_path: Path, name: str) -> None:
    certificates = Certificates(tmp_path)

    async def main() -> None:
        async with ScriptedServer(tls=certificates.server(name or "127.0.0.1")) as server:
            if not name:
                trustme.CA().cert_pem.write_to_path(tmp_path / "ca.crt")
            async with connected(certificates.kubeconfig(server.url)) as transport:
                with pytest.raises(UnreachableError, match="certificate verify failed") as caught:
                    await transport.call(GET)
            assert not caught.value.maybe_sent
            assert server.requests == []

    run(main())


def test_a_new_certificate_file_is_used_after_a_401_without_a_restart(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)

    async def main() -> None:
        async with ScriptedServer(tls=certificates.server()) as server:
            server.respond("GET /api/v1/pods", Reply(), failure_reply(401), Reply())
            async with connected(certificates.kubeconfig(server.url)) as transport:
                await transport.call(GET)
                certificates.issue("second")
                await transport.call(GET)
            assert [request.client for request in server.requests] == ["first", "first", "second"]
            await asyncio.sleep(0)

    run(main())


def test_after_a_rejected_certificate_the_ca_is_read_again_also_with_an_exec_plugin(tmp_path: Path) -> None:
    """The plugin's token has no expiry. The plugin runs again at most every ten seconds."""
    certificates = Certificates(tmp_path)
    trusted = (tmp_path / "ca.crt").read_bytes()
    trustme.CA().cert_pem.write_to_path(tmp_path / "ca.crt")
    user: dict[str, object] = {"exec": write_exec_plugin(tmp_path, '{"token":"x"}')}
    server_tls = certificates.server()
    server_tls.verify_mode = ssl.CERT_NONE

    async def main() -> None:
        async with ScriptedServer(tls=server_tls) as server:
            server.respond("GET /api/v1/pods", Reply())
            async with connected(certificates.kubeconfig(server.url, user)) as transport:
                for wait in (0, 9):
                    await asyncio.sleep(wait)
                    with pytest.raises(UnreachableError, match="certificate verify failed"):
                        await transport.call(GET)
                    (tmp_path / "ca.crt").write_bytes(trusted)
                await asyncio.sleep(1)
                await transport.call(GET)
            assert len(server.requests) == 1
        assert (tmp_path / "runs").read_text() == "me\nme\n"

    run(main())


def count_connections(port: int) -> int:
    """Count the open connections of this process to a local server."""
    transports = (transport_ for transport_ in gc.get_objects() if isinstance(transport_, asyncio.Transport))
    peers = [transport_.get_extra_info("peername") for transport_ in transports if not transport_.is_closing()]
    return peers.count(("127.0.0.1", port))


def test_a_closed_watch_leaves_no_connection_even_without_close_notify(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)

    async def main() -> None:
        async with ScriptedServer(tls=certificates.server()) as server:
            server.respond("GET /api/v1/pods", Stream(({"type": "ADDED"}, SILENCE)))
            async with connected(certificates.kubeconfig(server.url)) as transport:
                async with transport.stream(GET, 60.0) as response:
                    await anext(response.content.iter_any())
                    assert count_connections(server.port) > 0
                assert count_connections(server.port) == 0

    run(main())


def test_a_server_without_tls_is_named(tmp_path: Path) -> None:
    """OpenSSL numbers its errors from 1, which is EPERM for a system call: operation not permitted."""
    certificates = Certificates(tmp_path)

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.0 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()

    async def main() -> None:
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            async with connected(certificates.kubeconfig(url)) as transport:
                with pytest.raises(
                    UnreachableError, match=r"no TLS connection \(\[SSL.*\); is this the port of the API"
                ):
                    await transport.call(GET)

    run(main())
