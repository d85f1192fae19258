"""The FastAPI application of the extender: routes, and handlers of unexpected exceptions."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from inspect import getdoc
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from extender import __version__
from extender.extender_api.bind import BindVerb
from extender.extender_api.body_reader import WHOLE_NODES_PATTERN, WHOLE_PODS_PATTERN, BodyReader
from extender.extender_api.endpoint import RequestMetrics, VerbEndpoint
from extender.extender_api.limiter import RequestLimiter
from extender.extender_api.openapi import (
    ARGS,
    BINDING_ARGS,
    BINDING_RESULT,
    FILTER_RESULT,
    HOST_PRIORITIES,
    PREEMPTION_ARGS,
    PREEMPTION_RESULT,
    make_operation,
)
from extender.extender_api.payloads import DecodeCaches, decode_args, decode_binding_args, decode_preemption_args
from extender.extender_api.verbs import Verbs
from extender.serving.diagnostics_app import EXPLAIN_PATH, ExplainPod, make_explain_handler
from extender.serving.health import Health
from extender.serving.health_endpoints import add_health_endpoints, make_text_operation, make_text_response


@dataclass(frozen=True, slots=True)
class VerbPaths:
    """The path of each verb; a verb with an empty path is not served."""

    filter: str = "/filter"
    prioritize: str = "/prioritize"
    preempt: str = "/preempt"
    bind: str = "/bind"


@dataclass(slots=True)
class ExtenderService:
    """The parts of the application.

    Attributes:
        verbs: serves filter, prioritize and preempt. A reload may replace it and `bind_verb` between two requests.
        health: health checks.
        request_metrics: the metrics of requests to verbs.
        render_metrics: returns the page `/metrics`.
        bind_verb: serves bind; None if there is no API server to write to: bind is then not served.
        body_reader: reads bodies within limits.
        decision_limiter: limits concurrent decisions.
        bind_limiter: limits concurrent bind requests, which mostly wait for the API server.
        paths: the paths of the verbs.
        explain: returns the last decisions about a pod (namespace, name) as text or, if the last argument is true,
            as JSON; None if there are no decisions.
    """

    verbs: Verbs
    health: Health
    request_metrics: RequestMetrics
    render_metrics: Callable[[], bytes]
    bind_verb: BindVerb | None = None
    body_reader: BodyReader = field(default_factory=BodyReader)
    decision_limiter: RequestLimiter = field(default_factory=RequestLimiter)
    bind_limiter: RequestLimiter = field(default_factory=lambda: RequestLimiter(max_concurrent=128, max_waiting=512))
    paths: VerbPaths = field(default_factory=VerbPaths)
    explain: ExplainPod | None = None

    @property
    def served_paths(self) -> Mapping[str, str]:
        """The path of each served verb, by name."""
        return {verb.name: verb.path for verb in _served_verbs(self)}


@dataclass(frozen=True, slots=True)
class _Verb:
    """One verb.

    Attributes:
        name: its name in metrics.
        path: the path of its route; empty if the verb is not served.
        decode: decodes its request.
        openapi: its OpenAPI operation.
        limiter: limits concurrent requests.
        whole_objects_pattern: matches a request with whole objects; None: such requests are not allowed.
    """

    name: str
    path: str
    decode: Callable[[bytearray], Any]
    openapi: dict[str, Any]
    limiter: RequestLimiter
    whole_objects_pattern: re.Pattern[bytes] | None = None

    def get_handler(self, service: ExtenderService) -> Callable[[Any], Any]:
        """Return the current handler, which may be a coroutine function. A reload may replace it."""
        handler: Callable[[Any], Any] = getattr(service.bind_verb if self.name == "bind" else service.verbs, self.name)
        return handler


def _served_verbs(service: ExtenderService) -> Iterator[_Verb]:
    """Yield the verbs that are served."""
    limiter, paths = service.decision_limiter, service.paths
    decode = partial(decode_args, max_names_bytes=service.body_reader.max_names_bytes, caches=DecodeCaches())
    openapi = make_operation(ARGS, FILTER_RESULT)
    verbs = [_Verb("filter", paths.filter, decode, openapi, limiter, WHOLE_NODES_PATTERN)]
    openapi = make_operation(ARGS, HOST_PRIORITIES, can_fail=True)
    verbs.append(_Verb("prioritize", paths.prioritize, decode, openapi, limiter, WHOLE_NODES_PATTERN))
    openapi = make_operation(PREEMPTION_ARGS, PREEMPTION_RESULT, can_fail=True)
    verbs.append(_Verb("preempt", paths.preempt, decode_preemption_args, openapi, limiter, WHOLE_PODS_PATTERN))
    if service.bind_verb is not None:
        openapi = make_operation(BINDING_ARGS, BINDING_RESULT)
        verbs.append(_Verb("bind", paths.bind, decode_binding_args, openapi, service.bind_limiter))
    return (verb for verb in verbs if verb.path)


def new_app(service: ExtenderService) -> FastAPI:
    """Return the ASGI application. Verbs run on the event loop itself, because a decision takes only milliseconds."""
    app = FastAPI(
        title="kube-scheduler-extender",
        version=__version__,
        description="The scheduler extender verbs filter, prioritize and preempt, and bind for a live cluster.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        exception_handlers={HTTPException: _handle_http_exception, Exception: _handle_exception},
    )
    add_verb_routes(app, service)
    add_health_endpoints(app, service.health)
    openapi = make_text_operation("Metrics in the text format of Prometheus.")

    async def metrics() -> Response:
        return Response(service.render_metrics(), media_type="text/plain; version=0.0.4; charset=utf-8")

    app.add_api_route("/metrics", metrics, openapi_extra=openapi, response_class=PlainTextResponse)
    if service.explain is not None:
        openapi = make_text_operation(
            "The last decisions about a pod, per node and plugin; JSON if the Accept header has it."
        )
        openapi["responses"]["404"] = {"description": "There are no decisions about the pod."}
        app.add_api_route(
            EXPLAIN_PATH, make_explain_handler(service.explain), openapi_extra=openapi, response_class=PlainTextResponse
        )
    return app


class _VerbMiddleware:
    """Middleware that calls the endpoint of a verb directly, because a search through all routes is slower."""

    def __init__(self, app: ASGIApp, endpoints: Mapping[str, ASGIApp]) -> None:
        self._app, self._endpoints = app, endpoints

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        endpoint = self._endpoints.get(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        await (endpoint or self._app)(scope, receive, send)


def add_verb_routes(app: FastAPI, service: ExtenderService) -> None:
    """Add a route for each verb to *app*."""
    endpoints: dict[str, ASGIApp] = {}
    for verb in _served_verbs(service):
        docstring = getdoc(verb.get_handler(service))
        route = APIRoute(
            verb.path, _openapi_placeholder, methods=["POST"], name=verb.name, openapi_extra=verb.openapi,
            response_class=Response, summary=docstring.splitlines()[0] if docstring else None,
        )  # fmt: skip
        route.app = endpoints[verb.path] = _new_endpoint(verb, service)
        app.router.routes.append(route)
    app.add_middleware(_VerbMiddleware, endpoints=endpoints)


def _openapi_placeholder() -> None:
    """Do nothing; FastAPI documents a verb with this function, since a verb has no parameters except the body."""


def _new_endpoint(verb: _Verb, service: ExtenderService) -> VerbEndpoint:
    return VerbEndpoint(
        verb.name,
        verb.decode,
        partial(verb.get_handler, service),
        service.body_reader,
        verb.whole_objects_pattern,
        verb.limiter,
        service.request_metrics,
    )


async def _handle_http_exception(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        return await _handle_exception(request, error)
    return make_text_response(str(error.detail), error.status_code, dict(error.headers or {}))


async def _handle_exception(_: Request, error: Exception) -> Response:
    """Return status 500. The traceback is only in the server's log."""
    return make_text_response(f"internal error: {type(error).__name__}", 500)
