"""Builders of API objects and watch events, and a reflector that watches a scripted server's pods."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from extender.api.kinds.pod import Pod
from extender.client.listwatch import ListWatch
from extender.client.reflector import Delta, Reflector
from extender.client.rest_mapping import ENDPOINTS
from tests.unit.client.scripted_server import Reply, ScriptedServer, no_jitter, open_transport
from tests.unit.client.virtual_time import current_loop

PODS = "GET /api/v1/pods"
POD_LIST_WATCH = ListWatch(Pod, ENDPOINTS["Pod"])


def make_pod(name: str, version: int, *, uid: str = "", node: str = "") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ns", "uid": uid or f"uid-{name}", "resourceVersion": str(version)},
        "spec": {"nodeName": node, "containers": [{"name": "c"}]},
    }


def list_reply(version: int, *items: dict[str, Any], more: str = "") -> Reply:
    """Return a page; *more* is its continue token."""
    metadata = {"resourceVersion": str(version), "continue": more}
    return Reply(body={"kind": "PodList", "metadata": metadata, "items": items})


def watch_event(type_: str, item: Any) -> dict[str, Any]:
    return {"type": type_, "object": item}


def added(name: str, version: int, **more: str) -> dict[str, Any]:
    return watch_event("ADDED", make_pod(name, version, **more))


def modified(name: str, version: int, **more: str) -> dict[str, Any]:
    return watch_event("MODIFIED", make_pod(name, version, **more))


def deleted(name: str, version: int) -> dict[str, Any]:
    return watch_event("DELETED", make_pod(name, version))


def bookmark(version: int) -> dict[str, Any]:
    return watch_event("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": str(version)}})


def error_event(code: int, reason: str = "") -> dict[str, Any]:
    return watch_event("ERROR", {"kind": "Status", "code": code, "reason": reason, "message": "in the stream"})


class RecordedDeltas:
    """Records a reflector's deltas in short form: `+a@1`, `a@1>2`, `-a@2`; `?` for an inferred deletion."""

    def __init__(self) -> None:
        self.deltas: list[str] = []

    def __call__(self, deltas: Sequence[Delta[Pod]]) -> None:
        self.deltas += map(_describe_delta, deltas)


def _describe_delta(delta: Delta[Pod]) -> str:
    new, old = delta.new, delta.old
    if new is None:
        assert old is not None
        return f"-{old.metadata.name}@{old.metadata.resource_version}" + "?" * delta.inferred
    if old is None:
        return f"+{new.metadata.name}@{new.metadata.resource_version}"
    return f"{new.metadata.name}@{old.metadata.resource_version}>{new.metadata.resource_version}"


@asynccontextmanager
async def run_reflector(
    server: ScriptedServer, source: ListWatch[Pod] = POD_LIST_WATCH
) -> AsyncIterator[tuple[Reflector[Pod], RecordedDeltas]]:
    """Run a reflector while the block runs."""
    recorded = RecordedDeltas()
    async with open_transport(server) as transport:
        reflector = Reflector(transport, source, recorded, current_loop(), jitter=no_jitter)
        task = asyncio.create_task(reflector.run())
        try:
            yield reflector, recorded
        finally:
            if task.done():
                task.result()
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def watched_versions(server: ScriptedServer) -> list[str]:
    """Return the resource versions of the watches."""
    return [request.query["resourceVersion"] for request in server.requests_to(PODS) if "watch" in request.query]


def list_count(server: ScriptedServer) -> int:
    """Return the number of requests for first pages."""
    return sum("watch" not in request.query and "continue" not in request.query for request in server.requests_to(PODS))


def make_binding(namespace: str, name: str, uid: str, node: str) -> dict[str, Any]:
    """Return the Binding of a pod to a node."""
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"namespace": namespace, "name": name, "uid": uid},
        "target": {"kind": "Node", "name": node},
    }
