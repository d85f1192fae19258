"""The application: routes, what passes between HTTP and the verbs, and the one place where faults become answers."""

import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any, Protocol

import msgspec
from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse

from extender import __version__
from extender.web.binding import Binder
from extender.web.health import Health
from extender.web.interface import (
    ARGS,
    BINDING_ARGS,
    BINDING_RESULT,
    FILTER_RESULT,
    HOST_PRIORITIES,
    PREEMPTION_ARGS,
    PREEMPTION_RESULT,
    operation,
    text_operation,
)
from extender.web.probes import add_probes, line
from extender.web.verbs import Verbs
from extender.web.wire import (
    MAX_NODES_BYTES,
    RequestError,
    decode_args,
    decode_binding_args,
    decode_preemption_args,
)

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
        binder: binds pods; None where there is no API server to write to, and then bind is not served.
    """

    verbs: Verbs
    health: Health
    traffic: Traffic
    metrics: Callable[[], bytes]
    binder: Binder | None = None


@dataclass(frozen=True, slots=True)
class _Verb:
    """One verb: its name, what decodes its request, what answers it (perhaps after a wait), and how it is described."""

    name: str
    decode: Callable[[bytes], Any]
    answer: Callable[[Any], Any]
    described: dict[str, Any]

    @property
    def summary(self) -> str | None:
        """The first line about it."""
        return self.answer.__doc__.splitlines()[0] if self.answer.__doc__ else None


def _verbs(site: Site) -> Iterator[_Verb]:
    verbs = site.verbs
    yield _Verb("filter", decode_args, verbs.filter, operation(ARGS, FILTER_RESULT))
    yield _Verb("prioritize", decode_args, verbs.prioritize, operation(ARGS, HOST_PRIORITIES, can_fail=True))
    described = operation(PREEMPTION_ARGS, PREEMPTION_RESULT, can_fail=True)
    yield _Verb("preempt", decode_preemption_args, verbs.preempt, described)
    if site.binder is not None:
        yield _Verb("bind", decode_binding_args, site.binder.bind, operation(BINDING_ARGS, BINDING_RESULT))


def new_app(site: Site) -> FastAPI:
    """The ASGI application; requests are handled on the event loop itself, a decision takes milliseconds."""
    app = FastAPI(
        title="kube-scheduler-extender",
        version=__version__,
        description="The scheduler extender verbs filter, prioritize and preempt, and bind for a live cluster.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        max_body_size=MAX_NODES_BYTES,
        exception_handlers={HTTPException: _http_fault, RequestError: _request_fault, Exception: _fault},
    )
    for verb in _verbs(site):
        app.add_api_route(
            f"/{verb.name}", _endpoint(verb, site.traffic), methods=["POST"], name=verb.name,
            openapi_extra=verb.described, response_class=Response, summary=verb.summary,
        )  # fmt: skip
    add_probes(app, site.health)
    described = text_operation("Metrics in the text format of Prometheus.")

    async def metrics() -> Response:
        return Response(site.metrics(), media_type="text/plain; version=0.0.4; charset=utf-8")

    app.add_api_route("/metrics", metrics, openapi_extra=described, response_class=PlainTextResponse)
    return app


def _endpoint(verb: _Verb, traffic: Traffic) -> Callable[[Request], Awaitable[Response]]:
    name = verb.name

    async def answer(request: Request) -> Response:
        started = time.perf_counter()
        traffic.started(name)
        code = 500
        try:
            _refuse_encoded(request)
            body = await request.body()
            answered = verb.answer(verb.decode(body))
            if isawaitable(answered):
                answered = await answered
            answered = _encoder.encode(answered)
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


async def _request_fault(_: Request, fault: Exception) -> Response:
    status = fault.status if isinstance(fault, RequestError) else 500
    return line(str(fault), status)


async def _http_fault(_: Request, fault: Exception) -> Response:
    if not isinstance(fault, HTTPException):
        return await _fault(_, fault)
    return line(str(fault.detail), fault.status_code, dict(fault.headers or {}))


async def _fault(_: Request, fault: Exception) -> Response:
    """Nobody foresaw this; the server's log has the traceback, the caller gets none."""
    return line(f"internal error: {type(fault).__name__}", 500)
