"""Read request bodies within size limits: one for each body, one for all bodies and responses together.

A request with node names is small, and a request with whole nodes or pods is large. Only the body shows which kind a
request is. So each body may grow to the limit for names. It may grow beyond that limit only if the list of whole nodes
or victims starts before the limit. In kube-scheduler's requests the list starts before the limit, because only the pod
precedes it and etcd limits a pod to 1.5 MiB.
"""

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Final

from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope

from extender.extender_api.request_limits import DEFAULT_LIMITS, MAX_NODES_BYTES, RequestError, RequestLimits

WHOLE_NODES_PATTERN: Final = re.compile(rb'"nodes"\s*:\s*\{', re.IGNORECASE)
"""Matches a request of filter or prioritize with whole nodes. A JSON string escapes quotes, so no label or annotation
value matches."""

WHOLE_PODS_PATTERN: Final = re.compile(rb'"node(?:name)?tovictims"\s*:\s*\{', re.IGNORECASE)
"""Matches a request of preempt with whole victims."""


@dataclass(slots=True)
class BodyReader:
    """Reads request bodies within size limits.

    Attributes:
        limits: the limits of one request.
        max_total_bytes: the limit for all requests that are being read or served, and all responses that are being
            sent. A response is as big as its request if it has whole nodes.
        current_total_bytes: the current size of these requests and responses.
    """

    limits: RequestLimits = DEFAULT_LIMITS
    max_total_bytes: int = 4 * MAX_NODES_BYTES
    current_total_bytes: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.max_total_bytes = max(self.max_total_bytes, self.limits.max_bytes)

    @asynccontextmanager
    async def read(
        self, scope: Scope, receive: Receive, whole_objects_pattern: re.Pattern[bytes] | None
    ) -> AsyncIterator[bytearray]:
        """Read the whole body, and yield it. It counts in `current_total_bytes` until the block ends.

        *whole_objects_pattern* matches a body with whole objects; None: such bodies are not allowed.

        Raises:
            RequestError: 413, the body is too big; 503, all bodies together are too big; 400, the Content-Length is not
                a number.
            ClientDisconnect: the client closed the connection before the end of the body.
        """
        limit = self.limits.max_names_bytes
        max_bytes = limit if whole_objects_pattern is None else self.limits.max_bytes
        self._check_size(_get_content_length(scope), max_bytes)
        body, has_more = bytearray(), True
        try:
            while has_more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                chunk, has_more = message.get("body", b""), message.get("more_body", False)
                body += chunk
                self.current_total_bytes += len(chunk)
                if len(body) > limit < max_bytes and whole_objects_pattern and whole_objects_pattern.search(body):
                    limit = max_bytes
                self._check_size(len(body), limit)
                if self.current_total_bytes > self.max_total_bytes:
                    raise RequestError(503, "too many big requests at once; retry later")
            yield body
        finally:
            self.current_total_bytes -= len(body)

    @contextmanager
    def count(self, size: int) -> Iterator[None]:
        """Count a response of *size* bytes in `current_total_bytes` until the block ends."""
        self.current_total_bytes += size
        try:
            yield
        finally:
            self.current_total_bytes -= size

    def _check_size(self, size: int, limit: int) -> None:
        if size > limit:
            subject = "a request" if limit == self.limits.max_bytes else "a request without whole nodes or pods"
            raise RequestError(413, f"{subject} may have at most {limit} bytes")


def get_header(scope: Scope, name: bytes) -> bytes:
    """Return the first header of this *name* (in lower case); empty if there is none."""
    return next((value for key, value in scope["headers"] if key == name), b"")


def _get_content_length(scope: Scope) -> int:
    """Return the Content-Length header; 0 if there is none."""
    value = get_header(scope, b"content-length") or b"0"
    if not value.isdigit():
        raise RequestError(400, "Content-Length: not a number")
    return int(value[:20])
