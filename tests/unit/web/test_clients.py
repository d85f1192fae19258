"""Who may use the verbs: real TLS connections with all sorts of client certificates, and certificates that rotate."""

import asyncio
import contextlib
import http.client
import socket
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trustme
import uvloop
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from extender.web.app import new_app
from extender.web.callers import Authenticator
from extender.web.certificates import CertificateError, ServingCertificate, serving_certificate
from extender.web.clients import Clients
from extender.web.guard import Guard
from extender.web.rights import Authorizer
from extender.web.settings import Authentication, Authorization, Serving
from tests.unit.web.served import a_site, ask, served, trusting
from tests.unit.web.test_callers import Deaf

BODY = {"Pod": {"metadata": {"name": "web"}}, "NodeNames": ["n1"]}
KUBE_SCHEDULER = "system:kube-scheduler"
TLS_FAULTS = (ssl.SSLError, ConnectionError, http.client.RemoteDisconnected)


@dataclass
class Door:
    """A guarded service, its authorities, and what got through to it."""

    folder: Path
    server: trustme.CA = field(default_factory=trustme.CA)
    callers: trustme.CA = field(default_factory=trustme.CA)
    reached: list[str] = field(default_factory=list)
    shown: ServingCertificate = field(init=False)
    port: int = 0

    def __post_init__(self) -> None:
        self.show("first")
        self.vouch(self.callers)
        settings = Serving(certificate=str(self.folder / "tls.crt"), key=str(self.folder / "tls.key"))
        self.shown = serving_certificate(settings, str(self.folder / "ca.crt"))

    def show(self, name: str) -> None:
        """Put a certificate with that common name in place."""
        issued = self.server.issue_cert("localhost", common_name=name)
        issued.cert_chain_pems[0].write_to_path(str(self.folder / "tls.crt"))
        issued.private_key_pem.write_to_path(str(self.folder / "tls.key"))

    def vouch(self, *authorities: trustme.CA) -> None:
        """Have these vouch for callers."""
        (self.folder / "ca.crt").write_bytes(b"".join(each.cert_pem.bytes() for each in authorities))

    def app(self, allowed: frozenset[str] = frozenset({KUBE_SCHEDULER})) -> Any:
        """The verbs and probes behind the guard."""
        inner = new_app(a_site())

        async def through(scope: Any, receive: Any, send: Any) -> None:
            self.reached.append(scope["path"])
            await inner(scope, receive, send)

        clients = Clients(lambda: self.shown.authorities, allowed)
        authenticator = Authenticator(Authentication(), None, Deaf())
        return Guard(through, authenticator, Authorizer(Authorization(), None, Deaf()), frozenset({"/filter"}), clients)

    def filter(self, client: trustme.LeafCert | None) -> int:
        """The status of a filter whose caller shows *client*."""
        return ask(self.port, "POST", "/filter", BODY, tls=trusting(self.server, client))[0]


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def door(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Door]:
    found = Door(tmp_path)
    with served(found.app(), found.shown.context, request.param) as found.port:
        yield found


def a_client(authority: trustme.CA, name: str = KUBE_SCHEDULER, **more: Any) -> trustme.LeafCert:
    return authority.issue_cert("client.example", common_name=name, **more)


def test_the_right_certificate_is_let_in(door: Door) -> None:
    assert door.filter(a_client(door.callers)) == 200
    assert door.reached == ["/filter"]


@pytest.mark.parametrize(
    "client",
    [
        lambda door: None,
        lambda door: a_client(door.callers, "system:node:n1"),
        lambda door: a_client(trustme.CA()),
        lambda door: a_client(door.callers, not_after=datetime.now(UTC) - timedelta(seconds=1)),
        lambda door: a_client(door.callers.create_child_ca()),
    ],
    ids=["no certificate", "a name not allowed", "another authority", "expired", "an authority in between"],
)
def test_any_other_caller_is_refused_before_its_request_is_looked_at(
    door: Door, client: Callable[[Door], trustme.LeafCert | None]
) -> None:
    with contextlib.suppress(*TLS_FAULTS):  # TLS itself may refuse
        assert door.filter(client(door)) in {401, 403}
    assert door.reached == []


def test_a_refusal_does_not_wait_for_the_body(door: Door) -> None:
    """A caller without a certificate announces 200 MB and sends none of them."""
    answer = ask(door.port, "POST", "/filter", b"", tls=trusting(door.server), content_length="200000000")
    assert answer[0] == 401
    assert '"message":"Unauthorized: \\"/filter\\": a client certificate is wanted"' in answer[1]


