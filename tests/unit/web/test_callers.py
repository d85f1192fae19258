"""Who asks, and what they may: tokens, certificates, front proxies, open paths, answers that are kept."""

import asyncio
import json
from collections.abc import Coroutine, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from extender.web.callers import ANONYMOUS, Authenticator, Caller, ReviewError
from extender.web.rights import Authorizer
from extender.web.settings import Authentication, Authorization, FrontProxy

T = TypeVar("T")


def run(job: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(job)


class Deaf:
    """Hears of nothing."""

    def reviewed(self, *_: object) -> None:
        """Nothing."""

    def fetched(self, *_: object) -> None:
        """Nothing."""

    def looked_up(self, *_: object) -> None:
        """Nothing."""

    def recognised(self, *_: object) -> None:
        """Nothing."""

    def judged(self, *_: object) -> None:
        """Nothing."""


class Asked:
    """Gives prepared answers and keeps what it was asked; an empty answer stands for an API server that is away."""

    def __init__(self, *answers: Mapping[str, Any]) -> None:
        self.answers = list(answers)
        self.specs: list[Any] = []

    async def review(self, kind: str, body: Mapping[str, Any]) -> bytes:
        assert body["kind"] == kind
        self.specs.append(body["spec"])
        answer = self.answers.pop(0)
        if not answer:
            raise ReviewError("away")
        return json.dumps({"status": answer}).encode()


ANN = {"authenticated": True, "user": {"username": "ann", "uid": "7", "groups": ["g"], "extra": {"k": ["v"]}}}
TOKEN = [(b"authorization", b"Bearer secret")]


def authenticator(asked: Asked | None, now: list[float], **settings: Any) -> Authenticator:
    return Authenticator(Authentication(**settings), asked, Deaf(), now=lambda: now[0])


def test_the_bearer_of_a_token_is_asked_about_once_while_the_answer_holds() -> None:
    """Source: G047."""
    asked, now = Asked(ANN, ANN), [0.0]
    door = authenticator(asked, now)
    ann = Caller("ann", "7", ("g", "system:authenticated"), {"k": ("v",)})
    assert run(door.caller(TOKEN, None)) == ann
    now[0] = 9.9
    assert run(door.caller(TOKEN, None)) == ann
    assert asked.specs == [{"token": "secret"}]
    now[0] = 10.0
    assert run(door.caller(TOKEN, None)) == ann
    assert len(asked.specs) == 2


def test_a_wrong_token_is_nobody_s_and_that_is_kept_too() -> None:
    asked = Asked({"authenticated": False, "error": "invalid"})
    door = authenticator(asked, [0.0])
    assert run(door.caller(TOKEN, None)) is None
    assert run(door.caller(TOKEN, None)) is None
    assert len(asked.specs) == 1


def test_a_token_that_cannot_be_looked_up_is_nobody_s_and_is_asked_about_again() -> None:
    door = authenticator(Asked({}, ANN), [0.0])
    assert run(door.caller(TOKEN, None)) is None
    found = run(door.caller(TOKEN, None))
    assert found is not None
    assert found.name == "ann"


@pytest.mark.parametrize(
    "headers",
    [[], [(b"authorization", b"Basic YTpi")], [(b"authorization", b"Bearer")]],
    ids=["none", "basic", "empty"],
)
def test_without_a_token_the_caller_is_anonymous(headers: list[tuple[bytes, bytes]]) -> None:
    assert run(authenticator(Asked(), [0.0]).caller(headers, None)) == ANONYMOUS


def test_where_nobody_can_be_asked_a_token_says_nothing() -> None:
    assert run(authenticator(None, [0.0]).caller(TOKEN, None)) == ANONYMOUS


# -- certificates


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def certificate(authority: trustme.CA, name: str, organization: str = "") -> bytes:
    issued = authority.issue_cert("x.example", common_name=name, organization_name=organization or None)
    pem = issued.cert_chain_pems[0].bytes()
    return x509.load_pem_x509_certificate(pem).public_bytes(Encoding.DER)


def root(authority: trustme.CA) -> tuple[x509.Certificate, ...]:
    return (x509.load_pem_x509_certificate(authority.cert_pem.bytes()),)


def test_a_client_certificate_names_its_bearer(authority: trustme.CA) -> None:
    door = Authenticator(Authentication(), None, Deaf(), client_authorities=root(authority))
    found = run(door.caller([], certificate(authority, "ann", "system:masters")))
    assert found == Caller("ann", groups=("system:masters", "system:authenticated"))


def test_a_certificate_of_another_authority_says_nothing(authority: trustme.CA) -> None:
    door = Authenticator(Authentication(), None, Deaf(), client_authorities=root(trustme.CA()))
    assert run(door.caller([], certificate(authority, "ann"))) == ANONYMOUS


def test_authorities_that_are_renewed_count_as_they_are_now(authority: trustme.CA) -> None:
    newest = [root(authority)]
    door = Authenticator(Authentication(), None, Deaf(), renewed=lambda: newest[0])
    shown = certificate(authority, "ann", "g")
    assert run(door.caller([], shown)) == Caller("ann", groups=("g", "system:authenticated"))
    newest[0] = root(trustme.CA())
    assert run(door.caller([], shown)) == ANONYMOUS


def test_a_certificate_that_has_run_out_is_refused_on_an_open_connection_too(authority: trustme.CA) -> None:
    door = Authenticator(Authentication(), None, Deaf(), client_authorities=root(authority))
    issued = authority.issue_cert("x.example", not_after=datetime.now(UTC) - timedelta(seconds=1))
    pem = issued.cert_chain_pems[0].bytes()
    assert run(door.caller([], x509.load_pem_x509_certificate(pem).public_bytes(Encoding.DER))) is None


SAID = [
    (b"x-remote-user", b"ann"),
    (b"x-remote-group", b"g1"),
    (b"x-remote-group", b"g2"),
    (b"x-remote-extra-scope", b"s"),
]


@pytest.mark.parametrize(
    ("names", "headers", "caller"),
    [
        ((), SAID, Caller("ann", "", ("g1", "g2", "system:authenticated"), {"scope": ("s",)})),
        (("proxy",), SAID[:1], Caller("ann", groups=("system:authenticated",))),
        (("other",), SAID, ANONYMOUS),
        ((), SAID[1:], ANONYMOUS),
    ],
    ids=["any proxy", "a proxy of that name", "a proxy of another name", "no user named"],
)
def test_a_front_proxy_names_the_caller(
    authority: trustme.CA, names: tuple[str, ...], headers: list[tuple[bytes, bytes]], caller: Caller
) -> None:
    settings = Authentication(front_proxy=FrontProxy(names=names))
    door = Authenticator(settings, None, Deaf(), proxy_authorities=root(authority))
    assert run(door.caller(headers, certificate(authority, "proxy"))) == caller


def test_headers_of_anybody_else_name_nobody(authority: trustme.CA) -> None:
    door = Authenticator(Authentication(), None, Deaf(), proxy_authorities=root(authority))
    assert run(door.caller(SAID, None)) == ANONYMOUS


# -- rights

BOB = Caller("bob", "9", ("g",), {"k": ("v",)})


def authorizer(asked: Asked | None, now: list[float], **settings: Any) -> Authorizer:
    return Authorizer(Authorization(**settings), asked, Deaf(), now=lambda: now[0])


@pytest.mark.parametrize(
    ("paths", "path", "open_to_all"),
    [
        (("/healthz", "/livez"), "/livez", True),
        (("/healthz",), "/healthz/ping", False),
        (("/healthz/*",), "/healthz/ping", True),
        (("healthz",), "/healthz", True),
        ((), "/healthz", False),
        (("/metrics*",), "/metrics/slis", True),
    ],
)
def test_some_paths_are_open_to_all(paths: tuple[str, ...], path: str, open_to_all: bool) -> None:
    """Source: G048."""
    assert run(authorizer(None, [0.0], always_allowed=paths).may(ANONYMOUS, "get", path)).allowed is open_to_all


def test_rights_are_asked_about_and_a_yes_and_a_no_are_kept_for_their_time() -> None:
    asked, now = Asked({"allowed": True}, {"allowed": False, "reason": "no role"}, {"allowed": True}), [0.0]
    door = authorizer(asked, now, allowed_seconds=10.0, denied_seconds=5.0)
    assert run(door.may(BOB, "get", "/metrics")).allowed
    assert run(door.may(BOB, "get", "/metrics")).allowed
    assert run(door.may(BOB, "delete", "/metrics")).reason == "no role"
    now[0] = 5.0
    assert run(door.may(BOB, "delete", "/metrics")).allowed
    assert asked.specs[0] == {
        "user": "bob",
        "uid": "9",
        "groups": ["g"],
        "extra": {"k": ["v"]},
        "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
    }
    assert len(asked.specs) == 3


def test_masters_may_everything_and_nobody_is_asked() -> None:
    assert run(authorizer(None, [0.0]).may(Caller("root", groups=("system:masters",)), "get", "/metrics")).allowed


def test_rights_that_cannot_be_looked_up_are_a_fault_and_no_answer() -> None:
    with pytest.raises(ReviewError):
        run(authorizer(Asked({}), [0.0]).may(BOB, "get", "/metrics"))
