"""Authentication by token, client certificate and front proxy; the token cache."""

import asyncio
from collections.abc import Coroutine, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from extender.serving.authentication import (
    ANONYMOUS,
    Authenticator,
    ExpiringCache,
    Reviewer,
    UserInfo,
    get_certificate_names,
    get_first_certificate_name,
)
from extender.serving.serving_options import AuthenticationOptions, FrontProxyOptions
from tests.unit.serving.auth_fakes import ANN, UNREADABLE_ANSWERS, FakeReviewer, FaultyReviewer, NullAuthMetrics

T = TypeVar("T")


def run(job: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(job)


TOKEN = [(b"authorization", b"Bearer secret")]


def make_authenticator(reviewer: Reviewer | None, now: list[float], **settings: Any) -> Authenticator:
    return Authenticator(AuthenticationOptions(**settings), reviewer, NullAuthMetrics(), now=lambda: now[0])


def test_a_token_is_reviewed_once_until_its_cache_entry_expires() -> None:
    """Source: apiserver/pkg/server/options/authentication.go, DelegatingAuthenticationOptions.AddFlags (1.36)."""
    reviewer, now = FakeReviewer(ANN, ANN), [0.0]
    tested = make_authenticator(reviewer, now)
    ann = UserInfo("ann", "7", ("g", "system:authenticated"), {"k": ("v",)})
    assert run(tested.authenticate(TOKEN, None)) == ann
    now[0] = 9.9
    assert run(tested.authenticate(TOKEN, None)) == ann
    assert reviewer.specs == [{"token": "secret"}]
    now[0] = 10.0
    assert run(tested.authenticate(TOKEN, None)) == ann
    assert len(reviewer.specs) == 2


def test_an_invalid_token_is_rejected_and_cached_too() -> None:
    reviewer = FakeReviewer({"authenticated": False})
    tested = make_authenticator(reviewer, [0.0])
    assert run(tested.authenticate(TOKEN, None)) is None
    assert run(tested.authenticate(TOKEN, None)) is None
    assert len(reviewer.specs) == 1


def test_a_token_that_the_api_server_could_not_check_is_reviewed_again() -> None:
    """Source: apiserver/pkg/authentication/token/cache/cached_token_authenticator.go, cacheErrs (1.36)."""
    tested = make_authenticator(FakeReviewer({"authenticated": False, "error": "no answer of the webhook"}, ANN), [0.0])
    assert run(tested.authenticate(TOKEN, None)) is None
    user = run(tested.authenticate(TOKEN, None))
    assert user is not None
    assert user.name == "ann"


def test_requests_with_one_token_share_a_review_even_if_the_first_is_cancelled() -> None:
    class SlowReviewer(FakeReviewer):
        async def review(self, kind: str, body: Mapping[str, Any]) -> bytes:
            await asyncio.sleep(0)
            return await super().review(kind, body)

    async def authenticate_together() -> list[Any]:
        first, *others = [asyncio.ensure_future(tested.authenticate(TOKEN, None)) for _ in range(3)]
        await asyncio.sleep(0)
        first.cancel()
        return [user.name for user in await asyncio.gather(*others) if user is not None]

    reviewer = SlowReviewer(ANN)
    tested = make_authenticator(reviewer, [0.0])
    assert run(authenticate_together()) == ["ann", "ann"]
    assert len(reviewer.specs) == 1


def test_at_most_4096_reviews_are_cached() -> None:
    cache: ExpiringCache[str] = ExpiringCache(lambda: 0.0)
    for number in range(4097):
        cache.put(number, "result", 10.0)
    assert (cache.get(0), cache.get(1), cache.get(4096)) == (None, "result", "result")


@pytest.mark.parametrize("answer", UNREADABLE_ANSWERS)
def test_a_token_is_rejected_if_its_review_cannot_be_decoded(answer: bytes) -> None:
    answer = answer.replace(b"reason", b"error")
    assert run(make_authenticator(FaultyReviewer(answer), [0.0]).authenticate(TOKEN, None)) is None


def test_a_token_is_rejected_and_reviewed_again_after_a_failed_review() -> None:
    tested = make_authenticator(FakeReviewer({}, ANN), [0.0])
    assert run(tested.authenticate(TOKEN, None)) is None
    user = run(tested.authenticate(TOKEN, None))
    assert user is not None
    assert user.name == "ann"


@pytest.mark.parametrize(
    "headers",
    [[], [(b"authorization", b"Basic YTpi")], [(b"authorization", b"Bearer")]],
    ids=["none", "basic", "empty"],
)
def test_without_a_token_the_caller_is_anonymous(headers: list[tuple[bytes, bytes]]) -> None:
    assert run(make_authenticator(FakeReviewer(), [0.0]).authenticate(headers, None)) == ANONYMOUS


def test_without_a_reviewer_a_token_is_ignored() -> None:
    assert run(make_authenticator(None, [0.0]).authenticate(TOKEN, None)) == ANONYMOUS


# -- certificates


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def issue_certificate(authority: trustme.CA, name: str, organization: str = "") -> bytes:
    issued = authority.issue_cert("x.example", common_name=name, organization_name=organization or None)
    pem = issued.cert_chain_pems[0].bytes()
    return x509.load_pem_x509_certificate(pem).public_bytes(Encoding.DER)


def parse_ca(authority: trustme.CA) -> tuple[x509.Certificate, ...]:
    return (x509.load_pem_x509_certificate(authority.cert_pem.bytes()),)


def test_a_client_certificate_has_the_user_and_groups(authority: trustme.CA) -> None:
    tested = Authenticator(AuthenticationOptions(), None, NullAuthMetrics(), client_cas=parse_ca(authority))
    user = run(tested.authenticate([], issue_certificate(authority, "ann", "system:masters")))
    assert user == UserInfo("ann", groups=("system:masters", "system:authenticated"))


def test_a_certificate_of_another_ca_is_ignored(authority: trustme.CA) -> None:
    tested = Authenticator(AuthenticationOptions(), None, NullAuthMetrics(), client_cas=parse_ca(trustme.CA()))
    assert run(tested.authenticate([], issue_certificate(authority, "ann"))) == ANONYMOUS


def test_extra_cas_are_read_for_each_request(authority: trustme.CA) -> None:
    newest = [parse_ca(authority)]
    tested = Authenticator(AuthenticationOptions(), None, NullAuthMetrics(), get_client_ca_file_cas=lambda: newest[0])
    client_cert = issue_certificate(authority, "ann", "g")
    assert run(tested.authenticate([], client_cert)) == UserInfo("ann", groups=("g", "system:authenticated"))
    newest[0] = parse_ca(trustme.CA())
    assert run(tested.authenticate([], client_cert)) == ANONYMOUS


def test_an_expired_certificate_is_rejected(authority: trustme.CA) -> None:
    tested = Authenticator(AuthenticationOptions(), None, NullAuthMetrics(), client_cas=parse_ca(authority))
    issued = authority.issue_cert("x.example", not_after=datetime.now(UTC) - timedelta(seconds=1))
    pem = issued.cert_chain_pems[0].bytes()
    assert run(tested.authenticate([], x509.load_pem_x509_certificate(pem).public_bytes(Encoding.DER))) is None


def make_certificate(authority: x509.Certificate, key: ec.EllipticCurvePrivateKey, names: tuple[str, ...]) -> bytes:
    """Return a certificate (DER) with the common names *names*."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name) for name in names])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(authority.subject, subject, key.public_key(), 7, now, now + timedelta(days=1))
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.DER)


def make_authority() -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ca")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 5, now, now + timedelta(days=1))
    return builder.sign(key, hashes.SHA256()), key


def test_the_last_of_several_common_names_is_the_user() -> None:
    """Source: Go 1.26, crypto/x509/pkix/pkix.go, Name.FillFromRDNSequence."""
    ca, key = make_authority()
    client_cert = make_certificate(ca, key, ("system:kube-scheduler", "ann"))
    tested = Authenticator(AuthenticationOptions(), None, NullAuthMetrics(), client_cas=(ca,))
    assert run(tested.authenticate([], client_cert)) == UserInfo("ann", groups=("system:authenticated",))
    assert get_certificate_names(x509.load_der_x509_certificate(client_cert)) == ("ann",)


def test_a_signed_certificate_with_a_subject_that_is_no_text_is_rejected() -> None:
    """OpenSSL accepts it."""
    ca, key = make_authority()
    signed = x509.load_der_x509_certificate(make_certificate(ca, key, ("name",)))
    body = signed.tbs_certificate_bytes.replace(b"name", b"\xff\xff\xff\xff")
    signature = key.sign(body, ec.ECDSA(hashes.SHA256()))
    content = body + bytes.fromhex("300a06082a8648ce3d040302") + bytes((0x03, len(signature) + 1, 0)) + signature
    client_cert = b"\x30\x82" + len(content).to_bytes(2) + content
    tested = Authenticator(AuthenticationOptions(), None, NullAuthMetrics(), client_cas=(ca,))
    assert run(tested.authenticate([], client_cert)) is None
    assert get_first_certificate_name(client_cert) == ""


PROXY_HEADERS = [
    (b"x-remote-user", b"ann"),
    (b"x-remote-group", b"g1"),
    (b"x-remote-group", b"g2"),
    (b"x-remote-extra-scope", b"s"),
]

ANONYMOUS_HEADERS = [(b"x-remote-user", b"system:anonymous"), (b"x-remote-group", b"system:unauthenticated")]


@pytest.mark.parametrize(
    ("names", "headers", "caller"),
    [
        ((), PROXY_HEADERS, UserInfo("ann", "", ("g1", "g2", "system:authenticated"), {"scope": ("s",)})),
        (("proxy",), PROXY_HEADERS[:1], UserInfo("ann", groups=("system:authenticated",))),
        (("other",), PROXY_HEADERS, ANONYMOUS),
        ((), PROXY_HEADERS[1:], ANONYMOUS),
        ((), ANONYMOUS_HEADERS, ANONYMOUS),
        ((), [(b"x-remote-user", b"system:anonymous")], UserInfo("system:anonymous")),
        (
            (),
            [(b"x-remote-user", b"ann"), (b"x-remote-group", b""), (b"x-remote-extra-a%2fb", b"s")],
            UserInfo("ann", groups=("system:authenticated",), extra={"a/b": ("s",)}),
        ),
    ],
    ids=[
        "any proxy",
        "a proxy of that name",
        "a proxy of another name",
        "no user named",
        "an anonymous user",
        "an anonymous user without groups",
        "an empty group and an escaped key",
    ],
)
def test_a_front_proxy_s_headers_name_the_user(
    authority: trustme.CA, names: tuple[str, ...], headers: list[tuple[bytes, bytes]], caller: UserInfo
) -> None:
    settings = AuthenticationOptions(front_proxy=FrontProxyOptions(allowed_names=names))
    tested = Authenticator(settings, None, NullAuthMetrics(), front_proxy_cas=parse_ca(authority))
    assert run(tested.authenticate(headers, issue_certificate(authority, "proxy"))) == caller


def test_headers_without_a_front_proxy_s_certificate_are_ignored(authority: trustme.CA) -> None:
    tested = Authenticator(AuthenticationOptions(), None, NullAuthMetrics(), front_proxy_cas=parse_ca(authority))
    assert run(tested.authenticate(PROXY_HEADERS, None)) == ANONYMOUS
