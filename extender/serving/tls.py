"""Load the server's certificate and the CAs of client certificates, and reload them when their files change.

Without files, the server has a self-signed certificate.
"""

import ipaddress
import os
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from extender.basics.input_limits import MAX_CERTIFICATE_BYTES, InputLimitError, read_limited_file
from extender.basics.private_keys import load_pair
from extender.basics.tls_reads import limit_reads
from extender.serving.serving_options import ServingOptions

PAIR_NAME: Final = "kube-scheduler"
"""Name of the certificate and key files in `--cert-dir`, without their extension.

Source: apiserver/pkg/server/options/serving.go, SecureServingOptions.AddFlags (1.36).
"""

_LIFETIME: Final = timedelta(days=365)
_CLOCK_SKEW: Final = timedelta(hours=1)
_TLS_VERSIONS: Final = {
    "": ssl.TLSVersion.TLSv1_2,
    "VersionTLS10": ssl.TLSVersion.TLSv1_2,
    "VersionTLS11": ssl.TLSVersion.TLSv1_2,
    "VersionTLS12": ssl.TLSVersion.TLSv1_2,
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}


class CertificateError(Exception):
    """A certificate, key or TLS option is invalid; the message is one line."""


@dataclass(slots=True)
class ServingCertificate:
    """The server's certificate and key, and the CAs of client certificates.

    `refresh` reads the files again, and creates a new TLS context for new connections. The old context is not updated,
    because OpenSSL cannot remove a CA from a context. No SNI callback switches to the new context, because Python
    prints a traceback for each client that sends a name which is not ASCII.

    Attributes:
        settings: the TLS versions and cipher suites.
        pem_pair: the certificate and key in PEM; None: they are in `pair_files`.
        pair_files: the files of the certificate and key; None: they are in `pem_pair`.
        client_ca_file: the file with the CAs of client certificates; None: there are no client CAs.
        client_cas: the CAs in `client_ca_file` at its last refresh.
        context: the TLS context of new connections.
    """

    settings: ServingOptions
    pem_pair: tuple[bytes, bytes] | None = field(default=None, repr=False)
    pair_files: tuple[Path, Path] | None = None
    client_ca_file: Path | None = None
    context: ssl.SSLContext = field(init=False)
    _file_contents: tuple[bytes, ...] = field(init=False, default=(), repr=False)
    _extra_cas: tuple[str, ...] = field(init=False, default=())
    _loaded_extra_cas: tuple[str, ...] = field(init=False, default=())
    client_cas: tuple[x509.Certificate, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        self._load(_read_files(self._watched_files))

    def refresh(self) -> bool:
        """Load the files if they have changed; return whether they have. Open connections are not affected.

        Raises:
            CertificateError: the new files are invalid or defective; the old ones stay in use.
        """
        contents = _read_files(self._watched_files)
        if contents == self._file_contents and self._loaded_extra_cas is self._extra_cas:
            return False
        self._check_change(contents)
        self._load(contents)
        return True

    def _check_change(self, contents: tuple[bytes, ...]) -> None:
        """Check new *contents* of the watched files for defects that are allowed at the start, as in kube-scheduler.

        Raises:
            CertificateError: the certificate has expired and the old one has not, or a CA is not complete.
        """
        if self.pair_files and _has_expired(contents[0]) and not _has_expired(self._file_contents[0]):
            raise CertificateError(f"{self.pair_files[0]} has an expired certificate")
        if self.client_ca_file and contents[-1] != self._file_contents[-1] and _ends_in_certificate(contents[-1]):
            raise CertificateError(f"{self.client_ca_file} ends in the middle of a certificate")

    def trust_cas(self, cas: Sequence[str]) -> None:
        """Accept client certificates signed by one of *cas* (PEM), in addition to the CAs in `client_ca_file`.

        Raises:
            CertificateError: one of them is not a certificate.
        """
        self._extra_cas = tuple(cas)
        self._load(self._file_contents)

    @property
    def _watched_files(self) -> tuple[Path, ...]:
        return (*(self.pair_files or ()), *((self.client_ca_file,) if self.client_ca_file else ()))

    def _load(self, contents: tuple[bytes, ...]) -> None:
        """Create the TLS context of new connections from *contents*, the contents of the watched files."""
        context, extra_pems = _make_context(self.settings), self._extra_cas  # another thread may call `trust_cas`
        certificate, key = self.pem_pair or contents[:2]
        _load_pair(context, certificate, key, self.pair_files)
        file_cas = _parse_cas(contents[-1], str(self.client_ca_file)) if self.client_ca_file else ()
        extra_cas = [ca for pem in extra_pems for ca in _parse_cas(pem.encode(), "a client CA")]
        _trust_cas(context, (*file_cas, *extra_cas))
        self.context, self._file_contents, self.client_cas = context, contents, file_cas
        self._loaded_extra_cas = extra_pems


def load_serving_certificate(settings: ServingOptions, client_ca_file: str = "") -> ServingCertificate:
    """Load or create the server's certificate.

    *client_ca_file* has the CAs of client certificates in PEM; empty: there are none.

    Raises:
        CertificateError: a file or option is invalid.
    """
    ca_path = Path(client_ca_file) if client_ca_file else None
    if not settings.cert_file and not settings.cert_dir:
        return ServingCertificate(settings, pem_pair=make_self_signed_pair(), client_ca_file=ca_path)
    if settings.cert_file:
        pair_files = Path(settings.cert_file), Path(settings.key_file)
    else:
        pair_files = _find_or_create_pair(Path(settings.cert_dir))
    return ServingCertificate(settings, pair_files=pair_files, client_ca_file=ca_path)


def _has_expired(pem: bytes) -> bool:
    """Return whether the first certificate has expired; False if it cannot be read."""
    try:
        return x509.load_pem_x509_certificate(pem).not_valid_after_utc < datetime.now(UTC)
    except ValueError:
        return False


def _ends_in_certificate(pem: bytes) -> bool:
    """Return whether the last certificate has no end; the parser ignores it."""
    return pem.count(b"-----BEGIN CERTIFICATE-----") > pem.count(b"-----END CERTIFICATE-----")


def _parse_cas(pem: bytes, source: str) -> tuple[x509.Certificate, ...]:
    try:
        return tuple(x509.load_pem_x509_certificates(pem))
    except ValueError as error:
        raise CertificateError(f"{source} is no certificate in PEM: {error}") from error


def _trust_cas(context: ssl.SSLContext, cas: Sequence[x509.Certificate]) -> None:
    for ca in cas:
        context.load_verify_locations(cadata=ca.public_bytes(serialization.Encoding.DER))
    if cas:
        # A client without a certificate is anonymous; authorization decides about its requests.
        context.verify_mode = ssl.CERT_OPTIONAL


def _make_context(settings: ServingOptions) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    limit_reads(context)
    if settings.min_tls_version not in _TLS_VERSIONS:
        raise CertificateError(
            f'--tls-min-version: unknown TLS version "{settings.min_tls_version}"; want VersionTLS12 or VersionTLS13'
        )
    context.minimum_version = _TLS_VERSIONS[settings.min_tls_version]
    context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", ssl.VerifyFlags(0))
    # As in Go, trust every CA in the file, also an intermediate one that is not self-signed.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    # A resumed session would skip the verification of the client, and a renegotiation would repeat it. Without
    # tickets, only a session of TLS 1.2 can be resumed, and only in the same context: with the same CAs.
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION
    context.num_tickets = 0
    ciphers = [
        _to_openssl_name(name) for name in settings.cipher_suites if not name.startswith(("TLS_AES", "TLS_CHACHA20"))
    ]
    if ciphers:
        try:
            context.set_ciphers(":".join(ciphers))
        except ssl.SSLError as error:
            suites = ", ".join(settings.cipher_suites)
            raise CertificateError(f"--tls-cipher-suites: {suites}: not supported") from error
    return context


def _to_openssl_name(name: str) -> str:
    """Return OpenSSL's name: ECDHE-RSA-AES128-GCM-SHA256 for TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256."""
    openssl_name = name.removeprefix("TLS_").replace("_WITH_", "_").replace("AES_", "AES").removesuffix("_CBC_SHA")
    if name.endswith("_CBC_SHA"):
        openssl_name += "_SHA"
    if "CHACHA20_POLY1305" in openssl_name:
        openssl_name = openssl_name.removesuffix("_SHA256")
    return openssl_name.removeprefix("RSA_").replace("_CBC_", "_").replace("_", "-")


def _read_files(files: tuple[Path, ...]) -> tuple[bytes, ...]:
    contents = []
    for file in files:
        try:
            contents.append(read_limited_file(file, MAX_CERTIFICATE_BYTES))
        except InputLimitError as error:
            raise CertificateError(f"open {file}: {error}") from error
        except OSError as error:
            raise CertificateError(f"open {file}: {(error.strerror or str(error)).lower()}") from error
    return tuple(contents)


def _load_pair(context: ssl.SSLContext, certificate: bytes, key: bytes, files: tuple[Path, Path] | None) -> None:
    try:
        load_pair(context, certificate, key)
    except OSError as error:  # ssl.SSLError, too
        reason = getattr(error, "reason", None) or error.strerror or str(error)
        names = " and ".join(map(str, files or ("the self-signed one", "its key")))
        raise CertificateError(f"{names} are no pair of certificate and key: {reason}") from error


def make_self_signed_pair(now: datetime | None = None) -> tuple[bytes, bytes]:
    """Create a key and a certificate for localhost and 127.0.0.1, both in PEM. The certificate is valid for a year.

    Source: apiserver/pkg/server/options/serving.go, SecureServingOptions.AddFlags (1.36).
    """
    now = now or datetime.now(UTC)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"localhost@{int(now.timestamp())}")])
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + _LIFETIME)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    key_pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return certificate.public_bytes(serialization.Encoding.PEM), key_pem


def _find_or_create_pair(folder: Path) -> tuple[Path, Path]:
    """Return the certificate and key files in *folder*; create them if one is missing."""
    files = (folder / f"{PAIR_NAME}.crt", folder / f"{PAIR_NAME}.key")
    if not all(file.exists() for file in files):
        certificate, key = make_self_signed_pair()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _write_private_file(files[0], certificate)
            _write_private_file(files[1], key)
        except OSError as error:
            raise CertificateError(f"--cert-dir: {folder}: {error.strerror or error}") from error
    return files


def _write_private_file(file: Path, data: bytes) -> None:
    file.unlink(missing_ok=True)  # an old file may have other permissions, or be a link to another file
    try:
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
            stream.write(data)
    except OSError:
        file.unlink(missing_ok=True)  # the next start must not find an empty file on a disk that was full
        raise
