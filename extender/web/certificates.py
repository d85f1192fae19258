"""TLS of the service: the certificate it shows, given or signed by itself, and who vouches for callers; both rotate."""

import ipaddress
import os
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from extender.web.settings import Serving

PAIR: Final = "kube-scheduler"
"""Name of the pair of files in `--cert-dir`. Source: G046."""

_LIFETIME: Final = timedelta(days=365)
_SKEW: Final = timedelta(hours=1)
_VERSIONS: Final = {
    "": ssl.TLSVersion.TLSv1_2,
    "VersionTLS10": ssl.TLSVersion.TLSv1_2,
    "VersionTLS11": ssl.TLSVersion.TLSv1_2,
    "VersionTLS12": ssl.TLSVersion.TLSv1_2,
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}


class CertificateError(Exception):
    """A certificate, key or setting of TLS that cannot be used; one line."""


@dataclass(slots=True)
class ServingCertificate:
    """TLS for the service: what it shows, and who may vouch for callers.

    Files are read again by `refresh`. Then new connections get a context made afresh, since one that trusted an
    authority cannot be made to forget it.

    Attributes:
        settings: TLS versions and cipher suites.
        pair: certificate and key in PEM, made in memory; None: they are in *files*.
        files: of certificate and key.
        clients: file of the authorities that vouch for callers; None: there is none.
        context: hand it to the server; every connection that comes in through it gets what is newest.
    """

    settings: Serving
    pair: tuple[bytes, bytes] | None = field(default=None, repr=False)
    files: tuple[Path, Path] | None = None
    clients: Path | None = None
    context: ssl.SSLContext = field(init=False)
    _newest: ssl.SSLContext = field(init=False)
    _seen: tuple[bytes, ...] = field(init=False, default=(), repr=False)
    _further: tuple[str, ...] = field(init=False, default=())
    _authorities: tuple[x509.Certificate, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        self.context = _context(self.settings)
        self.context.sni_callback = self._handed_over
        self._take(_read(self._watched))

    @property
    def authorities(self) -> tuple[x509.Certificate, ...]:
        """Those of *clients*, as they are in the file now."""
        return self._authorities

    def refresh(self) -> bool:
        """Take over what the files hold now; whether that was something new. Established connections go on.

        Raises:
            CertificateError: they cannot be used (yet); what was shown and trusted before still is.
        """
        found = _read(self._watched)
        if found == self._seen:
            return False
        self._take(found)
        return True

    def trust(self, authorities: Sequence[str]) -> None:
        """Let callers also show a certificate signed by one of *authorities* (PEM).

        Raises:
            CertificateError: one of them is no certificate.
        """
        self._further = tuple(authorities)
        self._take(self._seen)

    @property
    def _watched(self) -> tuple[Path, ...]:
        return (*(self.files or ()), *((self.clients,) if self.clients else ()))

    def _take(self, found: tuple[bytes, ...]) -> None:
        """Have new connections use *found*, the contents of the watched files."""
        context = _context(self.settings)
        certificate, key = self.pair or found[:2]
        with _on_disk(certificate, key) as files:
            _load(context, files, self.files)
        own = _authorities(found[-1], str(self.clients)) if self.clients else ()
        further = [each for pem in self._further for each in _authorities(pem.encode(), "a client authority")]
        _trust(context, (*own, *further))
        # Whether callers are asked for a certificate is settled before a connection is handed over.
        self.context.verify_mode = context.verify_mode
        self._newest, self._seen, self._authorities = context, found, own

    def _handed_over(self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        connection.context = self._newest


def serving_certificate(settings: Serving, clients: str = "") -> ServingCertificate:
    """TLS as *settings* ask; *clients* is a file in PEM with the authorities that vouch for callers, or empty.

    Raises:
        CertificateError: a file or setting cannot be used.
    """
    vouching = Path(clients) if clients else None
    if settings.certificate:
        return ServingCertificate(settings, files=(Path(settings.certificate), Path(settings.key)), clients=vouching)
    if settings.folder:
        return ServingCertificate(settings, files=_kept_pair(Path(settings.folder)), clients=vouching)
    return ServingCertificate(settings, pair=self_signed(), clients=vouching)


def _authorities(pem: bytes, where: str) -> tuple[x509.Certificate, ...]:
    try:
        return tuple(x509.load_pem_x509_certificates(pem))
    except ValueError as fault:
        raise CertificateError(f"{where} is no certificate in PEM: {fault}") from fault


def _trust(context: ssl.SSLContext, authorities: Sequence[x509.Certificate]) -> None:
    for authority in authorities:
        context.load_verify_locations(cadata=authority.public_bytes(serialization.Encoding.DER))
    if authorities:
        # Who shows none is anonymous; what that may do is a matter of rights.
        context.verify_mode = ssl.CERT_OPTIONAL


def _context(settings: Serving) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if settings.least_version not in _VERSIONS:
        raise CertificateError(
            f'--tls-min-version: unknown TLS version "{settings.least_version}"; want VersionTLS12 or VersionTLS13'
        )
    context.minimum_version = _VERSIONS[settings.least_version]
    context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", ssl.VerifyFlags(0))
    # Whatever is in the file of authorities is trusted, be it signed by itself or by another; so does Go.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    # A caller is looked at afresh on each connection, and only once on each.
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION
    context.num_tickets = 0
    ciphers = [_openssl_name(name) for name in settings.ciphers if not name.startswith(("TLS_AES", "TLS_CHACHA20"))]
    if ciphers:
        try:
            context.set_ciphers(":".join(ciphers))
        except ssl.SSLError as fault:
            suites = ", ".join(settings.ciphers)
            raise CertificateError(f"--tls-cipher-suites: {suites}: not supported") from fault
    return context


def _openssl_name(name: str) -> str:
    """OpenSSL's name of a cipher suite: ECDHE-RSA-AES128-GCM-SHA256 for TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256."""
    short = name.removeprefix("TLS_").replace("_WITH_", "_").replace("AES_", "AES").removesuffix("_CBC_SHA")
    if name.endswith("_CBC_SHA"):
        short += "_SHA"
    if "CHACHA20_POLY1305" in short:
        short = short.removesuffix("_SHA256")
    return short.removeprefix("RSA_").replace("_CBC_", "_").replace("_", "-")


def _read(files: tuple[Path, ...]) -> tuple[bytes, ...]:
    found = []
    for file in files:
        try:
            found.append(file.read_bytes())
        except OSError as fault:
            raise CertificateError(f"open {file}: {(fault.strerror or str(fault)).lower()}") from fault
    return tuple(found)


def _load(context: ssl.SSLContext, files: tuple[Path, Path], named: tuple[Path, Path] | None) -> None:
    try:
        context.load_cert_chain(*files)
    except (OSError, ssl.SSLError) as fault:
        why = getattr(fault, "reason", None) or fault.strerror or str(fault)
        told = named or files
        raise CertificateError(f"{told[0]} and {told[1]} are no pair of certificate and key: {why}") from fault


def self_signed(moment: datetime | None = None) -> tuple[bytes, bytes]:
    """A certificate for localhost and 127.0.0.1, valid for a year, and its key; both in PEM. Source: G046."""
    now = moment or datetime.now(UTC)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"localhost@{int(now.timestamp())}")])
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + _LIFETIME)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return certificate.public_bytes(serialization.Encoding.PEM), private


