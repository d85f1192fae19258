"""The bodies of requests: how big each may be, and all of them together.

A request with names is small, one with whole nodes or pods is not, and which it is stands in the body. So what arrives
is counted: up to the bound for names nobody asks; a body that goes on must have shown by then that it carries whole
objects, or is refused. The pod comes before them and weighs 1.5 MiB at most (etcd's bound), so a real request has.
"""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from starlette.requests import Request

from extender.web.wire import MAX_NAMES_BYTES, MAX_NODES_BYTES, RequestError

WHOLE_NODES: Final = re.compile(rb'"nodes"\s*:\s*\{', re.IGNORECASE)
"""What shows that a request of filter or prioritize carries whole nodes. Inside a JSON string the quotes would be
escaped, so no text that somebody chose for a label or an annotation looks like it."""

WHOLE_PODS: Final = re.compile(rb'"node(?:name)?tovictims"\s*:\s*\{', re.IGNORECASE)
"""The same for whole victims in a request of preempt."""


@dataclass(slots=True)
class Bodies:
    """Reads bodies.

    Attributes:
        names: the most a request without whole objects may weigh, in bytes.
        whole: the most any request may weigh, in bytes.
        together: the most that all requests being read or answered may weigh, in bytes.
    """

    names: int = MAX_NAMES_BYTES
    whole: int = MAX_NODES_BYTES
    together: int = 4 * MAX_NODES_BYTES
    _held: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.together = max(self.together, self.whole)

    @asynccontextmanager
    async def of(self, request: Request, sign: re.Pattern[bytes] | None) -> AsyncIterator[bytearray]:
        """The body of *request*, for as long as the block lasts.

        Args:
            request: nothing of it was read yet.
            sign: shows that a body carries whole objects; None: none of them does.

        Raises:
            RequestError: 413, it is too big; 503, all requests together are; 400, its length is no number.
            ClientDisconnect: the caller hung up before it was there.
        """
        most = self.names if sign is None else self.whole
        self._check(_declared(request), most)
        body = bytearray()
        limit = self.names
        try:
            async for chunk in request.stream():
                body += chunk
                self._held += len(chunk)
                if len(body) > limit < most and sign is not None and sign.search(body):
                    limit = most
                self._check(len(body), limit)
                if self._held > self.together:
                    raise RequestError(503, "too many big requests at once; ask again later")
            yield body
        finally:
            self._held -= len(body)

    def _check(self, size: int, limit: int) -> None:
        if size > limit:
            what = "a request" if limit == self.whole else "a request without whole nodes or pods"
            raise RequestError(413, f"{what} may have {limit} bytes, this has more")


def _declared(request: Request) -> int:
    """The length a request says it has; 0 if it does not say."""
    said = request.headers.get("content-length", "0")
    if not (said.isascii() and said.isdigit()):
        raise RequestError(400, "Content-Length: is no number")
    return int(said[:20])
