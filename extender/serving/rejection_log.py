"""Log rejected requests, at most a few lines per second, so that a flood of them does not fill the disk."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

_LOG: Final = logging.getLogger("extender.extender_api")


def format_address(address: Sequence[object]) -> str:
    """Return the `host:port` of a socket address as Go does, an IPv6 address in brackets."""
    host, port = str(address[0]), address[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def format_client(address: Sequence[object] | None) -> str:
    """Return the `format_address` of a client; empty without an address.

    A socket for both IPv4 and IPv6 gives a client with IPv4 an IPv6 address.
    """
    if not address:
        return ""
    return format_address((str(address[0]).removeprefix("::ffff:"), address[1]))


@dataclass(slots=True)
class RejectionLog:
    """Logs rejected requests up to a limit. The first line after omitted requests contains their number.

    Attributes:
        interval: the length of an interval in seconds.
    """

    text: str
    max_lines: int = 10
    interval: float = 1.0
    _interval_start: float = field(init=False, default=float("-inf"))
    _line_count: int = field(init=False, default=0)
    _omitted_count: int = field(init=False, default=0)

    def log(self, fields: Mapping[str, object], now: float) -> None:
        """Log that a request was rejected.

        *fields* are such as the client and the reason; *now* is in monotonic seconds.
        """
        if now - self._interval_start >= self.interval:
            self._interval_start, self._line_count = now, 0
        if self._line_count >= self.max_lines:
            self._omitted_count += 1
            return
        self._line_count += 1
        omitted_fields = {"omitted": self._omitted_count} if self._omitted_count else {}
        self._omitted_count = 0
        _LOG.warning(self.text, extra={**fields, **omitted_fields})
