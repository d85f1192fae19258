"""The service of a standalone scheduler: probes, metrics, configuration, status, and why a pod waits.

Source: H043 to H050. Who may ask what is settled before, see `guard`.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec
from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, StreamingResponse

from extender.web.guard import status
from extender.web.health import Health
from extender.web.pages import (
    ACCEPTED,
    Facts,
    content_type,
    encoded,
    flags_text,
    status_text,
    status_values,
    wanted_form,
)
from extender.web.probes import add_probes, line, not_found

log = logging.getLogger("extender.web")

PATHS: Final = ("/configz", "/debug", "/explain", "/flagz", "/healthz", "/livez", "/metrics", "/readyz", "/statusz")
_MOST: Final = 4096
"""Bytes that the body of a request to a page may have."""

EXPLAIN: Final = "/explain/{namespace}/{pod}"

Explain = Callable[[str, str, bool], str | None]
"""What is known of a pod (namespace, name), as text or, if the last is true, JSON; None: nothing."""

_READING: Final = ["GET", "HEAD"]
_METRICS: Final = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"


@dataclass(frozen=True, slots=True)
class Page:
    """A page of metrics, and what empties it."""

    text: Callable[[], bytes]
    reset: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Service:
    """What is served.

    Attributes:
        health: answers probes.
        metrics, checks: the pages `/metrics` and `/metrics/slis`.
        usage: the page `/metrics/resources` in pieces; nothing while another leads. Source: H039.
        configuration: the configuration in force, builtins.
        flags: as given on the command line.
        facts: about the process.
        explain: why a pod (namespace, name) waits, as text or, if the last is true, JSON; None: no such pod.
        verbose: changes how much is logged; None if that may not be changed.
    """

    health: Health
    metrics: Page
    checks: Page
    usage: Callable[[], Iterator[str]]
    configuration: Mapping[str, object]
    flags: Mapping[str, str]
    facts: Facts
    explain: Explain
    verbose: Callable[[int], None] | None = None


def new_service(service: Service) -> FastAPI:
    """The ASGI application, not yet guarded."""
    app = FastAPI(
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        exception_handlers={HTTPException: _http_fault, Exception: _fault},
    )
    add_probes(app, service.health)
    for path, page in (("/metrics", service.metrics), ("/metrics/slis", service.checks)):
        app.add_api_route(path, _metrics(page), methods=["GET", "HEAD", "POST", "DELETE"])
    app.add_api_route("/metrics/resources", _usage(service), methods=[*_READING, "DELETE"])
    app.add_api_route("/configz", _configuration(service), methods=_READING)
    app.add_api_route("/statusz", _statusz(service), methods=_READING)
    app.add_api_route("/flagz", _flagz(service), methods=_READING)
    app.add_api_route(EXPLAIN, explaining(service.explain), methods=_READING)
    if service.verbose is not None:
        app.add_api_route("/debug/flags/v", _verbosity(service.verbose), methods=["PUT"], max_body_size=_MOST)
    return app


Answer = Callable[[Request], Awaitable[Response]]


def _metrics(page: Page) -> Answer:
    async def answer(request: Request) -> Response:
        if request.method == "DELETE":
            page.reset()
            return PlainTextResponse("metrics reset\n")
        return Response(page.text(), media_type=_METRICS)

    return answer


def _usage(service: Service) -> Answer:
    async def answer(request: Request) -> Response:
        if request.method == "DELETE":
            return PlainTextResponse("metrics reset\n")
        return StreamingResponse(_yielding(service.usage()), media_type=_METRICS)

    return answer


async def _yielding(pieces: Iterator[str]) -> AsyncIterator[str]:
    """The pieces; in between others have their turn."""
    for piece in pieces:
        yield piece
        await asyncio.sleep(0)


def _configuration(service: Service) -> Answer:
    body = msgspec.json.encode({"componentconfig": service.configuration})

    async def answer(_: Request) -> Response:
        return Response(body, media_type="application/json")

    return answer


def _statusz(service: Service) -> Answer:
    def values() -> dict[str, object]:
        return status_values(service.facts, PATHS, time.time())

    return _zpage("Statusz", lambda: status_text(service.facts, PATHS, time.time()), values)


def _flagz(service: Service) -> Answer:
    return _zpage("Flagz", lambda: flags_text(service.flags), lambda: {"flags": dict(service.flags)})


def _zpage(kind: str, text: Callable[[], str], values: Callable[[], Mapping[str, object]]) -> Answer:
    async def answer(request: Request) -> Response:
        form = wanted_form(request.headers.get("accept", ""), kind)
        if form is None:
            refusal = status(406, "NotAcceptable", ACCEPTED)
            return Response(msgspec.json.encode(refusal) + b"\n", 406, media_type="application/json")
        body = encoded(form, kind, values()) if form.version else text().encode()
        headers = {"Content-Type": content_type(form, kind)}
        if form.version == "v1alpha1":
            name = kind.lower()
            headers["Warning"] = (
                f'299 - "This version of the {name} endpoint is deprecated. Please use a newer version."'
            )
        return Response(body, headers=headers)

    return answer


def explaining(explain: Explain) -> Callable[[Request, str, str], Awaitable[Response]]:
    """Answers what *explain* knows of a pod."""

    async def answer(request: Request, namespace: str, pod: str) -> Response:
        as_json = "application/json" in request.headers.get("accept", "")
        told = explain(namespace, pod, as_json)
        if told is None:
            return line(f"pod {namespace}/{pod} is not known, or none of our schedulers is to place it", 404)
        return Response(told, media_type="application/json" if as_json else "text/plain; charset=utf-8")

    return answer


def _verbosity(verbose: Callable[[int], None]) -> Answer:
    async def answer(request: Request) -> Response:
        text = (await request.body()).decode(errors="replace").strip()
        if not (text.isascii() and text.isdigit() and len(text) < 10):
            return line(f'unable to parse "{text[:32]}" as a verbosity; want a whole number', 400)
        verbose(int(text))
        return line(f"verbosity is {text}", 200)

    return answer


async def _http_fault(_: Request, fault: Exception) -> Response:
    if isinstance(fault, HTTPException) and fault.status_code != 404:
        return line(str(fault.detail), fault.status_code, dict(fault.headers or {}))
    return not_found()


async def _fault(request: Request, fault: Exception) -> Response:
    """Nobody foresaw this; the log has the traceback, the caller gets none."""
    log.error("A request broke", extra={"path": request.scope["path"]}, exc_info=fault)
    return line(f"internal error: {type(fault).__name__}", 500)
