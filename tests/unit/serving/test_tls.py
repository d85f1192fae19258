"""TLS of the server: self-signed and configured pairs, rotation, client certificates, invalid options."""

import asyncio
import contextlib
import errno
import os
import socket
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography import x509

from extender.serving import http_protocol, tls
from extender.serving.http_protocol import CERTIFICATE_EXTENSION
from extender.serving.http_server import listen, serve_http
from extender.serving.serving_options import ServingOptions
from extender.serving.tls import CertificateError, load_serving_certificate, make_self_signed_pair


def pair(authority: trustme.CA, folder: Path, name: str) -> ServingOptions:
    """Write a certificate for localhost with that common name, and its key."""
    issued = authority.issue_cert("localhost", "127.0.0.1", common_name=name)
    certificate, key = folder / "tls.crt", folder / "tls.key"
    issued.cert_chain_pems[0].write_to_path(str(certificate))
    issued.private_key_pem.write_to_path(str(key))
    return ServingOptions(cert_file=str(certificate), key_file=str(key))


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Return the common name in the client certificate."""
    der = scope.get("extensions", {}).get(CERTIFICATE_EXTENSION)
    subject = x509.load_der_x509_certificate(der).subject.rfc4514_string() if der else "nobody"
    body = subject.encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def ask(port: int, context: ssl.SSLContext) -> tuple[str, str]:
    """Return the name in the server's certificate, and the response."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="localhost")
    certificate = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    answer = (await reader.read()).decode()
    writer.close()
    return x509.load_der_x509_certificate(certificate).subject.rfc4514_string(), answer.partition("\r\n\r\n")[2]


def client(authority: trustme.CA | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if authority is None:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    else:
        authority.configure_trust(context)
    return context


def test_a_self_signed_pair_in_memory_is_for_localhost() -> None:
    async def main() -> str:
        certificate = load_serving_certificate(ServingOptions())
        with listen("127.0.0.1", 0) as listener:
            async with serve_http(echo, listener, certificate):
                return (await ask(listener.getsockname()[1], client()))[0]

    assert asyncio.run(main()).startswith("CN=localhost@")
    certificate = x509.load_pem_x509_certificate(make_self_signed_pair()[0])
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]


def test_new_connections_get_a_rotated_certificate(tmp_path: Path) -> None:
    authority = trustme.CA()

    async def main() -> list[str]:
        certificate = load_serving_certificate(pair(authority, tmp_path, "old"))
        assert certificate.refresh() is False
        with listen("127.0.0.1", 0) as listener:
            async with serve_http(echo, listener, certificate):
                port = listener.getsockname()[1]
                names = [(await ask(port, client(authority)))[0]]
                pair(authority, tmp_path, "new")
                assert certificate.refresh() is True
                names.append((await ask(port, client(authority)))[0])
        return names

    names = asyncio.run(main())
    assert ["CN=old" in names[0], "CN=new" in names[1]] == [True, True]


def test_a_certificate_of_more_than_16_mib_leaves_the_old_one_in_use(tmp_path: Path) -> None:
    authority = trustme.CA()
    settings = pair(authority, tmp_path, "old")
    certificate = load_serving_certificate(settings)
    with Path(settings.cert_file).open("r+b") as stream:
        stream.truncate(16 * 1024**2 + 1)
    with pytest.raises(CertificateError) as caught:
        certificate.refresh()
    assert str(caught.value) == f"open {settings.cert_file}: has more than 16 MiB"
    pair(authority, tmp_path, "new")
    assert certificate.refresh() is True


def test_half_written_files_leave_the_old_certificate_in_use(tmp_path: Path) -> None:
    authority = trustme.CA()
    settings = pair(authority, tmp_path, "old")
    certificate = load_serving_certificate(settings)
    Path(settings.cert_file).write_text("not yet")
    with pytest.raises(CertificateError, match="are no pair of certificate and key"):
        certificate.refresh()
    pair(authority, tmp_path, "new")
    assert certificate.refresh() is True


