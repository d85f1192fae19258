"""The operations of scheduler_perf: they create and delete the objects of a workload on a real control plane.

Source: test/integration/scheduler_perf/operations.go (1.37).
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from copy import deepcopy
from typing import Any

import msgspec

from extender.config import durations
from tests.bench.claim_allocation import allocate_claims
from tests.bench.harness import BulkClient, cpu_seconds
from tests.bench.perf_objects import (
    DEFAULT_CLAIM,
    DEFAULT_NODE,
    make_csi_node,
    make_path,
    make_pods_path,
    make_selector,
)
from tests.bench.perf_templates import TemplateRenderer, Workload

_CONCURRENCY = 40
_DELETE_NOW = "gracePeriodSeconds=0"


_UNSUPPORTED = frozenset({"createResourceDriver"})


def find_unsupported(workload: Workload) -> str:
    """Return an operation of *workload* that `Operations` cannot run; empty if it can run all."""
    opcodes = (str(operation["opcode"]) for operation in workload.operations)
    return next((opcode for opcode in opcodes if opcode in _UNSUPPORTED), "")


class WorkloadError(Exception):
    """An object of a workload cannot be created, updated or allocated."""


class Operations:
    """Runs the operations of one workload, and measures the scheduler.

    Attributes:
        result: what was measured; empty before the end of the measurement.
    """

    def __init__(
        self, workload: Workload, client: BulkClient, renderer: TemplateRenderer, pid: int, timeout: float
    ) -> None:
        """*pid* is the process of the scheduler; all operations together may take *timeout* seconds."""
        self._workload, self._client, self._renderer = workload, client, renderer
        self._pid, self._timeout = pid, timeout
        self._namespaces: set[str] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self._started = self._cpu_before = 0.0
        self._measured: Mapping[str, Any] = {}
        self.result: dict[str, Any] = {}
        self._by_opcode: dict[str, Callable[[dict[str, Any], str], Awaitable[None]]] = {
            "allocResourceClaims": self._allocate_claims,
            "barrier": self._wait_at_barrier,
            "churn": self._start_churn,
            "createAny": self._create_any,
            "createNamespaces": self._create_namespaces,
            "createNodes": self._create_nodes,
            "createPodGroups": self._create_any,
            "createPodSets": self._create_pod_sets,
            "createPods": self._create_pods,
            "deletePods": self._delete_pods,
            "startCollectingMetrics": self._start_collecting,
            "stopCollectingMetrics": self._stop_collecting,
            "updateAny": self._update_any,
        }

    async def run(self) -> None:
        """Run all operations. If they do not end in time, the result has `timed_out`."""
        try:
            async with asyncio.timeout(self._timeout):
                for number, operation in enumerate(self._workload.operations):
                    await self._by_opcode[operation["opcode"]](operation, f"namespace-{number}")
        except TimeoutError:
            self.result["timed_out"] = True
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    # -- objects

    async def _create_nodes(self, operation: dict[str, Any], namespace: str) -> None:
        count, path = self._workload.count(operation), operation.get("nodeTemplatePath")
        strategy, suffix = operation.get("nodeAllocatableStrategy", {}), namespace.removeprefix("namespace-")
        labels, unique_label = operation.get("labelNodePrepareStrategy"), operation.get("uniqueNodeLabelStrategy")

        async def create_node(number: int) -> None:
            node = self._render(path, number, count, operation) if path else deepcopy(DEFAULT_NODE)
            metadata, status = node["metadata"], node.setdefault("status", {})
            metadata.setdefault("name", f"{metadata.pop('generateName', '')}{suffix}-{number}")
            status.setdefault("capacity", {}).update(strategy.get("nodeAllocatable", {}))
            status.setdefault("allocatable", dict(status["capacity"]))
            status.pop("phase", None)
            node_labels = metadata.setdefault("labels", {})
            node_labels["kubernetes.io/hostname"] = metadata["name"]
            if labels:
                node_labels[labels["labelKey"]] = labels["labelValues"][number % len(labels["labelValues"])]
            if unique_label:
                node_labels[unique_label["labelKey"]] = metadata["name"]
            if strategy.get("csiNodeAllocatable"):
                await self._create(make_csi_node(metadata["name"], strategy), "")
            await self._create(node, "")

        await _run_concurrently(range(count), create_node)

    async def _create_namespaces(self, operation: dict[str, Any], _namespace: str) -> None:
        count, path = self._workload.count(operation), operation.get("namespaceTemplatePath")
        for number in range(count):
            template = self._render(path, number, count, operation) if path else {"metadata": {}}
            await self._create_namespace(f"{operation['prefix']}-{number}", template["metadata"].get("labels"))

    async def _create_any(self, operation: dict[str, Any], _namespace: str) -> None:
        namespace, count = operation.get("namespace", ""), self._workload.count(operation)
        if namespace:
            await self._create_namespace(namespace)

        async def create_object(number: int) -> None:
            await self._create(self._render(operation["templatePath"], number, count, operation), namespace)

        await _run_concurrently(range(count), create_object)

    async def _update_any(self, operation: dict[str, Any], _namespace: str) -> None:
        """Replace objects, their status and other subresources, at most `updatePerSecond` objects per second."""
        namespace, count = operation.get("namespace", ""), self._workload.count(operation)
        rate = operation.get("updatePerSecond", 0)
        for number in range(count):
            await asyncio.sleep(1 / rate if rate else 0)
            obj = self._render(operation["templatePath"], number, count, operation)
            path = f"{make_path(obj, namespace)}/{obj['metadata']['name']}"
            for subresource in ("/".join(("", *operation.get("subresources", ()))), "/status"):
                if await self._client.call("PUT", path + subresource, obj) is None:
                    raise WorkloadError(f"PUT {path}{subresource}: the object does not exist, or a field is immutable")

    async def _allocate_claims(self, operation: dict[str, Any], _namespace: str) -> None:
        failed_count = await allocate_claims(self._client, operation["namespace"], self._workload.feature_gates)
        if failed_count:
            raise WorkloadError(f"{failed_count} claims of {operation['namespace']} fit on no node")

    async def _start_churn(self, operation: dict[str, Any], namespace: str) -> None:
        await self._create_namespace(operation.get("namespace", namespace))
        self._tasks.append(asyncio.create_task(self._churn(operation, operation.get("namespace", namespace))))

    async def _churn(self, operation: Mapping[str, Any], namespace: str) -> None:
        """Create up to `number` objects of each template at intervals; with `recreate` delete and create them again."""
        limit, interval = operation.get("number", 0), operation.get("intervalMilliseconds", 500) / 1000
        created: list[str] = []
        for number in range(1_000_000):
            for path in operation["templatePaths"]:
                if operation["mode"] == "recreate" and limit and number // limit % 2:
                    await self._client.call("DELETE", f"{created.pop(0)}?{_DELETE_NOW}")
                    continue
                if operation["mode"] == "create" and limit and number >= limit:
                    return
                obj = self._render(path, number, limit, operation)
                if obj["kind"] == "Node":
                    obj["status"].setdefault("allocatable", dict(obj["status"]["capacity"]))
                    obj["status"].pop("phase", None)
                answer = await self._create(obj, namespace)
                created.append(f"{make_path(obj, namespace)}/{answer['metadata']['name']}")
            await asyncio.sleep(interval)

    # -- pods

    async def _create_pod_sets(self, operation: dict[str, Any], namespace: str) -> None:
        for number in range(self._workload.count(operation)):
            await self._create_pods(
                operation["createPodsOp"], f"{operation.get('namespacePrefix', namespace)}-{number}"
            )

    async def _create_pods(self, operation: dict[str, Any], namespace: str) -> None:
        namespace, count = operation.get("namespace", namespace), self._workload.count(operation)
        path = operation.get("podTemplatePath", self._workload.default_pod_template)
        batch_size = self._workload.get(operation, "signatureBatchSize", 0)
        await self._create_namespace(namespace)
        if operation.get("collectMetrics"):
            self._start_measurement()

        async def create_pod(number: int) -> None:
            pod = self._render(path, number, count, operation)
            pod["metadata"].pop("namespace", None)
            if "persistentVolumeTemplatePath" in operation:
                claim = await self._create_volume(operation, namespace, number)
                pod["spec"]["volumes"] = [{"name": "vol", "persistentVolumeClaim": {"claimName": claim}}]
            if batch_size > 0:
                pod["metadata"].setdefault("labels", {})["signature"] = f"signature-label-{number // batch_size}"
            await self._create(pod, namespace)

        if self._workload.get(operation, "steadyState"):
            seconds = durations.parse(self._workload.get(operation, "duration"))
            count = await self._replace_scheduled_pods(namespace, count, seconds, create_pod)
        else:
            await _run_concurrently(range(count), create_pod)
            if operation.get("skipWaitToCompletion"):
                return
            await self._wait_until_scheduled(namespace)
        if operation.get("collectMetrics"):
            self._add_measurement(self._read_usage(), count)

    async def _replace_scheduled_pods(
        self, namespace: str, count: int, seconds: float, create_pod: Callable[[int], Awaitable[None]]
    ) -> int:
        """Create *count* pods, and replace each scheduled pod for *seconds*; return the number of scheduled pods.

        Source: test/integration/scheduler_perf/executor.go, createPodsSteadily (1.37).
        """
        path, scheduled_count = f"/api/v1/namespaces/{namespace}/pods", 0
        version = (await self._client.call("GET", path))["metadata"]["resourceVersion"]
        watched_path = make_pods_path(namespace, None, "spec.nodeName%21%3D")
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds), self._client.watch(watched_path, version) as lines:
                await _run_concurrently(range(count), create_pod)
                async for line in lines:
                    event = msgspec.json.decode(line)
                    if event["type"] == "ADDED":
                        scheduled_count += 1
                        name = event["object"]["metadata"]["name"]
                        await self._client.call("DELETE", f"{path}/{name}?{_DELETE_NOW}")
                        await create_pod(count + scheduled_count)
        return scheduled_count

    async def _create_volume(self, operation: Mapping[str, Any], namespace: str, number: int) -> str:
        """Create a volume bound to a new claim, and return the name of the claim.

        Source: test/utils/runners.go, CreatePodWithPersistentVolume (1.37).
        """
        volume = self._render(operation["persistentVolumeTemplatePath"], number, 0, operation)
        claim_path = operation.get("persistentVolumeClaimTemplatePath")
        claim = self._render(claim_path, number, 0, operation) if claim_path else deepcopy(DEFAULT_CLAIM)
        claim_name, volume_name = f"pvc-{number}", f"pv-{namespace}-{number}"
        claim["metadata"] = {**claim.get("metadata", {}), "name": claim_name}
        claim["spec"] |= {"volumeName": volume_name, "storageClassName": claim["spec"].get("storageClassName") or ""}
        created_claim = await self._create(claim, namespace)
        volume["metadata"] = {**volume.get("metadata", {}), "name": volume_name}
        volume["metadata"].pop("generateName", None)
        volume["spec"]["claimRef"] = {
            "kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": namespace, "name": claim_name,
            "uid": created_claim["metadata"]["uid"],
        }  # fmt: skip
        if "csi" in volume["spec"]:
            volume["spec"]["csi"].setdefault("volumeHandle", volume_name)
        await self._create(volume, namespace)
        for path in (f"{make_path(volume, '')}/{volume_name}", f"{make_path(claim, namespace)}/{claim_name}"):
            body = {"status": {"phase": "Bound"}}
            await self._client.call("PATCH", f"{path}/status", body, kind="application/merge-patch+json")
        return claim_name

    async def _delete_pods(self, operation: dict[str, Any], _namespace: str) -> None:
        path = f"/api/v1/namespaces/{operation['namespace']}/pods"
        selector = make_selector(operation.get("labelSelector", {}))
        interval = 1 / operation.get("deletePodsPerSecond", 1_000_000)

        async def delete_pods() -> None:
            for pod in (await self._client.call("GET", f"{path}?{selector}"))["items"]:
                await self._client.call("DELETE", f"{path}/{pod['metadata']['name']}?{_DELETE_NOW}")
                await asyncio.sleep(interval)

        self._tasks.append(asyncio.create_task(delete_pods()))
        if not operation.get("skipWaitToCompletion"):
            await self._tasks[-1]

    # -- barriers and measurement

    async def _wait_at_barrier(self, operation: dict[str, Any], _namespace: str) -> None:
        wait = {"Scheduled": self._wait_until_scheduled, "Attempted": self._wait_until_attempted}[
            operation.get("stageRequirement", "Scheduled")
        ]
        for namespace in operation.get("namespaces", [""]):
            await wait(namespace, operation.get("labelSelector", {}))

    async def _wait_until_scheduled(self, namespace: str, labels: Mapping[str, str] | None = None) -> None:
        """Wait until the pods of *namespace* (empty: all) have nodes."""
        path = make_pods_path(namespace, labels, "spec.nodeName%3D&limit=1")
        await _wait_until_zero(lambda: self._client.count_objects(path))

    async def _wait_until_attempted(self, namespace: str, labels: Mapping[str, str] | None = None) -> None:
        """Wait until an attempt for each pod of *namespace* (empty: all) ended."""

        async def count_pods_without_attempt() -> int:
            page = await self._client.call("GET", make_pods_path(namespace, labels, "spec.nodeName%3D"))
            conditions = [pod["status"].get("conditions", ()) for pod in page["items"]]
            return sum(all(condition["type"] != "PodScheduled" for condition in each) for each in conditions)

        await _wait_until_zero(count_pods_without_attempt)

    async def _start_collecting(self, operation: dict[str, Any], _namespace: str) -> None:
        self._measured = {**operation, "before": await self._count_measured(operation)}
        self._start_measurement()

    async def _stop_collecting(self, _operation: dict[str, Any], _namespace: str) -> None:
        usage = self._read_usage()
        self._add_measurement(usage, await self._count_measured(self._measured) - self._measured["before"])

    async def _count_measured(self, operation: Mapping[str, Any]) -> int:
        """Return the number of pods with a node in the measured namespaces.

        The pages of a list with a selector do not tell how many objects remain, so the lists are read whole.
        """
        labels = operation.get("labelSelector", {})
        paths = [make_pods_path(name, labels, "spec.nodeName%21%3D") for name in operation.get("namespaces", [""])]
        return sum([len((await self._client.call("GET", path))["items"]) for path in paths])

    def _start_measurement(self) -> None:
        if not self._started:
            self._started, self._cpu_before = time.perf_counter(), cpu_seconds(self._pid)

    def _read_usage(self) -> tuple[float, float]:
        """Return the seconds since the first start of the measurement, and the scheduler's CPU time in them."""
        return time.perf_counter() - self._started, cpu_seconds(self._pid) - self._cpu_before

    def _add_measurement(self, usage: tuple[float, float], pod_count: int) -> None:
        """Add *pod_count* pods to those measured since the first start."""
        seconds, cpu = usage
        pods = self.result.get("pods", 0) + pod_count
        self.result |= {
            "pods": pods, "seconds": round(seconds, 2), "pods_per_s": round(pods / seconds, 1),
            "cpu_ms_per_pod": round(cpu / max(pods, 1) * 1000, 2),
        }  # fmt: skip

    # -- requests

    def _render(self, path: str, number: int, count: int, operation: Mapping[str, Any]) -> dict[str, Any]:
        params = {name: self._workload.resolve(value) for name, value in operation.get("templateParams", {}).items()}
        return self._renderer.render(self._workload.folder / path, {"Index": number, "Count": count, **params})

    async def _create(self, obj: Mapping[str, Any], namespace: str) -> dict[str, Any]:
        path = make_path(obj, namespace)
        answer: dict[str, Any] | None = await self._client.call("POST", path, obj)
        if answer is None:
            raise WorkloadError(f"POST {path}: the object exists, or the API server does not serve its version")
        return answer

    async def _create_namespace(self, name: str, labels: Mapping[str, str] | None = None) -> None:
        if name not in self._namespaces:
            self._namespaces.add(name)
            await self._client.call("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": labels or {}}})


async def _wait_until_zero(count: Callable[[], Awaitable[int]]) -> None:
    while await count():
        await asyncio.sleep(0.1)


async def _run_concurrently(numbers: Iterable[int], work: Callable[[int], Awaitable[None]]) -> None:
    remaining = iter(numbers)

    async def worker() -> None:
        for number in remaining:
            await work(number)

    await asyncio.gather(*(worker() for _ in range(_CONCURRENCY)))
