"""Rate limits: a token bucket, exponential backoff, and Retry-After.

No function waits or reads a clock. The current time is an argument, and the result is the seconds to wait.
"""

from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import Final

Jitter = Callable[[], float]
"""Returns random numbers from 0 up to 1."""

DEFAULT_QPS: Final = 5.0
DEFAULT_BURST: Final = 10


class TokenBucket:
    """Allows *burst* requests at once and *qps* per second in the long run.

    The number of tokens may be negative: each caller that waits has reserved a token, in calling order.
    """

    def __init__(self, qps: float, burst: int) -> None:
        """Create a full bucket; *qps* is above 0."""
        self._qps = qps
        self._burst = float(burst)
        self._tokens = float(burst)
        self._updated_at: float | None = None

    def reserve(self, now: float) -> float:
        """Take a token; return the seconds until it may be used.

        *now* is in monotonic seconds.
        """
        if self._updated_at is not None and now > self._updated_at:
            self._tokens = min(self._burst, self._tokens + (now - self._updated_at) * self._qps)
        self._updated_at = now if self._updated_at is None else max(now, self._updated_at)
        self._tokens -= 1.0
        return max(0.0, -self._tokens / self._qps)

    def cancel(self) -> None:
        """Return a token that was taken and not used."""
        self._tokens = min(self._burst, self._tokens + 1.0)


def make_token_bucket(qps: float, burst: int) -> TokenBucket | None:
    """Create the bucket for `clientConnection.qps` and `.burst`; 0 means the default, a negative rate no limit.

    Source: client-go/rest/config.go, RESTClientForConfigAndClient (1.36).
    """
    rate = qps or DEFAULT_QPS
    return TokenBucket(rate, burst or DEFAULT_BURST) if rate > 0 else None


class Backoff:
    """Exponential backoff from 0.8 s to 30 s; each delay is randomly extended to at most twice its value.

    After two minutes without a failure it starts again from 0.8 s.

    Source: client-go/tools/cache/reflector.go, NewReflectorWithOptions (1.36).
    """

    INITIAL_SECONDS: Final = 0.8
    MAX_SECONDS: Final = 30.0
    RESET_SECONDS: Final = 120.0

    def __init__(self, jitter: Jitter) -> None:
        self._jitter = jitter
        self._next_base = self.INITIAL_SECONDS
        self._last_retry: float | None = None

    def compute_next_delay(self, now: float) -> float:
        """Return the seconds to wait after a failure at *now* (monotonic seconds)."""
        if self._last_retry is not None and now - self._last_retry > self.RESET_SECONDS:
            self._next_base = self.INITIAL_SECONDS
        base_delay = self._next_base
        self._next_base = min(base_delay * 2, self.MAX_SECONDS)
        delay = base_delay * (1.0 + self._jitter())
        self._last_retry = now + delay
        return delay


MAX_RETRY_AFTER_SECONDS: Final = 60.0
"""The longest wait for a Retry-After header; longer values are cut to it."""


def parse_retry_after(header: str | None, now: float) -> float | None:
    """Return the seconds of a Retry-After header; None if there is no valid header.

    *header* is whole seconds or an HTTP date, compared with *now* in seconds since 1970; a date in the past means 0
    seconds. The result is at most a minute.
    """
    if not header:
        return None
    text = header.strip()
    if text.isascii() and text.isdigit():
        return min(float(text), MAX_RETRY_AFTER_SECONDS)
    try:
        date = parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):  # a year or an offset of many digits
        return None
    return min(max(0.0, date - now), MAX_RETRY_AFTER_SECONDS)
