"""Client certificates of callers of the verbs, over real TLS connections, and their rotation."""

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

from extender.extender_api.routes import new_app
from extender.serving.auth_middleware import AuthMiddleware
from extender.serving.authentication import Authenticator
from extender.serving.authorization import Authorizer
from extender.serving.client_certs import ClientCertVerifier
from extender.serving.serving_options import AuthenticationOptions, AuthorizationOptions, ServingOptions
from extender.serving.tls import CertificateError, ServingCertificate, load_serving_certificate
from tests.unit.extender_api.http_harness import client_tls_context, make_service, send_request, serve_in_thread
from tests.unit.serving.auth_fakes import NullAuthMetrics

BODY = {"Pod": {"metadata": {"name": "web"}}, "NodeNames": ["n1"]}
KUBE_SCHEDULER = "system:kube-scheduler"
TLS_FAULTS = (ssl.SSLError, ConnectionError, http.client.RemoteDisconnected)


@dataclass
class GuardedServer:
    """A served application with client certificates, its CAs, and the requests that reached it."""

    folder: Path
    server_ca: trustme.CA = field(default_factory=trustme.CA)
    client_ca: trustme.CA = field(default_factory=trustme.CA)
    served_paths: list[str] = field(default_factory=list)
    serving_certificate: ServingCertificate = field(init=False)
    port: int = 0

    def __post_init__(self) -> None:
        self.write_server_certificate("first")
        self.write_client_cas(self.client_ca)
        settings = ServingOptions(cert_file=str(self.folder / "tls.crt"), key_file=str(self.folder / "tls.key"))
        self.serving_certificate = load_serving_certificate(settings, str(self.folder / "ca.crt"))

    def write_server_certificate(self, name: str) -> None:
        """Write a server certificate with that common name."""
        issued = self.server_ca.issue_cert("localhost", common_name=name)
        issued.cert_chain_pems[0].write_to_path(str(self.folder / "tls.crt"))
        issued.private_key_pem.write_to_path(str(self.folder / "tls.key"))

    def write_client_cas(self, *authorities: trustme.CA) -> None:
        """Write the CAs of client certificates."""
        (self.folder / "ca.crt").write_bytes(b"".join(each.cert_pem.bytes() for each in authorities))

    def app(self, allowed: frozenset[str] = frozenset({KUBE_SCHEDULER})) -> Any:
        """Return the verbs and health checks behind the middleware."""
        inner = new_app(make_service())

        async def through(scope: Any, receive: Any, send: Any) -> None:
            self.served_paths.append(scope["path"])
            await inner(scope, receive, send)

        allowed_paths = (*AuthorizationOptions().always_allowed_paths, "/filter\n")
        clients = ClientCertVerifier(lambda: self.serving_certificate.client_cas, allowed)
        authenticator = Authenticator(AuthenticationOptions(), None, NullAuthMetrics())
        return AuthMiddleware(
            through,
            authenticator,
            Authorizer(AuthorizationOptions(always_allowed_paths=allowed_paths), None, NullAuthMetrics()),
            frozenset({"/filter"}),
            clients,
        )

    def filter(self, client: trustme.LeafCert | None) -> int:
        """Return the status of a filter request with the certificate *client*."""
        return send_request(self.port, "POST", "/filter", BODY, tls=client_tls_context(self.server_ca, client))[0]


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def guarded_server(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[GuardedServer]:
    found = GuardedServer(tmp_path)
    with serve_in_thread(found.app(), found.serving_certificate, request.param) as found.port:
        yield found


def issue_client_cert(ca: trustme.CA, name: str = KUBE_SCHEDULER, **more: Any) -> trustme.LeafCert:
    return ca.issue_cert("client.example", common_name=name, **more)


def test_a_valid_certificate_is_accepted(guarded_server: GuardedServer) -> None:
    assert guarded_server.filter(issue_client_cert(guarded_server.client_ca)) == 200
    assert guarded_server.served_paths == ["/filter"]


@pytest.mark.parametrize(
    "client",
    [
        lambda guarded_server: None,
        lambda guarded_server: issue_client_cert(guarded_server.client_ca, "system:node:n1"),
        lambda guarded_server: issue_client_cert(trustme.CA()),
        lambda guarded_server: issue_client_cert(
            guarded_server.client_ca, not_after=datetime.now(UTC) - timedelta(seconds=1)
        ),
        lambda guarded_server: issue_client_cert(guarded_server.client_ca.create_child_ca()),
    ],
    ids=["no certificate", "a name not allowed", "another CA", "expired", "an intermediate CA"],
)
def test_any_other_caller_is_rejected_before_its_request_is_read(
    guarded_server: GuardedServer, client: Callable[[GuardedServer], trustme.LeafCert | None]
) -> None:
    with contextlib.suppress(*TLS_FAULTS):  # TLS itself may refuse
        assert guarded_server.filter(client(guarded_server)) in {401, 403}
    assert guarded_server.served_paths == []


def test_a_flood_of_rejected_callers_is_logged_with_ten_lines_per_second(
    guarded_server: GuardedServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    app = guarded_server.app()
    monkeypatch.setattr(app.authenticator, "now", lambda: 5.0)
    scope = {"type": "http", "path": "/filter", "client": ("192.0.2.1", 4711)}

    async def ignore(*_: object) -> None:
        """Do nothing."""

    async def send_requests() -> None:
        for _ in range(50):
            await app(scope, ignore, ignore)

    asyncio.run(send_requests())
    lines = [record for record in caplog.records if record.message == "Rejected the caller of a verb"]
    assert [record.__dict__["why"] for record in lines] == ["a client certificate is required"] * 10


@pytest.mark.parametrize(("method", "count"), [("POST", 1), ("GET", 0)])
def test_a_verb_at_an_unknown_path_is_logged(
    guarded_server: GuardedServer, caplog: pytest.LogCaptureFixture, method: str, count: int
) -> None:
    """With a wrong urlPrefix, kube-scheduler gets 403 as if it had no permission."""
    scope = {"type": "http", "method": method, "path": "/wrong/filter", "headers": [], "client": ("192.0.2.1", 4711)}

    async def ignore(*_: object) -> None:
        """Do nothing."""

    asyncio.run(guarded_server.app()(scope, ignore, ignore))
    lines = [record.__dict__ for record in caplog.records if record.message == "Rejected the caller of a verb"]
    fields = [(line["path"], line["from"], line["why"]) for line in lines]
    assert fields == [("/wrong/filter", "192.0.2.1:4711", "no verb has this path")] * count


def test_a_rejection_does_not_wait_for_the_body(guarded_server: GuardedServer) -> None:
    """The client has no certificate, and sends no byte of its 200 MB."""
    answer = send_request(
        guarded_server.port,
        "POST",
        "/filter",
        b"",
        tls=client_tls_context(guarded_server.server_ca),
        content_length="200000000",
    )
    assert answer[0] == 401
    assert '"message":"Unauthorized: \\"/filter\\": a client certificate is required"' in answer[1]


def test_a_ca_for_readers_of_metrics_does_not_allow_the_verbs(guarded_server: GuardedServer) -> None:
    cluster = trustme.CA()
    guarded_server.serving_certificate.trust_cas([cluster.cert_pem.bytes().decode()])
    assert guarded_server.filter(issue_client_cert(cluster)) == 403
    assert guarded_server.filter(issue_client_cert(guarded_server.client_ca)) == 200


def test_health_checks_need_no_certificate_and_other_pages_need_authorization(guarded_server: GuardedServer) -> None:
    known = client_tls_context(guarded_server.server_ca, issue_client_cert(guarded_server.client_ca))
    assert send_request(guarded_server.port, "GET", "/livez", tls=client_tls_context(guarded_server.server_ca)) == (
        200,
        "ok",
    )
    assert (
        send_request(guarded_server.port, "GET", "/metrics", tls=client_tls_context(guarded_server.server_ca))[0] == 403
    )
    assert send_request(guarded_server.port, "GET", "/metrics", tls=known)[0] == 403
    assert send_request(guarded_server.port, "POST", "/filter/", BODY, tls=known)[0] == 403


def test_a_rotated_ca_is_trusted_and_the_previous_one_is_not(guarded_server: GuardedServer) -> None:
    old, new = issue_client_cert(guarded_server.client_ca), trustme.CA()
    assert guarded_server.filter(old) == 200
    guarded_server.write_client_cas(guarded_server.client_ca, new)
    assert guarded_server.serving_certificate.refresh()
    assert [guarded_server.filter(old), guarded_server.filter(issue_client_cert(new))] == [200, 200]
    guarded_server.write_client_cas(new)
    assert guarded_server.serving_certificate.refresh()
    assert guarded_server.filter(issue_client_cert(new)) == 200
    with pytest.raises(TLS_FAULTS):
        guarded_server.filter(old)


def test_an_open_connection_is_rejected_when_its_ca_is_removed(guarded_server: GuardedServer) -> None:
    tls = client_tls_context(guarded_server.server_ca, issue_client_cert(guarded_server.client_ca))
    connection = http.client.HTTPSConnection("localhost", guarded_server.port, timeout=20, context=tls)
    connection.request("POST", "/filter", b"{}")
    answer = connection.getresponse()
    assert (answer.status, answer.read()) == (400, b"Pod: is missing; want the pod to schedule\n")
    guarded_server.write_client_cas(trustme.CA())
    assert guarded_server.serving_certificate.refresh()
    connection.request("POST", "/filter", b"{}")
    assert connection.getresponse().status == 403
    connection.close()


def test_a_path_that_only_resembles_a_verb_does_not_reach_the_verb(guarded_server: GuardedServer) -> None:
    tls = client_tls_context(guarded_server.server_ca)
    for path, status in (("/filter%0A", 400), ("/filter%0a?x", 400), ("/filter/", 403), ("/FILTER", 403)):
        assert send_request(guarded_server.port, "POST", path, BODY, tls=tls)[0] == status, path


def test_new_connections_get_a_rotated_server_certificate(guarded_server: GuardedServer) -> None:
    def name() -> str:
        context = client_tls_context(guarded_server.server_ca)
        with (
            socket.create_connection(("127.0.0.1", guarded_server.port)) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as secure,
        ):
            shown = x509.load_der_x509_certificate(secure.getpeercert(binary_form=True) or b"")
        return shown.subject.rfc4514_string()

    assert "CN=first" in name()
    guarded_server.write_server_certificate("second")
    assert guarded_server.serving_certificate.refresh()
    assert "CN=second" in name()


def test_a_half_written_ca_file_changes_nothing(guarded_server: GuardedServer) -> None:
    (guarded_server.folder / "ca.crt").write_text("-----BEGIN CERTIFICATE-----\n")
    with pytest.raises(CertificateError, match="ends in the middle of a certificate"):
        guarded_server.serving_certificate.refresh()
    assert guarded_server.filter(issue_client_cert(guarded_server.client_ca)) == 200


def der(leaf: trustme.LeafCert) -> bytes:
    certificate = x509.load_pem_x509_certificate(leaf.cert_chain_pems[0].bytes())
    return certificate.public_bytes(Encoding.DER)


def test_a_certificate_that_expires_on_an_open_connection_is_rejected() -> None:
    ca = trustme.CA()
    ends = datetime.now(UTC) + timedelta(hours=1)
    known = (x509.load_pem_x509_certificate(ca.cert_pem.bytes()),)
    now = [ends - timedelta(minutes=1)]
    clients = ClientCertVerifier(lambda: known, now=lambda: now[0])
    shown = der(issue_client_cert(ca, not_after=ends))
    assert clients.find_rejection_reason(shown) == ""
    now[0] = ends + timedelta(minutes=1)
    assert clients.find_rejection_reason(shown) == "the client certificate has expired or is not valid yet"


@pytest.mark.parametrize(
    ("allowed", "reason"),
    [
        ([], ""),
        (["ann"], ""),
        (["client.example"], ""),
        (["Ann", "an", ""], 'the client certificate is for "ann", "client.example", which is not allowed'),
    ],
    ids=["any name", "the common name", "a host name", "names that are only alike"],
)
def test_allowed_names_are_compared_exactly(allowed: list[str], reason: str) -> None:
    ca = trustme.CA()
    known = (x509.load_pem_x509_certificate(ca.cert_pem.bytes()),)
    assert (
        ClientCertVerifier(lambda: known, frozenset(allowed)).find_rejection_reason(der(issue_client_cert(ca, "ann")))
        == reason
    )


def test_bytes_that_are_no_certificate_are_rejected() -> None:
    assert ClientCertVerifier(lambda: ()).find_rejection_reason(b"\x30\x00") == "the client certificate cannot be read"
