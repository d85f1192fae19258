"""What is told of requests to the API server, and of those who ask us: delegated authentication and authorization."""

from typing import Final

from extender.client.transport import Try
from extender.observe.families import Families

_KNOWN_USERS: Final = frozenset(
    ("admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default")
)
"""The only names that are told; others could be any number."""


class CallMetrics:
    """Implements `client.transport.Observe` (`requested`) and `web.callers.Heard`.

    Attributes:
        host: of the API server, with its port.
    """

    def __init__(self, families: Families) -> None:
        """Tell *families*, among which those of `process_families.CALL_FAMILIES` must be."""
        self._families = families
        self.host = ""

    def requested(self, one: Try) -> None:
        """A try of a request is over."""
        families, code, where = self._families, str(one.code or "<error>"), (one.method, self.host)
        families.count("rest_client_requests_total", code, *where)
        if one.again:
            families.count("rest_client_request_retries_total", code, *where)
        families.observe("rest_client_request_duration_seconds", *where, value=one.seconds)
        families.observe("rest_client_request_size_bytes", *where, value=one.sent)
        if one.waited is not None:
            families.observe("rest_client_rate_limiter_duration_seconds", *where, value=one.waited)
        if one.received is not None:
            families.observe("rest_client_response_size_bytes", *where, value=one.received)

    def reviewed(self, kind: str, code: str, seconds: float) -> None:
        """The API server was asked about a caller: *kind* is `authn` or `authz`."""
        self._families.count(f"apiserver_delegated_{kind}_request_total", code)
        self._families.observe(f"apiserver_delegated_{kind}_request_duration_seconds", code, value=seconds)

    def fetched(self, status: str) -> None:
        """A caller's token was asked about: ok or error."""
        self._families.count("authentication_token_cache_fetch_total", status)

    def looked_up(self, status: str, seconds: float) -> None:
        """A caller's token was looked up: hit or miss."""
        self._families.count("authentication_token_cache_request_total", status)
        self._families.observe("authentication_token_cache_request_duration_seconds", status, value=seconds)

    def recognised(self, result: str, username: str, seconds: float) -> None:
        """A caller was looked at: success, failure or error; *username* only in the first case."""
        self._families.count("authentication_attempts", result)
        self._families.observe("authentication_duration_seconds", result, value=seconds)
        if username:
            told = username if username in _KNOWN_USERS else "email_id" if "@" in username else "other"
            self._families.count("authenticated_user_requests", told)

    def judged(self, result: str, seconds: float) -> None:
        """Rights were looked at: allowed, no-opinion (so not allowed), or error."""
        self._families.count("authorization_attempts_total", result)
        self._families.observe("authorization_duration_seconds", result, value=seconds)
