"""Answer TokenReviews and SubjectAccessReviews.

By default, every token is valid and every request is allowed. Tests of delegated authentication and authorization pass
other rules.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from extender.fake_apiserver.registry.resources import Object

REVIEW_KINDS: Final[Mapping[tuple[str, str], str]] = {
    ("authentication.k8s.io/v1", "tokenreviews"): "TokenReview",
    ("authorization.k8s.io/v1", "subjectaccessreviews"): "SubjectAccessReview",
    ("authorization.k8s.io/v1", "selfsubjectaccessreviews"): "SelfSubjectAccessReview",
}
"""The kinds of reviews by group version and plural."""

_USER: Final = {
    "username": "system:admin",
    "uid": "fake-apiserver",
    "groups": ["system:masters", "system:authenticated"],
}


def _authenticate_all(token: str) -> Object | None:
    """Return the same user for every non-empty token."""
    return dict(_USER) if token else None


def _authorize_all(_: Object) -> tuple[bool, str]:
    return True, "everything is allowed in the fake API server"


@dataclass(frozen=True, slots=True)
class ReviewRules:
    """The rules for the results of reviews.

    Attributes:
        authenticate: returns the user of a token (`username`, `uid` and `groups`); None if the token is invalid.
        authorize: returns whether the request in the spec of a SubjectAccessReview is allowed, and the reason.
    """

    authenticate: Callable[[str], Object | None] = _authenticate_all
    authorize: Callable[[Object], tuple[bool, str]] = _authorize_all

    def review(self, path: str, body: Object) -> Object | None:
        """Return the review with its status; None if *path* is not the path of a review."""
        version, _, plural = path.strip("/").removeprefix("apis/").rpartition("/")
        kind = REVIEW_KINDS.get((version, plural))
        if kind is None:
            return None
        spec = body.get("spec") or {}
        status = self._review_token(spec) if kind == "TokenReview" else self._review_access(spec)
        return {"kind": kind, "apiVersion": version, "metadata": {}, "spec": spec, "status": status}

    def _review_token(self, spec: Object) -> Object:
        user = self.authenticate(str(spec.get("token", "")))
        return {"authenticated": True, "user": user} if user else {"user": {}, "error": "invalid bearer token"}

    def _review_access(self, spec: Object) -> Object:
        is_allowed, reason = self.authorize(spec)
        return {"allowed": is_allowed, "reason": reason}
