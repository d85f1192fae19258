"""Serve applications in a thread with its own event loop, and send requests over HTTP or TLS."""

import asyncio
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPSConnection
from typing import Any

import trustme
import uvloop

from extender.app import wiring
from extender.extender_api.routes import ExtenderService
from extender.extender_api.verbs import Verbs
from extender.framework.profiles import Profile
from extender.metrics.exposition import make_registry, render_metrics
from extender.metrics.verb_metrics import VerbMetrics
from extender.serving.health import Health
from extender.serving.http_server import listen, serve_http
from extender.serving.tls import ServingCertificate
from tests.build import make_cluster, make_node

TIMEOUT = 60.0


def make_service(profile: Profile | None = None, **more: Any) -> ExtenderService:
    """Return the service of two nodes and *profile*, by default kube-scheduler's default profile."""
    registry = make_registry()
    metrics = VerbMetrics(registry)
    profile = profile or wiring.build_setup().first_profile
    cache = make_cluster(make_node("n1"), make_node("n2"))
    runtime, hypothesis_runtime = wiring.make_runtime(), wiring.make_runtime(cache_results=False)
    verbs = Verbs(cache, {profile.scheduler_name: profile}, profile, runtime, hypothesis_runtime, metrics=metrics)
    return ExtenderService(verbs, Health(), metrics, lambda: render_metrics(registry), **more)


@contextmanager
def serve_in_thread(
    app: Any, certificate: ServingCertificate | None = None, loop: Callable[[], Any] = uvloop.new_event_loop
) -> Iterator[int]:
    """Serve *app* while the block runs; yield its port."""
    listener = listen("127.0.0.1", 0)
    ready, stopping = threading.Event(), asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def serve() -> None:
        loops.append(asyncio.get_running_loop())
        async with serve_http(app, listener, certificate):
            ready.set()
            await stopping.wait()

    def run_loop() -> None:
        with asyncio.Runner(loop_factory=loop) as runner:
            runner.run(serve())

    thread = threading.Thread(target=run_loop)
    with listener:
        thread.start()
        try:
            assert ready.wait(TIMEOUT)
            yield listener.getsockname()[1]
        finally:
            loops[0].call_soon_threadsafe(stopping.set)
            thread.join(TIMEOUT)


def client_tls_context(server: trustme.CA, client: trustme.LeafCert | None = None) -> ssl.SSLContext:
    """Return the TLS context of a client with the certificate *client*."""
    context = ssl.create_default_context()
    server.configure_trust(context)
    if client is not None:
        client.configure_cert(context)
    return context


def send_request(
    port: int, method: str, path: str, body: Any = None, *, tls: ssl.SSLContext | None = None, **headers: str
) -> tuple[int, str]:
    """Send one request on a new connection; return status and text. *body* is JSON in bytes, or is encoded."""
    data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
    connection: HTTPConnection = HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
    if tls is not None:
        connection = HTTPSConnection("localhost", port, timeout=TIMEOUT, context=tls)
    try:
        content_type = {"Content-Type": "application/json"} if data is not None else {}
        other_headers = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, data, content_type | other_headers)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()
