"""`extender serve` for a live cluster: it follows changes, binds, and is ready once it knows the cluster."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from extender.cli.flags import parse
from extender.cli.serve_flags import FLAGS
from extender.cli.serve_options import options_of
from extender.process.entrance import StartError
from extender.process.extending import run
from extender.sandbox.faults import Fault, Spoiled
from extender.sandbox.reviews import Reviews
from extender.sandbox.served import PODS
from extender.sandbox.server import Sandbox
from tests.controlplane.process import free_ports

SECONDS = 20.0
ANONYMOUS = "system:anonymous"
GHOST = {"PodName": "ghost", "PodNamespace": "default", "PodUID": "0-0", "Node": "n1"}
CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {qps: 1000, burst: 1000}
"""


def a_node(name: str, cpu: str = "4") -> dict[str, Any]:
    room = {"cpu": cpu, "memory": "8Gi", "pods": "10"}
    return {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
        "status": {"capacity": room, "allocatable": room},
    }  # fmt: skip


def a_pod(name: str, cpu: str = "1", **spec: Any) -> dict[str, Any]:
    container = {"name": "app", "image": "app", "resources": {"requests": {"cpu": cpu}}}
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [container], **spec}}


class Live:
    """A cluster, an extender that is joined to it, and a caller."""

    def __init__(self, sandbox: Sandbox, session: aiohttp.ClientSession, address: str) -> None:
        self.sandbox, self._session, self._address = sandbox, session, address

    async def post(self, path: str, body: Any) -> Any:
        async with self._session.post(self._address + path, json=body) as answer:
            return await answer.json() if answer.status == 200 else (answer.status, (await answer.text()).strip())

    async def get(self, path: str, bearer: str = "", accept: str = "*/*") -> tuple[int, str]:
        headers = {"Accept": accept, **({"Authorization": f"Bearer {bearer}"} if bearer else {})}
        async with self._session.get(self._address + path, headers=headers) as answer:
            return answer.status, await answer.text()

    async def filter(self, pod: Any, *names: str) -> Any:
        return await self.post("/filter", {"Pod": pod, "Nodes": None, "NodeNames": list(names)})

    async def bind(self, pod: Any, node: str, uid: str = "") -> str:
        meta = pod["metadata"]
        names = {"PodName": meta["name"], "PodNamespace": meta["namespace"]}
        answer = await self.post("/bind", {**names, "PodUID": uid or meta["uid"], "Node": node})
        return str(answer["Error"])

    async def until(self, asked: Callable[[], Awaitable[bool]]) -> None:
        async with asyncio.timeout(SECONDS):
            while not await asked():
                await asyncio.sleep(0.01)

    async def is_ready(self) -> bool:
        return (await self.get("/readyz"))[0] == 200

    def pod(self, name: str) -> Any:
        return self.sandbox.api.get(PODS, "default", name)


@asynccontextmanager
async def live(folder: Path, *flags: str, faults: tuple[Fault, ...] = (), ready: bool = True) -> AsyncIterator[Live]:
    """A cluster of two nodes, n1 with 4 CPUs and n2 with 1, and `extender serve` for it."""
    async with Sandbox(faults=faults, reviews=Reviews(allows=lambda spec: (spec["user"] != ANONYMOUS, ""))) as sandbox:
        sandbox.api.add(a_node("n1"))
        sandbox.api.add(a_node("n2", cpu="1"))
        kubeconfig, config = folder / "kubeconfig", folder / "config.yaml"
        kubeconfig.write_text(sandbox.kubeconfig())
        config.write_text(CONFIG)
        port = free_ports(1)[0]
        words = [f"--kubeconfig={kubeconfig}", f"--config={config}", f"--port={port}", *flags]
        serving = asyncio.create_task(run(options_of(parse(words, FLAGS))))
        try:
            async with aiohttp.ClientSession() as session:
                found = Live(sandbox, session, f"http://127.0.0.1:{port}")

                async def answers() -> bool:
                    try:
                        return (await found.get("/livez"))[0] == 200 and (not ready or await found.is_ready())
                    except aiohttp.ClientConnectionError:
                        assert not serving.done()
                        return False

                await found.until(answers)
                yield found
        finally:
            os.kill(os.getpid(), signal.SIGTERM)
            assert await asyncio.wait_for(serving, SECONDS) == 0


