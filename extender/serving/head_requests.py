"""Answer HEAD as GET; the HTTP server leaves the body out. Kubernetes' components answer HEAD on all their pages."""

from dataclasses import dataclass

from starlette.types import ASGIApp, Receive, Scope, Send


@dataclass(frozen=True, slots=True)
class HeadMiddleware:
    """An ASGI application that passes HEAD requests to `app` as GET requests."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        is_head = scope["type"] == "http" and scope["method"] == "HEAD"
        await self.app({**scope, "method": "GET"} if is_head else scope, receive, send)
