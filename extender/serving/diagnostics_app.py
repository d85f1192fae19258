"""The ASGI application with the diagnostic pages of a standalone scheduler.

The pages are health checks, metrics, zpages and explanations of pods. `auth_middleware` authenticates and
authorizes the requests.

Source: apiserver/pkg/server/healthz/healthz.go, InstallPathHandlerWithHealthyFunc; cmd/kube-scheduler/app/server.go,
Run, installMetricHandler, newEndpointsHandler; component-base/configz/configz.go, InstallHandler (1.36).
"""

import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec
from fastapi import FastAPI, Request, Response
from starlette.responses import PlainTextResponse, StreamingResponse

from extender.basics.input_limits import shorten
from extender.basics.visible_text import make_visible
from extender.event_loop.cooperative_iteration import iterate_in_turns, join_in_turns
from extender.serving.auth_middleware import make_failure_status
from extender.serving.error_handlers import EXCEPTION_HANDLERS, make_text_response
from extender.serving.head_requests import HeadMiddleware
from extender.serving.health import Health, add_health_endpoints, make_not_found_response
from extender.serving.zpages import (
    NOT_ACCEPTABLE_MESSAGE,
    ProcessInfo,
    build_status_values,
    encode_page,
    format_content_type,
    format_flags,
    format_status,
    negotiate_format,
)

_LISTED_PATHS: Final = ("/configz", "/explain", "/flagz", "/healthz", "/livez", "/metrics", "/readyz")
"""The paths on `/statusz`. kube-scheduler lists neither that page nor `/debug`, and has no `/explain`.

Source: cmd/kube-scheduler/app/server.go, newEndpointsHandler; apiserver/pkg/server/routes/flags.go,
DebugFlags.Install; apiserver/pkg/server/statusz/statusz.go, aggregatePaths (1.36).
"""

_MAX_BODY_BYTES: Final = 4096
"""Limit of the body of a request that changes the log verbosity."""

EXPLAIN_PATH: Final = "/explain/{namespace}/{pod}"

ExplainPod = Callable[[str, str, bool], str | None]
"""Returns the explanation of a pod, or None if there is no such pod.

The arguments are the pod's namespace, its name, and whether the explanation is JSON instead of text.
"""

_METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"


@dataclass(frozen=True, slots=True)
class MetricsPage:
    """A metrics page: one function returns its parts, and the other resets its metrics."""

    render: Callable[[], Iterable[bytes]]
    reset: Callable[[], None]


@dataclass(frozen=True, slots=True)
class DiagnosticsService:
    """The contents of the pages.

    Attributes:
        render_resource_metrics: returns the page `/metrics/resources` in chunks; no chunks while another
            instance leads.
        configuration: the current configuration as dictionaries and lists.
        process_info: the properties of the process on `/statusz`.
        explain: explains a pod (see `ExplainPod`).
        set_verbosity: sets the log verbosity; None: it cannot be changed.
        has_statusz, has_flagz: whether there are the pages `/statusz` and `/flagz`.

    Source: pkg/scheduler/metrics/resources/resources.go, podResourceCollector.CollectWithStability;
    cmd/kube-scheduler/app/server.go, newEndpointsHandler (1.36).
    """

    health: Health
    metrics: MetricsPage
    slis: MetricsPage
    render_resource_metrics: Callable[[], Iterator[str]]
    configuration: Mapping[str, object]
    flags: Mapping[str, str]
    process_info: ProcessInfo
    explain: ExplainPod
    set_verbosity: Callable[[int], None] | None = None
    has_statusz: bool = True
    has_flagz: bool = True


def make_diagnostics_app(diagnostics: DiagnosticsService) -> FastAPI:
    """Return the ASGI application. It does not authenticate requests."""
    app = FastAPI(
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        exception_handlers={**EXCEPTION_HANDLERS, 404: _handle_not_found},
    )
    app.add_middleware(HeadMiddleware)
    add_health_endpoints(app, diagnostics.health)
    for path, page in (("/metrics", diagnostics.metrics), ("/metrics/slis", diagnostics.slis)):
        app.add_api_route(path, _make_metrics_handler(page), methods=["GET", "POST", "DELETE"])
    app.add_api_route("/metrics/resources", _make_resource_metrics_handler(diagnostics), methods=["GET", "DELETE"])
    app.add_api_route("/configz", _make_configz_handler(diagnostics))
    if diagnostics.has_statusz:
        paths = [path for path in _LISTED_PATHS if diagnostics.has_flagz or path != "/flagz"]
        info = diagnostics.process_info
        app.add_api_route(
            "/statusz",
            _make_zpage_handler(
                "Statusz",
                lambda: format_status(info, paths, time.time()),
                lambda: build_status_values(info, paths, time.time()),
            ),
        )
    if diagnostics.has_flagz:
        flags = diagnostics.flags
        app.add_api_route(
            "/flagz", _make_zpage_handler("Flagz", lambda: format_flags(flags), lambda: {"flags": dict(flags)})
        )
    app.add_api_route(EXPLAIN_PATH, make_explain_handler(diagnostics.explain))
    add_verbosity_route(app, diagnostics.set_verbosity)
    return app


