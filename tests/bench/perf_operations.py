"""The operations of scheduler_perf: they create and delete the objects of a workload on a real control plane.

Source: test/integration/scheduler_perf/operations.go (1.37).
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from copy import deepcopy
from typing import Any

from tests.bench.harness import BulkClient, cpu_seconds
from tests.bench.perf_templates import TemplateRenderer, Workload

_CONCURRENCY = 40
_CLUSTER_KINDS = frozenset(
    {
        "CSINode",
        "DeviceClass",
        "DeviceTaintRule",
        "Namespace",
        "Node",
        "PersistentVolume",
        "PriorityClass",
        "ResourceSlice",
        "StorageClass",
    }
)
_DEFAULT_NODE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"generateName": "scheduler-perf-"},
    "status": {
        "capacity": {"pods": "110", "cpu": "4", "memory": "32Gi"},
        "conditions": [{"status": "True", "type": "Ready"}],
    },
}
_DEFAULT_CLAIM: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "true"}},
    "spec": {"accessModes": ["ReadOnlyMany"], "resources": {"requests": {"storage": "1Gi"}}},
}
_DELETE_NOW = "gracePeriodSeconds=0"


def _make_path(obj: Mapping[str, Any], namespace: str) -> str:
    """Return the path of the collection of *obj*, whose plural is regular."""
    version, kind = obj["apiVersion"], obj["kind"]
    plural = f"{kind.lower()}es" if kind.endswith("s") else f"{kind.lower()}s"
    scope = "" if kind in _CLUSTER_KINDS else f"/namespaces/{namespace}"
    return f"/{'apis' if '/' in version else 'api'}/{version}{scope}/{plural}"


def _make_selector(labels: Mapping[str, str]) -> str:
    return "labelSelector=" + ",".join(f"{key}%3D{value}" for key, value in labels.items())


_UNSUPPORTED = frozenset({"allocResourceClaims", "sleep", "updateAny"})


def find_unsupported(workload: Workload) -> str:
    """Return an operation of *workload* that `Operations` cannot run; empty if it can run all."""
    for operation in workload.operations:
        if operation["opcode"] in _UNSUPPORTED:
            return str(operation["opcode"])
        if workload.get(operation, "steadyState"):
            return "steadyState"
    return ""


class WorkloadError(Exception):
    """An object of a workload cannot be created."""


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
            node = self._render(path, number, count, operation) if path else deepcopy(_DEFAULT_NODE)
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
                await self._create(_make_csi_node(metadata["name"], strategy), "")
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
                created.append(f"{_make_path(obj, namespace)}/{answer['metadata']['name']}")
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

        await _run_concurrently(range(count), create_pod)
        if operation.get("skipWaitToCompletion"):
            return
        await self._wait_until_scheduled(namespace)
        if operation.get("collectMetrics"):
            self._add_measurement(self._read_usage(), count)

    async def _create_volume(self, operation: Mapping[str, Any], namespace: str, number: int) -> str:
        """Create a volume bound to a new claim, and return the name of the claim.

        Source: test/utils/runners.go, CreatePodWithPersistentVolume (1.37).
        """
        volume = self._render(operation["persistentVolumeTemplatePath"], number, 0, operation)
        claim_path = operation.get("persistentVolumeClaimTemplatePath")
        claim = self._render(claim_path, number, 0, operation) if claim_path else deepcopy(_DEFAULT_CLAIM)
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
        for path in (f"{_make_path(volume, '')}/{volume_name}", f"{_make_path(claim, namespace)}/{claim_name}"):
            body = {"status": {"phase": "Bound"}}
            await self._client.call("PATCH", f"{path}/status", body, kind="application/merge-patch+json")
        return claim_name

    async def _delete_pods(self, operation: dict[str, Any], _namespace: str) -> None:
        path = f"/api/v1/namespaces/{operation['namespace']}/pods"
        selector = _make_selector(operation.get("labelSelector", {}))
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
        path = _make_pods_path(namespace, labels, "spec.nodeName%3D&limit=1")
        await _wait_until_zero(lambda: self._client.count_objects(path))

    async def _wait_until_attempted(self, namespace: str, labels: Mapping[str, str] | None = None) -> None:
        """Wait until an attempt for each pod of *namespace* (empty: all) ended."""

        async def count_pods_without_attempt() -> int:
            page = await self._client.call("GET", _make_pods_path(namespace, labels, "spec.nodeName%3D"))
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
        paths = [_make_pods_path(name, labels, "spec.nodeName%21%3D") for name in operation.get("namespaces", [""])]
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
        path = _make_path(obj, namespace)
        answer: dict[str, Any] | None = await self._client.call("POST", path, obj)
        if answer is None:
            raise WorkloadError(f"POST {path}: the object exists, or the API server does not serve its version")
        return answer

    async def _create_namespace(self, name: str, labels: Mapping[str, str] | None = None) -> None:
        if name not in self._namespaces:
            self._namespaces.add(name)
            await self._client.call("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": labels or {}}})


def _make_pods_path(namespace: str, labels: Mapping[str, str] | None, field_selector: str) -> str:
    scope = f"/namespaces/{namespace}" if namespace else ""
    return f"/api/v1{scope}/pods?{_make_selector(labels or {})}&fieldSelector={field_selector}"


def _make_csi_node(name: str, strategy: Mapping[str, Any]) -> dict[str, Any]:
    drivers = [
        {"name": driver, "nodeID": name, "allocatable": allocatable, "topologyKeys": []}
        for driver, allocatable in strategy["csiNodeAllocatable"].items()
    ]
    migrated = ",".join(strategy.get("migratedPlugins", ()))
    annotations = {"storage.alpha.kubernetes.io/migrated-plugins": migrated} if migrated else {}
    metadata = {"name": name, "annotations": annotations}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": metadata, "spec": {"drivers": drivers}}


async def _wait_until_zero(count: Callable[[], Awaitable[int]]) -> None:
    while await count():
        await asyncio.sleep(0.1)


async def _run_concurrently(numbers: Iterable[int], work: Callable[[int], Awaitable[None]]) -> None:
    remaining = iter(numbers)

    async def worker() -> None:
        for number in remaining:
            await work(number)

    await asyncio.gather(*(worker() for _ in range(_CONCURRENCY)))