def _kept_pair(folder: Path) -> tuple[Path, Path]:
    """The pair in *folder*, made there if it is missing."""
    files = (folder / f"{PAIR}.crt", folder / f"{PAIR}.key")
    if not all(file.exists() for file in files):
        certificate, key = self_signed()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _write(files[0], certificate)
            _write(files[1], key)
        except OSError as fault:
            raise CertificateError(f"--cert-dir: {folder}: {fault.strerror or fault}") from fault
    return files


def _write(file: Path, data: bytes) -> None:
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
        out.write(data)


@contextmanager
def _on_disk(certificate: bytes, key: bytes) -> Iterator[tuple[Path, Path]]:
    """The pair as files for the moment; the ssl module reads nothing else. In memory where the system can."""
    if hasattr(os, "memfd_create"):
        numbers = [os.memfd_create(f"{PAIR}.{kind}") for kind in ("crt", "key")]
        try:
            for number, data in zip(numbers, (certificate, key), strict=True):
                os.write(number, data)
            yield Path(f"/proc/self/fd/{numbers[0]}"), Path(f"/proc/self/fd/{numbers[1]}")
        finally:
            for number in numbers:
                os.close(number)
        return
    with TemporaryDirectory() as folder:
        files = (Path(folder) / f"{PAIR}.crt", Path(folder) / f"{PAIR}.key")
        for file, data in zip(files, (certificate, key), strict=True):
            _write(file, data)
        yield files
