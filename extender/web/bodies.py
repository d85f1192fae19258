"""The bodies of requests: how big each may be, and all of them together.

A request with names is small, one with whole nodes or pods is not, and which it is stands in the body. So what arrives
is counted: up to the bound for names nobody asks; a body that goes on must have shown by then that it carries whole
objects, or is refused. The pod comes before them and weighs 1.5 MiB at most (etcd's bound), so a real request has.
"""

import re
from dataclasses import dataclass, field
from typing import Final

from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope

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
        held: what they weigh now.
    """

    names: int = MAX_NAMES_BYTES
    whole: int = MAX_NODES_BYTES
    together: int = 4 * MAX_NODES_BYTES
    held: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.together = max(self.together, self.whole)

    def of(self, scope: Scope, receive: Receive, sign: re.Pattern[bytes] | None) -> "_Body":
        """The body of a request, as an asynchronous context manager: for as long as its block lasts.

        Args:
            scope: of the request.
            receive: nothing of it was read yet.
            sign: shows that a body carries whole objects; None: none of them does.
        """
        return _Body(self, scope, receive, sign)

    def check(self, size: int, limit: int) -> None:
        """See that something of *size* bytes is within its *limit*.

        Raises:
            RequestError: 413, it is not.
        """
        if size > limit:
            what = "a request" if limit == self.whole else "a request without whole nodes or pods"
            raise RequestError(413, f"{what} may have {limit} bytes, this has more")


class _Body:
    """What is read of one request, and counted among all."""

    __slots__ = ("_bodies", "_read", "_receive", "_scope", "_sign")

    def __init__(self, bodies: Bodies, scope: Scope, receive: Receive, sign: re.Pattern[bytes] | None) -> None:
        self._bodies, self._scope, self._receive, self._sign = bodies, scope, receive, sign
        self._read = bytearray()

    async def __aenter__(self) -> bytearray:
        """All of it.

        Raises:
            RequestError: 413, it is too big; 503, all requests together are; 400, its length is no number.
            ClientDisconnect: the caller hung up before it was there.
        """
        bodies, sign = self._bodies, self._sign
        most = bodies.names if sign is None else bodies.whole
        bodies.check(_declared(self._scope), most)
        try:
            await self._all(bodies.names, most)
        except BaseException:
            bodies.held -= len(self._read)
            raise
        return self._read

    async def _all(self, limit: int, most: int) -> None:
        bodies, read, sign = self._bodies, self._read, self._sign
        more = True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            chunk, more = message.get("body", b""), message.get("more_body", False)
            read += chunk
            bodies.held += len(chunk)
            if len(read) > limit < most and sign is not None and sign.search(read):
                limit = most
            bodies.check(len(read), limit)
            if bodies.held > bodies.together:
                raise RequestError(503, "too many big requests at once; ask again later")

    async def __aexit__(self, *_: object) -> None:
        """It is not needed any more."""
        self._bodies.held -= len(self._read)


def header(scope: Scope, name: bytes) -> bytes:
    """The first header of this *name* (in lower case); empty if there is none."""
    return next((value for key, value in scope["headers"] if key == name), b"")


def _declared(scope: Scope) -> int:
    """The length a request says it has; 0 if it does not say."""
    said = header(scope, b"content-length") or b"0"
    if not said.isdigit():
        raise RequestError(400, "Content-Length: is no number")
    return int(said[:20])
