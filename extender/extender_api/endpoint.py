"""The ASGI application of one verb, and its access log.

A middleware calls it without a search for a route, because a scheduler waits for each response: FastAPI's own route
with dependencies takes a fifth of a millisecond more (docs/decisions/0005-http-path-for-verbs.md).
"""

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from extender.api.extender_v1 import FilterResult
from extender.event_loop.cooperative_iteration import iterate_cooperatively, let_other_tasks_run
from extender.extender_api.body_reader import BodyReader, get_header
from extender.extender_api.host_priorities import HostPriorities
from extender.extender_api.limiter import RequestLimiter
from extender.extender_api.node_names import NodeNames
from extender.extender_api.request_limits import RequestError
from extender.metrics.verb_metrics import VerbMetrics
from extender.serving.authentication import get_first_certificate_name
from extender.serving.http_protocol import CERTIFICATE_EXTENSION, TRANSFER_TIMEOUT
from extender.serving.rejection_log import format_client

log = logging.getLogger("extender.access")

SUCCESS_LEVEL: Final = logging.INFO - 2
"""Log level of successful requests, which are logged with `-v=2` or higher. Failed requests are always logged."""

_CLIENT_CLOSED_REQUEST: Final = 499
"""Status code in the metrics if a client closes the connection before its request is read, or does not read a big
response. The code is never sent."""

_BIG_RESPONSE_BYTES: Final = 256 << 10
"""Size above which a response counts as sent only when the client has read most of it."""

_NODES_PER_PIECE: Final = 256
"""Whole nodes in one piece of a response: about 4 MiB."""

_BYTES_PER_NAME: Final = 10
"""Minimum bytes of a node name in a request, to estimate the number of names from the size of the body."""

_CLOSE: Final = {"Connection": "close"}

_encoder: Final = msgspec.json.Encoder()


Decoder = Callable[[bytearray], Awaitable[Any]]
"""Decodes the body of a request. It raises `RequestError`."""


