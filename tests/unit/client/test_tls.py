"""TLS as a kubeconfig asks for it: whom we trust, who we are, and certificates that change while we run."""

import asyncio
import gc
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trustme
import yaml

from extender.client.credentials import Credentials
from extender.client.errors import UnreachableError
from extender.client.kubeconfig import Place
from extender.client.transport import Request, Transport
from extender.config.model import ClientConnection
from tests.unit.client.scripted import SILENCE, Reply, Server, Stream, failure
from tests.unit.client.virtual_time import here, run

GET = Request("GET", "/api/v1/pods")


class Certificates:
    """An authority, what it issued, and a kubeconfig that uses it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = trustme.CA()
        self.authority.cert_pem.write_to_path(folder / "ca.crt")
        self.issue("first")

    def issue(self, name: str) -> None:
        """A new certificate for the client, in place of the old one."""
        mine = self.authority.issue_cert(f"{name}@example.org", common_name=name)
        mine.cert_chain_pems[0].write_to_path(self.folder / "me.crt")
        mine.private_key_pem.write_to_path(self.folder / "me.key")

    def server(self, name: str = "127.0.0.1") -> ssl.SSLContext:
        """A server that wants the client to have a certificate."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.verify_mode = ssl.CERT_REQUIRED
        self.authority.configure_trust(context)
        self.authority.issue_cert(name).configure_cert(context)
        return context

    def kubeconfig(self, url: str, **cluster: object) -> Place:
        trusted = {"server": url, "certificate-authority": "ca.crt", **cluster}
        content = {
            "current-context": "x",
            "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
            "clusters": [{"name": "x", "cluster": trusted}],
            "users": [{"name": "x", "user": {"client-certificate": "me.crt", "client-key": "me.key"}}],
        }
        (self.folder / "config").write_text(yaml.safe_dump(content))
        return Place(str(self.folder / "config"))


@asynccontextmanager
async def connected(place: Place) -> AsyncIterator[Transport]:
    transport = Transport(Credentials(place, here()), ClientConnection(qps=-1), "x", here())
    try:
        yield transport
    finally:
        await transport.close()


def test_server_and_client_know_each_other_by_their_certificates(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)

    async def main() -> None:
        async with Server(tls=certificates.server()) as server:
            server.on("GET /api/v1/pods", Reply())
            async with connected(certificates.kubeconfig(server.url)) as transport:
                await transport.call(GET)
            assert server.asked[0].client == "first"

    run(main())


def test_the_name_to_check_may_differ_from_the_address(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)

    async def main() -> None:
        async with Server(tls=certificates.server("api.example.org")) as server:
            server.on("GET /api/v1/pods", Reply())
            named = certificates.kubeconfig(server.url, **{"tls-server-name": "api.example.org"})
            async with connected(named) as transport:
                await transport.call(GET)

    run(main())


@pytest.mark.parametrize("name", ["other.example.org", ""], ids=["another name", "another authority"])
def test_a_server_we_cannot_trust_is_sent_nothing(tmp_path: Path, name: str) -> None:
    certificates = Certificates(tmp_path)

    async def main() -> None:
        async with Server(tls=certificates.server(name or "127.0.0.1")) as server:
            if not name:
                trustme.CA().cert_pem.write_to_path(tmp_path / "ca.crt")
            async with connected(certificates.kubeconfig(server.url)) as transport:
                with pytest.raises(UnreachableError, match="certificate verify failed") as caught:
                    await transport.call(GET)
            assert not caught.value.sent
            assert server.asked == []

    run(main())


def test_a_new_certificate_on_disk_is_used_after_a_refusal_without_a_restart(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)

    async def main() -> None:
        async with Server(tls=certificates.server()) as server:
            server.on("GET /api/v1/pods", Reply(), failure(401), Reply())
            async with connected(certificates.kubeconfig(server.url)) as transport:
                await transport.call(GET)
                certificates.issue("second")
                await transport.call(GET)
            assert [asked.client for asked in server.asked] == ["first", "first", "second"]
            await asyncio.sleep(0)

    run(main())


def connections(port: int) -> int:
    """How many connections to a server on this machine are open on our side, known to anybody or not."""
    transports = (one for one in gc.get_objects() if isinstance(one, asyncio.Transport))
    peers = [one.get_extra_info("peername") for one in transports if not one.is_closing()]
    return peers.count(("127.0.0.1", port))


def test_a_watch_given_up_leaves_no_connection_even_if_the_server_does_not_say_farewell(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)

    async def main() -> None:
        async with Server(tls=certificates.server()) as server:
            server.on("GET /api/v1/pods", Stream(({"type": "ADDED"}, SILENCE)))
            async with connected(certificates.kubeconfig(server.url)) as transport:
                async with transport.stream(GET, 60.0) as pieces:
                    await anext(aiter(pieces))
                    assert connections(server.port) > 0
                assert connections(server.port) == 0

    run(main())
