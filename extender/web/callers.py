"""Who asks: the bearer of a token, of a client certificate, whom a front proxy names, or nobody in particular.

Tokens are told to the API server (TokenReview) and the answer is kept for a while, under the token's digest. Source:
I030, G047.
"""

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.x509.oid import NameOID

from extender.web.settings import Authentication, FrontProxy

_AUTHENTICATED: Final = "system:authenticated"
_UNAUTHENTICATED: Final = "system:unauthenticated"
_MOST_KEPT: Final = 4096


class ReviewError(Exception):
    """The API server could not be asked, or gave no answer that makes sense."""


class Reviewer(Protocol):
    """Asks the API server."""

    async def review(self, kind: str, body: Mapping[str, Any]) -> bytes:
        """Create a `TokenReview` or `SubjectAccessReview`; gives it back with its status, as JSON.

        Raises:
            ReviewError: that did not work.
        """


class Heard(Protocol):
    """Hears of look-ups (`observe.scheduling.SchedulerMetrics`)."""

    def reviewed(self, kind: str, code: str, seconds: float) -> None:
        """The API server was asked: `authn` or `authz`."""

    def fetched(self, status: str) -> None:
        """A token was asked about: ok or error."""

    def looked_up(self, status: str, seconds: float) -> None:
        """A token was looked up: hit or miss."""

    def recognised(self, result: str, username: str, seconds: float) -> None:
        """A caller was looked at: success (with who it is) or failure."""

    def judged(self, result: str, seconds: float) -> None:
        """Rights were looked at: allowed, no-opinion (so not allowed), or error."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


ANONYMOUS: Final = Caller("system:anonymous", groups=(_UNAUTHENTICATED,))

T = TypeVar("T")


class Kept(Generic[T]):
    """Answers that hold for a while; the oldest make room."""

    __slots__ = ("_answers", "_now")

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._answers: OrderedDict[object, tuple[float, T]] = OrderedDict()

    def get(self, key: object) -> T | None:
        """The answer, if it still holds."""
        found = self._answers.get(key)
        return found[1] if found is not None and self._now() < found[0] else None

    def put(self, key: object, answer: T, seconds: float) -> None:
        """Keep *answer* for so long."""
        if seconds <= 0:
            return
        self._answers[key] = (self._now() + seconds, answer)
        self._answers.move_to_end(key)
        while len(self._answers) > _MOST_KEPT:
            self._answers.popitem(last=False)


class _User(msgspec.Struct, frozen=True):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = {}


class _TokenStatus(msgspec.Struct, frozen=True):
    authenticated: bool = False
    user: _User = _User()
    error: str = ""


class _TokenReview(msgspec.Struct, frozen=True):
    status: _TokenStatus = _TokenStatus()


@dataclass(slots=True)
class Authenticator:
    """Says who asks.

    Attributes:
        settings: how.
        reviewer: None: nobody can be asked about tokens, which then say nothing.
        heard: hears of look-ups.
        client_authorities, proxy_authorities: certificates that sign those of callers, and of front proxies.
        renewed: gives further ones that sign those of callers, as they are now.
    """

    settings: Authentication
    reviewer: Reviewer | None
    heard: Heard
    client_authorities: tuple[x509.Certificate, ...] = ()
    proxy_authorities: tuple[x509.Certificate, ...] = ()
    renewed: Callable[[], tuple[x509.Certificate, ...]] = tuple
    now: Callable[[], float] = time.monotonic
    _kept: Kept[Caller | str] = field(init=False)

    def __post_init__(self) -> None:
        self._kept = Kept(self.now)

    async def caller(self, headers: Sequence[tuple[bytes, bytes]], certificate: bytes | None) -> Caller | None:
        """Who asks; None if what was shown is not right.

        Args:
            headers: names in lower case.
            certificate: of the caller, in DER, its chain checked by TLS already.
        """
        shown = x509.load_der_x509_certificate(certificate) if certificate else None
        if shown is not None:
            if not holds(shown, datetime.now(UTC)):
                return None
            if vouched(shown, self.proxy_authorities):
                named = from_front_proxy(shown, headers, self.settings.front_proxy)
                if named is not None:
                    return named
            if vouched(shown, (*self.client_authorities, *self.renewed())):
                return from_certificate(shown)
        token = bearer(headers)
        if token and self.reviewer is not None:
            return await self._bearer_of(token, self.reviewer)
        return ANONYMOUS

    async def _bearer_of(self, token: str, reviewer: Reviewer) -> Caller | None:
        began = self.now()
        digest = hashlib.sha256(token.encode()).digest()
        answer = self._kept.get(digest)
        status = "miss" if answer is None else "hit"
        if answer is None:
            answer = await self._ask(token, reviewer)
            self.heard.fetched("error" if answer is None else "ok")
            if answer is None:
                return None
            self._kept.put(digest, answer, self.settings.cache_seconds)
        self.heard.looked_up(status, self.now() - began)
        return answer if isinstance(answer, Caller) else None

    async def _ask(self, token: str, reviewer: Reviewer) -> Caller | str | None:
        """Who bears *token*, or why nobody does; None if that could not be learnt, which is not kept."""
        began = self.now()
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        try:
            told = msgspec.json.decode(await reviewer.review("TokenReview", body), type=_TokenReview).status
        except (ReviewError, msgspec.MsgspecError):
            self.heard.reviewed("authn", "<error>", self.now() - began)
            return None
        self.heard.reviewed("authn", "201", self.now() - began)
        if not told.authenticated:
            return told.error or "not authenticated"
        groups = told.user.groups if _AUTHENTICATED in told.user.groups else (*told.user.groups, _AUTHENTICATED)
        return Caller(told.user.username, told.user.uid, groups, dict(told.user.extra))


def bearer(headers: Sequence[tuple[bytes, bytes]]) -> str:
    """The token of an Authorization header; empty without one."""
    for name, value in headers:
        if name == b"authorization":
            scheme, _, token = value.decode("latin-1").strip().partition(" ")
            return token.strip() if scheme.lower() == "bearer" else ""
    return ""


def from_certificate(certificate: x509.Certificate) -> Caller | None:
    """The user a client certificate names: its common name, with its organisations as groups."""
    names = _values(certificate, NameOID.COMMON_NAME)
    if not names:
        return None
    groups = _values(certificate, NameOID.ORGANIZATION_NAME)
    return Caller(names[0], groups=(*groups, _AUTHENTICATED))


def from_front_proxy(
    certificate: x509.Certificate, headers: Sequence[tuple[bytes, bytes]], settings: FrontProxy
) -> Caller | None:
    """Whom a front proxy names in *headers*; None if it names nobody, or may not."""
    names = _values(certificate, NameOID.COMMON_NAME)
    if settings.names and not (names and names[0] in settings.names):
        return None
    said: dict[str, list[str]] = {}
    for name, value in headers:
        said.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))

    def first(wanted: Sequence[str]) -> str:
        return next((said[name.lower()][0] for name in wanted if said.get(name.lower())), "")

    user = first(settings.users)
    if not user:
        return None
    groups = [group for name in settings.groups for group in said.get(name.lower(), [])]
    extra = {
        key.removeprefix(prefix.lower()): tuple(values)
        for prefix in settings.extras
        for key, values in said.items()
        if prefix and key.startswith(prefix.lower())
    }
    return Caller(user, first(settings.uids), (*groups, _AUTHENTICATED), extra)


def _values(certificate: x509.Certificate, what: x509.ObjectIdentifier) -> list[str]:
    return [str(attribute.value) for attribute in certificate.subject.get_attributes_for_oid(what)]


def names_of(certificate: x509.Certificate) -> tuple[str, ...]:
    """The names a client certificate bears: its common name, and host names if it has any."""
    try:
        further = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        further = x509.SubjectAlternativeName([])
    return (*_values(certificate, NameOID.COMMON_NAME), *further.get_values_for_type(x509.DNSName))


def certificate_name(certificate: bytes) -> str:
    """The first name a client certificate (DER) bears; empty if it bears none."""
    return next(iter(names_of(x509.load_der_x509_certificate(certificate))), "")


def holds(certificate: x509.Certificate, moment: datetime) -> bool:
    """Whether *moment* is in the time for which a certificate was issued."""
    return certificate.not_valid_before_utc <= moment <= certificate.not_valid_after_utc


def vouched(certificate: x509.Certificate, authorities: Sequence[x509.Certificate]) -> bool:
    """Whether one of *authorities* itself signed *certificate*."""
    for authority in authorities:
        try:
            certificate.verify_directly_issued_by(authority)
        except (ValueError, TypeError, InvalidSignature):
            continue
        return True
    return False
