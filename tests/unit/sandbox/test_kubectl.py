"""Tests that the real kubectl works against the sandbox, where it is installed."""

import asyncio
import json
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from extender.sandbox.nodes import Pace
from extender.sandbox.placing import bind
from extender.sandbox.server import Sandbox
from tests.unit.sandbox.calls import Client, a_binding, a_node, a_pod, run

KUBECTL = shutil.which("kubectl")

pytestmark = pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")

Kubectl = Callable[..., Awaitable[str]]


@asynccontextmanager
async def kubectl_for(sandbox: Sandbox, folder: Path) -> AsyncIterator[Kubectl]:
    """Runs kubectl against a sandbox: what it says, errors included."""
    config = folder / "kubeconfig"
    config.write_text(sandbox.kubeconfig())
    environment = {**os.environ, "KUBECONFIG": str(config), "HOME": str(folder)}

    async def kubectl(*arguments: str, given: str = "") -> str:
        process = await asyncio.create_subprocess_exec(
            KUBECTL or "",
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=environment,
        )
        said, _ = await asyncio.wait_for(process.communicate(given.encode()), 60)
        return said.decode()

    yield kubectl


def against(folder: Path, scenario: Callable[[Sandbox, Kubectl], Awaitable[None]]) -> None:
    async def whole(sandbox: Sandbox, _: Client) -> None:
        async with kubectl_for(sandbox, folder) as kubectl:
            await scenario(sandbox, kubectl)

    run(whole, clock=None, pace=Pace(), patience=90)


def words(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if line.strip()]


def test_get_shows_nodes_and_pods(tmp_path: Path) -> None:
    async def scenario(sandbox: Sandbox, kubectl: Kubectl) -> None:
        sandbox.api.add(a_node())
        sandbox.api.add(a_pod())
        shown = words(await kubectl("get", "nodes,pods", "-A"))
        assert ["node/n1", "Ready"] in [line[:2] for line in shown]
        assert ["default", "pod/web", "0/1", "Pending", "0"] in [line[:5] for line in shown]
        wide = words(await kubectl("get", "pods", "-o", "wide"))
        assert wide[0][:5] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]

    against(tmp_path, scenario)


def test_create_and_apply_write_objects(tmp_path: Path) -> None:
    async def scenario(sandbox: Sandbox, kubectl: Kubectl) -> None:
        assert await kubectl("create", "-f", "-", given=json.dumps(a_node())) == "node/n1 created\n"
        assert await kubectl("apply", "-f", "-", given=json.dumps(a_pod())) == "pod/web created\n"
        changed = json.dumps({**a_pod(), "metadata": {"name": "web", "labels": {"a": "b"}}})
        assert await kubectl("apply", "-f", "-", given=changed) == "pod/web configured\n"
        assert await kubectl("apply", "-f", "-", given=changed) == "pod/web unchanged\n"
        pod = sandbox.store.get("pods", "default", "web")
        assert pod is not None
        assert pod["metadata"]["labels"] == {"a": "b"}

    against(tmp_path, scenario)


def test_describe_shows_a_pod_with_its_events(tmp_path: Path) -> None:
    async def scenario(sandbox: Sandbox, kubectl: Kubectl) -> None:
        pod = sandbox.api.add(a_pod())
        regarding = {"kind": "Pod", "name": "web", "namespace": "default", "uid": pod["metadata"]["uid"]}
        event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "involvedObject": regarding}
        told = {"reason": "FailedScheduling", "message": "0/1 nodes are available", "type": "Warning", "count": 1}
        sandbox.api.add({**event, **told, "source": {"component": "default-scheduler"}})
        shown = await kubectl("describe", "pod", "web")
        assert "Tolerations:" in shown
        (line,) = (line for line in words(shown) if line[:2] == ["Warning", "FailedScheduling"])
        assert " ".join(line[3:]) == "default-scheduler 0/1 nodes are available"

    against(tmp_path, scenario)


def test_delete_waits_until_the_pod_is_gone(tmp_path: Path) -> None:
    async def scenario(sandbox: Sandbox, kubectl: Kubectl) -> None:
        sandbox.api.add(a_pod(nodeName="n1"))
        assert (await kubectl("delete", "pod", "web")).startswith('pod "web" deleted')
        assert sandbox.store.count("pods") == 0

    against(tmp_path, scenario)


def test_a_watch_shows_a_pod_from_waiting_to_running(tmp_path: Path) -> None:
    async def scenario(sandbox: Sandbox, _: Kubectl) -> None:
        sandbox.api.add(a_pod())
        environment = {**os.environ, "KUBECONFIG": str(tmp_path / "kubeconfig"), "HOME": str(tmp_path)}
        watching = await asyncio.create_subprocess_exec(
            KUBECTL or "", "get", "pods", "-w", stdout=asyncio.subprocess.PIPE, env=environment
        )
        try:
            assert watching.stdout is not None
            lines = [(await watching.stdout.readline()).split() for _ in range(2)]
            assert lines[1][:3] == [b"web", b"0/1", b"Pending"]
            bind(sandbox.api, "default", "web", a_binding("n1"))
            while lines[-1][2] != b"Running":
                lines.append((await watching.stdout.readline()).split())
            assert lines[-1][:3] == [b"web", b"1/1", b"Running"]
        finally:
            watching.terminate()
            await watching.wait()

    against(tmp_path, scenario)


def test_cordon_taint_and_drain_work(tmp_path: Path) -> None:
    async def scenario(sandbox: Sandbox, kubectl: Kubectl) -> None:
        sandbox.api.add(a_node())
        sandbox.api.add(a_pod(nodeName="n1"))
        assert await kubectl("taint", "node", "n1", "a=b:NoSchedule") == "node/n1 tainted\n"
        assert "node/n1 drained" in await kubectl("drain", "n1", "--force")
        node = sandbox.store.get("nodes", "", "n1")
        assert node is not None
        assert (node["spec"]["unschedulable"], node["spec"]["taints"][0]["key"]) == (True, "a")
        assert sandbox.store.count("pods") == 0

    against(tmp_path, scenario)
