"""Probes over HTTP: `/livez`, `/healthz`, `/readyz`, and a page for each check. Source: H043 to H045."""

from collections.abc import Awaitable, Callable
from typing import Final

from fastapi import FastAPI, Request, Response
from starlette.responses import PlainTextResponse

from extender.web.health import Health
from extender.web.interface import text_operation

ENDPOINTS: Final = ("livez", "healthz", "readyz")

_NOSNIFF: Final = {"X-Content-Type-Options": "nosniff"}


def add_probes(app: FastAPI, health: Health) -> None:
    """Have *app* answer probes from *health*."""
    for name in ENDPOINTS:
        described = text_operation("All is well.", can_fail=True)
        app.add_api_route(
            f"/{name}",
            _probe(name, health),
            name=name,
            methods=["GET", "HEAD"] if health.open else ["GET"],
            openapi_extra=described,
            response_class=PlainTextResponse,
        )
        app.add_api_route(
            f"/{name}/{{check}}", _one_check(name, health), include_in_schema=False, response_class=PlainTextResponse
        )


def line(text: str, status: int, headers: dict[str, str] | None = None) -> Response:
    """An answer of one line, whatever is in *text*."""
    one_line = " ".join(text.split())
    return PlainTextResponse(f"{one_line}\n", status, headers)


def not_found() -> Response:
    """What Kubernetes' components answer where there is nothing."""
    return line("404 page not found", 404, _NOSNIFF)


def _probe(name: str, health: Health) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        asked = request.query_params
        well, text = health.report(name, verbose="verbose" in asked, exclude=asked.getlist("exclude"))
        return PlainTextResponse(text, 200 if well else 500, _NOSNIFF)

    return answer


def _one_check(name: str, health: Health) -> Callable[[str], Awaitable[Response]]:
    async def answer(check: str) -> Response:
        wrong = health.check(name, check)
        if wrong is None:
            return not_found()
        return line(f"internal server error: {wrong}", 500, _NOSNIFF) if wrong else PlainTextResponse("ok")

    return answer
