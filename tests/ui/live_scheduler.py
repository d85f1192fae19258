"""`extender schedule --ui` beside the fake API server, which runs in a thread of its own."""

import asyncio
import json
import ssl
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from extender.fake_apiserver.registry.reviews import ReviewRules
from extender.fake_apiserver.server import FakeApiServer
from tests.controlplane.process import Process, free_ports

READER: Final = "reader-token"
"""The bearer token of a user who may read the pages."""

READER_OPTIONS: Final[dict[str, Any]] = {
    "ignore_https_errors": True,
    "extra_http_headers": {"Authorization": f"Bearer {READER}"},
}
"""The options of a browser context of this user."""

_SECONDS: Final = 30.0


def make_node(name: str, cpu: str = "4") -> dict[str, Any]:
    """A node without taints."""
    resources = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    status = {"capacity": resources, "allocatable": resources}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def make_pod(name: str, cpu: str = "1", **spec: Any) -> dict[str, Any]:
    """A pod of the namespace default with one container."""
    container = {"name": "app", "image": "app", "resources": {"requests": {"cpu": cpu}}}
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [container], **spec}}


class LiveScheduler:
    """A running scheduler with pages.

    Attributes:
        url: the address of the first page.
        process: the process of `extender schedule`.
    """

    def __init__(self, url: str, process: Process, run: Callable[[Callable[[], Any]], Any], server: FakeApiServer):
        self.url, self.process, self._run, self._server = url, process, run, server

    def create(self, *manifests: dict[str, Any]) -> None:
        """Create objects."""
        for manifest in manifests:
            self._run(lambda manifest=manifest: self._server.api.create_from_manifest(manifest))  # type: ignore[misc]

    def get(self, path: str = "", token: str = READER) -> tuple[int, str]:
        """Return the status and the text of a page."""
        request = urllib.request.Request(self.url + path)  # noqa: S310  the URL of this class
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # the certificate is self-signed
        try:
            with urllib.request.urlopen(request, context=context, timeout=_SECONDS) as response:  # noqa: S310
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def wait_until_nodes_are_read(self, manifests: Iterable[dict[str, Any]]) -> None:
        """Wait for the nodes among *manifests*, which the page Cluster could else lack for five seconds."""
        for manifest in manifests:
            if manifest["kind"] == "Node":
                self.wait_for(f"nodes/{manifest['metadata']['name']}", "<h1>Node")

    def wait_for(self, path: str, text: str) -> None:
        """Wait until a page contains a text."""
        deadline = time.monotonic() + _SECONDS
        while True:
            try:
                found = text in self.get(path)[1]
            except OSError:
                found = False
            if found:
                return
            assert time.monotonic() < deadline, f"{path} does not have {text}"
            time.sleep(0.05)


def _authorize(spec: dict[str, Any]) -> tuple[bool, str]:
    """Allow the reader to read the pages, and nobody else anything."""
    path = spec.get("nonResourceAttributes", {}).get("path", "")
    return spec["user"] == "reader" and path.startswith("/ui"), ""


@contextmanager
def run_live_scheduler(
    folder: Path, *manifests: dict[str, Any], flags: tuple[str, ...] = ()
) -> Iterator[LiveScheduler]:
    """Run the fake API server with *manifests*, and `extender schedule --ui` for it, inside the block."""
    reviews = ReviewRules(
        lambda token: {"username": "reader", "groups": []} if token == READER else None,
        _authorize,
    )
    loop, server = asyncio.new_event_loop(), FakeApiServer(reviews=reviews)
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def call(function: Callable[[], Any]) -> Any:
        return function()

    def run(function: Callable[[], Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(call(function), loop).result(_SECONDS)

    try:
        asyncio.run_coroutine_threadsafe(server.start(), loop).result(_SECONDS)
        kubeconfig, configuration = folder / "kubeconfig", folder / "scheduler.json"
        kubeconfig.write_text(server.kubeconfig())
        configuration.write_text(
            json.dumps(
                {
                    "apiVersion": "kubescheduler.config.k8s.io/v1",
                    "kind": "KubeSchedulerConfiguration",
                    "leaderElection": {"leaderElect": False},
                    "clientConnection": {"kubeconfig": str(kubeconfig)},
                }
            )
        )
        (port,) = free_ports(1)
        command = [sys.executable, "-m", "extender", "schedule", f"--config={configuration}", "--ui"]
        command += ["--bind-address=127.0.0.1", f"--secure-port={port}", f"--authentication-kubeconfig={kubeconfig}"]
        command += [f"--authorization-kubeconfig={kubeconfig}", *flags]
        process = Process(command, folder / "schedule.log")
        scheduler = LiveScheduler(f"https://127.0.0.1:{port}/ui/", process, run, server)
        try:
            scheduler.create(*manifests)
            scheduler.wait_until_nodes_are_read(manifests)
            scheduler.wait_for("", "extender")
            yield scheduler
        finally:
            process.stop()
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(_SECONDS)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
