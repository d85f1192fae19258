"""Authorization: always allowed paths, access reviews and their cache."""

import asyncio
import tracemalloc
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from extender.serving.authentication import ANONYMOUS, Reviewer, ReviewError, UserInfo
from extender.serving.authorization import Authorizer
from extender.serving.serving_options import AuthorizationOptions
from tests.unit.serving.auth_fakes import UNREADABLE_ANSWERS, FakeReviewer, FaultyReviewer, NullAuthMetrics

T = TypeVar("T")


def run(job: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(job)


BOB = UserInfo("bob", "9", ("g",), {"k": ("v",)})


def make_authorizer(reviewer: Reviewer | None, now: list[float], **settings: Any) -> Authorizer:
    return Authorizer(AuthorizationOptions(**settings), reviewer, NullAuthMetrics(), now=lambda: now[0])


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
def test_always_allowed_paths_need_no_review(paths: tuple[str, ...], path: str, open_to_all: bool) -> None:
    """Source: apiserver/pkg/server/options/authorization.go, DelegatingAuthorizationOptions.AddFlags (1.36)."""
    assert (
        run(make_authorizer(None, [0.0], always_allowed_paths=paths).authorize(ANONYMOUS, "get", path)).allowed
        is open_to_all
    )


def test_decisions_are_reviewed_once_and_cached_for_their_ttl() -> None:
    reviewer, now = FakeReviewer({"allowed": True}, {"allowed": False, "reason": "no role"}, {"allowed": True}), [0.0]
    tested = make_authorizer(reviewer, now, allowed_cache_ttl=10.0, denied_cache_ttl=5.0)
    assert run(tested.authorize(BOB, "get", "/metrics")).allowed
    assert run(tested.authorize(BOB, "get", "/metrics")).allowed
    assert run(tested.authorize(BOB, "delete", "/metrics")).reason == "no role"
    now[0] = 5.0
    assert run(tested.authorize(BOB, "delete", "/metrics")).allowed
    assert reviewer.specs[0] == {
        "user": "bob",
        "uid": "9",
        "groups": ["g"],
        "extra": {"k": ["v"]},
        "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
    }
    assert len(reviewer.specs) == 3


def test_the_cached_decisions_about_long_paths_take_little_memory() -> None:
    """A character of a path that needs four bytes makes all characters of the path take four bytes."""

    class ForgetfulReviewer:
        async def review(self, *_: object) -> bytes:
            return b'{"status": {"allowed": false}}'

    tested = Authorizer(AuthorizationOptions(), ForgetfulReviewer(), NullAuthMetrics())

    async def ask() -> None:
        for number in range(100):
            await tested.authorize(ANONYMOUS, "get", f"/\N{SLIGHTLY SMILING FACE}{number}{'a' * 60_000}")

    tracemalloc.start()
    run(ask())
    used_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used_bytes < 1 << 20  # 24 MiB if the paths were stored


def test_system_masters_are_allowed_without_a_review() -> None:
    assert run(
        make_authorizer(None, [0.0]).authorize(UserInfo("root", groups=("system:masters",)), "get", "/metrics")
    ).allowed


@pytest.mark.parametrize("answer", UNREADABLE_ANSWERS)
def test_an_access_review_that_cannot_be_decoded_is_an_error(answer: bytes) -> None:
    with pytest.raises(ReviewError, match=r"^the SubjectAccessReview cannot be decoded: "):
        run(make_authorizer(FaultyReviewer(answer), [0.0]).authorize(BOB, "get", "/metrics"))


def test_a_failed_access_review_is_an_error() -> None:
    with pytest.raises(ReviewError):
        run(make_authorizer(FakeReviewer({}), [0.0]).authorize(BOB, "get", "/metrics"))
