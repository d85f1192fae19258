"""ASGI middleware that ends a request when its client disconnects, because a client cannot cancel it otherwise."""

from dataclasses import dataclass

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send


@dataclass(frozen=True, slots=True)
class DisconnectMiddleware:
    """An ASGI application that passes requests to `app`, and cancels it when the client disconnects."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        async with anyio.create_task_group() as group:

            async def wait_for_disconnect() -> None:
                await receive()  # no part of the body remains
                group.cancel_scope.cancel()

            async def receive_part() -> Message:
                message = await receive()
                if message["type"] == "http.disconnect":
                    group.cancel_scope.cancel()
                elif not message.get("more_body", False):
                    group.start_soon(wait_for_disconnect)
                return message

            await self.app(scope, receive_part, send)
            group.cancel_scope.cancel()
