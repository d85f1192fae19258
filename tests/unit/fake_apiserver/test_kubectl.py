"""The real kubectl with the fake API server, where it is installed."""

import asyncio
import json
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from extender.fake_apiserver.kubelets import KubeletTiming
from extender.fake_apiserver.registry.pod_subresources import bind
from extender.fake_apiserver.server import FakeApiServer
from tests.unit.fake_apiserver.api_client import Client, run
from tests.unit.fake_apiserver.builders import make_binding, make_node, make_pod

KUBECTL = shutil.which("kubectl")

pytestmark = pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")

Kubectl = Callable[..., Awaitable[str]]


@asynccontextmanager
async def kubectl_for(server: FakeApiServer, directory: Path) -> AsyncIterator[Kubectl]:
    """Return a function that runs kubectl with the server and returns its output, errors included."""
    config = directory / "kubeconfig"
    config.write_text(server.kubeconfig())
    environment = {**os.environ, "KUBECONFIG": str(config), "HOME": str(directory)}

    async def kubectl(*arguments: str, stdin: str = "") -> str:
        process = await asyncio.create_subprocess_exec(
            KUBECTL or "",
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=environment,
        )
        output, _ = await asyncio.wait_for(process.communicate(stdin.encode()), 60)
        return output.decode()

    yield kubectl


def run_with_kubectl(directory: Path, scenario: Callable[[FakeApiServer, Kubectl], Awaitable[None]]) -> None:
    async def body(server: FakeApiServer, _: Client) -> None:
        async with kubectl_for(server, directory) as kubectl:
            await scenario(server, kubectl)

    run(body, clock=None, kubelet_timing=KubeletTiming(), timeout=90)


def words(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if line.strip()]


def test_get_shows_nodes_and_pods(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer, kubectl: Kubectl) -> None:
        server.api.create_from_manifest(make_node())
        server.api.create_from_manifest(make_pod())
        output = words(await kubectl("get", "nodes,pods", "-A"))
        assert ["node/n1", "Ready"] in [line[:2] for line in output]
        assert ["default", "pod/web", "0/1", "Pending", "0"] in [line[:5] for line in output]
        wide = words(await kubectl("get", "pods", "-o", "wide"))
        assert wide[0][:5] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]

    run_with_kubectl(tmp_path, scenario)


def test_create_and_apply_write_objects(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer, kubectl: Kubectl) -> None:
        assert await kubectl("create", "-f", "-", stdin=json.dumps(make_node())) == "node/n1 created\n"
        assert await kubectl("apply", "-f", "-", stdin=json.dumps(make_pod())) == "pod/web created\n"
        changed = json.dumps({**make_pod(), "metadata": {"name": "web", "labels": {"a": "b"}}})
        assert await kubectl("apply", "-f", "-", stdin=changed) == "pod/web configured\n"
        assert await kubectl("apply", "-f", "-", stdin=changed) == "pod/web unchanged\n"
        pod = server.store.get("pods", "default", "web")
        assert pod is not None
        assert pod["metadata"]["labels"] == {"a": "b"}

    run_with_kubectl(tmp_path, scenario)


def test_apply_writes_the_objects_of_a_list(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer, kubectl: Kubectl) -> None:
        objects = {"apiVersion": "v1", "kind": "List", "items": [make_node(), make_pod()]}
        output = await kubectl("apply", "-f", "-", stdin=json.dumps(objects))
        assert output == "node/n1 created\npod/web created\n"

    run_with_kubectl(tmp_path, scenario)


def test_describe_shows_a_pod_with_its_events(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer, kubectl: Kubectl) -> None:
        pod = server.api.create_from_manifest(make_pod())
        regarding = {"kind": "Pod", "name": "web", "namespace": "default", "uid": pod["metadata"]["uid"]}
        event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "involvedObject": regarding}
        event_summary = {
            "reason": "FailedScheduling",
            "message": "0/1 nodes are available",
            "type": "Warning",
            "count": 1,
        }
        server.api.create_from_manifest({**event, **event_summary, "source": {"component": "default-scheduler"}})
        output = await kubectl("describe", "pod", "web")
        assert "Tolerations:" in output
        (line,) = (line for line in words(output) if line[:2] == ["Warning", "FailedScheduling"])
        assert " ".join(line[3:]) == "default-scheduler 0/1 nodes are available"

    run_with_kubectl(tmp_path, scenario)


def test_delete_waits_until_the_pod_is_gone(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer, kubectl: Kubectl) -> None:
        server.api.create_from_manifest(make_pod(nodeName="n1"))
        assert (await kubectl("delete", "pod", "web")).startswith('pod "web" deleted')
        assert server.store.count("pods") == 0

    run_with_kubectl(tmp_path, scenario)


def test_a_watch_shows_a_pod_from_waiting_to_running(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer, _: Kubectl) -> None:
        server.api.create_from_manifest(make_pod())
        environment = {**os.environ, "KUBECONFIG": str(tmp_path / "kubeconfig"), "HOME": str(tmp_path)}
        watching = await asyncio.create_subprocess_exec(
            KUBECTL or "", "get", "pods", "-w", stdout=asyncio.subprocess.PIPE, env=environment
        )
        try:
            assert watching.stdout is not None
            lines = [(await watching.stdout.readline()).split() for _ in range(2)]
            assert lines[1][:3] == [b"web", b"0/1", b"Pending"]
            bind(server.api, "default", "web", make_binding("n1"))
            while lines[-1][2] != b"Running":
                lines.append((await watching.stdout.readline()).split())
            assert lines[-1][:3] == [b"web", b"1/1", b"Running"]
        finally:
            watching.terminate()
            await watching.wait()

    run_with_kubectl(tmp_path, scenario)


def test_cordon_taint_and_drain_work(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer, kubectl: Kubectl) -> None:
        server.api.create_from_manifest(make_node())
        server.api.create_from_manifest(make_pod(nodeName="n1"))
        assert await kubectl("taint", "node", "n1", "a=b:NoSchedule") == "node/n1 tainted\n"
        assert "node/n1 drained" in await kubectl("drain", "n1", "--force")
        node = server.store.get("nodes", "", "n1")
        assert node is not None
        assert (node["spec"]["unschedulable"], node["spec"]["taints"][0]["key"]) == (True, "a")
        assert server.store.count("pods") == 0

    run_with_kubectl(tmp_path, scenario)