def test_an_expired_certificate_does_not_replace_a_valid_one(tmp_path: Path) -> None:
    """A start with an expired certificate is allowed, as in kube-scheduler."""
    old_pem, old_key = make_self_signed_pair(datetime.now(UTC) - timedelta(days=400))
    settings = ServingOptions(cert_file=str(tmp_path / "tls.crt"), key_file=str(tmp_path / "tls.key"))
    certificate_file, key_file = Path(settings.cert_file), Path(settings.key_file)
    certificate_file.write_bytes(old_pem)
    key_file.write_bytes(old_key)
    certificate = load_serving_certificate(settings)
    pair(trustme.CA(), tmp_path, "new")
    assert certificate.refresh() is True
    context = certificate.context
    certificate_file.write_bytes(old_pem)
    key_file.write_bytes(old_key)
    with pytest.raises(CertificateError, match=r"has an expired certificate$"):
        certificate.refresh()
    assert certificate.context is context


def test_half_written_client_cas_leave_the_old_ones_in_use(tmp_path: Path) -> None:
    ca_file, pems = tmp_path / "ca.crt", [trustme.CA().cert_pem.bytes() for _ in range(2)]
    ca_file.write_bytes(b"".join(pems))
    settings = pair(trustme.CA(), tmp_path, "old")
    certificate = load_serving_certificate(settings, str(ca_file))
    ca_file.write_bytes(b"".join(pems)[:-30])
    with pytest.raises(CertificateError, match=rf"^{ca_file} ends in the middle of a certificate$"):
        certificate.refresh()
    assert len(certificate.client_cas) == 2
    certificate = load_serving_certificate(settings, str(ca_file))
    assert len(certificate.client_cas) == 1  # at the start, as in kube-scheduler
    pair(trustme.CA(), tmp_path, "new")
    assert certificate.refresh() is True


def test_cas_that_are_trusted_during_a_refresh_of_another_thread_are_trusted_after_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = trustme.CA()
    certificate = load_serving_certificate(pair(authority, tmp_path, "old"))
    load_pair, new_cas = tls._load_pair, [[authority.cert_pem.bytes().decode()]]

    def trust_cas_meanwhile(*arguments: Any) -> None:
        load_pair(*arguments)
        if new_cas:
            certificate.trust_cas(new_cas.pop())

    monkeypatch.setattr(tls, "_load_pair", trust_cas_meanwhile)
    pair(authority, tmp_path, "new")
    refreshed = [certificate.refresh() for _ in range(3)]
    assert refreshed == [True, True, False]
    assert len(certificate.context.get_ca_certs()) == 1


