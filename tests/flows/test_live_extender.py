"""`extender serve` for a live cluster: watched changes, bindings, readiness, explain and authentication."""

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

from extender.app.serve import run
from extender.app.startup import StartError
from extender.cli.pflag import parse
from extender.cli.serve_flags import FLAGS
from extender.cli.serve_options import make_serve_options
from extender.fake_apiserver.registry.resources import PODS
from extender.fake_apiserver.registry.reviews import ReviewRules
from tests.controlplane.process import free_ports
from tests.faulty_apiserver import Fault, FaultKind, FaultyApiServer

SECONDS = 20.0
ANONYMOUS = "system:anonymous"
GHOST = {"PodName": "ghost", "PodNamespace": "default", "PodUID": "0-0", "Node": "n1"}
CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {qps: 1000, burst: 1000}
"""


def make_node(name: str, cpu: str = "4") -> dict[str, Any]:
    resources = {"cpu": cpu, "memory": "8Gi", "pods": "10"}
    return {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
        "status": {"capacity": resources, "allocatable": resources},
    }  # fmt: skip


def make_pod(name: str, cpu: str = "1", **spec: Any) -> dict[str, Any]:
    container = {"name": "app", "image": "app", "resources": {"requests": {"cpu": cpu}}}
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [container], **spec}}


class LiveExtender:
    """A fake API server, `extender serve` for it, and an HTTP client of the extender."""

    def __init__(self, api_server: FaultyApiServer, session: aiohttp.ClientSession, address: str) -> None:
        self.api_server, self._session, self.address = api_server, session, address

    async def post(self, path: str, body: Any) -> Any:
        async with self._session.post(self.address + path, json=body) as response:
            return (
                await response.json() if response.status == 200 else (response.status, (await response.text()).strip())
            )

    async def get(self, path: str, bearer: str = "", accept: str = "*/*") -> tuple[int, str]:
        headers = {"Accept": accept, **({"Authorization": f"Bearer {bearer}"} if bearer else {})}
        async with self._session.get(self.address + path, headers=headers) as response:
            return response.status, await response.text()

    async def filter(self, pod: Any, *names: str) -> Any:
        return await self.post("/filter", {"Pod": pod, "Nodes": None, "NodeNames": list(names)})

    async def bind(self, pod: Any, node_name: str, uid: str = "") -> str:
        meta = pod["metadata"]
        names = {"PodName": meta["name"], "PodNamespace": meta["namespace"]}
        result = await self.post("/bind", {**names, "PodUID": uid or meta["uid"], "Node": node_name})
        return str(result["Error"])

    async def wait_until(self, condition: Callable[[], Awaitable[bool]]) -> None:
        async with asyncio.timeout(SECONDS):
            while not await condition():
                await asyncio.sleep(0.01)

    async def is_ready(self) -> bool:
        return (await self.get("/readyz"))[0] == 200

    def pod(self, name: str) -> Any:
        return self.api_server.api.get(PODS, "default", name)


@asynccontextmanager
async def live_extender(
    folder: Path, *flags: str, faults: tuple[Fault, ...] = (), ready: bool = True
) -> AsyncIterator[LiveExtender]:
    """Run a fake API server with two nodes, n1 with 4 CPUs and n2 with 1, and `extender serve` for extender."""
    reviews = ReviewRules(authorize=lambda spec: (spec["user"] != ANONYMOUS, ""))
    async with FaultyApiServer(faults=faults, reviews=reviews) as api_server:
        api_server.api.create_from_manifest(make_node("n1"))
        api_server.api.create_from_manifest(make_node("n2", cpu="1"))
        kubeconfig, config = folder / "kubeconfig", folder / "config.yaml"
        kubeconfig.write_text(api_server.kubeconfig())
        config.write_text(CONFIG)
        port = free_ports(1)[0]
        arguments = [f"--kubeconfig={kubeconfig}", f"--config={config}", f"--port={port}", *flags]
        serving = asyncio.create_task(run(make_serve_options(parse(arguments, FLAGS))))
        try:
            async with aiohttp.ClientSession() as session:
                extender = LiveExtender(api_server, session, f"http://127.0.0.1:{port}")

                async def has_started() -> bool:
                    try:
                        return (await extender.get("/livez"))[0] == 200 and (not ready or await extender.is_ready())
                    except aiohttp.ClientConnectionError:
                        assert not serving.done()
                        return False

                await extender.wait_until(has_started)
                yield extender
        finally:
            # Without a handler, which the extender removes when it ends, the signal would end the test process.
            if not serving.done():
                os.kill(os.getpid(), signal.SIGTERM)
            assert await asyncio.wait_for(serving, SECONDS) == 0


def go(main: Awaitable[None]) -> None:
    asyncio.run(main)  # type: ignore[arg-type]


def test_created_nodes_and_pods_are_watched(tmp_path: Path) -> None:
    async def main() -> None:
        async with live_extender(tmp_path) as extender:
            pod = extender.api_server.api.create_from_manifest(make_pod("web", cpu="2"))
            result = await extender.filter(pod, "n1", "n2", "n3")
            assert result["NodeNames"] == ["n1"]
            assert result["FailedNodes"] == {"n3": "node is not known to the extender (yet)"}
            assert result["FailedAndUnresolvableNodes"] == {"n2": "Insufficient cpu"}
            extender.api_server.api.create_from_manifest(make_node("n3"))

            async def is_feasible() -> bool:
                return bool((await extender.filter(pod, "n3"))["NodeNames"] == ["n3"])

            await extender.wait_until(is_feasible)

    go(main())


def test_the_second_port_serves_pages_and_no_verbs(tmp_path: Path) -> None:
    async def main() -> None:
        pages = free_ports(1)[0]
        async with live_extender(tmp_path, f"--secure-port={pages}") as extender, aiohttp.ClientSession() as session:

            async def status(method: str, path: str) -> int:
                async with session.request(method, f"https://127.0.0.1:{pages}{path}", ssl=False) as answer:
                    return answer.status

            assert await status("GET", "/readyz") == 200
            assert await status("GET", "/metrics") == 403
            assert [await status("POST", verb) for verb in ("/filter", "/prioritize", "/preempt", "/bind")] == [404] * 4
            assert (await extender.get("/readyz"))[0] == 200

    go(main())


def test_a_bound_pod_uses_resources_of_its_node_at_once(tmp_path: Path) -> None:
    async def main() -> None:
        async with live_extender(tmp_path) as extender:
            first, second = (
                extender.api_server.api.create_from_manifest(make_pod("first", cpu="3")),
                extender.api_server.api.create_from_manifest(make_pod("second", cpu="3")),
            )
            assert await extender.bind(first, "n1") == ""
            assert extender.pod("first")["spec"]["nodeName"] == "n1"
            assert (await extender.filter(second, "n1"))["FailedNodes"] == {"n1": "Insufficient cpu"}
            assert await extender.bind(first, "n1") == ""  # a repeated request is safe
            assert await extender.bind(second, "n1") == "pod default/second does not fit node n1: Insufficient cpu"
            assert "nodeName" not in extender.pod("second")["spec"]

    go(main())


def test_forged_bindings_change_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with live_extender(tmp_path) as extender:
            other = extender.api_server.api.create_from_manifest(make_pod("other", schedulerName="someone-else"))
            bound = extender.api_server.api.create_from_manifest(make_pod("bound", nodeName="n1"))
            pod = extender.api_server.api.create_from_manifest(make_pod("web"))
            pods = extender.api_server.api.list_objects(PODS)
            unknown = {"metadata": {"name": "ghost", "namespace": "default", "uid": pod["metadata"]["uid"]}}
            errors = [
                await extender.bind(unknown, "n1"),
                await extender.bind(pod, "n1", uid="0-0"),
                await extender.bind(pod, "nowhere"),
                await extender.bind(bound, "n2"),
                await extender.bind(other, "n1"),
            ]
            assert [line.partition(",")[0] for line in errors] == [
                "pod default/ghost not found",
                f"pod default/web has the uid {pod['metadata']['uid']}",
                "node nowhere is not known to the extender (yet)",
                "pod default/bound is on node n1 already",
                'pod default/other is for the scheduler "someone-else"',
            ]
            assert extender.api_server.api.list_objects(PODS) == pods

    go(main())


def test_before_all_caches_are_synced_it_is_not_ready_and_the_verbs_return_errors(tmp_path: Path) -> None:
    list_fault = Fault(kind=FaultKind.STATUS, verb="list", resource="services", code=500)

    async def main() -> None:
        async with live_extender(tmp_path, faults=(list_fault,), ready=False) as extender:
            pod = extender.api_server.api.create_from_manifest(make_pod("web"))
            missing = "the cache of the extender is not synced yet: "

            async def reports_missing_kind() -> bool:
                return "Service not listed yet (services: " in (await extender.filter(pod, "n1"))["Error"]

            await extender.wait_until(reports_missing_kind)
            result = await extender.filter(pod, "n1")
            assert (result["NodeNames"], result["FailedNodes"]) == (None, {})
            assert (await extender.bind(pod, "n1")).startswith(missing)
            status, line = await extender.post("/prioritize", {"Pod": pod, "NodeNames": ["n1"]})
            assert (status, line.startswith(missing)) == (503, True)
            status, page = await extender.get("/readyz")
            assert status == 500
            assert "[-]informer-sync failed: Service not listed yet" in page
            assert (await extender.get("/livez"))[0] == 200

    go(main())


def test_the_paths_of_the_verbs_are_configurable(tmp_path: Path) -> None:
    flags = ("--url-prefix=/scheduler/", "--filter-verb=predicates/always_true", "--prioritize-verb=priorities/zero")

    async def main() -> None:
        async with live_extender(tmp_path, *flags, "--preempt-verb=") as extender:
            pod = extender.api_server.api.create_from_manifest(make_pod("web"))
            body = {"Pod": pod, "NodeNames": ["n1"]}
            assert (await extender.post("/scheduler/predicates/always_true", body))["NodeNames"] == ["n1"]
            assert (await extender.post("/scheduler/priorities/zero", body)) == [{"Host": "n1", "Score": 10}]
            assert (await extender.post("/scheduler/bind", GHOST))["Error"] == "pod default/ghost not found"
            assert (await extender.post("/scheduler/preempt", body))[0] == 403  # as for every unknown path

    go(main())


def test_a_nominated_pod_reserves_its_node(tmp_path: Path) -> None:
    async def main() -> None:
        async with live_extender(tmp_path) as extender:
            extender.api_server.api.create_from_manifest(
                make_pod("waits", cpu="3", priorityClassName="system-cluster-critical")
            )
            status = {"phase": "Pending", "nominatedNodeName": "n1"}
            extender.api_server.api.guaranteed_update(PODS, "default", "waits", lambda pod: {**pod, "status": status})
            pod = extender.api_server.api.create_from_manifest(make_pod("web", cpu="2"))

            async def is_reserved() -> bool:
                return bool((await extender.filter(pod, "n1"))["FailedNodes"] == {"n1": "Insufficient cpu"})

            await extender.wait_until(is_reserved)

    go(main())


def test_verbs_and_scheduler_share_one_cache(tmp_path: Path) -> None:
    async def main() -> None:
        async with live_extender(tmp_path, "--standalone", "--scheduler-name=another") as extender:
            own = extender.api_server.api.create_from_manifest(make_pod("own", cpu="3"))

            async def is_bound() -> bool:
                return bool(extender.pod("own")["spec"].get("nodeName") == "n1")

            await extender.wait_until(is_bound)
            foreign = extender.api_server.api.create_from_manifest(
                make_pod("foreign", cpu="2", schedulerName="another")
            )
            assert (await extender.filter(foreign, "n1"))["FailedNodes"] == {"n1": "Insufficient cpu"}
            small = extender.api_server.api.create_from_manifest(make_pod("small", schedulerName="another"))
            assert await extender.bind(small, "n1") == ""
            assert await extender.bind(own, "n1") == ""  # it is bound to n1 already
            assert (await extender.bind(own, "n2")) == "pod default/own is on node n1 already"

            async def is_counted() -> bool:  # after the response to the binding, when the pod is bound already
                page = (await extender.get("/metrics", bearer="any"))[1]
                return 'scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"} 1.0' in page

            await extender.wait_until(is_counted)
            page = (await extender.get("/metrics", bearer="any"))[1]
            assert 'extender_bind_results_total{result="bound"} 1.0' in page

    go(main())


def test_explain_shows_the_last_verb_results_for_a_pod(tmp_path: Path) -> None:
    async def main() -> None:
        async with live_extender(tmp_path) as extender:
            pod = extender.api_server.api.create_from_manifest(make_pod("web", cpu="2"))
            await extender.filter(pod, "n1", "n2", "n3")
            await extender.post("/prioritize", {"Pod": pod, "NodeNames": ["n1", "n2"]})
            await extender.bind(pod, "n2")
            await extender.bind(pod, "n1")
            status, page = await extender.get("/explain/default/web", bearer="any", accept="application/json")
            values = json.loads(page)
            assert [decision["verb"] for decision in values["decisions"]] == ["filter", "prioritize", "bind", "bind"]
            filter_result, prioritize_result, rejected_bind, bind_result = values["decisions"]
            assert filter_result["accepted"] == ["n1"]
            assert filter_result["refused"] == [
                {
                    "plugin": None,
                    "reason": "node is not known to the extender (yet)",
                    "final": False,
                    "nodes": ["n3"],
                },
                {"plugin": "NodeResourcesFit", "reason": "Insufficient cpu", "final": True, "nodes": ["n2"]},
            ]
            (node,) = prioritize_result["scores"]
            assert (node["node"], node["score"]) == ("n1", 10)
            fit = node["plugins"]["NodeResourcesFit"]
            assert fit["weight"] == 1
            assert 0 < fit["normalized"] < 100
            assert rejected_bind["result"] == "refused"
            assert rejected_bind["error"] == "pod default/web does not fit node n2: Insufficient cpu"
            assert (bind_result["node"], bind_result["result"]) == ("n1", "bound")
            assert values["node"] == "n1"
            status, page = await extender.get("/explain/default/web", bearer="any")
            assert (status, page.splitlines()[0]) == (200, "Pod default/web is on node n1")
            assert (await extender.get("/explain/default/nobody", bearer="any"))[0] == 404
            page = (await extender.get("/metrics", bearer="any"))[1]
            assert 'extender_refused_nodes_total{plugin="NodeResourcesFit",reason="Insufficient cpu"} 1.0' in page
            assert 'extender_cache_staleness_seconds{kind="Node"}' in page
            assert "extender_event_loop_lag_seconds_count" in page

    go(main())


def test_pages_require_permission_from_the_api_server(tmp_path: Path) -> None:
    async def main() -> None:
        async with live_extender(tmp_path) as extender:
            assert (await extender.get("/metrics"))[0] == 403
            assert (await extender.get("/openapi.json"))[0] == 403
            status, page = await extender.get("/metrics", bearer="any")
            assert status == 200
            assert 'rest_client_requests_total{code="200"' in page

    go(main())


def test_without_a_cluster_the_nodes_of_the_request_are_filtered(tmp_path: Path) -> None:
    async def main() -> None:
        port = free_ports(1)[0]
        options = make_serve_options(parse(["--without-cluster", f"--port={port}"], FLAGS))
        serving = asyncio.create_task(run(options))
        async with aiohttp.ClientSession() as session:
            extender = LiveExtender(FaultyApiServer(), session, f"http://127.0.0.1:{port}")

            async def has_started() -> bool:
                try:
                    return await extender.is_ready()
                except aiohttp.ClientConnectionError:
                    return False

            await extender.wait_until(has_started)
            pod = {**make_pod("web", cpu="2"), "metadata": {"name": "web", "namespace": "default", "uid": "1"}}
            body = {"Pod": pod, "Nodes": {"metadata": {}, "items": [make_node("a"), make_node("b", cpu="1")]}}
            result = await extender.post("/filter", body)
            assert [node["metadata"]["name"] for node in result["Nodes"]["items"]] == ["a"]
            assert result["FailedAndUnresolvableNodes"] == {"b": "Insufficient cpu"}
            assert (await extender.post("/bind", {}))[0] == 404
        os.kill(os.getpid(), signal.SIGTERM)
        assert await serving == 0

    go(main())


def test_bind_is_not_served_to_anonymous_clients_of_other_machines(tmp_path: Path) -> None:
    async def main() -> None:
        async with live_extender(tmp_path, "--bind-address=0.0.0.0", "--anonymous-verbs") as extender:
            pod = extender.api_server.api.create_from_manifest(make_pod("web"))
            assert (await extender.filter(pod, "n1"))["NodeNames"] == ["n1"]
            assert (await extender.post("/bind", {}))[0] == 403

    go(main())


def test_a_port_in_use_is_an_error(tmp_path: Path) -> None:
    port = free_ports(1)[0]
    options = make_serve_options(parse(["--without-cluster", f"--port={port}"], FLAGS))

    async def main() -> None:
        listener = await asyncio.start_server(lambda *_: None, "127.0.0.1", port)
        async with listener:
            with pytest.raises(StartError, match="address already in use; choose another port with --port"):
                await run(options)

    go(main())
