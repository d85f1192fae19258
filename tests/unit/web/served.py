"""Applications behind real sockets: served from a thread with its own event loop, asked over plain HTTP or TLS."""

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

from extender import wiring
from extender.framework.profiles import Profile
from extender.observe.metrics import exposition, new_registry
from extender.observe.verbs import VerbMetrics
from extender.offline.checks import problems
from extender.web.app import Site
from extender.web.health import Health
from extender.web.serving import listening, serving
from extender.web.verbs import Intake, Verbs
from tests.build import a_cluster, a_node

SECONDS = 20.0


def a_site(profile: Profile | None = None, **more: Any) -> Site:
    """The verbs about two nodes, decided by *profile*; kube-scheduler's default one if none is given."""
    registry = new_registry()
    seen = VerbMetrics(registry)
    profile = profile or wiring.scheduling().first
    state = a_cluster(a_node("n1"), a_node("n2"))
    engine, imagining = wiring.engine(), wiring.engine(keep=False)
    intake = Intake(problems=problems)
    verbs = Verbs(state, {profile.scheduler_name: profile}, profile, engine, imagining, intake, seen=seen)
    return Site(verbs, Health(), seen, lambda: exposition(registry), **more)


@contextmanager
def served(
    app: Any, tls: ssl.SSLContext | None = None, loop: Callable[[], Any] = uvloop.new_event_loop
) -> Iterator[int]:
    """The port at which *app* answers for as long as the block lasts."""
    listener = listening("127.0.0.1", 0)
    ready, over = threading.Event(), asyncio.Event()
    running: list[asyncio.AbstractEventLoop] = []

    async def serve() -> None:
        running.append(asyncio.get_running_loop())
        async with serving(app, listener, tls):
            ready.set()
            await over.wait()

    def work() -> None:
        with asyncio.Runner(loop_factory=loop) as runner:
            runner.run(serve())

    thread = threading.Thread(target=work)
    with listener:
        thread.start()
        try:
            assert ready.wait(SECONDS)
            yield listener.getsockname()[1]
        finally:
            running[0].call_soon_threadsafe(over.set)
            thread.join(SECONDS)


def trusting(server: trustme.CA, client: trustme.LeafCert | None = None) -> ssl.SSLContext:
    """TLS of a caller that shows *client*."""
    context = ssl.create_default_context()
    server.configure_trust(context)
    if client is not None:
        client.configure_cert(context)
    return context


def ask(
    port: int, method: str, path: str, body: Any = None, *, tls: ssl.SSLContext | None = None, **headers: str
) -> tuple[int, str]:
    """The status and text of one answer on a connection of its own; *body* is bytes, or what is sent as JSON."""
    sent = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
    connection: HTTPConnection = HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    if tls is not None:
        connection = HTTPSConnection("localhost", port, timeout=SECONDS, context=tls)
    try:
        connection.request(method, path, sent, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()