def go(main: Awaitable[None]) -> None:
    asyncio.run(main)  # type: ignore[arg-type]


def test_it_follows_the_cluster(tmp_path: Path) -> None:
    async def main() -> None:
        async with live(tmp_path) as it:
            pod = it.sandbox.api.add(a_pod("web", cpu="2"))
            answer = await it.filter(pod, "n1", "n2", "n3")
            assert answer["NodeNames"] == ["n1"]
            assert answer["FailedNodes"] == {"n3": "node is not known to the extender (yet)"}
            assert answer["FailedAndUnresolvableNodes"] == {"n2": "Insufficient cpu"}
            it.sandbox.api.add(a_node("n3"))

            async def learnt() -> bool:
                return bool((await it.filter(pod, "n3"))["NodeNames"] == ["n3"])

            await it.until(learnt)

    go(main())


def test_pages_have_a_port_of_their_own_and_the_verbs_are_not_there(tmp_path: Path) -> None:
    async def main() -> None:
        pages = free_ports(1)[0]
        async with live(tmp_path, f"--secure-port={pages}") as it, aiohttp.ClientSession() as session:

            async def status(method: str, path: str) -> int:
                async with session.request(method, f"https://127.0.0.1:{pages}{path}", ssl=False) as answer:
                    return answer.status

            assert await status("GET", "/readyz") == 200
            assert await status("GET", "/metrics") == 403
            assert [await status("POST", verb) for verb in ("/filter", "/prioritize", "/preempt", "/bind")] == [404] * 4
            assert (await it.get("/readyz"))[0] == 200

    go(main())


def test_it_binds_and_what_it_bound_takes_room_at_once(tmp_path: Path) -> None:
    async def main() -> None:
        async with live(tmp_path) as it:
            first, second = it.sandbox.api.add(a_pod("first", cpu="3")), it.sandbox.api.add(a_pod("second", cpu="3"))
            assert await it.bind(first, "n1") == ""
            assert it.pod("first")["spec"]["nodeName"] == "n1"
            assert (await it.filter(second, "n1"))["FailedNodes"] == {"n1": "Insufficient cpu"}
            assert await it.bind(first, "n1") == ""  # asking again is safe
            assert await it.bind(second, "n1") == "node n1 does not take pod default/second: Insufficient cpu"
            assert "nodeName" not in it.pod("second")["spec"]

    go(main())


def test_forged_bindings_change_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with live(tmp_path) as it:
            other = it.sandbox.api.add(a_pod("other", schedulerName="someone-else"))
            bound = it.sandbox.api.add(a_pod("bound", nodeName="n1"))
            pod = it.sandbox.api.add(a_pod("web"))
            before = it.sandbox.api.each(PODS)
            unknown = {"metadata": {"name": "ghost", "namespace": "default", "uid": pod["metadata"]["uid"]}}
            told = [
                await it.bind(unknown, "n1"),
                await it.bind(pod, "n1", uid="0-0"),
                await it.bind(pod, "nowhere"),
                await it.bind(bound, "n2"),
                await it.bind(other, "n1"),
            ]
            assert [line.partition(",")[0] for line in told] == [
                "pod default/ghost not found",
                f"pod default/web has the uid {pod['metadata']['uid']}",
                "node nowhere is not known to the extender (yet)",
                "pod default/bound is on node n1 already",
                'pod default/other is for the scheduler "someone-else"',
            ]
            assert it.sandbox.api.each(PODS) == before

    go(main())


