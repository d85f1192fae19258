"""Authenticate requests by bearer token, client certificate or front proxy headers.

A request without credentials is anonymous. The API server reviews tokens (TokenReview), and each result is cached by
the token's digest.

Source: apiserver/pkg/server/options/authentication.go, DelegatingAuthenticationOptions.ApplyTo,
DelegatingAuthenticationOptions.AddFlags (1.36).
"""

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Generic, Protocol, TypeVar
from urllib.parse import unquote

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.x509.oid import NameOID

from extender.metrics.client_metrics import ClientMetrics
from extender.serving.serving_options import AuthenticationOptions, FrontProxyOptions

_AUTHENTICATED: Final = "system:authenticated"
_UNAUTHENTICATED: Final = "system:unauthenticated"
MAX_CACHED: Final = 4096
"""Limit of the entries of each cache of reviews."""


DECODE_ERRORS: Final = (ValueError, RecursionError)
"""The errors of JSON that cannot be decoded: a type or a syntax error, no UTF-8, too deep."""


class ReviewError(Exception):
    """A review failed, or its response is malformed."""


class Reviewer(Protocol):
    """Creates reviews on the API server."""

    async def review(self, kind: str, body: Mapping[str, Any]) -> bytes:
        """Create a review of *kind* (`TokenReview` or `SubjectAccessReview`), and return it with its status as JSON.

        Raises:
            ReviewError: the request failed.
        """


class UserInfo(msgspec.Struct, frozen=True):
    """An authenticated user, as in the status of a TokenReview.

    Source: apiserver/pkg/authentication/user/user.go, DefaultInfo (1.36).
    """

    name: str = msgspec.field(default="", name="username")
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = {}


ANONYMOUS: Final = UserInfo("system:anonymous", groups=(_UNAUTHENTICATED,))

T = TypeVar("T")


