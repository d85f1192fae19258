"""The application: routes, what passes between HTTP and the verbs, and the one place where faults become answers."""

import re
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from inspect import getdoc, isawaitable
from typing import Any, Protocol

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from extender import __version__
from extender.web import access
from extender.web.binding import Binder
from extender.web.bodies import WHOLE_NODES, WHOLE_PODS, Bodies
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
from extender.web.priorities import Priorities
from extender.web.probes import add_probes, line
from extender.web.service import EXPLAIN, Explain, explaining
from extender.web.turns import Turns
from extender.web.verbs import Verbs
from extender.web.wire import Familiar, RequestError, decode_args, decode_binding_args, decode_preemption_args

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

    def lagged(self, seconds: float) -> None:
        """The event loop came back so much later than it was asked to."""


@dataclass(frozen=True, slots=True)
class Paths:
    """Where each verb is served; an empty path: not at all."""

    filter: str = "/filter"
    prioritize: str = "/prioritize"
    preempt: str = "/preempt"
    bind: str = "/bind"


@dataclass(slots=True)
class Site:
    """What the application serves.

    Attributes:
        verbs: answer requests; others may take their place, and the binder's, between two requests.
        health: answers probes.
        traffic: hears of requests.
        metrics: writes the page `/metrics`.
        binder: binds pods; None where there is no API server to write to, and then bind is not served.
        bodies: reads requests, and bounds them.
        deciding: whose turn it is to have a decision made.
        binding: whose turn it is to have a pod bound; that is mostly waiting for the API server.
        paths: where the verbs are served.
        explain: what was decided about a pod (namespace, name), as text or, if the last is true, JSON; None: nothing
            is known of it.
    """

    verbs: Verbs
    health: Health
    traffic: Traffic
    metrics: Callable[[], bytes]
    binder: Binder | None = None
    bodies: Bodies = field(default_factory=Bodies)
    deciding: Turns = field(default_factory=Turns)
    binding: Turns = field(default_factory=lambda: Turns(at_once=128, waiting=512))
    paths: Paths = field(default_factory=Paths)
    explain: Explain | None = None

    @property
    def served(self) -> Mapping[str, str]:
        """The verbs that are served, each with its path."""
        return {verb.name: verb.path for verb in _verbs(self)}


@dataclass(frozen=True, slots=True)
class _Verb:
    """One verb.

    Attributes:
        name: what it is called in metrics.
        path: where it is served; empty: nowhere.
        decode: reads its request.
        described: what the document of the interface says.
        turns: whose turn it is.
        sign: what shows that a request carries whole objects.
    """

    name: str
    path: str
    decode: Callable[[bytearray], Any]
    described: dict[str, Any]
    turns: Turns
    sign: re.Pattern[bytes] | None = None

    def answer(self, site: Site) -> Callable[[Any], Any]:
        """What answers it now, perhaps after a wait."""
        found: Callable[[Any], Any] = getattr(site.binder if self.name == "bind" else site.verbs, self.name)
        return found


def _verbs(site: Site) -> Iterator[_Verb]:
    """The verbs that are served."""
    turns, paths = site.deciding, site.paths
    decode = partial(decode_args, most_names=site.bodies.names, familiar=Familiar())
    described = operation(ARGS, FILTER_RESULT)
    offered = [_Verb("filter", paths.filter, decode, described, turns, WHOLE_NODES)]
    described = operation(ARGS, HOST_PRIORITIES, can_fail=True)
    offered.append(_Verb("prioritize", paths.prioritize, decode, described, turns, WHOLE_NODES))
    described = operation(PREEMPTION_ARGS, PREEMPTION_RESULT, can_fail=True)
    offered.append(_Verb("preempt", paths.preempt, decode_preemption_args, described, turns, WHOLE_PODS))
    if site.binder is not None:
        described = operation(BINDING_ARGS, BINDING_RESULT)
        offered.append(_Verb("bind", paths.bind, decode_binding_args, described, site.binding))
    return (verb for verb in offered if verb.path)


def new_app(site: Site) -> FastAPI:
    """The ASGI application; requests are handled on the event loop itself, a decision takes milliseconds."""
    app = FastAPI(
        title="kube-scheduler-extender",
        version=__version__,
        description="The scheduler extender verbs filter, prioritize and preempt, and bind for a live cluster.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        exception_handlers={HTTPException: _http_fault, Exception: _fault},
    )
    add_verbs(app, site)
    add_probes(app, site.health)
    described = text_operation("Metrics in the text format of Prometheus.")

    async def metrics() -> Response:
        return Response(site.metrics(), media_type="text/plain; version=0.0.4; charset=utf-8")

    app.add_api_route("/metrics", metrics, openapi_extra=described, response_class=PlainTextResponse)
    if site.explain is not None:
        described = text_operation("The last decisions about a pod, per node and plugin; JSON if that is accepted.")
        described["responses"]["404"] = {"description": "Nothing is known of the pod."}
        app.add_api_route(EXPLAIN, explaining(site.explain), openapi_extra=described, response_class=PlainTextResponse)
    return app


class _VerbRoute(APIRoute):
    """A route whose endpoint takes the request as it is: nothing stands between them that is there for parameters."""

    def __init__(self, path: str, endpoint: Callable[[Request], Awaitable[Response]], **more: Any) -> None:
        super().__init__(path, endpoint, **more)

        async def answered(scope: Scope, receive: Receive, send: Send) -> None:
            response = await endpoint(Request(scope, receive))
            await response(scope, receive, send)

        self.app = answered


def add_verbs(app: FastAPI, site: Site) -> None:
    """Have *app* answer the verbs."""
    app.add_exception_handler(RequestError, _request_fault)
    for verb in _verbs(site):
        about = getdoc(verb.answer(site))
        app.router.add_api_route(
            verb.path, _endpoint(verb, site), methods=["POST"], name=verb.name, route_class_override=_VerbRoute,
            openapi_extra=verb.described, response_class=Response, summary=about.splitlines()[0] if about else None,
        )  # fmt: skip


def _endpoint(verb: _Verb, site: Site) -> Callable[[Request], Awaitable[Response]]:
    name, traffic = verb.name, site.traffic

    async def answer(request: Request) -> Response:
        started = time.perf_counter()
        traffic.started(name)
        code = 500
        facts: dict[str, Any] = {}
        try:
            _refuse_encoded(request)
            async with site.bodies.of(request, verb.sign) as body, verb.turns:
                asked = verb.decode(body)
                facts["pod"] = asked.key
                answered = verb.answer(site)(asked)
                if isawaitable(answered):
                    answered = await answered
                if wrong := getattr(answered, "error", ""):
                    facts["err"] = wrong
                encoded = answered.written() if isinstance(answered, Priorities) else _encoder.encode(answered)
                traffic.sizes(name, len(body), len(encoded))
                facts["requestBytes"], facts["responseBytes"] = len(body), len(encoded)
            code = 200
            return Response(encoded, media_type="application/json")
        except RequestError as fault:
            code = fault.status
            facts["err"] = fault.message
            raise
        except HTTPException as fault:
            code = fault.status_code
            raise
        except ClientDisconnect:
            code = _GONE
            return Response(status_code=_GONE)
        finally:
            seconds = time.perf_counter() - started
            traffic.ended(name, code, seconds)
            access.told(request, name, code, seconds, facts)

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
