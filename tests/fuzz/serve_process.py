"""A running `extender serve` with a fake API server, and its use of CPU and memory."""

import asyncio
import http.client
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Final

from extender.fake_apiserver.server import FakeApiServer
from tests.flows.test_live_extender import make_node, make_pod

START_SECONDS: Final = 60.0


@contextmanager
def run_api_server(kubeconfig: Path) -> Iterator[None]:
    """Run a fake API server with two nodes and a pod in a thread, and write its kubeconfig."""
    ready, stopped = Event(), Event()

    async def serve() -> None:
        async with FakeApiServer() as server:
            for manifest in (make_node("n1"), make_node("n2"), make_pod("web")):
                server.api.create_from_manifest(manifest)
            kubeconfig.write_text(server.kubeconfig())
            ready.set()
            await asyncio.to_thread(stopped.wait)

    thread = Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        assert ready.wait(START_SECONDS)
        yield
    finally:
        stopped.set()
        thread.join()


class ServeProcess:
    """A running `extender serve`, its port, and its use of CPU and memory."""

    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self.port, self._folder = port, Path("/proc", str(process.pid))

    def is_ready(self) -> bool:
        """Return whether the extender serves requests."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=START_SECONDS)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    def read_cpu_seconds(self) -> float:
        """Return the CPU time of the main thread, in seconds."""
        return int((self._folder / "schedstat").read_text().split()[0]) / 1e9

    def read_rss_bytes(self) -> int:
        """Return the resident memory in bytes."""
        found = re.search(r"VmRSS:\s+(\d+) kB", (self._folder / "status").read_text())
        assert found is not None
        return int(found[1]) * 1024