def test_until_the_cluster_is_known_it_is_not_ready_and_says_so(tmp_path: Path) -> None:
    silent = Fault(what=Spoiled.STATUS, verb="list", resource="services", code=500)

    async def main() -> None:
        async with live(tmp_path, faults=(silent,), ready=False) as it:
            pod = it.sandbox.api.add(a_pod("web"))
            missing = "the extender does not know the cluster yet: "

            async def says_why() -> bool:
                return "Service not listed yet (services: " in (await it.filter(pod, "n1"))["Error"]

            await it.until(says_why)
            answer = await it.filter(pod, "n1")
            assert (answer["NodeNames"], answer["FailedNodes"]) == (None, {})
            assert (await it.bind(pod, "n1")).startswith(missing)
            status, line = await it.post("/prioritize", {"Pod": pod, "NodeNames": ["n1"]})
            assert (status, line.startswith(missing)) == (503, True)
            status, page = await it.get("/readyz")
            assert status == 500
            assert "[-]informer-sync failed: Service not listed yet" in page
            assert (await it.get("/livez"))[0] == 200

    go(main())


def test_the_verbs_bear_other_names_if_asked(tmp_path: Path) -> None:
    flags = ("--url-prefix=/scheduler/", "--filter-verb=predicates/always_true", "--prioritize-verb=priorities/zero")

    async def main() -> None:
        async with live(tmp_path, *flags, "--preempt-verb=") as it:
            pod = it.sandbox.api.add(a_pod("web"))
            body = {"Pod": pod, "NodeNames": ["n1"]}
            assert (await it.post("/scheduler/predicates/always_true", body))["NodeNames"] == ["n1"]
            assert (await it.post("/scheduler/priorities/zero", body)) == [{"Host": "n1", "Score": 10}]
            assert (await it.post("/scheduler/bind", GHOST))["Error"] == "pod default/ghost not found"
            assert (await it.post("/scheduler/preempt", body))[0] == 403  # as for any page there is not

    go(main())


def test_a_pod_that_waits_for_room_keeps_others_off_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with live(tmp_path) as it:
            it.sandbox.api.add(a_pod("waits", cpu="3", priorityClassName="system-cluster-critical"))
            status = {"phase": "Pending", "nominatedNodeName": "n1"}
            it.sandbox.api.change(PODS, "default", "waits", lambda pod: {**pod, "status": status})
            pod = it.sandbox.api.add(a_pod("web", cpu="2"))

            async def left_alone() -> bool:
                return bool((await it.filter(pod, "n1"))["FailedNodes"] == {"n1": "Insufficient cpu"})

            await it.until(left_alone)

    go(main())


def test_verbs_and_loop_share_one_process_and_one_state(tmp_path: Path) -> None:
    async def main() -> None:
        async with live(tmp_path, "--standalone", "--scheduler-name=another") as it:
            ours = it.sandbox.api.add(a_pod("ours", cpu="3"))

            async def placed() -> bool:
                return bool(it.pod("ours")["spec"].get("nodeName") == "n1")

            await it.until(placed)
            theirs = it.sandbox.api.add(a_pod("theirs", cpu="2", schedulerName="another"))
            assert (await it.filter(theirs, "n1"))["FailedNodes"] == {"n1": "Insufficient cpu"}
            small = it.sandbox.api.add(a_pod("small", schedulerName="another"))
            assert await it.bind(small, "n1") == ""
            assert await it.bind(ours, "n1") == ""  # it is there, whoever put it there
            assert (await it.bind(ours, "n2")) == "pod default/ours is on node n1 already"
            page = (await it.get("/metrics", bearer="any"))[1]
            assert 'scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"} 1.0' in page
            assert 'extender_bind_results_total{result="bound"} 1.0' in page

    go(main())