@dataclass(frozen=True, slots=True)
class VerbEndpoint:
    """Serves the requests of one verb on the event loop itself, because a decision takes only milliseconds.

    Attributes:
        name: the verb's name in metrics.
        get_handler: a function that returns the handler of the next request; a reload may replace the handler.
        whole_objects_pattern: the pattern of a request with whole objects; None if such requests are not allowed.
        changes_cluster: whether the verb writes to the API server or assumes pods. If so, the content type must be
            JSON, as an old browser may not send the header Origin, with which no verb is served.
    """

    name: str
    decode: Decoder
    get_handler: Callable[[], Callable[[Any], Awaitable[Any]]]
    body_reader: BodyReader
    whole_objects_pattern: re.Pattern[bytes] | None
    limiter: RequestLimiter
    metrics: VerbMetrics
    changes_cluster: bool = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request that was routed to the verb.

        Raises:
            HTTPException: the request is rejected.
        """
        start_time = time.perf_counter()
        self.metrics.observe_request_start(self.name)
        code = 500
        log_fields: dict[str, Any] = {}
        try:
            pieces = await self._handle(scope, receive, log_fields)
            code = 200
            size = log_fields["responseBytes"]
            with self.body_reader.count(size):
                await _send_json(send, pieces, size, close_connection="err" in log_fields)
        except RequestError as error:
            code, log_fields["err"] = error.status, error.message
            # As after an error in the body: another replica may be ready, or less busy.
            raise HTTPException(code, error.message, _CLOSE if code >= 500 else None) from error
        except MemoryError as error:
            code, log_fields["err"] = 503, "not enough memory for this request"
            raise HTTPException(code, log_fields["err"], _CLOSE) from error
        except _UnreadResponseError as error:
            code, log_fields["err"] = _CLIENT_CLOSED_REQUEST, str(error)
        except ClientDisconnect:
            code = _CLIENT_CLOSED_REQUEST
        finally:
            seconds = time.perf_counter() - start_time
            self.metrics.observe_request_end(self.name, code, seconds)
            log_request(scope, self.name, code, seconds, log_fields)

    async def _handle(self, scope: Scope, receive: Receive, log_fields: dict[str, Any]) -> Sequence[bytes]:
        """Return the response in pieces of JSON, and add fields of the access log to *log_fields*.

        Raises:
            RequestError: the request is rejected.
            ClientDisconnect: the client closed the connection before the end of the request.
        """
        encoding = get_header(scope, b"content-encoding")
        if encoding.strip().lower() not in {b"", b"identity"}:
            name = encoding.decode("latin-1")
            raise RequestError(415, f'Content-Encoding "{name}" is not supported; send the body uncompressed')
        if get_header(scope, b"origin"):
            raise RequestError(403, "requests with the header Origin are not allowed: browsers send it for web pages")
        if self.changes_cluster:
            media_type = get_header(scope, b"content-type").partition(b";")[0].strip().lower()
            if media_type != b"application/json":  # which a web page of another site cannot set
                raise RequestError(415, "Content-Type: want application/json")
        async with self.body_reader.read(scope, receive, self.whole_objects_pattern) as body, self.limiter:
            args = await self.decode(body)
            log_fields["pod"] = args.key
            result = await self.get_handler()(args)
            await let_other_tasks_run(len(body) // _BYTES_PER_NAME)
            if error := getattr(result, "error", ""):
                log_fields["err"] = error
            pieces = await _encode(result, getattr(args, "names", None))
            response_bytes = sum(map(len, pieces))
            self.metrics.observe_body_sizes(self.name, len(body), response_bytes)
            log_fields["requestBytes"], log_fields["responseBytes"] = len(body), response_bytes
            return pieces


async def _encode(result: Any, names: NodeNames | None = None) -> Sequence[bytes]:
    """Return *result* in JSON. Whole nodes are encoded in pieces, because a copy of all of them takes too long.

    If filter returns all *names* of the request, their JSON is not encoded again.
    """
    if isinstance(result, HostPriorities):
        return (result.to_json(),)
    if isinstance(result, FilterResult) and names is not None and result.node_names is names.names:
        opening, key, closing = _encoder.encode(msgspec.structs.replace(result, node_names=[])).partition(
            b'"NodeNames":'
        )
        return (b"".join((opening, key, names.json, closing.removeprefix(b"[]"))),)
    if not isinstance(result, FilterResult) or result.nodes is None:
        return (_encoder.encode(result),)
    items = result.nodes["items"]
    without_items = msgspec.structs.replace(result, nodes={**result.nodes, "items": []})
    opening, _, closing = _encoder.encode(without_items).rpartition(b'"items":[]')
    pieces = [opening + b'"items":[']
    async for start in iterate_cooperatively(range(0, len(items), _NODES_PER_PIECE)):
        separator = b"," if start else b""
        pieces.append(separator + b",".join(items[start : start + _NODES_PER_PIECE]))
    pieces.append(b"]" + closing)
    return pieces


class _UnreadResponseError(Exception):
    """The client did not read a big response in time. The server closes a connection without a complete response."""


async def _send_json(send: Send, pieces: Sequence[bytes], size: int, *, close_connection: bool) -> None:
    """Send a response of *size* bytes. After an error the connection is closed.

    The next request may then reach another replica.

    Raises:
        _UnreadResponseError: the response is big, and the client reads too slowly.
    """
    headers = [(b"content-length", b"%d" % size), (b"content-type", b"application/json")]
    if close_connection:
        headers.append((b"connection", b"close"))
    is_big = size > _BIG_RESPONSE_BYTES
    last_piece = b"" if is_big else pieces[-1]  # the last message waits until the client has read the others
    try:
        async with asyncio.timeout(TRANSFER_TIMEOUT if is_big else None):
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            for piece in pieces if is_big else pieces[:-1]:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": last_piece})
    except TimeoutError as error:
        raise _UnreadResponseError(f"the client did not read the response within {TRANSFER_TIMEOUT:g} s") from error


def log_request(scope: Scope, verb: str, code: int, seconds: float, fields: dict[str, Any]) -> None:
    """Log one request in the access log, with caller, pod and status code.

    *seconds* count from the request's headers to the end of the response. *fields* are further log fields: pod, body
    sizes, error.
    """
    level = SUCCESS_LEVEL if code == 200 and not fields.get("err") else logging.INFO
    if not log.isEnabledFor(level):
        return
    certificate = scope.get("extensions", {}).get(CERTIFICATE_EXTENSION)
    log.log(
        level,
        "request",
        extra={
            "verb": verb,
            "path": scope["path"],
            "code": code,
            "milliseconds": round(seconds * 1000, 3),
            "from": format_client(scope.get("client")),
            "user": get_first_certificate_name(certificate) if certificate else "",
            **fields,
        },
    )
