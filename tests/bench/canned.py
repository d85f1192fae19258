"""An API server that only tells what it is asked to: any number of nodes and pods, made while they are read.

It lists in pages and watches over TLS as a real one; nothing is stored, so a cluster of half a million pods costs
neither memory nor time beside the process that is measured.
"""

import asyncio
import json
import ssl
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trustme
from aiohttp import web

from tests.bench.verbs import a_name, a_node, compact

_FIRST_VERSION = 1_000_000

_ALIVE = 200
"""Turns of `churn` between two events about one pod."""


def a_pod(number: int, nodes: int) -> dict[str, Any]:
    """A running pod of one of a thousand deployments as an API server tells it, 4 kB, most of it of no use to us."""
    app, node = f"app-{number % 1000}", a_name(number % nodes)
    moment = "2026-03-01T00:00:00Z"
    fields = {f"f:field-{each}": {"f:value": {}, "f:name": {}} for each in range(30)}
    token = {"name": "token", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": True}
    image = f"registry.example/team/{app}:v1"
    return {
        "metadata": {
            "name": f"{app}-5d4f8c7b9d-{number:06d}", "generateName": f"{app}-5d4f8c7b9d-",
            "namespace": f"team-{number % 50}",
            "uid": f"10000000-0000-4000-8000-{number:012d}", "resourceVersion": str(number),
            "creationTimestamp": moment,
            "labels": {"app": app, "pod-template-hash": "5d4f8c7b9d", "tier": f"tier-{number % 3}"},
            "annotations": {"checksum/config": "0123456789abcdef" * 4},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{app}-5d4f8c7b9d",
                                 "uid": f"20000000-0000-4000-8000-{number % 1000:012d}", "controller": True}],
            "managedFields": [{"manager": "kubelet", "operation": "Update", "apiVersion": "v1", "time": moment,
                               "fieldsType": "FieldsV1", "fieldsV1": fields}],
        },
        "spec": {
            "nodeName": node, "schedulerName": "default-scheduler", "priority": 0, "serviceAccountName": "default",
            "volumes": [{"name": "token", "projected": {"defaultMode": 420, "sources": []}}],
            "containers": [{
                "name": "app", "image": image, "ports": [{"containerPort": 8080, "protocol": "TCP"}],
                "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "512Mi"}},
                "volumeMounts": [token],
                "env": [{"name": f"SETTING_{each}", "value": f"value of {each}"} for each in range(10)],
            }],
            "tolerations": [{"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute",
                             "tolerationSeconds": 300} for key in ("not-ready", "unreachable")],
        },
        "status": {
            "phase": "Running", "podIP": "10.1.2.3", "hostIP": "10.0.0.1", "startTime": moment, "qosClass": "Burstable",
            "conditions": [{"type": kind, "status": "True", "lastTransitionTime": moment}
                           for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")],
            "containerStatuses": [{"name": "app", "ready": True, "restartCount": 0, "image": image,
                                   "imageID": f"{image}@sha256:{0:064x}", "state": {"running": {"startedAt": moment}}}],
        },
    }  # fmt: skip


def _life(number: int, nodes: int) -> tuple[bytes, bytes, bytes]:
    """What a watch tells of a pod that comes to its node, runs, and goes; each with the version `%d`."""
    running = a_pod(number, nodes)
    running["metadata"]["resourceVersion"] = "%d"
    bound = {**running, "status": {"phase": "Pending", "qosClass": "Burstable"}}

    def event(kind: str, body: dict[str, Any]) -> bytes:
        return compact({"type": kind, "object": body}) + b"\n"

    return event("ADDED", bound), event("MODIFIED", running), event("DELETED", running)


