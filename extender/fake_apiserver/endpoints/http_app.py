"""The ASGI application of the fake API server. Bodies are JSON or YAML; protobuf is not supported."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

import msgspec
import yaml
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from extender.fake_apiserver.endpoints import discovery
from extender.fake_apiserver.endpoints.fault_injection import (
    BrokenConnectionError,
    Fault,
    FaultInjector,
    FaultKind,
    inject_watch_faults,
)
from extender.fake_apiserver.endpoints.request_info import RequestInfo, parse_request
from extender.fake_apiserver.endpoints.serializers import Serializer, negotiate_serializer
from extender.fake_apiserver.endpoints.verbs import JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, execute
from extender.fake_apiserver.endpoints.watch import BOOKMARK_SECONDS, Watch, make_error_event
from extender.fake_apiserver.registry.api import Api
from extender.fake_apiserver.registry.api_errors import (
    StatusError,
    make_failure_status,
    new_bad_request,
    new_expired,
    new_unsupported_media,
)
from extender.fake_apiserver.registry.resources import Object
from extender.fake_apiserver.registry.reviews import ReviewRules

BREAK_CONNECTION: Final = "fake_apiserver.break_connection"
"""The name of the ASGI extension whose function `close` closes the connection."""

_LOG: Final = logging.getLogger(__name__)
_HEALTH_PATHS: Final = ("/livez", "/readyz", "/healthz")
_YAML: Final = "application/yaml"
_NOT_A_JSON_PATCH: Final = (
    "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"
)
_MEDIA_TYPES: Final = ("application/json", _YAML, MERGE_PATCH, STRATEGIC_MERGE_PATCH, JSON_PATCH, "")
_TOO_OLD_MESSAGE: Final = "The resourceVersion for the provided list is too old."
_REASONS: Final = {
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}

Sleep = Callable[[float], Awaitable[None]]


class HttpApp:
    """The ASGI application, which handles the requests for all paths."""

    def __init__(
        self,
        api: Api,
        faults: FaultInjector,
        reviews: ReviewRules,
        *,
        bookmark_seconds: float = BOOKMARK_SECONDS,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """Create the application.

        *bookmark_seconds* is the interval between the bookmarks of a watch; *sleep* waits for the seconds by which a
        fault delays the response.
        """
        self.api = api
        self.faults = faults
        self._reviews = reviews
        self._bookmark_seconds = bookmark_seconds
        self._sleep = sleep
        self._closing = asyncio.Event()

    def open(self) -> None:
        """Accept watches again after `close`."""
        self._closing = asyncio.Event()

    def close(self) -> None:
        """End all watches."""
        self._closing.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            return
        try:
            await self._respond(scope, receive, send)
        except BrokenConnectionError:
            scope["extensions"][BREAK_CONNECTION]["close"]()
            while (await receive())["type"] != "http.disconnect":
                continue

    async def _respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            response = await self._handle(request)
        except StatusError as error:
            response = _make_error_response(error)
        except (BrokenConnectionError, ClientDisconnect):
            raise
        except Exception as error:  # noqa: BLE001  every request gets a response
            _LOG.exception("%s %s", request.method, request.url.path)
            response = _make_json_response(
                make_failure_status(500, "InternalError", f"Internal error occurred: {error}"), 500
            )
        await response(scope, receive, send)

    async def _handle(self, request: Request) -> Response:
        path = request.url.path
        if path.startswith(_HEALTH_PATHS):
            return Response("ok", media_type="text/plain")
        document = discovery.find_discovery_document(path) if request.method == "GET" else None
        if document is not None:
            return _make_json_response(document)
        body = await _parse_body(request) if request.method != "GET" else {}
        review = self._reviews.review(path, body) if request.method == "POST" else None
        if review is not None:
            faults = self.faults.match("create", path.rpartition("/")[2], "")
            return await self._inject_before_execution("create", faults) or _make_json_response(review, 201)
        request_info = parse_request(request.method, _get_raw_path(request), dict(request.query_params))
        serializer = negotiate_serializer(request.headers.get("accept", ""), request_info.query)
        name = request_info.name or str((body.get("metadata") or {}).get("name", ""))
        faults = self.faults.match(request_info.verb, request_info.resource_path, name)
        fault_response = await self._inject_before_execution(request_info.verb, faults)
        if fault_response is not None:
            return fault_response
        if request_info.verb == "watch":
            return self._stream_watch(request_info, serializer, faults)
        now = self.api.clock.now()
        if request_info.verb == "list":
            response = Response(
                serializer.encode_list(self.api.store, request_info, now), media_type="application/json"
            )
        else:
            content, code, is_requested_resource = execute(self.api, request_info, body, _get_media_type(request))
            response = _make_json_response(
                serializer.convert_object(request_info, content, now) if is_requested_resource else content, code
            )
        await self._inject_after_execution(faults)
        return response

    async def _inject_before_execution(self, verb: str, faults: list[Fault]) -> Response | None:
        """Inject faults before the request is executed; return the response of a fault that prevents the execution."""
        for fault in faults:
            if fault.kind is FaultKind.DELAY:
                await self._sleep(fault.delay_seconds)
            elif fault.kind is FaultKind.STATUS:
                status = make_failure_status(fault.code, _REASONS.get(fault.code, ""), f"injected fault: {fault.code}")
                return _make_json_response(
                    status, fault.code, {"Retry-After": fault.retry_after} if fault.retry_after else None
                )
            elif fault.kind is FaultKind.GONE and verb != "watch":
                raise new_expired(_TOO_OLD_MESSAGE)
        return None

    async def _inject_after_execution(self, faults: list[Fault]) -> None:
        """Inject faults after the request was executed."""
        for fault in faults:
            if fault.kind is FaultKind.TIMEOUT:
                await self._sleep(fault.delay_seconds)
                message = "Timeout: request did not complete within the allotted timeout"
                raise StatusError(504, "Timeout", message)
            if fault.kind is FaultKind.NO_RESPONSE:
                raise BrokenConnectionError

    def _stream_watch(self, request_info: RequestInfo, serializer: Serializer, faults: list[Fault]) -> Response:
        watch = Watch(self.api.store, request_info, self._closing, self._bookmark_seconds)
        line_batches = self._encode_watch_lines(watch, request_info, serializer)
        gone_line = serializer.encode_watch_event(
            request_info, make_error_event(new_expired(_TOO_OLD_MESSAGE)), 0.0, with_columns=False
        )
        chunks = (
            inject_watch_faults(line_batches, faults, gone_line, self._closing) if faults else _join_lines(line_batches)
        )
        return StreamingResponse(chunks, media_type="application/json")

    async def _encode_watch_lines(
        self, watch: Watch, request_info: RequestInfo, serializer: Serializer
    ) -> AsyncIterator[list[bytes]]:
        with_columns = True
        async for batch in watch.stream_events():
            now = self.api.clock.now()
            lines = []
            for event in batch:
                lines.append(serializer.encode_watch_event(request_info, event, now, with_columns=with_columns))
                with_columns = False
            yield lines


async def _join_lines(line_batches: AsyncIterator[list[bytes]]) -> AsyncIterator[bytes]:
    async for batch in line_batches:
        yield b"".join(batch)


async def _parse_body(request: Request) -> Any:
    """Parse the body, which is JSON or YAML. An empty body gives an empty object.

    A JSON patch is a list. Any other body is an object.

    Raises:
        StatusError: 400 for a malformed body, or 415 for an unsupported media type.
    """
    raw_body = await request.body()
    if not raw_body.strip():
        return {}
    media_type = _get_media_type(request)
    if media_type not in _MEDIA_TYPES and request.method != "DELETE":
        raise new_unsupported_media(() if request.method == "PATCH" else _MEDIA_TYPES[:2])
    try:
        parsed_body: Any = yaml.safe_load(raw_body) if media_type == _YAML else msgspec.json.decode(raw_body)
    except (msgspec.MsgspecError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        raise new_bad_request(f"the body of the request cannot be read: {error}") from error
    expected_type = list if media_type == JSON_PATCH and request.method == "PATCH" else dict
    if not isinstance(parsed_body, expected_type):
        raise new_bad_request(
            _NOT_A_JSON_PATCH if expected_type is list else "the body of the request is not an object"
        )
    return parsed_body


def _get_media_type(request: Request) -> str:
    return str(request.headers.get("content-type", "")).partition(";")[0].strip()


def _get_raw_path(request: Request) -> str:
    raw: bytes = request.scope.get("raw_path") or request.url.path.encode()
    return raw.decode("latin-1").partition("?")[0]


def _make_json_response(content: Object, code: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(content), code, headers, "application/json")


def _make_error_response(error: StatusError) -> Response:
    headers = {"Retry-After": str(error.retry_after)} if error.retry_after else None
    return _make_json_response(error.status, error.code, headers)
