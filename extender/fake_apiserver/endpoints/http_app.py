"""The ASGI application of the fake API server. Bodies are JSON or YAML; protobuf is not supported."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any, Final

import msgspec
import yaml
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from extender.fake_apiserver.endpoints import discovery
from extender.fake_apiserver.endpoints.request_info import RequestInfo, parse_request
from extender.fake_apiserver.endpoints.serializers import Serializer, negotiate_serializer
from extender.fake_apiserver.endpoints.verbs import JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, execute
from extender.fake_apiserver.endpoints.watch import Watch
from extender.fake_apiserver.registry.api import Api
from extender.fake_apiserver.registry.api_errors import (
    StatusError,
    make_failure_status,
    new_bad_request,
    new_unsupported_media,
)
from extender.fake_apiserver.registry.resources import Object
from extender.fake_apiserver.registry.reviews import ReviewRules

_LOG: Final = logging.getLogger(__name__)
_HEALTH_PATHS: Final = ("/livez", "/readyz", "/healthz")
_YAML: Final = "application/yaml"
_NOT_A_JSON_PATCH: Final = (
    "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"
)
_MEDIA_TYPES: Final = ("application/json", _YAML, MERGE_PATCH, STRATEGIC_MERGE_PATCH, JSON_PATCH, "")


class HttpApp:
    """The ASGI application, which handles the requests for all paths."""

    def __init__(self, api: Api, reviews: ReviewRules) -> None:
        """Create the application, which is open."""
        self.api = api
        self._reviews = reviews
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
        request = Request(scope, receive)
        try:
            response = await self._handle(request)
        except StatusError as error:
            headers = {"Retry-After": str(error.retry_after)} if error.retry_after else None
            response = _make_json_response(error.status, error.code, headers)
        except ClientDisconnect:
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
        if path == "/openapi/v2" and request.method == "GET":
            return Response(discovery.OPENAPI_V2_PROTOBUF, media_type="application/octet-stream")
        document = discovery.find_discovery_document(path) if request.method == "GET" else None
        if document is not None:
            return _make_json_response(document)
        body = await _parse_body(request) if request.method != "GET" else {}
        review = self._reviews.review(path, body) if request.method == "POST" else None
        if review is not None:
            return await self.execute("create", path.rpartition("/")[2], "", lambda: _make_json_response(review, 201))
        request_info = parse_request(request.method, _get_raw_path(request), dict(request.query_params))
        serializer = negotiate_serializer(request.headers.get("accept", ""), request_info.query)
        name = request_info.name or str((body.get("metadata") or {}).get("name", ""))
        make_response = partial(self._make_response, request_info, serializer, body, _get_media_type(request))
        return await self.execute(request_info.verb, request_info.resource_path, name, make_response)

    async def execute(self, verb: str, resource: str, name: str, make_response: Callable[[], Response]) -> Response:  # noqa: ARG002
        """Return the result of *make_response*, which executes a request. Tests override this to inject faults."""
        return make_response()

    def _make_response(self, request_info: RequestInfo, serializer: Serializer, body: Any, media_type: str) -> Response:
        if request_info.verb == "watch":
            watch = Watch(self.api.store, request_info, self._closing)
            return StreamingResponse(
                self._encode_watch_lines(watch, request_info, serializer), media_type="application/json"
            )
        now = self.api.clock.now()
        if request_info.verb == "list":
            return Response(serializer.encode_list(self.api.store, request_info, now), media_type="application/json")
        content, code, is_requested_resource = execute(self.api, request_info, body, media_type)
        return _make_json_response(
            serializer.convert_object(request_info, content, now) if is_requested_resource else content, code
        )

    async def _encode_watch_lines(
        self, watch: Watch, request_info: RequestInfo, serializer: Serializer
    ) -> AsyncIterator[bytes]:
        with_columns = True
        async for batch in watch.stream_events():
            now = self.api.clock.now()
            lines = []
            for event in batch:
                lines.append(serializer.encode_watch_event(request_info, event, now, with_columns=with_columns))
                with_columns = False
            yield b"".join(lines)


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
    if isinstance(parsed_body, dict) and not isinstance(parsed_body.get("metadata") or {}, dict):
        raise new_bad_request("the metadata in the body of the request is not an object")
    return parsed_body


def _get_media_type(request: Request) -> str:
    return str(request.headers.get("content-type", "")).partition(";")[0].strip()


def _get_raw_path(request: Request) -> str:
    raw: bytes = request.scope.get("raw_path") or request.url.path.encode()
    return raw.decode("latin-1").partition("?")[0]


def _make_json_response(content: Object, code: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(content), code, headers, "application/json")
