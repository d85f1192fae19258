"""A simulated API server with any number of nodes and pods, which are generated when they are read.

It serves lists in pages, and watches, over TLS like a real one. It stores nothing, so a cluster of half a million pods
takes no memory beside the measured process.
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

from tests.bench.verbs import encode, make_node, node_name

_FIRST_VERSION = 1_000_000

_TURNS_BETWEEN_EVENTS = 200
"""Turns of `send_churn` between two events of a pod."""


def make_pod(number: int, nodes: int) -> dict[str, Any]:
    """Make a running pod of one of a thousand deployments, 4 kB, mostly of fields that we do not read."""
    app, node = f"app-{number % 1000}", node_name(number % nodes)
    moment = "2026-03-01T00:00:00Z"
    fields: dict[str, dict[str, Any]] = {f"f:field-{each}": {"f:value": {}, "f:name": {}} for each in range(30)}
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


def _make_lifecycle(number: int, nodes: int) -> tuple[bytes, bytes, bytes]:
    """Return the watch events of a pod that is bound, runs and is deleted, with the resource version `%d`."""
    running = make_pod(number, nodes)
    running["metadata"]["resourceVersion"] = "%d"
    bound = {**running, "status": {"phase": "Pending", "qosClass": "Burstable"}}

    def event(kind: str, body: dict[str, Any]) -> bytes:
        return encode({"type": kind, "object": body}) + b"\n"

    return event("ADDED", bound), event("MODIFIED", running), event("DELETED", running)


class SimulatedApiServer:
    """The request handler. `send_heartbeats` and `send_churn` wait for the watch of a scheduler."""

    def __init__(self, nodes: int, pods: int) -> None:
        self._collections: dict[str, tuple[int, Callable[[int], dict[str, Any]]]] = {
            "/api/v1/nodes": (nodes, make_node), "/api/v1/pods": (pods, lambda number: make_pod(number, nodes))
        }  # fmt: skip
        self._nodes = nodes
        self._version = _FIRST_VERSION
        self._watches: dict[str, web.StreamResponse] = {}
        self._node_texts: list[bytes] = []
        self._lifecycles: list[tuple[bytes, bytes, bytes]] = []
        self._turns = 0

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Handle any request."""
        if request.method != "GET":
            return web.Response(body=await request.read(), status=201, content_type="application/json")
        if request.query.get("watch"):
            return await self._watch(request)
        first, limit = int(request.query.get("continue") or 0), int(request.query.get("limit") or 500)
        count, make = self._collections.get(request.path, (0, make_node))
        last = min(count, first + limit)
        meta = {"resourceVersion": str(_FIRST_VERSION), "continue": str(last) if last < count else ""}
        items = b",".join(encode(make(number)) for number in range(first, last))
        body = b'{"metadata":' + json.dumps(meta).encode() + b',"items":[' + items + b"]}"
        return web.Response(body=body, content_type="application/json")

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        self._watches[request.path] = response
        await asyncio.Event().wait()  # a real server ends it after some minutes
        return response

    async def send_heartbeats(self, rate: float, seconds: float) -> int:
        """Send *rate* node updates per second that only change the heartbeat, and return their number.

        On a machine that is too slow for the rate, it takes longer than *seconds*.
        """
        self._node_texts = self._node_texts or [encode(make_node(number)) for number in range(self._nodes)]

        def lines(turn: int) -> list[bytes]:
            number = turn % self._nodes
            self._version += 1
            line = self._node_texts[number].replace(b'"%d"' % (1000 + number), b'"%d"' % self._version, 1)
            line = line.replace(b'"lastHeartbeatTime":"2026-03-01', b'"lastHeartbeatTime":"2026-03-02')
            return [b'{"type":"MODIFIED","object":' + line + b"}\n"]

        return await self._send_lines("/api/v1/nodes", rate, seconds, lines)

    async def send_churn(self, rate: float, seconds: float) -> int:
        """Send *rate* events per second of pods of another scheduler, and return their number.

        In each turn one pod is bound, an earlier one runs, and an even earlier one is deleted.
        """
        pods, _ = self._collections["/api/v1/pods"]
        self._lifecycles = self._lifecycles or [
            _make_lifecycle(pods + number, self._nodes) for number in range(5 * _TURNS_BETWEEN_EVENTS)
        ]

        def lines(_turn: int) -> list[bytes]:
            events = []
            for event in range(3):
                first_turn = self._turns - event * _TURNS_BETWEEN_EVENTS
                if first_turn >= 0:
                    self._version += 1
                    events.append(self._lifecycles[first_turn % len(self._lifecycles)][event] % self._version)
            self._turns += 1
            return events

        return await self._send_lines("/api/v1/pods", rate / 3, seconds, lines)

    async def _send_lines(self, path: str, rate: float, seconds: float, lines: Callable[[int], list[bytes]]) -> int:
        """Write the lines of *rate* turns per second to the watch of *path*, and return their number."""
        while path not in self._watches:
            await asyncio.sleep(0.01)
        loop = asyncio.get_running_loop()
        started, turn, count = loop.time(), 0, 0
        while turn < rate * seconds:
            while turn < rate * min(loop.time() - started, seconds):
                for line in lines(turn):
                    await self._watches[path].write(line)
                    count += 1
                turn += 1
            await asyncio.sleep(0.001)
        return count


@asynccontextmanager
async def run_simulated_apiserver(nodes: int, pods: int) -> AsyncIterator[tuple[SimulatedApiServer, Path]]:
    """Run the server; yield it and the file of a KubeSchedulerConfiguration that connects to it."""
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    server = SimulatedApiServer(nodes, pods)
    app = web.Application(client_max_size=2**24)
    app.router.add_route("*", "/{path:.*}", server.handle)
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
