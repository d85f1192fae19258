"""Objects as the API server sends them, and a reflector that watches pods of a scripted server."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from extender.client.endpoints import ENDPOINTS
from extender.client.listwatch import Source
from extender.client.reflector import ObjectChange, Reflector
from extender.objects.pod import Pod
from tests.unit.client.scripted import Reply, Server, middle, talking
from tests.unit.client.virtual_time import here

PODS = "GET /api/v1/pods"
SOURCE = Source(Pod, ENDPOINTS["Pod"])


def a_pod(name: str, version: int, *, uid: str = "", node: str = "") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ns", "uid": uid or f"uid-{name}", "resourceVersion": str(version)},
        "spec": {"nodeName": node, "containers": [{"name": "c"}]},
    }


def a_list(version: int, *items: dict[str, Any], more: str = "") -> Reply:
    """A page; *more* is where the next one is to be had."""
    metadata = {"resourceVersion": str(version), "continue": more}
    return Reply(body={"kind": "PodList", "metadata": metadata, "items": items})


def an_event(type_: str, item: Any) -> dict[str, Any]:
    return {"type": type_, "object": item}


def added(name: str, version: int, **more: str) -> dict[str, Any]:
    return an_event("ADDED", a_pod(name, version, **more))


def modified(name: str, version: int, **more: str) -> dict[str, Any]:
    return an_event("MODIFIED", a_pod(name, version, **more))


def deleted(name: str, version: int) -> dict[str, Any]:
    return an_event("DELETED", a_pod(name, version))


def bookmark(version: int) -> dict[str, Any]:
    return an_event("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": str(version)}})


def in_stream_failure(code: int, reason: str = "") -> dict[str, Any]:
    return an_event("ERROR", {"kind": "Status", "code": code, "reason": reason, "message": "in the stream"})


class Heard:
    """Remembers what a reflector told, shortly: `+a@1`, `a@1>2`, `-a@2`; `?` where a deletion was inferred."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.batches: list[int] = []

    def __call__(self, changes: Sequence[ObjectChange[Pod]]) -> None:
        self.batches.append(len(changes))
        self.told += map(_short, changes)


def _short(change: ObjectChange[Pod]) -> str:
    new, old = change.new, change.old
    if new is None:
        assert old is not None
        return f"-{old.metadata.name}@{old.metadata.resource_version}" + "?" * change.inferred
    if old is None:
        return f"+{new.metadata.name}@{new.metadata.resource_version}"
    return f"{new.metadata.name}@{old.metadata.resource_version}>{new.metadata.resource_version}"


@asynccontextmanager
async def watching(server: Server, source: Source[Pod] = SOURCE) -> AsyncIterator[tuple[Reflector[Pod], Heard]]:
    """A reflector at work."""
    heard = Heard()
    async with talking(server) as transport:
        reflector = Reflector(transport, source, heard, here(), chance=middle)
        task = asyncio.create_task(reflector.run())
        try:
            yield reflector, heard
        finally:
            if task.done():
                task.result()
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def watches(server: Server) -> list[str]:
    """The versions that watches asked to start from."""
    return [asked.query["resourceVersion"] for asked in server.of(PODS) if "watch" in asked.query]


def lists(server: Server) -> int:
    """How many first pages were asked for."""
    return sum("watch" not in asked.query and "continue" not in asked.query for asked in server.of(PODS))
