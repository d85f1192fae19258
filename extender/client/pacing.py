"""How fast to ask: a rate with bursts, growing waits after failures, and waits that the server asks for.

Pure: time goes in, seconds to wait come out.
"""

from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import Final

Chance = Callable[[], float]
"""Numbers from 0 up to 1."""

DEFAULT_QPS: Final = 5.0
DEFAULT_BURST: Final = 10


class TokenBucket:
    """At most *burst* requests at once and *qps* a second in the long run; who comes early is told how long to wait.

    Tokens may be owed: callers are served in the order they came.
    """

    def __init__(self, qps: float, burst: int) -> None:
        """A full bucket; *qps* above 0."""
        self._qps = qps
        self._burst = float(burst)
        self._tokens = float(burst)
        self._at: float | None = None

    def take(self, now: float) -> float:
        """Take a token, and the seconds until it may be used.

        Args:
            now: monotonic seconds.
        """
        if self._at is not None and now > self._at:
            self._tokens = min(self._burst, self._tokens + (now - self._at) * self._qps)
        self._at = now if self._at is None else max(now, self._at)
        self._tokens -= 1.0
        return max(0.0, -self._tokens / self._qps)

    def give_back(self) -> None:
        """Return a token that was taken and not used."""
        self._tokens = min(self._burst, self._tokens + 1.0)


def bucket(qps: float, burst: int) -> TokenBucket | None:
    """The bucket for `clientConnection.qps` and `.burst`: 0 means 5 and 10; a negative rate means no bound.

    Source: client-go's rest.RESTClientFor.
    """
    rate = qps or DEFAULT_QPS
    return TokenBucket(rate, burst or DEFAULT_BURST) if rate > 0 else None


class Backoff:
    """Waits of 0.8 s, doubled up to 30 s, each lengthened by up to its own size by chance.

    Who has not failed for two minutes starts again from 0.8 s. Source: client-go's reflector.
    """

    INITIAL: Final = 0.8
    MOST: Final = 30.0
    RESET: Final = 120.0

    def __init__(self, chance: Chance) -> None:
        self._chance = chance
        self._next = self.INITIAL
        self._last: float | None = None

    def after_failure(self, now: float) -> float:
        """Seconds to wait after a failure at *now* (monotonic seconds)."""
        if self._last is not None and now - self._last > self.RESET:
            self._next = self.INITIAL
        base = self._next
        self._next = min(base * 2, self.MOST)
        wait = base * (1.0 + self._chance())
        self._last = now + wait
        return wait


LONGEST_RETRY_AFTER: Final = 60.0


def retry_after(header: str | None, now: float) -> float | None:
    """Seconds that a Retry-After header asks to wait; None without a header or with one that means nothing.

    Args:
        header: whole seconds or an HTTP date; a date that has passed means at once. More than a minute counts as one.
        now: seconds since 1970, for dates.
    """
    if not header:
        return None
    text = header.strip()
    if text.isascii() and text.isdigit():
        return min(float(text), LONGEST_RETRY_AFTER)
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    return min(max(0.0, at.timestamp() - now), LONGEST_RETRY_AFTER)
