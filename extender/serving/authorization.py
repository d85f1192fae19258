"""Authorize requests by SubjectAccessReviews of the API server. Some paths are always allowed.

Source: apiserver/pkg/server/options/authentication.go, DelegatingAuthenticationOptions.ApplyTo;
apiserver/pkg/server/options/authorization.go, DelegatingAuthorizationOptions.toAuthorizer,
DelegatingAuthorizationOptions.AddFlags; plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go, ClusterRoles
(1.36).
"""

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from extender.metrics.client_metrics import ClientMetrics
from extender.serving.authentication import DECODE_ERRORS, ExpiringCache, Reviewer, ReviewError, UserInfo
from extender.serving.serving_options import AuthorizationOptions

_SUPERUSER_GROUP: Final = "system:masters"


class AuthorizationDecision(msgspec.Struct, frozen=True):
    """The result of an authorization, as in the status of a SubjectAccessReview; the reason may be empty."""

    allowed: bool = False
    reason: str = ""


class _Review(msgspec.Struct, frozen=True):
    status: AuthorizationDecision = AuthorizationDecision()


@dataclass(slots=True)
class Authorizer:
    """Authorizes requests.

    Attributes:
        reviewer: creates SubjectAccessReviews; None: only the always allowed paths and the group `system:masters` are
            allowed.
        now: returns monotonic seconds.
    """

    settings: AuthorizationOptions
    reviewer: Reviewer | None
    metrics: ClientMetrics
    now: Callable[[], float] = time.monotonic
    _decision_cache: ExpiringCache[AuthorizationDecision] = field(init=False)

    def __post_init__(self) -> None:
        self._decision_cache = ExpiringCache(self.now)

    async def authorize(self, user: UserInfo, verb: str, path: str) -> AuthorizationDecision:
        """Decide whether *user* may send a request.

        *verb* is the HTTP method in lower case.

        Raises:
            ReviewError: the review failed.
        """
        if self._is_always_allowed(path) or _SUPERUSER_GROUP in user.groups:
            return AuthorizationDecision(allowed=True)
        if self.reviewer is None:
            return AuthorizationDecision(allowed=False)
        extra = tuple(sorted(user.extra.items()))
        # A digest, because anyone may request paths of 64 KiB, also with characters of four bytes.
        request = (user.name, user.uid, user.groups, extra, verb, path)
        key = hashlib.sha256(repr(request).encode()).digest()
        decision = self._decision_cache.get(key)
        if decision is None:
            decision = await self._review_access(user, verb, path, self.reviewer)
            ttl = self.settings.allowed_cache_ttl if decision.allowed else self.settings.denied_cache_ttl
            self._decision_cache.put(key, decision, ttl)
        return decision

    def _is_always_allowed(self, path: str) -> bool:
        for pattern in self.settings.always_allowed_paths:
            if pattern.endswith("*"):
                if path.lstrip("/").startswith(pattern[:-1].lstrip("/")):
                    return True
            elif path.lstrip("/") == pattern.lstrip("/"):
                return True
        return False

    async def _review_access(self, user: UserInfo, verb: str, path: str, reviewer: Reviewer) -> AuthorizationDecision:
        spec: dict[str, Any] = {"user": user.name, "nonResourceAttributes": {"path": path, "verb": verb}}
        if user.groups:
            spec["groups"] = list(user.groups)
        if user.uid:
            spec["uid"] = user.uid
        if user.extra:
            spec["extra"] = {key: list(values) for key, values in user.extra.items()}
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        start_time = self.now()
        try:
            decision = msgspec.json.decode(await reviewer.review("SubjectAccessReview", body), type=_Review).status
        except (ReviewError, *DECODE_ERRORS) as error:
            self.metrics.observe_review("authz", "<error>", self.now() - start_time)
            reason = "" if isinstance(error, ReviewError) else "the SubjectAccessReview cannot be decoded: "
            raise ReviewError(f"{reason}{error}") from error
        self.metrics.observe_review("authz", "201", self.now() - start_time)
        return decision
