"""TLS connections of asyncio and uvloop that read one TLS record at a time."""

import ssl
from typing import Any, Final

_MAX_RECORD_BYTES: Final = 1 << 14
"""The largest TLS record, which is also the most that one read returns. Source: RFC 8446, section 5.1."""


class _RecordReader(ssl.SSLObject):
    """A TLS connection whose reads allocate at most the size of a record.

    asyncio and uvloop read with a limit of 256 KiB, and Python allocates the limit before each read. These allocations
    fragment the heap of a process that reads for hours.
    """

    def read(self, len: int = 1024, buffer: Any = None) -> Any:  # noqa: A002  the name in the base class
        """Read up to *len* bytes; into *buffer* if it is not None."""
        return super().read(min(len, _MAX_RECORD_BYTES), buffer)


def limit_reads(context: ssl.SSLContext) -> None:
    """Limit the allocations of the connections that asyncio and uvloop will open with *context*."""
    context.sslobject_class = _RecordReader
