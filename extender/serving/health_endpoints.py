"""HTTP routes of the health checks: `/livez`, `/healthz`, `/readyz`, and a page for each check.

Source: apiserver/pkg/server/healthz/healthz.go, InstallPathHandlerWithHealthyFunc; cmd/kube-scheduler/app/server.go,
Run (1.36).
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from fastapi import FastAPI, Request, Response
from starlette.responses import PlainTextResponse

from extender.serving.error_handlers import make_text_response
from extender.serving.health import Health

ENDPOINTS: Final = ("livez", "healthz", "readyz")

PLAIN_TEXT_CONTENT: Final[dict[str, Any]] = {"text/plain": {"schema": {"type": "string"}}}
"""The OpenAPI content of a plain-text response."""

_NOSNIFF: Final = {"X-Content-Type-Options": "nosniff"}


def make_text_operation(description: str, *, can_fail: bool = False) -> dict[str, Any]:
    """Return the OpenAPI operation of a plain-text page; *can_fail* adds the response with status 500."""
    responses: dict[str, Any] = {"200": {"description": description, "content": PLAIN_TEXT_CONTENT}}
    if can_fail:
        responses["500"] = {"description": "A check fails; one line per check.", "content": PLAIN_TEXT_CONTENT}
    return {"responses": responses}


def add_health_endpoints(app: FastAPI, health: Health) -> None:
    """Add the routes of *health* to *app*."""
    for name in ENDPOINTS:
        openapi = make_text_operation("All is well.", can_fail=True)
        app.add_api_route(
            f"/{name}",
            _make_health_handler(name, health),
            name=name,
            openapi_extra=openapi,
            response_class=PlainTextResponse,
        )
        app.add_api_route(
            f"/{name}/{{check}}",
            _make_check_handler(name, health),
            include_in_schema=False,
            response_class=PlainTextResponse,
        )


def make_not_found_response() -> Response:
    """Return the 404 page of Kubernetes' components."""
    return make_text_response("404 page not found", 404, _NOSNIFF)


def _make_health_handler(name: str, health: Health) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        query = request.query_params
        has_passed, text = health.run_checks(name, verbose="verbose" in query, exclude=query.getlist("exclude"))
        return PlainTextResponse(text, 200 if has_passed else 500, _NOSNIFF)

    return handle


def _make_check_handler(name: str, health: Health) -> Callable[[str], Awaitable[Response]]:
    async def handle(check: str) -> Response:
        error = health.run_check(name, check)
        if error is None:
            return make_not_found_response()
        return (
            make_text_response(f"internal server error: {error}", 500, _NOSNIFF) if error else PlainTextResponse("ok")
        )

    return handle