class Canned:
    """The server. `heartbeats` and `churn` are for after a scheduler has begun to watch."""

    def __init__(self, nodes: int, pods: int) -> None:
        self._things: dict[str, tuple[int, Callable[[int], dict[str, Any]]]] = {
            "/api/v1/nodes": (nodes, a_node), "/api/v1/pods": (pods, lambda number: a_pod(number, nodes))
        }  # fmt: skip
        self._nodes = nodes
        self._version = _FIRST_VERSION
        self._watches: dict[str, web.StreamResponse] = {}
        self._texts: list[bytes] = []
        self._lives: list[tuple[bytes, bytes, bytes]] = []
        self._turns = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Any request at all."""
        if request.method != "GET":
            return web.Response(body=await request.read(), status=201, content_type="application/json")
        if request.query.get("watch"):
            return await self._watched(request)
        first, limit = int(request.query.get("continue") or 0), int(request.query.get("limit") or 500)
        count, make = self._things.get(request.path, (0, a_node))
        last = min(count, first + limit)
        meta = {"resourceVersion": str(_FIRST_VERSION), "continue": str(last) if last < count else ""}
        items = b",".join(compact(make(number)) for number in range(first, last))
        body = b'{"metadata":' + json.dumps(meta).encode() + b',"items":[' + items + b"]}"
        return web.Response(body=body, content_type="application/json")

    async def _watched(self, request: web.Request) -> web.StreamResponse:
        told = web.StreamResponse(headers={"Content-Type": "application/json"})
        await told.prepare(request)
        self._watches[request.path] = told
        await asyncio.Event().wait()  # a real server ends it after some minutes, which measures nothing
        return told

    async def heartbeats(self, rate: float, seconds: float) -> int:
        """Tell of *rate* nodes a second that nothing but their heartbeat changed, each by itself; how many it were.

        Where the machine is too slow for that rate, it takes longer than *seconds*.
        """
        self._texts = self._texts or [compact(a_node(number)) for number in range(self._nodes)]

        def lines(turn: int) -> list[bytes]:
            number = turn % self._nodes
            self._version += 1
            line = self._texts[number].replace(b'"%d"' % (1000 + number), b'"%d"' % self._version, 1)
            line = line.replace(b'"lastHeartbeatTime":"2026-03-01', b'"lastHeartbeatTime":"2026-03-02')
            return [b'{"type":"MODIFIED","object":' + line + b"}\n"]

        return await self._tell("/api/v1/nodes", rate, seconds, lines)

    async def churn(self, rate: float, seconds: float) -> int:
        """Tell of *rate* events a second about pods that others place, and how many it were.

        In each turn a pod comes to its node, one that came before runs, and one that ran before is deleted.
        """
        pods, _ = self._things["/api/v1/pods"]
        self._lives = self._lives or [_life(pods + number, self._nodes) for number in range(5 * _ALIVE)]

        def lines(_turn: int) -> list[bytes]:
            told = []
            for event in range(3):
                born = self._turns - event * _ALIVE
                if born >= 0:
                    self._version += 1
                    told.append(self._lives[born % len(self._lives)][event] % self._version)
            self._turns += 1
            return told

        return await self._tell("/api/v1/pods", rate / 3, seconds, lines)

    async def _tell(self, path: str, rate: float, seconds: float, lines: Callable[[int], list[bytes]]) -> int:
        """Write *lines* of *rate* turns a second to the watch of *path*; how many lines it were."""
        while path not in self._watches:
            await asyncio.sleep(0.01)
        loop = asyncio.get_running_loop()
        began, turn, told = loop.time(), 0, 0
        while turn < rate * seconds:
            while turn < rate * min(loop.time() - began, seconds):
                for line in lines(turn):
                    await self._watches[path].write(line)
                    told += 1
                turn += 1
            await asyncio.sleep(0.001)
        return told


@asynccontextmanager
async def canned(nodes: int, pods: int) -> AsyncIterator[tuple[Canned, Path]]:
    """The server, and a KubeSchedulerConfiguration that leads to it."""
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    server = Canned(nodes, pods)
    app = web.Application(client_max_size=2**24)
    app.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        port = runner.addresses[0][1]
        with tempfile.TemporaryDirectory(prefix="bench-") as name:
            folder = Path(name)
            authority.cert_pem.write_to_path(folder / "ca.crt")
            cluster = {"server": f"https://127.0.0.1:{port}", "certificate-authority": str(folder / "ca.crt")}
            kubeconfig = {
                "clusters": [{"name": "canned", "cluster": cluster}],
                "users": [{"name": "bench", "user": {"token": "bench"}}],
                "contexts": [{"name": "bench", "context": {"cluster": "canned", "user": "bench"}}],
                "current-context": "bench",
            }
            (folder / "kubeconfig").write_text(json.dumps(kubeconfig))
            configuration = {
                "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
                "leaderElection": {"leaderElect": False},
                "clientConnection": {"kubeconfig": str(folder / "kubeconfig"), "qps": 5000, "burst": 5000},
            }  # fmt: skip
            (folder / "config.json").write_text(json.dumps(configuration))
            yield server, folder / "config.json"
    finally:
        await runner.cleanup()