def test_a_client_can_send_any_server_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python cannot decode these names for an SNI callback, and would print a traceback for each connection."""
    errors: list[Any] = []
    monkeypatch.setattr("sys.unraisablehook", errors.append)

    async def main() -> bytes:
        certificate = load_serving_certificate(ServingOptions())
        with listen("127.0.0.1", 0) as listener:
            async with serve_http(echo, listener, certificate):
                reader, writer = await asyncio.open_connection("127.0.0.1", listener.getsockname()[1])
                writer.write(make_client_hello("x" * 9).replace(b"x" * 9, b"xn--\xff\xfe\r\n\t"))
                record = await reader.read(6)
                writer.close()
        return record

    assert asyncio.run(main())[::5] == b"\x16\x02"  # a record with a ServerHello
    assert errors == []


def make_client_hello(server_name: str) -> bytes:
    outgoing = ssl.MemoryBIO()
    connection = client().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=server_name)
    with contextlib.suppress(ssl.SSLWantReadError):
        connection.do_handshake()
    return outgoing.read()


def test_a_session_is_not_resumed_after_a_refresh(tmp_path: Path) -> None:
    """Otherwise a client whose CA was removed would still be accepted without a verification."""
    authority = trustme.CA()
    context = client(authority)
    context.maximum_version = ssl.TLSVersion.TLSv1_2

    def connect(port: int, session: ssl.SSLSession | None) -> tuple[ssl.SSLSession | None, bool | None]:
        with (
            socket.create_connection(("127.0.0.1", port)) as stream,
            context.wrap_socket(stream, server_hostname="localhost", session=session) as connection,
        ):
            return connection.session, connection.session_reused

    async def main() -> tuple[bool | None, ...]:
        certificate = load_serving_certificate(pair(authority, tmp_path, "old"))
        with listen("127.0.0.1", 0) as listener:
            async with serve_http(echo, listener, certificate):
                port = listener.getsockname()[1]
                session, _ = await asyncio.to_thread(connect, port, None)
                pair(authority, tmp_path, "new")
                certificate.refresh()
                _, is_resumed = await asyncio.to_thread(connect, port, session)
        return session is not None, is_resumed

    assert asyncio.run(main()) == (True, False)


def test_the_client_certificate_is_in_the_scope_if_its_ca_is_trusted() -> None:
    authority = trustme.CA()
    known, stranger = client(), client()
    authority.issue_cert("ann.example", common_name="ann").configure_cert(known)
    trustme.CA().issue_cert("eve.example", common_name="eve").configure_cert(stranger)

    async def main() -> list[str]:
        certificate = load_serving_certificate(ServingOptions())
        certificate.trust_cas([authority.cert_pem.bytes().decode()])
        with listen("127.0.0.1", 0) as listener:
            async with serve_http(echo, listener, certificate):
                port = listener.getsockname()[1]
                names = [(await ask(port, client()))[1], (await ask(port, known))[1]]
                with contextlib.suppress(ssl.SSLError, ConnectionError):  # or the connection just ends
                    names.append((await ask(port, stranger))[1])
                return names

    nobody, ann, *refused = asyncio.run(main())
    assert nobody == "nobody"
    assert refused in ([], [""])
    assert "CN=ann" in ann


def test_a_request_that_never_ends_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "TRANSFER_TIMEOUT", 0.05)

    async def main() -> list[bytes]:
        with listen("127.0.0.1", 0) as listener:
            async with serve_http(echo, listener, None):
                names = []
                for sent in (b"", b"GET / HTTP/1.1\r\nHost:", b"PUT / HTTP/1.1\r\nContent-Length: 9\r\n\r\nx"):
                    reader, writer = await asyncio.open_connection("127.0.0.1", listener.getsockname()[1])
                    writer.write(sent)
                    answer = await asyncio.wait_for(reader.read(), 5)
                    names.append(answer.partition(b"\r\n")[0])
                    writer.close()
        return names

    silent, half_headers, _half_body = asyncio.run(main())
    assert (silent, half_headers) == (b"", b"")


def test_a_pair_in_a_folder_is_created_once_and_reused(tmp_path: Path) -> None:
    folder = tmp_path / "pki"
    load_serving_certificate(ServingOptions(cert_dir=str(folder)))
    first = (folder / "kube-scheduler.crt").read_bytes()
    assert (folder / "kube-scheduler.key").stat().st_mode & 0o777 == 0o600
    load_serving_certificate(ServingOptions(cert_dir=str(folder)))
    assert (folder / "kube-scheduler.crt").read_bytes() == first


def test_a_new_key_does_not_get_the_permissions_or_the_target_of_an_old_one(tmp_path: Path) -> None:
    other_file, key = tmp_path / "other", tmp_path / "kube-scheduler.key"
    other_file.write_text("other")
    other_file.chmod(0o644)
    key.symlink_to(other_file)
    load_serving_certificate(ServingOptions(cert_dir=str(tmp_path)))
    assert other_file.read_text() == "other"
    assert key.stat(follow_symlinks=False).st_mode & 0o777 == 0o600


def test_a_start_with_a_full_disk_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(descriptor: int, _mode: str) -> None:
        os.close(descriptor)
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("extender.serving.tls.os.fdopen", fail)
        with pytest.raises(CertificateError, match=f"^--cert-dir: {tmp_path}: No space left on device$"):
            load_serving_certificate(ServingOptions(cert_dir=str(tmp_path)))
    assert list(tmp_path.iterdir()) == []
    load_serving_certificate(ServingOptions(cert_dir=str(tmp_path)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (ServingOptions(cert_file="/no/x", key_file="/no/y"), "open /no/x: no such file or directory"),
        (
            ServingOptions(cert_file="/dev/zero", key_file="/no/y"),
            "open /dev/zero: is a device; name a file with text",
        ),
        (
            ServingOptions(min_tls_version="1.2"),
            '--tls-min-version: unknown TLS version "1.2"; want VersionTLS12 or VersionTLS13',
        ),
        (ServingOptions(cipher_suites=("TLS_NOPE",)), "--tls-cipher-suites: TLS_NOPE: not supported"),
    ],
)
def test_an_invalid_option_is_reported_in_one_line(settings: ServingOptions, message: str) -> None:
    with pytest.raises(CertificateError) as caught:
        load_serving_certificate(settings)
    assert str(caught.value) == message


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
def test_cipher_suites_have_go_s_names(suite: str, openssl: str) -> None:
    context = load_serving_certificate(ServingOptions(cipher_suites=(suite,))).context
    assert openssl in {each["name"] for each in context.get_ciphers()}
