"""Encrypted private keys are an error; OpenSSL would ask for the passphrase. No key needs a writable folder."""

import os
import ssl
import tempfile
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives import serialization

from extender.basics.private_keys import load_pair, open_private_file
from extender.client.credentials import Credentials
from extender.client.errors import CredentialsError
from extender.client.extender_transport import ExtenderTls
from extender.client.kubeconfig import CredentialSource
from extender.config.model import Extender, TLSConfig
from extender.serving.serving_options import ServingOptions
from extender.serving.tls import CertificateError, load_serving_certificate
from tests.unit.client.kubeconfig_files import write_kubeconfig
from tests.unit.client.virtual_time import current_loop, run

MESSAGE = "the private key is encrypted; want one without a passphrase"


@pytest.fixture
def pair(tmp_path: Path) -> tuple[str, str]:
    """Return the files of a certificate and of its encrypted key."""
    certificate = trustme.CA().issue_cert("localhost")
    key = serialization.load_pem_private_key(certificate.private_key_pem.bytes(), None)
    encrypted_key = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"passphrase"),
    )
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "tls.crt")
    (tmp_path / "tls.key").write_bytes(encrypted_key)
    return str(tmp_path / "tls.crt"), str(tmp_path / "tls.key")


def test_an_encrypted_key_of_the_server_is_an_error(pair: tuple[str, str]) -> None:
    with pytest.raises(CertificateError) as caught:
        load_serving_certificate(ServingOptions(cert_file=pair[0], key_file=pair[1]))
    assert str(caught.value) == f"{pair[0]} and {pair[1]} are no pair of certificate and key: {MESSAGE}"


def test_an_encrypted_key_of_a_kubeconfig_is_an_error(tmp_path: Path, pair: tuple[str, str]) -> None:
    user = {"client-certificate": pair[0], "client-key": pair[1]}
    source = CredentialSource(write_kubeconfig(tmp_path / "config", cluster={"server": "https://x"}, user=user))

    async def main() -> None:
        await Credentials(source, current_loop()).get_current_config()

    with pytest.raises(CredentialsError) as caught:
        run(main())
    assert caught.value.message == f"certificates for https://x: {MESSAGE}"


def test_an_encrypted_key_for_an_extender_is_an_error(pair: tuple[str, str]) -> None:
    config = TLSConfig(cert_file=pair[0], key_file=pair[1])
    with pytest.raises(OSError, match=MESSAGE):
        ExtenderTls(Extender(url_prefix="https://x", enable_https=True, tls_config=config))


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="the system has no files in memory")
def test_a_pair_in_memory_needs_no_writable_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """The root file system of a container may be read-only."""
    monkeypatch.setattr(tempfile, "tempdir", "/nonexistent")
    certificate = trustme.CA().issue_cert("localhost")
    key = certificate.private_key_pem.bytes()
    load_pair(ssl.create_default_context(), certificate.cert_chain_pems[0].bytes(), key)
    with pytest.raises(ssl.SSLError):
        load_pair(ssl.create_default_context(), key, key)


def test_only_the_user_can_read_a_private_file_and_it_is_closed_after_the_block(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def read_private_file() -> tuple[bytes, int]:
        with open_private_file(b"key") as path:
            return Path(path).read_bytes(), Path(path).stat().st_mode & 0o777

    assert read_private_file() == (b"key", 0o600)
    monkeypatch.delattr(os, "memfd_create", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert read_private_file() == (b"key", 0o600)
    assert list(tmp_path.iterdir()) == []
