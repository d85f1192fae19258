"""The application: routes, what passes between HTTP and the verbs, and the one place where faults become answers."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec
from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse

from extender import __version__
from extender.web.health import Health
from extender.web.interface import FILTER_RESULT, HOST_PRIORITIES, operation, text_operation
from extender.web.verbs import Verbs
from extender.web.wire import MAX_NODES_BYTES, ExtenderArgs, RequestError, decode_args

_GONE = 499
"""Counted for a caller that hangs up before its request is read; nobody sees it."""

_encoder = msgspec.json.Encoder()


class Traffic(Protocol):
    """Hears of requests (`observe.verbs.VerbMetrics`)."""

    def started(self, verb: str) -> None:
        """A request came in."""

    def ended(self, verb: str, code: int, seconds: float) -> None:
        """It was answered with the HTTP status *code*."""

    def sizes(self, verb: str, request: int, response: int) -> None:
        """How big the bodies were, in bytes."""


@dataclass(frozen=True, slots=True)
class Site:
    """What the application serves.

    Attributes:
        verbs: answer requests.
        health: answers probes.
        traffic: hears of requests.
        metrics: writes the page `/metrics`.
    """

    verbs: Verbs
    health: Health
    traffic: Traffic
    metrics: Callable[[], bytes]


def new_app(site: Site) -> FastAPI:
    """The ASGI application; requests are handled on the event loop itself, a decision takes milliseconds."""
    app = FastAPI(
        title="kube-scheduler-extender",
        version=__version__,
        description="The scheduler extender verbs filter and prioritize.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        max_body_size=MAX_NODES_BYTES,
        exception_handlers={HTTPException: _http_fault, RequestError: _request_fault, Exception: _fault},
    )
    for name, verb, described in (
        ("filter", site.verbs.filter, operation(FILTER_RESULT)),
        ("prioritize", site.verbs.prioritize, operation(HOST_PRIORITIES, can_fail=True)),
    ):
        app.add_api_route(
            f"/{name}", _endpoint(name, verb, site.traffic), methods=["POST"], name=name, openapi_extra=described,
            response_class=Response, summary=verb.__doc__.splitlines()[0] if verb.__doc__ else None,
        )  # fmt: skip
    for name in ("livez", "healthz", "readyz"):
        described = text_operation("All is well.", can_fail=True)
        app.add_api_route(
            f"/{name}", _probe(name, site.health), name=name, openapi_extra=described, response_class=PlainTextResponse
        )
    described = text_operation("Metrics in the text format of Prometheus.")

    async def metrics() -> Response:
        return Response(site.metrics(), media_type="text/plain; version=0.0.4; charset=utf-8")

    app.add_api_route("/metrics", metrics, openapi_extra=described, response_class=PlainTextResponse)
    return app


def _endpoint(
    name: str, verb: Callable[[ExtenderArgs], Any], traffic: Traffic
) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        started = time.perf_counter()
        traffic.started(name)
        code = 500
        try:
            _refuse_encoded(request)
            body = await request.body()
            answered = _encoder.encode(verb(decode_args(body)))
            traffic.sizes(name, len(body), len(answered))
            code = 200
            return Response(answered, media_type="application/json")
        except RequestError as fault:
            code = fault.status
            raise
        except HTTPException as fault:
            code = fault.status_code
            raise
        except ClientDisconnect:
            code = _GONE
            return Response(status_code=_GONE)
        finally:
            traffic.ended(name, code, time.perf_counter() - started)

    return answer


def _refuse_encoded(request: Request) -> None:
    encoding = request.headers.get("content-encoding", "identity")
    if encoding.strip().lower() not in {"", "identity"}:
        raise RequestError(415, f'Content-Encoding "{encoding}" is not understood; send the body as it is')


def _probe(name: str, health: Health) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        asked = request.query_params
        well, text = health.report(name, verbose="verbose" in asked, exclude=asked.getlist("exclude"))
        return PlainTextResponse(text, 200 if well else 500)

    return answer


async def _request_fault(_: Request, fault: Exception) -> Response:
    status = fault.status if isinstance(fault, RequestError) else 500
    return _line(str(fault), status)


async def _http_fault(_: Request, fault: Exception) -> Response:
    if not isinstance(fault, HTTPException):
        return await _fault(_, fault)
    return _line(str(fault.detail), fault.status_code, dict(fault.headers or {}))


async def _fault(_: Request, fault: Exception) -> Response:
    """Nobody foresaw this; the server's log has the traceback, the caller gets none."""
    return _line(f"internal error: {type(fault).__name__}", 500)


def _line(text: str, status: int, headers: dict[str, str] | None = None) -> Response:
    one_line = " ".join(text.split())
    return PlainTextResponse(f"{one_line}\n", status, headers)
