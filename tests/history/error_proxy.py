"""An HTTP proxy between a scheduler and the API server that responds with errors or loses the responses of bindings."""

import asyncio
import ssl
import threading
from pathlib import Path
from typing import Final

import aiohttp
from aiohttp import web
from yarl import URL

_HOP_HEADERS: Final = {"host", "connection", "content-length", "transfer-encoding", "keep-alive"}
_START_TIMEOUT: Final = 30.0
_REASONS: Final = {401: "Unauthorized", 403: "Forbidden", 503: "ServiceUnavailable"}


class ErrorProxy:
    """Forwards plain HTTP to the API server over TLS, in a thread. Open watches stay open until `reset`.

    Args:
        target: the address of the API server.
        ca_file: the CA certificate of the API server.
        token: the bearer token of all requests; kube-scheduler sends none over plain HTTP.

    Attributes:
        status: the status of every response from now on; 0 forwards the requests.
        loses_bindings: close the connection instead of sending the response of a binding, which is carried out.
        injected: the number of responses that were replaced or lost.
        url: the address of the proxy.
    """

    def __init__(self, target: str, ca_file: Path, token: str) -> None:
        self.status = 0
        self.loses_bindings = False
        self.injected = 0
        self.url = ""
        self._target = target
        self._token = token
        self._tls = ssl.create_default_context(cafile=ca_file)
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self._stopping = asyncio.Event()
        self._transports: set[asyncio.Transport] = set()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),), daemon=True)
        self._thread.start()
        if not self._started.wait(_START_TIMEOUT):
            raise TimeoutError("the proxy does not start")

    def stop(self) -> None:
        """Close all connections and end the thread."""
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()
        self._loop.close()

    def reset(self) -> None:
        """Abort all connections of the scheduler, so that it starts its watches again."""
        self._loop.call_soon_threadsafe(self._abort_all)

    def _abort_all(self) -> None:
        for transport in list(self._transports):
            transport.abort()

    async def _serve(self) -> None:
        app = web.Application(client_max_size=2**24)
        app.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=0.1)
        connector = aiohttp.TCPConnector(limit=0, ssl=self._tls)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=5.0)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout, auto_decompress=False) as self._session:
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            self._started.set()
            await self._stopping.wait()
            await runner.cleanup()
        handlers = asyncio.all_tasks() - {asyncio.current_task()}
        for handler in handlers:
            handler.cancel()
        await asyncio.gather(*handlers, return_exceptions=True)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        transport = request.transport
        assert isinstance(transport, asyncio.Transport)
        self._transports.add(transport)
        try:
            return await self._respond(request)
        finally:
            self._transports.discard(transport)

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        if self.status:
            self.injected += 1
            body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": self.status}
            return web.json_response({**body, "reason": _REASONS[self.status]}, status=self.status)
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP_HEADERS}
        headers["Authorization"] = f"Bearer {self._token}"
        url = URL(self._target + request.raw_path, encoded=True)
        content = await request.read()
        try:
            async with self._session.request(
                request.method, url, headers=headers, data=content, allow_redirects=False
            ) as reply:
                try:
                    return await self._forward(request, reply)
                finally:
                    if reply.connection is not None and reply.connection.transport is not None:
                        # The response is not complete. The socket closes at once, not when the API server answers the
                        # end of TLS: then it would be open when the event loop ends.
                        reply.connection.transport.abort()
        except aiohttp.ClientError:  # the API server is down, or it ended a watch
            return self._abort(request)

    async def _forward(self, request: web.Request, reply: aiohttp.ClientResponse) -> web.StreamResponse:
        if self.loses_bindings and request.path.endswith("/binding"):
            self.injected += 1
            return self._abort(request)
        headers = {name: value for name, value in reply.headers.items() if name.lower() not in _HOP_HEADERS}
        response = web.StreamResponse(status=reply.status, headers=headers)
        await response.prepare(request)
        async for chunk in reply.content.iter_any():
            await response.write(chunk)
        await response.write_eof()
        return response

    @staticmethod
    def _abort(request: web.Request) -> web.StreamResponse:
        if request.transport is not None:
            request.transport.abort()
        return web.Response(status=502)
