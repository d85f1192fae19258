"""The FastAPI application of the extender and its routes."""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from extender import __version__
from extender.event_loop.cooperative_iteration import join_in_turns
from extender.extender_api.bind import BindVerb
from extender.extender_api.body_reader import WHOLE_NODES_PATTERN, WHOLE_PODS_PATTERN, BodyReader
from extender.extender_api.endpoint import Decoder, VerbEndpoint
from extender.extender_api.limiter import RequestLimiter
from extender.extender_api.openapi import add_verb_operations, make_explain_operation
from extender.extender_api.payloads import DecodeCaches, decode_args, decode_binding_args, decode_preemption_args
from extender.extender_api.verbs import Verbs
from extender.metrics.verb_metrics import VerbMetrics
from extender.serving.diagnostics_app import EXPLAIN_PATH, ExplainPod, make_explain_handler
from extender.serving.error_handlers import EXCEPTION_HANDLERS
from extender.serving.head_requests import HeadMiddleware
from extender.serving.health import Health, add_health_endpoints, make_text_operation


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
        render_metrics: returns the page `/metrics` in parts.
        bind_verb: serves bind; None: bind is not served.
        decision_limiter: limits concurrent decisions.
        bind_limiter: limits concurrent bind requests, which mostly wait for the API server.
        explain: returns the last decisions about a pod (namespace, name), as JSON if the last argument is true, else
            as text. It returns None if there are no decisions. If `explain` is None, the page is not served.
    """

    verbs: Verbs
    health: Health
    request_metrics: VerbMetrics
    render_metrics: Callable[[], Iterable[bytes]]
    bind_verb: BindVerb | None = None
    body_reader: BodyReader = field(default_factory=BodyReader)
    decision_limiter: RequestLimiter = field(default_factory=RequestLimiter)
    bind_limiter: RequestLimiter = field(default_factory=lambda: RequestLimiter(max_concurrent=128, max_waiting=512))
    paths: VerbPaths = field(default_factory=VerbPaths)
    explain: ExplainPod | None = None

    @property
    def served_paths(self) -> Mapping[str, str]:
        """The path of each served verb, by name."""
        paths = {verb: path for verb, path in asdict(self.paths).items() if path}
        if self.bind_verb is None:
            paths.pop("bind", None)
        return paths

    def get_handler(self, verb: str) -> Callable[[Any], Awaitable[Any]]:
        """Return the current handler of *verb*. A reload may replace it."""
        handler: Callable[[Any], Awaitable[Any]] = getattr(self.bind_verb if verb == "bind" else self.verbs, verb)
        return handler


@dataclass(frozen=True, slots=True)
class _VerbMiddleware:
    """Calls the endpoint of a verb without searching its route, which a request for another path or method reaches."""

    app: ASGIApp
    endpoints: Mapping[str, VerbEndpoint]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        endpoint = self.endpoints.get(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        if endpoint is None:
            await self.app(scope, receive, send)
            return
        try:
            await endpoint(scope, receive, send)
        except HTTPException as error:
            response = await EXCEPTION_HANDLERS[HTTPException](Request(scope), error)
            await response(scope, receive, send)


def new_app(service: ExtenderService) -> FastAPI:
    """Return the ASGI application. Verbs run on the event loop itself, because a decision takes only milliseconds."""
    app = FastAPI(
        title="kube-scheduler-extender",
        version=__version__,
        description="The scheduler extender verbs filter, prioritize and preempt, and bind for a live cluster.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        telemetry={"tracing": False, "metrics": False, "logs": False},  # the search for providers delays each request
        exception_handlers=EXCEPTION_HANDLERS,
    )
    add_verb_routes(app, service)
    app.add_middleware(HeadMiddleware)
    add_health_endpoints(app, service.health)
    openapi = make_text_operation("Metrics in the text format of Prometheus.")

    async def metrics() -> Response:
        page = await join_in_turns(service.render_metrics())
        return Response(page, media_type="text/plain; version=0.0.4; charset=utf-8")

    app.add_api_route("/metrics", metrics, openapi_extra=openapi, response_class=PlainTextResponse)
    if service.explain is not None:
        app.add_api_route(
            EXPLAIN_PATH,
            make_explain_handler(service.explain),
            name="explain",
            openapi_extra=make_explain_operation(),
            response_class=PlainTextResponse,
        )
    _add_verbs_to_openapi(app, service)
    return app


def add_verb_routes(app: FastAPI, service: ExtenderService) -> None:
    """Add a route for each verb to *app*. They are the first routes, because routes are searched in order."""
    limits, bind_limiter = service.body_reader.limits, service.bind_limiter
    decode = partial(decode_args, limits=limits, caches=DecodeCaches())
    requests: dict[str, tuple[Decoder, re.Pattern[bytes] | None]] = {
        "filter": (decode, WHOLE_NODES_PATTERN),
        "prioritize": (decode, WHOLE_NODES_PATTERN),
        "preempt": (partial(decode_preemption_args, limits=limits), WHOLE_PODS_PATTERN),
        "bind": (decode_binding_args, None),
    }
    endpoints: dict[str, VerbEndpoint] = {}
    for verb, path in service.served_paths.items():
        decode_request, whole_objects_pattern = requests[verb]
        endpoints[path] = VerbEndpoint(
            verb,
            decode_request,
            partial(service.get_handler, verb),
            service.body_reader,
            whole_objects_pattern,
            bind_limiter if verb == "bind" else service.decision_limiter,
            service.request_metrics,
            changes_cluster=verb == "bind" or (verb == "filter" and service.verbs.assumptions is not None),
        )
    app.router.routes[:0] = [
        Route(path, endpoint, methods=["POST"], name=endpoint.name) for path, endpoint in endpoints.items()
    ]
    app.add_middleware(_VerbMiddleware, endpoints=endpoints)


def _add_verbs_to_openapi(app: FastAPI, service: ExtenderService) -> None:
    """Add the verbs to the OpenAPI document of *app*, as FastAPI's documentation describes it."""
    make_document = app.openapi

    def openapi() -> dict[str, Any]:
        if not app.openapi_schema:
            add_verb_operations(make_document(), service.served_paths)
        return make_document()

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI documents this way to extend the document
