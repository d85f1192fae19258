"""The ASGI application of one verb.

A scheduler waits for each response, so the slow handling of parameters, cookies and forms by FastAPI is skipped.
FastAPI serves the OpenAPI document and handles unexpected exceptions.
"""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any, Final, Protocol

import msgspec
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from extender.extender_api import access_log
from extender.extender_api.body_reader import BodyReader, get_header
from extender.extender_api.host_priorities import HostPriorities
from extender.extender_api.limiter import RequestLimiter
from extender.extender_api.payloads import RequestError
from extender.serving.health_endpoints import make_text_response

_CLIENT_CLOSED_REQUEST: Final = 499
"""Status code in the metrics for a client that closes the connection before its request is read; it is never sent."""

_encoder: Final = msgspec.json.Encoder()


class RequestMetrics(Protocol):
    """Metrics of requests (`metrics.verb_metrics.VerbMetrics`)."""

    def observe_request_start(self, verb: str) -> None:
        """Count a request that is in flight."""

    def observe_request_end(self, verb: str, code: int, seconds: float) -> None:
        """Observe the end of a request with the HTTP status *code*."""

    def observe_body_sizes(self, verb: str, request_bytes: int, response_bytes: int) -> None:
        """Observe the sizes of the bodies in bytes."""

    def observe_event_loop_lag(self, seconds: float) -> None:
        """Observe the delay of the event loop in seconds."""


@dataclass(frozen=True, slots=True)
class VerbEndpoint:
    """Serves the requests of one verb on the event loop itself: a decision takes milliseconds.

    Attributes:
        name: the verb's name in metrics.
        decode: the function that decodes a request's body.
        get_handler: a function that returns the handler of the next request; a reload may replace the handler.
        body_reader: the reader of bodies, with size limits.
        whole_objects_pattern: the pattern of a request with whole objects; None if such requests are not allowed.
        limiter: the limiter of concurrent requests.
        metrics: the metrics of requests.
    """

    name: str
    decode: Callable[[bytearray], Any]
    get_handler: Callable[[], Callable[[Any], Any]]
    body_reader: BodyReader
    whole_objects_pattern: re.Pattern[bytes] | None
    limiter: RequestLimiter
    metrics: RequestMetrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request that was routed to the verb."""
        start_time = time.perf_counter()
        self.metrics.observe_request_start(self.name)
        code = 500
        log_fields: dict[str, Any] = {}
        try:
            response_body = await self._handle(scope, receive, log_fields)
            code = 200
            await _send_json(send, response_body)
        except RequestError as error:
            code, log_fields["err"] = error.status, error.message
            await make_text_response(error.message, code)(scope, receive, send)
        except ClientDisconnect:
            code = _CLIENT_CLOSED_REQUEST
        finally:
            seconds = time.perf_counter() - start_time
            self.metrics.observe_request_end(self.name, code, seconds)
            access_log.log_request(scope, self.name, code, seconds, log_fields)

    async def _handle(self, scope: Scope, receive: Receive, log_fields: dict[str, Any]) -> bytes:
        """Return the response in JSON, and add fields of the access log to *log_fields*.

        Raises:
            RequestError: the request is rejected.
            ClientDisconnect: the client closed the connection before the end of the request.
        """
        _reject_content_encoding(scope)
        async with self.body_reader.read(scope, receive, self.whole_objects_pattern) as body, self.limiter:
            args = self.decode(body)
            log_fields["pod"] = args.key
            result = self.get_handler()(args)
            if isawaitable(result):
                result = await result
            if error := getattr(result, "error", ""):
                log_fields["err"] = error
            response_body = result.to_json() if isinstance(result, HostPriorities) else _encoder.encode(result)
            self.metrics.observe_body_sizes(self.name, len(body), len(response_body))
            log_fields["requestBytes"], log_fields["responseBytes"] = len(body), len(response_body)
            return response_body


async def _send_json(send: Send, body: bytes) -> None:
    headers = [(b"content-length", b"%d" % len(body)), (b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _reject_content_encoding(scope: Scope) -> None:
    encoding = get_header(scope, b"content-encoding")
    if encoding.strip().lower() not in {b"", b"identity"}:
        name = encoding.decode("latin-1")
        raise RequestError(415, f'Content-Encoding "{name}" is not supported; send the body uncompressed')