def test_the_last_decisions_about_a_pod_are_told_per_node_and_plugin(tmp_path: Path) -> None:
    async def main() -> None:
        async with live(tmp_path) as it:
            pod = it.sandbox.api.add(a_pod("web", cpu="2"))
            await it.filter(pod, "n1", "n2", "n3")
            await it.post("/prioritize", {"Pod": pod, "NodeNames": ["n1", "n2"]})
            await it.bind(pod, "n2")
            await it.bind(pod, "n1")
            status, page = await it.get("/explain/default/web", bearer="any", accept="application/json")
            told = json.loads(page)
            assert [each["verb"] for each in told["decisions"]] == ["filter", "prioritize", "bind", "bind"]
            filtered, rated, refused, bound = told["decisions"]
            assert filtered["accepted"] == ["n1"]
            assert filtered["refused"] == [
                {
                    "plugin": None,
                    "reason": "node is not known to the extender (yet)",
                    "final": False,
                    "nodes": ["n3"],
                },
                {"plugin": "NodeResourcesFit", "reason": "Insufficient cpu", "final": True, "nodes": ["n2"]},
            ]
            (node,) = rated["scores"]
            assert (node["node"], node["score"]) == ("n1", 10)
            fit = node["plugins"]["NodeResourcesFit"]
            assert fit["weight"] == 1
            assert 0 < fit["normalized"] < 100
            assert refused["result"] == "refused"
            assert refused["error"] == "node n2 does not take pod default/web: Insufficient cpu"
            assert (bound["node"], bound["result"]) == ("n1", "bound")
            assert told["node"] == "n1"
            status, page = await it.get("/explain/default/web", bearer="any")
            assert (status, page.splitlines()[0]) == (200, "pod: default/web")
            assert (await it.get("/explain/default/nobody", bearer="any"))[0] == 404
            page = (await it.get("/metrics", bearer="any"))[1]
            assert 'extender_refused_nodes_total{plugin="NodeResourcesFit",reason="Insufficient cpu"} 1.0' in page
            assert 'extender_cache_staleness_seconds{kind="Node"}' in page
            assert "extender_event_loop_lag_seconds_count" in page

    go(main())


def test_pages_are_for_those_whom_the_api_server_lets(tmp_path: Path) -> None:
    async def main() -> None:
        async with live(tmp_path) as it:
            assert (await it.get("/metrics"))[0] == 403
            assert (await it.get("/openapi.json"))[0] == 403
            status, page = await it.get("/metrics", bearer="any")
            assert status == 200
            assert 'rest_client_requests_total{code="200"' in page

    go(main())


def test_without_a_cluster_whole_nodes_are_answered(tmp_path: Path) -> None:
    async def main() -> None:
        port = free_ports(1)[0]
        options = options_of(parse(["--without-cluster", f"--port={port}"], FLAGS))
        serving = asyncio.create_task(run(options))
        async with aiohttp.ClientSession() as session:
            it = Live(Sandbox(), session, f"http://127.0.0.1:{port}")

            async def answers() -> bool:
                try:
                    return await it.is_ready()
                except aiohttp.ClientConnectionError:
                    return False

            await it.until(answers)
            pod = {**a_pod("web", cpu="2"), "metadata": {"name": "web", "namespace": "default", "uid": "1"}}
            body = {"Pod": pod, "Nodes": {"metadata": {}, "items": [a_node("a"), a_node("b", cpu="1")]}}
            answer = await it.post("/filter", body)
            assert [node["metadata"]["name"] for node in answer["Nodes"]["items"]] == ["a"]
            assert answer["FailedAndUnresolvableNodes"] == {"b": "Insufficient cpu"}
            assert (await it.post("/bind", {}))[0] == 404
        os.kill(os.getpid(), signal.SIGTERM)
        assert await serving == 0

    go(main())


def test_beyond_this_machine_nobody_binds_without_a_certificate(tmp_path: Path) -> None:
    async def main() -> None:
        async with live(tmp_path, "--bind-address=0.0.0.0", "--anonymous-verbs") as it:
            pod = it.sandbox.api.add(a_pod("web"))
            assert (await it.filter(pod, "n1"))["NodeNames"] == ["n1"]
            assert (await it.post("/bind", {}))[0] == 403

    go(main())


def test_a_port_in_use_is_told(tmp_path: Path) -> None:
    port = free_ports(1)[0]
    options = options_of(parse(["--without-cluster", f"--port={port}"], FLAGS))

    async def main() -> None:
        taken = await asyncio.start_server(lambda *_: None, "127.0.0.1", port)
        async with taken:
            with pytest.raises(StartError, match="address already in use; choose another with --port"):
                await run(options)

    go(main())
