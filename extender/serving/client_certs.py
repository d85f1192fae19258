"""Check the client certificates of requests to the extender verbs.

A client certificate is the only credential that kube-scheduler can send to an extender. TLS has verified that one of
the trusted CAs signed the certificate. The verifier checks that this CA is trusted for the verbs, and that the
certificate has an allowed name. It also checks that the certificate has not expired since the connection was opened.

Source: kube-scheduler/config/v1/types.go, ExtenderTLSConfig; pkg/scheduler/extender.go, HTTPExtender.send (1.36).
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from cryptography import x509

from extender.serving.authentication import get_certificate_names, is_signed_by, is_valid_at

_MAX_CACHED: Final = 256


@dataclass(frozen=True, slots=True)
class _CheckedCertificate:
    """A certificate that was parsed and verified once."""

    certificate: x509.Certificate
    names: tuple[str, ...]
    cas: Sequence[x509.Certificate]


@dataclass(slots=True)
class ClientCertVerifier:
    """Verifies the client certificates of requests to the verbs.

    Attributes:
        get_cas: returns the CAs that are currently trusted for the verbs.
        allowed_names: a certificate must have one of these common names or DNS names; empty: any name is allowed.
    """

    get_cas: Callable[[], Sequence[x509.Certificate]]
    allowed_names: frozenset[str] = frozenset()
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    _checked_certificates: OrderedDict[bytes, _CheckedCertificate] = field(init=False, default_factory=OrderedDict)

    def find_rejection_reason(self, certificate: bytes | None) -> str:
        """Return the reason to reject *certificate* (in DER), or an empty string to accept it."""
        if certificate is None:
            return "a client certificate is required"
        cas = self.get_cas()
        checked_certificate = self._checked_certificates.get(certificate)
        if checked_certificate is None or checked_certificate.cas is not cas:
            try:
                parsed_certificate = x509.load_der_x509_certificate(certificate)
                checked_certificate = _CheckedCertificate(
                    parsed_certificate, get_certificate_names(parsed_certificate), cas
                )
            except ValueError:
                return "the client certificate cannot be read"
            if not is_signed_by(parsed_certificate, cas):
                return "the client certificate is not signed by a CA for the verbs"
            self._checked_certificates[certificate] = checked_certificate
            while len(self._checked_certificates) > _MAX_CACHED:
                self._checked_certificates.popitem(last=False)
        if not is_valid_at(checked_certificate.certificate, self.now()):
            return "the client certificate has expired or is not valid yet"
        if self.allowed_names and self.allowed_names.isdisjoint(checked_certificate.names):
            names = ", ".join(f'"{name}"' for name in checked_certificate.names) or "no name"
            return f"the client certificate is for {names}, which is not allowed"
        return ""
