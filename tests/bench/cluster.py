"""What benchmarks on the real control plane share: the plane, many objects created at once, what a process spends."""

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
from tests.controlplane.plane import ADMIN, ControlPlane

POD_PATHS = {phase: f"/api/v1/namespaces/{phase}/pods" for phase in ("init", "measure")}
"""Pods of each phase have a namespace of their own."""

_TICKS = os.sysconf("SC_CLK_TCK")
_WIDTH = 40
_FAST = ("--storage-media-type=application/vnd.kubernetes.protobuf", "--audit-policy-file=", "--audit-log-path=")
"""As an API server is run; the tests want its storage readable and its audit log."""


@contextmanager
def control_plane() -> Iterator[ControlPlane]:
    """etcd and kube-apiserver with nothing in them."""
    found = programs.find()
    if isinstance(found, str):
        raise SystemExit(found)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        plane = ControlPlane(found, Path(folder), *_FAST)
        try:
            plane.start()
            yield plane
        finally:
            plane.stop()


class Crowd:
    """Creates, counts and deletes many objects at once."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.session, self._url = session, url

    async def call(self, method: str, path: str, body: Any = None, *, kind: str = "application/json") -> Any:
        """The answer, decoded; None if there is no such thing, or there was one already."""
        data = None if body is None else msgspec.json.encode(body)
        async with self.session.request(method, self._url + path, data=data, headers={"Content-Type": kind}) as reply:
            answer = await reply.read()
            if reply.status in (404, 409):
                return None
            if reply.status >= 300:
                raise SystemExit(f"{method} {path}: {reply.status} {answer[:300]!r}")
            return msgspec.json.decode(answer)

    async def create(self, path: str, bodies: Iterable[dict[str, Any]]) -> None:
        """All of them, many at a time."""
        left = iter(bodies)

        async def some() -> None:
            for body in left:
                await self.call("POST", path, body)

        await asyncio.gather(*(some() for _ in range(_WIDTH)))

    async def empty(self) -> None:
        """No pods and no nodes any more; the namespaces of both phases exist."""
        for namespace, path in POD_PATHS.items():
            await self.call("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
            await self.call("DELETE", f"{path}?gracePeriodSeconds=0")
        await self.call("DELETE", "/api/v1/nodes")

    async def nodes(self, count: int, body: Callable[[int], dict[str, Any]] = node_body) -> None:
        """As many nodes as that."""
        await self.create("/api/v1/nodes", map(body, range(count)))

    async def unbound(self, phase: str) -> int:
        """How many pods of *phase* have no node yet."""
        return await self._count(f"{POD_PATHS[phase]}?fieldSelector=spec.nodeName%3D&limit=1")

    async def until_quiet(self, phase: str) -> None:
        """Wait until no more events are written about pods of *phase*."""
        path, known = f"/apis/events.k8s.io/v1/namespaces/{phase}/events?limit=1", -1
        while (count := await self._count(path)) != known:
            known = count
            await asyncio.sleep(1)

    async def _count(self, path: str) -> int:
        """How many things a list with `limit=1` would have; cheap whatever the number."""
        page = await self.call("GET", path)
        return len(page["items"]) + int(page["metadata"].get("remainingItemCount", 0))

    @asynccontextmanager
    async def watch(self, path: str, since: str) -> AsyncIterator[AsyncIterator[bytes]]:
        """What happens to a collection after the version *since*, a line an event."""
        asked = {"watch": "true", "resourceVersion": since}
        async with self.session.get(self._url + path, params=asked) as reply:
            yield aiter(reply.content)

    async def until_bound(self, phase: str, seconds: float, step: float = 0.25) -> int:
        """Wait until no pod of *phase* is left, but not longer than that; how many are."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while left := await self.unbound(phase):
            if loop.time() > end:
                return left
            await asyncio.sleep(step)
        return 0


@asynccontextmanager
async def crowd(plane: ControlPlane) -> AsyncIterator[Crowd]:
    """A client for the administrator."""
    trust = ssl.create_default_context(cafile=plane.authority)
    headers = {"Authorization": f"Bearer {plane.token(ADMIN)}"}
    connector = aiohttp.TCPConnector(ssl=trust, limit=_WIDTH + 10)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(headers=headers, connector=connector, timeout=timeout) as session:
        yield Crowd(session, plane.url)


def cpu_seconds(pid: int) -> float:
    """Processor time a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def peak_mb(pid: int) -> int:
    """The most memory a process has had in use."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) // 1024
