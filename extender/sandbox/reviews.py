"""TokenReview and SubjectAccessReview: who is asking, and may they; everyone is known and may do everything.

Unless told otherwise: tests of delegated authentication and authorization pass rules of their own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from extender.sandbox.served import Object

_USER: Final = {"username": "system:admin", "uid": "sandbox", "groups": ["system:masters", "system:authenticated"]}


def _everyone(token: str) -> Object | None:
    """The user any token stands for, but for an empty one."""
    return dict(_USER) if token else None


def _everything(_: Object) -> tuple[bool, str]:
    """All is allowed."""
    return True, "everything is allowed in the sandbox"


@dataclass(frozen=True, slots=True)
class Reviews:
    """Answers reviews.

    Attributes:
        user: the user a token stands for, as `username`, `uid` and `groups`; None for a bad token.
        allows: whether what the spec of a SubjectAccessReview describes is allowed, and why.
    """

    user: Callable[[str], Object | None] = _everyone
    allows: Callable[[Object], tuple[bool, str]] = _everything

    def answer(self, path: str, body: Object) -> Object | None:
        """The review with its status; None if *path* is not that of one."""
        spec = body.get("spec") or {}
        match path.strip("/").split("/"):
            case ["apis", "authentication.k8s.io", "v1", "tokenreviews"]:
                user = self.user(str(spec.get("token", "")))
                found = {"authenticated": True, "user": user} if user else {"user": {}, "error": "invalid bearer token"}
                return _review("authentication.k8s.io/v1", "TokenReview", spec, found)
            case ["apis", "authorization.k8s.io", "v1", "subjectaccessreviews"]:
                return _review("authorization.k8s.io/v1", "SubjectAccessReview", spec, self._allowed(spec))
            case ["apis", "authorization.k8s.io", "v1", "selfsubjectaccessreviews"]:
                return _review("authorization.k8s.io/v1", "SelfSubjectAccessReview", spec, self._allowed(spec))
            case _:
                return None

    def _allowed(self, spec: Object) -> Object:
        allowed, why = self.allows(spec)
        return {"allowed": allowed, "reason": why}


def _review(version: str, kind: str, spec: Object, status: Object) -> Object:
    return {"kind": kind, "apiVersion": version, "metadata": {}, "spec": spec, "status": status}