def test_an_authority_that_vouches_for_readers_of_metrics_does_not_open_the_verbs(door: Door) -> None:
    cluster = trustme.CA()
    door.shown.trust([cluster.cert_pem.bytes().decode()])
    assert door.filter(a_client(cluster)) == 403
    assert door.filter(a_client(door.callers)) == 200


def test_probes_need_no_certificate_and_other_pages_rights(door: Door) -> None:
    known = trusting(door.server, a_client(door.callers))
    assert ask(door.port, "GET", "/livez", tls=trusting(door.server)) == (200, "ok")
    assert ask(door.port, "GET", "/metrics", tls=trusting(door.server))[0] == 403
    assert ask(door.port, "GET", "/metrics", tls=known)[0] == 403
    assert ask(door.port, "POST", "/filter/", BODY, tls=known)[0] == 403


def test_a_rotated_authority_is_trusted_and_the_one_before_is_not_any_more(door: Door) -> None:
    old, new = a_client(door.callers), trustme.CA()
    assert door.filter(old) == 200
    door.vouch(door.callers, new)
    assert door.shown.refresh()
    assert [door.filter(old), door.filter(a_client(new))] == [200, 200]
    door.vouch(new)
    assert door.shown.refresh()
    assert door.filter(a_client(new)) == 200
    with pytest.raises(TLS_FAULTS):
        door.filter(old)


def test_an_open_connection_loses_its_rights_with_its_authority(door: Door) -> None:
    tls = trusting(door.server, a_client(door.callers))
    connection = http.client.HTTPSConnection("localhost", door.port, timeout=20, context=tls)
    connection.request("POST", "/filter", b"{}")
    answer = connection.getresponse()
    assert (answer.status, answer.read()) == (400, b"Pod: is missing; want the pod to place\n")
    door.vouch(trustme.CA())
    assert door.shown.refresh()
    connection.request("POST", "/filter", b"{}")
    assert connection.getresponse().status == 403
    connection.close()


def test_a_rotated_server_certificate_is_shown_to_new_connections(door: Door) -> None:
    def name() -> str:
        context = trusting(door.server)
        with (
            socket.create_connection(("127.0.0.1", door.port)) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as secure,
        ):
            shown = x509.load_der_x509_certificate(secure.getpeercert(binary_form=True) or b"")
        return shown.subject.rfc4514_string()

    assert "CN=first" in name()
    door.show("second")
    assert door.shown.refresh()
    assert "CN=second" in name()


def test_a_file_of_authorities_that_is_half_written_changes_nothing(door: Door) -> None:
    (door.folder / "ca.crt").write_text("-----BEGIN CERTIFICATE-----\n")
    with pytest.raises(CertificateError, match="is no certificate in PEM"):
        door.shown.refresh()
    assert door.filter(a_client(door.callers)) == 200


def der(leaf: trustme.LeafCert) -> bytes:
    certificate = x509.load_pem_x509_certificate(leaf.cert_chain_pems[0].bytes())
    return certificate.public_bytes(Encoding.DER)


def test_a_certificate_that_runs_out_on_an_open_connection_is_refused() -> None:
    authority = trustme.CA()
    ends = datetime.now(UTC) + timedelta(hours=1)
    known = (x509.load_pem_x509_certificate(authority.cert_pem.bytes()),)
    now = [ends - timedelta(minutes=1)]
    clients = Clients(lambda: known, now=lambda: now[0])
    shown = der(a_client(authority, not_after=ends))
    assert clients.refusal(shown) == ""
    now[0] = ends + timedelta(minutes=1)
    assert clients.refusal(shown) == "the client certificate does not hold now"


@pytest.mark.parametrize(
    ("allowed", "told"),
    [
        ([], ""),
        (["ann"], ""),
        (["client.example"], ""),
        (["Ann", "an", ""], 'the client certificate is for "ann", "client.example", which is not allowed'),
    ],
    ids=["any name", "the common name", "a host name", "names that are only alike"],
)
def test_names_are_allowed_as_they_are_written(allowed: list[str], told: str) -> None:
    authority = trustme.CA()
    known = (x509.load_pem_x509_certificate(authority.cert_pem.bytes()),)
    assert Clients(lambda: known, frozenset(allowed)).refusal(der(a_client(authority, "ann"))) == told


def test_bytes_that_are_no_certificate_are_refused() -> None:
    assert Clients(lambda: ()).refusal(b"\x30\x00") == "the client certificate cannot be read"
