"""Answer TokenReviews and SubjectAccessReviews.

By default, every token is valid and every request is allowed. Tests of delegated authentication and authorization pass
other rules.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from extender.fake_apiserver.registry.resources import Object

_USER: Final = {
    "username": "system:admin",
    "uid": "fake-apiserver",
    "groups": ["system:masters", "system:authenticated"],
}


def _authenticate_all(token: str) -> Object | None:
    """Return the same user for every non-empty token."""
    return dict(_USER) if token else None


def _authorize_all(_: Object) -> tuple[bool, str]:
    """Allow every request."""
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
        spec = body.get("spec") or {}
        match path.strip("/").split("/"):
            case ["apis", "authentication.k8s.io", "v1", "tokenreviews"]:
                user = self.authenticate(str(spec.get("token", "")))
                status = (
                    {"authenticated": True, "user": user} if user else {"user": {}, "error": "invalid bearer token"}
                )
                return _make_review("authentication.k8s.io/v1", "TokenReview", spec, status)
            case ["apis", "authorization.k8s.io", "v1", "subjectaccessreviews"]:
                return _make_review(
                    "authorization.k8s.io/v1", "SubjectAccessReview", spec, self._make_access_status(spec)
                )
            case ["apis", "authorization.k8s.io", "v1", "selfsubjectaccessreviews"]:
                return _make_review(
                    "authorization.k8s.io/v1", "SelfSubjectAccessReview", spec, self._make_access_status(spec)
                )
            case _:
                return None

    def _make_access_status(self, spec: Object) -> Object:
        is_allowed, reason = self.authorize(spec)
        return {"allowed": is_allowed, "reason": reason}


def _make_review(version: str, kind: str, spec: Object, status: Object) -> Object:
    return {"kind": kind, "apiVersion": version, "metadata": {}, "spec": spec, "status": status}
