"""Metrics of requests to the API server, and of delegated authentication and authorization."""

from typing import Final

from extender.client.transport import RequestAttempt
from extender.metrics.families import MetricFamilies

_KNOWN_USERS: Final = frozenset(
    ("admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default")
)
"""The user names that are label values; the set of all user names is unbounded."""


class ClientMetrics:
    """Counts requests to the API server, and authentications and authorizations of callers.

    Attributes:
        host: the API server's host and port.
    """

    def __init__(self, families: MetricFamilies) -> None:
        """Use *families*, which must include `process_families.CLIENT_FAMILIES`."""
        self._families = families
        self.host = ""

    def observe_request(self, attempt: RequestAttempt) -> None:
        """Observe an attempt to send a request."""
        families, code, method_and_host = self._families, str(attempt.code or "<error>"), (attempt.method, self.host)
        families.increment("rest_client_requests_total", code, *method_and_host)
        if attempt.is_retry:
            families.increment("rest_client_request_retries_total", code, *method_and_host)
        families.observe("rest_client_request_duration_seconds", *method_and_host, value=attempt.seconds)
        families.observe("rest_client_request_size_bytes", *method_and_host, value=attempt.request_bytes)
        if attempt.rate_limit_wait is not None:
            families.observe(
                "rest_client_rate_limiter_duration_seconds", *method_and_host, value=attempt.rate_limit_wait
            )
        if attempt.response_bytes is not None:
            families.observe("rest_client_response_size_bytes", *method_and_host, value=attempt.response_bytes)

    def observe_review(self, kind: str, code: str, seconds: float) -> None:
        """Observe a review request to the API server; *kind* is `authn` or `authz`."""
        self._families.increment(f"apiserver_delegated_{kind}_request_total", code)
        self._families.observe(f"apiserver_delegated_{kind}_request_duration_seconds", code, value=seconds)

    def count_token_fetch(self, status: str) -> None:
        """Count a token review; *status* is `ok` or `error`."""
        self._families.increment("authentication_token_cache_fetch_total", status)

    def observe_token_lookup(self, status: str, seconds: float) -> None:
        """Observe a lookup in the token cache; *status* is `hit` or `miss`."""
        self._families.increment("authentication_token_cache_request_total", status)
        self._families.observe("authentication_token_cache_request_duration_seconds", status, value=seconds)

    def observe_authentication(self, result: str, username: str, seconds: float) -> None:
        """Observe an authentication; *result* is success, failure or error; *username* is empty without success."""
        self._families.increment("authentication_attempts", result)
        self._families.observe("authentication_duration_seconds", result, value=seconds)
        if username:
            label = username if username in _KNOWN_USERS else "email_id" if "@" in username else "other"
            self._families.increment("authenticated_user_requests", label)

    def observe_authorization(self, result: str, seconds: float) -> None:
        """Observe an authorization; *result* is allowed, no-opinion (not allowed) or error."""
        self._families.increment("authorization_attempts_total", result)
        self._families.observe("authorization_duration_seconds", result, value=seconds)
