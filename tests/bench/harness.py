"""Shared by benchmarks on a real control plane: its start, a client for many objects, CPU time and memory."""

import asyncio
import os
import ssl
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from tests.bench.workloads import node_body
from tests.controlplane import programs
from tests.controlplane.control_plane import ADMIN, ControlPlane

POD_PATHS = {phase: f"/api/v1/namespaces/{phase}/pods" for phase in ("init", "measure")}
"""The pod path of each phase; phases are in different namespaces."""

_TICKS = os.sysconf("SC_CLK_TCK")
_CONCURRENCY = 40
_API_SERVER_FLAGS = (
    "--storage-media-type=application/vnd.kubernetes.protobuf",
    "--audit-policy-file=",
    "--audit-log-path=",
)
"""Flags that undo those of the tests: JSON storage and the audit log."""


@contextmanager
def run_control_plane(*flags: str) -> Iterator[ControlPlane]:
    """Run an empty etcd and kube-apiserver; *flags* are additional flags of kube-apiserver."""
    programs_ = programs.find()
    if isinstance(programs_, str):
        raise SystemExit(programs_)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        plane = ControlPlane(programs_, Path(folder), *_API_SERVER_FLAGS, *flags)
        try:
            plane.start()
            yield plane
        finally:
            plane.stop()


class BulkClient:
    """Creates, counts and deletes many objects with concurrent requests."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.session, self._url = session, url

    async def call(self, method: str, path: str, body: Any = None, *, kind: str = "application/json") -> Any:
        """Send a request and return the decoded response; None for status 404 and 409."""
        data = None if body is None else msgspec.json.encode(body)
        async with self.session.request(
            method, self._url + path, data=data, headers={"Content-Type": kind}
        ) as response:
            content = await response.read()
            if response.status in (404, 409):
                return None
            if response.status >= 300:
                raise SystemExit(f"{method} {path}: {response.status} {content[:300]!r}")
            return msgspec.json.decode(content)

    async def create(self, path: str, bodies: Iterable[dict[str, Any]]) -> None:
        """Create all objects with concurrent requests."""
        remaining = iter(bodies)

        async def worker() -> None:
            for body in remaining:
                await self.call("POST", path, body)

        await asyncio.gather(*(worker() for _ in range(_CONCURRENCY)))

    async def delete_all(self) -> None:
        """Delete all pods and nodes; create the namespaces of both phases."""
        for namespace, path in POD_PATHS.items():
            await self.call("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
            await self.call("DELETE", f"{path}?gracePeriodSeconds=0")
        await self.call("DELETE", "/api/v1/nodes")

    async def create_nodes(self, count: int, body: Callable[[int], dict[str, Any]] = node_body) -> None:
        """Create *count* nodes."""
        await self.create("/api/v1/nodes", map(body, range(count)))

    async def count_unbound(self, phase: str) -> int:
        """Return the number of pods of *phase* without a node."""
        return await self.count_objects(f"{POD_PATHS[phase]}?fieldSelector=spec.nodeName%3D&limit=1")

    async def wait_until_no_events(self, phase: str) -> None:
        """Wait until no new events about pods of *phase* appear for a second."""
        path, previous = f"/apis/events.k8s.io/v1/namespaces/{phase}/events?limit=1", -1
        while (count := await self.count_objects(path)) != previous:
            previous = count
            await asyncio.sleep(1)

    async def count_objects(self, path: str) -> int:
        """Return the length of a list from its first page with `limit=1`."""
        page = await self.call("GET", path)
        return len(page["items"]) + int(page["metadata"].get("remainingItemCount", 0))

    @asynccontextmanager
    async def watch(self, path: str, since: str) -> AsyncIterator[AsyncIterator[bytes]]:
        """Watch a collection from the resource version *since*; yield the lines of events."""
        params = {"watch": "true", "resourceVersion": since}
        async with self.session.get(self._url + path, params=params) as response:
            yield aiter(response.content)

    async def wait_until_bound(self, phase: str, seconds: float, step: float = 0.25) -> int:
        """Wait until all pods of *phase* have nodes, or for *seconds*; return the number of the others."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while unbound_count := await self.count_unbound(phase):
            if loop.time() > deadline:
                return unbound_count
            await asyncio.sleep(step)
        return 0


@asynccontextmanager
async def open_bulk_client(plane: ControlPlane) -> AsyncIterator[BulkClient]:
    """Open a client of the administrator."""
    tls_context = ssl.create_default_context(cafile=plane.ca_file)
    headers = {"Authorization": f"Bearer {plane.token(ADMIN)}"}
    connector = aiohttp.TCPConnector(ssl=tls_context, limit=_CONCURRENCY + 10)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(headers=headers, connector=connector, timeout=timeout) as session:
        yield BulkClient(session, plane.url)


def cpu_seconds(pid: int) -> float:
    """Return the CPU time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def peak_mb(pid: int) -> int:
    """Return the peak resident memory of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) // 1024
