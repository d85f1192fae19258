"""Who may use the verbs: kube-scheduler can show nothing but a client certificate, so that is what is looked at.

TLS has checked that some authority we know signed it. Here it must be one that vouches for callers of the verbs, the
certificate must still hold (a connection may outlive it), and it must bear an allowed name. Source: F005, F013.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from cryptography import x509

from extender.web.callers import holds, names_of, vouched

_MOST_KEPT: Final = 256

Clock = Callable[[], datetime]


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class _Known:
    """What a certificate says, looked at once."""

    certificate: x509.Certificate
    names: tuple[str, ...]
    authorities: Sequence[x509.Certificate]


@dataclass(slots=True)
class Clients:
    """Says who is let in.

    Attributes:
        authorities: gives the certificates that sign those of callers, as they are now.
        allowed: common names and DNS names, one of which a caller must bear; empty: any.
        now: the time.
    """

    authorities: Callable[[], Sequence[x509.Certificate]]
    allowed: frozenset[str] = frozenset()
    now: Clock = _now
    _known: OrderedDict[bytes, _Known] = field(init=False, default_factory=OrderedDict)

    def refusal(self, certificate: bytes | None) -> str:
        """Why the bearer of *certificate* (DER) is not let in; empty: it is."""
        if certificate is None:
            return "a client certificate is wanted"
        authorities = self.authorities()
        known = self._known.get(certificate)
        if known is None or known.authorities is not authorities:
            try:
                shown = x509.load_der_x509_certificate(certificate)
                known = _Known(shown, names_of(shown), authorities)
            except ValueError:
                return "the client certificate cannot be read"
            if not vouched(shown, authorities):
                return "the client certificate is not signed by an authority for the verbs"
            self._known[certificate] = known
            while len(self._known) > _MOST_KEPT:
                self._known.popitem(last=False)
        if not holds(known.certificate, self.now()):
            return "the client certificate does not hold now"
        if self.allowed and self.allowed.isdisjoint(known.names):
            told = ", ".join(f'"{name}"' for name in known.names) or "no name"
            return f"the client certificate is for {told}, which is not allowed"
        return ""
