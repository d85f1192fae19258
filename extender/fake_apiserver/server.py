"""Run the fake API server in the running event loop, on a loopback port."""

import asyncio
import socket
from typing import Any, ClassVar, Final, Self

import uvicorn
import yaml

from extender.basics.clock import Clock
from extender.fake_apiserver.endpoints.http_app import HttpApp
from extender.fake_apiserver.kubelets import Kubelets, KubeletTiming
from extender.fake_apiserver.registry.api import Api
from extender.fake_apiserver.registry.reviews import ReviewRules
from extender.fake_apiserver.registry.store import Store

_LOOPBACK: Final = "127.0.0.1"
_KUBELET_STORAGE_KEYS: Final = frozenset({"pods", "nodes"})
_STOP_SECONDS: Final = 2


class FakeApiServer:
    """An API server in this process.

    Attributes:
        api: the API, usable without HTTP.
        kubelets: the simulated kubelets; None: there are no kubelets, so bound pods stay pending.
        app_type: the type of the ASGI application; tests have one that injects faults.
        http_protocol: uvicorn's setting `http`.
    """

    app_type: ClassVar[type[HttpApp]] = HttpApp
    http_protocol: ClassVar[Any] = "httptools"

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        seed: int = 0,
        kubelet_timing: KubeletTiming | None = None,
        reviews: ReviewRules | None = None,
        store: Store | None = None,
    ) -> None:
        """Create the server without opening its port.

        Args:
            clock: the clock for timestamps and kubelets; None: the system clock.
            seed: the seed of UIDs and generated names.
            kubelet_timing: the durations of the kubelets' actions; None: there are no kubelets.
            reviews: the rules of authentication and authorization; None: all requests are allowed.
            store: the objects at the start; None: an empty store.
        """
        self.api = Api(store or Store(), clock, seed)
        self.kubelets = Kubelets(self.api, kubelet_timing) if kubelet_timing is not None else None
        self._app = self.app_type(self.api, reviews or ReviewRules())
        self._server: uvicorn.Server | None = None
        self._socket: socket.socket | None = None
        self._kubelet_task: asyncio.Task[None] | None = None

    @property
    def store(self) -> Store:
        """The store of the API; a write to it skips validation and defaults."""
        return self.api.store

    @property
    def url(self) -> str:
        """The address, such as `http://127.0.0.1:40123`.

        Raises:
            RuntimeError: the server is not started.
        """
        if self._socket is None:
            raise RuntimeError("the fake API server is not started; call start() first")
        host, port = self._socket.getsockname()[:2]
        return f"http://{host}:{port}"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self, port: int = 0) -> None:
        """Listen on the loopback interface. Port 0 selects a free port.

        A stopped server can be started again, and still has its objects.

        Raises:
            OSError: the port is in use.
            RuntimeError: the server is running already.
        """
        if self._socket is not None:
            raise RuntimeError("the fake API server is started already; call stop() first")
        self._app.open()
        self._socket = socket.create_server((_LOOPBACK, port))
        config = uvicorn.Config(
            self._app,
            http=self.http_protocol,
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
        # Server.serve would install signal handlers. Its loop updates only the Date header, which is disabled.
        self._server = uvicorn.Server(config)
        self._server.lifespan = config.lifespan_class(config)
        await self._server.startup(sockets=[self._socket])
        if self.kubelets is not None:
            self._kubelet_task = asyncio.create_task(_run_kubelets(self.kubelets), name="kubelets")

    async def stop(self) -> None:
        """End all watches and close the port. The objects remain."""
        if self._kubelet_task is not None:
            self._kubelet_task.cancel()
            await asyncio.wait({self._kubelet_task})
            self._kubelet_task = None
        self._app.close()
        if self._server is not None and self._socket is not None:
            await self._server.shutdown(sockets=[self._socket])
            self._socket.close()
            self._server = self._socket = None

    def kubeconfig(self) -> str:
        """Return a kubeconfig for this server, as YAML.

        Raises:
            RuntimeError: the server is not started.
        """
        name = "fake-apiserver"
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


async def _run_kubelets(kubelets: Kubelets) -> None:
    """Run the kubelets after each change of a pod or node, and when the next action is due."""
    change_event = asyncio.Event()
    unsubscribe = kubelets.api.store.subscribe(
        lambda storage_key: change_event.set() if storage_key in _KUBELET_STORAGE_KEYS else None
    )
    try:
        while True:
            change_event.clear()
            timeout = kubelets.step()
            try:
                async with asyncio.timeout(timeout):
                    await change_event.wait()
            except TimeoutError:
                continue
    finally:
        unsubscribe()