class ExpiringCache(Generic[T]):
    """A bounded cache whose entries expire; the oldest are evicted first."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._entries: OrderedDict[object, tuple[float, T]] = OrderedDict()

    def get(self, key: object) -> T | None:
        """Return the value of *key* if it has not expired."""
        entry = self._entries.get(key)
        return entry[1] if entry is not None and self._now() < entry[0] else None

    def put(self, key: object, value: T, seconds: float) -> None:
        """Cache *value* for *seconds*."""
        if seconds <= 0:
            return
        self._entries[key] = (self._now() + seconds, value)
        self._entries.move_to_end(key)
        while len(self._entries) > MAX_CACHED:
            self._entries.popitem(last=False)


class _TokenStatus(msgspec.Struct, frozen=True):
    authenticated: bool = False
    user: UserInfo = UserInfo()
    error: str = ""


class _TokenReview(msgspec.Struct, frozen=True):
    status: _TokenStatus = _TokenStatus()


@dataclass(slots=True)
class Authenticator:
    """Authenticates requests.

    Attributes:
        reviewer: creates TokenReviews; None: tokens are ignored.
        front_proxy_cas: the CAs of the certificates of front proxies.
        get_client_ca_file_cas: returns more CAs of client certificates, from a file that may change.
        now: returns monotonic seconds.
    """

    settings: AuthenticationOptions
    reviewer: Reviewer | None
    metrics: ClientMetrics
    client_cas: tuple[x509.Certificate, ...] = ()
    front_proxy_cas: tuple[x509.Certificate, ...] = ()
    get_client_ca_file_cas: Callable[[], tuple[x509.Certificate, ...]] = tuple
    now: Callable[[], float] = time.monotonic
    _token_cache: ExpiringCache[UserInfo | str] = field(init=False)
    _reviews: dict[bytes, asyncio.Future[UserInfo | str | None]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._token_cache = ExpiringCache(self.now)

    async def authenticate(self, headers: Sequence[tuple[bytes, bytes]], certificate: bytes | None) -> UserInfo | None:
        """Return the user; None if the credentials are invalid.

        The names of *headers* are in lower case. *certificate* is the client's in DER; TLS has verified its chain.
        """
        if certificate:
            try:
                client_cert = x509.load_der_x509_certificate(certificate)
                if not is_valid_at(client_cert, datetime.now(UTC)):
                    return None
                if is_signed_by(client_cert, self.front_proxy_cas):
                    user = make_user_from_front_proxy(client_cert, headers, self.settings.front_proxy)
                    if user is not None:
                        return user
                if is_signed_by(client_cert, (*self.client_cas, *self.get_client_ca_file_cas())):
                    return make_user_from_certificate(client_cert)
            except ValueError:  # OpenSSL accepts subjects that cannot be decoded
                return None
        token = parse_bearer_token(headers)
        if token and self.reviewer is not None:
            return await self._authenticate_token(token, self.reviewer)
        return ANONYMOUS

    async def _authenticate_token(self, token: str, reviewer: Reviewer) -> UserInfo | None:
        start_time = self.now()
        digest = hashlib.sha256(token.encode()).digest()
        result = self._token_cache.get(digest)
        status = "miss" if result is None else "hit"
        if result is None:
            review = self._reviews.get(digest)
            if review is None:
                review = self._reviews[digest] = asyncio.ensure_future(self._fetch_user(token, digest, reviewer))
                review.add_done_callback(lambda _: self._reviews.pop(digest))
            result = await asyncio.shield(review)  # other requests may wait for the same review
            if result is None:
                return None
        self.metrics.observe_token_lookup(status, self.now() - start_time)
        return result if isinstance(result, UserInfo) else None

    async def _fetch_user(self, token: str, digest: bytes, reviewer: Reviewer) -> UserInfo | str | None:
        """Return and cache the result of a review; see `_review_token`. Requests with the same token share one review.

        Source: apiserver/pkg/authentication/token/cache/cached_token_authenticator.go,
        cachedTokenAuthenticator.doAuthenticateToken (1.36).
        """
        result = await self._review_token(token, reviewer)
        self.metrics.count_token_fetch("error" if result is None else "ok")
        if result is not None:
            self._token_cache.put(digest, result, self.settings.token_cache_ttl)
        return result

    async def _review_token(self, token: str, reviewer: Reviewer) -> UserInfo | str | None:
        """Return the user of *token*, or that it is invalid; None if the review failed.

        Source: apiserver/pkg/authentication/authenticatorfactory/delegating.go, DelegatingAuthenticatorConfig.New
        (1.36).
        """
        start_time = self.now()
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        try:
            status = msgspec.json.decode(await reviewer.review("TokenReview", body), type=_TokenReview).status
        except (ReviewError, *DECODE_ERRORS):
            self.metrics.observe_review("authn", "<error>", self.now() - start_time)
            return None
        self.metrics.observe_review("authn", "201", self.now() - start_time)
        if not status.authenticated:  # with an error, such as a webhook that does not answer, it is not cached
            return None if status.error else "not authenticated"
        groups = _add_authenticated_group(status.user.name, status.user.groups)
        return msgspec.structs.replace(status.user, groups=groups)


def _add_authenticated_group(user: str, groups: tuple[str, ...]) -> tuple[str, ...]:
    """Return *groups* with `system:authenticated`, unless *user* is anonymous or *groups* has one of the two groups.

    Source: apiserver/pkg/authentication/group/authenticated_group_adder.go,
    AuthenticatedGroupAdder.AuthenticateRequest (1.36).
    """
    if user == ANONYMOUS.name or _AUTHENTICATED in groups or _UNAUTHENTICATED in groups:
        return groups
    return (*groups, _AUTHENTICATED)


def parse_bearer_token(headers: Sequence[tuple[bytes, bytes]]) -> str:
    """Return the token of the Authorization header; empty if there is none."""
    for name, value in headers:
        if name == b"authorization":
            scheme, _, token = value.decode("latin-1").strip().partition(" ")
            return token.strip() if scheme.lower() == "bearer" else ""
    return ""


def make_user_from_certificate(certificate: x509.Certificate) -> UserInfo | None:
    """Return the user of a client certificate: its common name, with its organizations as groups."""
    name = _get_common_name(certificate)
    if not name:
        return None
    groups = tuple(_get_subject_values(certificate, NameOID.ORGANIZATION_NAME))
    return UserInfo(name, groups=_add_authenticated_group(name, groups))


def make_user_from_front_proxy(
    certificate: x509.Certificate, headers: Sequence[tuple[bytes, bytes]], settings: FrontProxyOptions
) -> UserInfo | None:
    """Return the user that a front proxy names in *headers*.

    None: the headers name no user, or the name of the proxy is not allowed.
    """
    if settings.allowed_names and _get_common_name(certificate) not in settings.allowed_names:
        return None
    values_by_name: dict[str, list[str]] = {}
    for name, value in headers:
        values_by_name.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))

    def get_first_value(header_names: Sequence[str]) -> str:
        return next((values_by_name[name.lower()][0] for name in header_names if values_by_name.get(name.lower())), "")

    user = get_first_value(settings.username_headers)
    if not user:
        return None
    groups = tuple(group for name in settings.group_headers for group in values_by_name.get(name.lower(), []) if group)
    extra = {
        unquote(key.removeprefix(prefix.lower())): tuple(values)
        for prefix in settings.extra_header_prefixes
        for key, values in values_by_name.items()
        if prefix and key.startswith(prefix.lower())
    }
    uid = get_first_value(settings.uid_headers)
    return UserInfo(user, uid, _add_authenticated_group(user, groups), extra)


def _get_subject_values(certificate: x509.Certificate, oid: x509.ObjectIdentifier) -> list[str]:
    return [str(attribute.value) for attribute in certificate.subject.get_attributes_for_oid(oid)]


def _get_common_name(certificate: x509.Certificate) -> str:
    """Return the common name; empty if there is none. Of several, the last one counts, as for the API server.

    Source: Go 1.26, crypto/x509/pkix/pkix.go, Name.FillFromRDNSequence.
    """
    return next(reversed(_get_subject_values(certificate, NameOID.COMMON_NAME)), "")


def get_certificate_names(certificate: x509.Certificate) -> tuple[str, ...]:
    """Return the names of a client certificate: its common name, then its DNS names.

    Raises:
        ValueError: the subject or the DNS names cannot be decoded.
    """
    try:
        san = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        san = x509.SubjectAlternativeName([])
    common_name = _get_common_name(certificate)
    return (*((common_name,) if common_name else ()), *san.get_values_for_type(x509.DNSName))


def get_first_certificate_name(certificate: bytes) -> str:
    """Return the first name of a client certificate (DER); empty if it has none, or it cannot be decoded."""
    try:
        return next(iter(get_certificate_names(x509.load_der_x509_certificate(certificate))), "")
    except ValueError:
        return ""


def is_valid_at(certificate: x509.Certificate, moment: datetime) -> bool:
    """Return whether *moment* is in the certificate's validity period."""
    return certificate.not_valid_before_utc <= moment <= certificate.not_valid_after_utc


def is_signed_by(certificate: x509.Certificate, cas: Sequence[x509.Certificate]) -> bool:
    """Return whether one of *cas* signed *certificate* directly."""
    for ca in cas:
        try:
            certificate.verify_directly_issued_by(ca)
        except (ValueError, TypeError, InvalidSignature):
            continue
        return True
    return False
