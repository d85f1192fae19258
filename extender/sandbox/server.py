"""The sandbox as a whole: started and stopped in the running event loop, on a free port of this machine."""

import asyncio
import socket
from collections.abc import Iterable
from typing import Final, Self

import uvicorn
import yaml
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from extender.basics.clock import Clock
from extender.sandbox.api import Api
from extender.sandbox.app import BREAK, App
from extender.sandbox.faults import Fault, Faults
from extender.sandbox.nodes import Nodes, Pace
from extender.sandbox.reviews import Reviews
from extender.sandbox.store import HISTORY, Store
from extender.sandbox.watching import BOOKMARK_SECONDS

_LOOPBACK: Final = "127.0.0.1"
_PLACES: Final = frozenset({"pods", "nodes"})
_STOP_SECONDS: Final = 2


class _Protocol(HttpToolsProtocol):
    """Lets the application break a connection: what was sent arrives, and then nothing."""

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self.scope["extensions"] = {BREAK: {"close": self.transport.close}}


class Sandbox:
    """An API server in this process.

    Attributes:
        api: its objects and rules, for use without HTTP.
        faults: what is spoiled; may be added to while it runs.
        nodes: the player of the nodes; None if nobody plays them.
    """

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        faults: Iterable[Fault] = (),
        seed: int = 0,
        pace: Pace | None = None,
        reviews: Reviews | None = None,
        bookmarks: float = BOOKMARK_SECONDS,
        history: int = HISTORY,
    ) -> None:
        """Makes the server; nothing listens yet.

        Args:
            clock: of time stamps and nodes; the machine's own if None.
            faults: what to spoil.
            seed: of faults, UIDs and generated names.
            pace: of the nodes; None: nobody plays them, and bound pods stay as they are.
            reviews: who may do what; None: everyone everything.
            bookmarks: seconds between the bookmarks of a watch.
            history: changes of each kind that are remembered.
        """
        self.api = Api(Store(history), clock, seed)
        self.faults = Faults(faults, seed)
        self.nodes = Nodes(self.api, pace) if pace is not None else None
        self._app = App(self.api, self.faults, reviews or Reviews(), bookmarks=bookmarks)
        self._server: uvicorn.Server | None = None
        self._socket: socket.socket | None = None
        self._playing: asyncio.Task[None] | None = None

    @property
    def store(self) -> Store:
        """The objects themselves, past all rules."""
        return self.api.store

    @property
    def url(self) -> str:
        """The address, such as `http://127.0.0.1:40123`.

        Raises:
            RuntimeError: it is not started.
        """
        if self._socket is None:
            raise RuntimeError("the sandbox is not started; call start() first")
        host, port = self._socket.getsockname()[:2]
        return f"http://{host}:{port}"

    async def __aenter__(self) -> Self:
        """Start it."""
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop it."""
        await self.stop()

    async def start(self, port: int = 0) -> None:
        """Listen on the loopback; port 0 takes a free one.

        Raises:
            OSError: the port is taken.
            RuntimeError: it is started already. After `stop` it can be started again, with all its objects.
        """
        if self._socket is not None:
            raise RuntimeError("the sandbox is started already; call stop() first")
        self._app.open()
        self._socket = socket.create_server((_LOOPBACK, port))
        config = uvicorn.Config(
            self._app,
            http=_Protocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=120,
            timeout_graceful_shutdown=_STOP_SECONDS,
        )
        config.load()
        # Its own main loop is left out: it would take the signals of this process, and only keeps a Date header.
        self._server = uvicorn.Server(config)
        self._server.lifespan = config.lifespan_class(config)
        await self._server.startup(sockets=[self._socket])
        if self.nodes is not None:
            self._playing = asyncio.create_task(_play(self.nodes), name="the sandbox's nodes")

    async def stop(self) -> None:
        """End all watches and close the port; the objects stay. Once stopped, nothing happens."""
        if self._playing is not None:
            self._playing.cancel()
            await asyncio.wait({self._playing})
            self._playing = None
        self._app.close()
        if self._server is not None and self._socket is not None:
            await self._server.shutdown(sockets=[self._socket])
            self._socket.close()
            self._server = self._socket = None

    def kubeconfig(self) -> str:
        """A kubeconfig for this server, as YAML.

        Raises:
            RuntimeError: it is not started.
        """
        name = "sandbox"
        return yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": name, "cluster": {"server": self.url}}],
                "users": [{"name": name, "user": {}}],
                "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": "default"}}],
                "current-context": name,
            },
            sort_keys=False,
        )


async def _play(nodes: Nodes) -> None:
    """Have the nodes do their part whenever a pod or node changed, or the time has come."""
    woken = asyncio.Event()
    deaf = nodes.api.store.listen(lambda place: woken.set() if place in _PLACES else None)
    try:
        while True:
            woken.clear()
            wait = nodes.step()
            try:
                await asyncio.wait_for(woken.wait(), wait)
            except TimeoutError:
                continue
    finally:
        deaf()
