"""TLS of the service: a pair of its own, given files, rotation, callers' certificates, settings that cannot be used."""

import asyncio
import contextlib
import ssl
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography import x509

from extender.web import peer
from extender.web.certificates import CertificateError, self_signed, serving_certificate
from extender.web.peer import EXTENSION
from extender.web.serving import listening, serving
from extender.web.settings import Serving


def pair(authority: trustme.CA, folder: Path, name: str) -> Serving:
    """A certificate for localhost with that common name, and its key, in files."""
    issued = authority.issue_cert("localhost", "127.0.0.1", common_name=name)
    certificate, key = folder / "tls.crt", folder / "tls.key"
    issued.cert_chain_pems[0].write_to_path(str(certificate))
    issued.private_key_pem.write_to_path(str(key))
    return Serving(certificate=str(certificate), key=str(key))


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Answers with the common name of the caller's certificate."""
    der = scope.get("extensions", {}).get(EXTENSION)
    subject = x509.load_der_x509_certificate(der).subject.rfc4514_string() if der else "nobody"
    body = subject.encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def ask(port: int, context: ssl.SSLContext) -> tuple[str, str]:
    """The name on the server's certificate, and its answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="localhost")
    shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    answer = (await reader.read()).decode()
    writer.close()
    return x509.load_der_x509_certificate(shown).subject.rfc4514_string(), answer.partition("\r\n\r\n")[2]


def client(authority: trustme.CA | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if authority is None:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    else:
        authority.configure_trust(context)
    return context


def test_a_pair_made_in_memory_serves_and_is_for_localhost() -> None:
    async def go() -> str:
        shown = serving_certificate(Serving())
        with listening("127.0.0.1", 0) as listener:
            async with serving(echo, listener, shown.context):
                return (await ask(listener.getsockname()[1], client()))[0]

    assert asyncio.run(go()).startswith("CN=localhost@")
    certificate = x509.load_pem_x509_certificate(self_signed()[0])
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]


def test_a_rotated_certificate_is_shown_to_new_connections(tmp_path: Path) -> None:
    authority = trustme.CA()

    async def go() -> list[str]:
        shown = serving_certificate(pair(authority, tmp_path, "old"))
        assert shown.refresh() is False
        with listening("127.0.0.1", 0) as listener:
            async with serving(echo, listener, shown.context):
                port = listener.getsockname()[1]
                found = [(await ask(port, client(authority)))[0]]
                pair(authority, tmp_path, "new")
                assert shown.refresh() is True
                found.append((await ask(port, client(authority)))[0])
        return found

    names = asyncio.run(go())
    assert ["CN=old" in names[0], "CN=new" in names[1]] == [True, True]


def test_files_that_are_half_written_leave_the_old_certificate_in_place(tmp_path: Path) -> None:
    authority = trustme.CA()
    settings = pair(authority, tmp_path, "old")
    shown = serving_certificate(settings)
    Path(settings.certificate).write_text("not yet")
    with pytest.raises(CertificateError, match="are no pair of certificate and key"):
        shown.refresh()
    pair(authority, tmp_path, "new")
    assert shown.refresh() is True


def test_a_caller_s_certificate_reaches_the_application_if_its_authority_is_trusted() -> None:
    authority = trustme.CA()
    known, stranger = client(), client()
    authority.issue_cert("ann.example", common_name="ann").configure_cert(known)
    trustme.CA().issue_cert("eve.example", common_name="eve").configure_cert(stranger)

    async def go() -> list[str]:
        shown = serving_certificate(Serving())
        shown.trust([authority.cert_pem.bytes().decode()])
        with listening("127.0.0.1", 0) as listener:
            async with serving(echo, listener, shown.context):
                port = listener.getsockname()[1]
                found = [(await ask(port, client()))[1], (await ask(port, known))[1]]
                with contextlib.suppress(ssl.SSLError, ConnectionError):  # or the connection just ends
                    found.append((await ask(port, stranger))[1])
                return found

    nobody, ann, *refused = asyncio.run(go())
    assert nobody == "nobody"
    assert refused in ([], [""])
    assert "CN=ann" in ann


def test_who_never_ends_a_request_is_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer, "PATIENCE", 0.05)

    async def go() -> list[bytes]:
        with listening("127.0.0.1", 0) as listener:
            async with serving(echo, listener, None):
                found = []
                for sent in (b"", b"GET / HTTP/1.1\r\nHost:", b"PUT / HTTP/1.1\r\nContent-Length: 9\r\n\r\nx"):
                    reader, writer = await asyncio.open_connection("127.0.0.1", listener.getsockname()[1])
                    writer.write(sent)
                    answer = await asyncio.wait_for(reader.read(), 5)
                    found.append(answer.partition(b"\r\n")[0])
                    writer.close()
        return found

    silent, half_headers, _half_body = asyncio.run(go())
    assert (silent, half_headers) == (b"", b"")


def test_a_kept_pair_is_made_once_and_used_again(tmp_path: Path) -> None:
    folder = tmp_path / "pki"
    serving_certificate(Serving(folder=str(folder)))
    first = (folder / "kube-scheduler.crt").read_bytes()
    assert (folder / "kube-scheduler.key").stat().st_mode & 0o777 == 0o600
    serving_certificate(Serving(folder=str(folder)))
    assert (folder / "kube-scheduler.crt").read_bytes() == first


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (Serving(certificate="/no/x", key="/no/y"), "open /no/x: no such file or directory"),
        (
            Serving(least_version="1.2"),
            '--tls-min-version: unknown TLS version "1.2"; want VersionTLS12 or VersionTLS13',
        ),
        (Serving(ciphers=("TLS_NOPE",)), "--tls-cipher-suites: TLS_NOPE: not supported"),
    ],
)
def test_a_setting_that_cannot_be_used_is_told_in_one_line(settings: Serving, told: str) -> None:
    with pytest.raises(CertificateError) as caught:
        serving_certificate(settings)
    assert str(caught.value) == told


@pytest.mark.parametrize(
    ("suite", "openssl"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"),
        ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"),
        ("TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA", "ECDHE-RSA-AES256-SHA"),
        ("TLS_RSA_WITH_AES_128_GCM_SHA256", "AES128-GCM-SHA256"),
    ],
)
def test_cipher_suites_go_by_go_s_names(suite: str, openssl: str) -> None:
    context = serving_certificate(Serving(ciphers=(suite,))).context
    assert openssl in {each["name"] for each in context.get_ciphers()}
