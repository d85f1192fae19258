"""Log invalid HTTP requests with the client's address, at most a few lines per second."""

import logging
from dataclasses import dataclass, field
from typing import Final

_LOG: Final = logging.getLogger("extender.extender_api")


@dataclass(slots=True)
class InvalidRequestLog:
    """Logs invalid requests up to a limit. The first line after omitted requests contains their number.

    Attributes:
        max_lines: the limit of lines per interval.
        interval: the length of an interval in seconds.
    """

    max_lines: int = 10
    interval: float = 1.0
    _interval_start: float = field(init=False, default=float("-inf"))
    _line_count: int = field(init=False, default=0)
    _omitted_count: int = field(init=False, default=0)

    def log(self, peer: tuple[str, int] | None, message: str, now: float) -> None:
        """Log that a request was rejected.

        Args:
            peer: the host and port of the client; None if unknown.
            message: the reason of the rejection.
            now: the current time in monotonic seconds.
        """
        if now - self._interval_start >= self.interval:
            self._interval_start, self._line_count = now, 0
        if self._line_count >= self.max_lines:
            self._omitted_count += 1
            return
        self._line_count += 1
        omitted_fields = {"omitted": self._omitted_count} if self._omitted_count else {}
        self._omitted_count = 0
        _LOG.warning("Rejected an invalid HTTP request", extra={"from": peer, "err": message, **omitted_fields})
