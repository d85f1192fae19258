"""The application: which paths lead where, and what is answered to faults that nobody foresaw."""

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
from extender.web.answering import Answering, Traffic
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
from extender.web.probes import add_probes, line
from extender.web.service import EXPLAIN, Explain, explaining
from extender.web.turns import Turns
from extender.web.verbs import Verbs
from extender.web.wire import Familiar, decode_args, decode_binding_args, decode_preemption_args


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


class _VerbsFirst:
    """Middleware that takes requests to verbs past the search among all routes: a scheduler waits for each."""

    def __init__(self, app: ASGIApp, verbs: Mapping[str, ASGIApp]) -> None:
        self._app, self._verbs = app, verbs

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        verb = self._verbs.get(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        await (verb or self._app)(scope, receive, send)


def add_verbs(app: FastAPI, site: Site) -> None:
    """Have *app* answer the verbs."""
    answering: dict[str, ASGIApp] = {}
    for verb in _verbs(site):
        about = getdoc(verb.answer(site))
        route = APIRoute(
            verb.path, _described, methods=["POST"], name=verb.name, openapi_extra=verb.described,
            response_class=Response, summary=about.splitlines()[0] if about else None,
        )  # fmt: skip
        route.app = answering[verb.path] = _answering(verb, site)
        app.router.routes.append(route)
    app.add_middleware(_VerbsFirst, verbs=answering)


def _described() -> None:
    """Stands for a verb where the document of the interface is made: its parameters are none but the body."""


def _answering(verb: _Verb, site: Site) -> Answering:
    return Answering(
        verb.name, verb.decode, partial(verb.answer, site), site.bodies, verb.sign, verb.turns, site.traffic
    )


async def _http_fault(_: Request, fault: Exception) -> Response:
    if not isinstance(fault, HTTPException):
        return await _fault(_, fault)
    return line(str(fault.detail), fault.status_code, dict(fault.headers or {}))


async def _fault(_: Request, fault: Exception) -> Response:
    """Nobody foresaw this; the server's log has the traceback, the caller gets none."""
    return line(f"internal error: {type(fault).__name__}", 500)
