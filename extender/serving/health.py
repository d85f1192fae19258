"""The health checks behind `/livez`, `/healthz` and `/readyz`, with `?verbose` and `?exclude=`.

Source: apiserver/pkg/server/healthz/healthz.go, InstallPathHandlerWithHealthyFunc; cmd/kube-scheduler/app/server.go,
Run (1.36).
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fastapi import FastAPI, Request, Response
from starlette.responses import PlainTextResponse

from extender.serving.error_handlers import make_text_response

log = logging.getLogger("extender.extender_api")

HealthCheck = Callable[[], str]
"""Returns an error message; empty if the check passes."""


CheckObserver = Callable[[str, str, bool], None]
"""Is called after each check with the check's name, the endpoint, and whether the check passed."""


@dataclass(slots=True)
class Health:
    """The health checks of a process. A draining process is alive but not ready.

    Attributes:
        readiness_checks: additional checks of `readyz` by name.
        draining: whether the process is stopping.
        healthz_checks: checks of `healthz` by name, which replace the ping.
        public: whether the endpoints need no authentication. If so, `readyz` has no ping, and the list of checks omits
            the reasons of failures. A reason is then only in the log and on the page of the failed check.

    Source: cmd/kube-scheduler/app/server.go, Run (1.36).
    """

    readiness_checks: Mapping[str, HealthCheck] = field(default_factory=dict)
    draining: bool = False
    healthz_checks: Mapping[str, HealthCheck] = field(default_factory=dict)
    public: bool = False
    observe_check: CheckObserver = lambda *_: None

    def _check_shutdown(self) -> str:
        return "process is shutting down" if self.draining else ""

    def get_checks(self, endpoint: str) -> Mapping[str, HealthCheck]:
        """Return the checks of `livez`, `healthz` or `readyz`, in order."""
        if endpoint == "healthz" and self.healthz_checks:
            return self.healthz_checks
        ping: dict[str, HealthCheck] = {"ping": lambda: ""}
        if endpoint != "readyz":
            return ping
        return {**({} if self.public else ping), **self.readiness_checks, "shutdown": self._check_shutdown}

    def run_check(self, endpoint: str, name: str) -> str | None:
        """Run one check. Return its error message, which is empty if it passes; None if there is no such check."""
        check = self.get_checks(endpoint).get(name)
        return None if check is None else check()

    def run_checks(self, endpoint: str, *, verbose: bool = False, exclude: Iterable[str] = ()) -> tuple[bool, str]:
        """Run the checks; return whether all pass, and the text of the page (`ok`, or one line per check).

        *endpoint* is `livez`, `healthz` or `readyz`. With *verbose*, the checks are listed even if all pass. Those in
        *exclude* are left out.
        """
        excluded_names = frozenset(exclude)
        lines: list[str] = []
        all_passed = True
        for name, check in self.get_checks(endpoint).items():
            if name in excluded_names:
                lines.append(f"[+]{name} excluded: ok")
                continue
            error = check()
            self.observe_check(name, endpoint, not error)
            if error:
                all_passed = False
                lines.append(f"[-]{name} failed: {'reason withheld' if self.public else error}")
                log.log(logging.INFO - 2, "%s check failed: %s: %s", endpoint, name, error)
            else:
                lines.append(f"[+]{name} ok")
        unknown_names = sorted(excluded_names - set(self.get_checks(endpoint)))
        if unknown_names:
            quoted_names = ", ".join(f'"{name}"' for name in unknown_names)
            lines.append(f"warn: some health checks cannot be excluded: no matches for {quoted_names}")
        if all_passed and not verbose:
            return True, "ok"
        lines.append(f"{endpoint} check {'passed' if all_passed else 'failed'}")
        return all_passed, "\n".join(lines) + "\n"


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