def add_verbosity_route(app: FastAPI, set_verbosity: Callable[[int], None] | None) -> None:
    """Add the path that changes the log verbosity; None: it cannot be changed."""
    if set_verbosity is not None:
        app.add_api_route(
            "/debug/flags/v",
            _make_verbosity_handler(set_verbosity),
            methods=["PUT"],
            max_body_size=_MAX_BODY_BYTES,
            include_in_schema=False,
        )


Handler = Callable[[Request], Awaitable[Response]]


def _make_metrics_handler(page: MetricsPage) -> Handler:
    async def handle(request: Request) -> Response:
        if request.method == "DELETE":
            page.reset()
            return PlainTextResponse("metrics reset\n")
        return Response(await join_in_turns(page.render()), media_type=_METRICS_TYPE)

    return handle


def _make_resource_metrics_handler(diagnostics: DiagnosticsService) -> Handler:
    async def handle(request: Request) -> Response:
        if request.method == "DELETE":
            return PlainTextResponse("metrics reset\n")
        return StreamingResponse(iterate_in_turns(diagnostics.render_resource_metrics()), media_type=_METRICS_TYPE)

    return handle


def _make_configz_handler(diagnostics: DiagnosticsService) -> Handler:
    body = msgspec.json.encode({"componentconfig": diagnostics.configuration}, order="sorted")

    async def handle(_: Request) -> Response:
        return Response(body, media_type="application/json")

    return handle


def _make_zpage_handler(
    kind: str, format_text: Callable[[], str], build_values: Callable[[], Mapping[str, object]]
) -> Handler:
    async def handle(request: Request) -> Response:
        page_format = negotiate_format(request.headers.get("accept", ""), kind)
        if page_format is None:
            failure = make_failure_status(406, "NotAcceptable", NOT_ACCEPTABLE_MESSAGE)
            return Response(msgspec.json.encode(failure) + b"\n", 406, media_type="application/json")
        body = encode_page(page_format, kind, build_values()) if page_format.version else format_text().encode()
        headers = {"Content-Type": format_content_type(page_format, kind)}
        if page_format.version == "v1alpha1":
            name = kind.lower()
            headers["Warning"] = (
                f'299 - "This version of the {name} endpoint is deprecated. Please use a newer version."'
            )
        return Response(body, headers=headers)

    return handle


def make_explain_handler(explain: ExplainPod) -> Handler:
    """Return the handler of `/explain`."""

    async def handle(request: Request) -> Response:
        as_json = "application/json" in request.headers.get("accept", "")
        namespace, pod = request.path_params["namespace"], request.path_params["pod"]
        explanation = explain(namespace, pod, as_json)
        if explanation is None:
            name = make_visible(shorten(f"{namespace}/{pod}"))
            return make_text_response(f"pod {name} is unknown, or belongs to another scheduler", 404)
        return Response(explanation, media_type="application/json" if as_json else "text/plain; charset=utf-8")

    return handle


def _make_verbosity_handler(set_verbosity: Callable[[int], None]) -> Handler:
    """Return the handler of `/debug/flags/v`. Source: component-base/logs/logs.go, GlogSetter (1.37)."""

    async def handle(request: Request) -> Response:
        text = (await request.body()).decode(errors="replace").strip()
        if not (text.isascii() and text.isdigit() and len(text) < 10):
            return make_text_response(f'unable to parse "{text[:32]}" as a verbosity; want a whole number', 400)
        set_verbosity(int(text))
        return make_text_response(f"successfully set klog.logging.verbosity to {text}", 200)

    return handle


async def _handle_not_found(_: Request, __: Exception) -> Response:
    return make_not_found_response()
