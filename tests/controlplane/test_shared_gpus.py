"""GpuShare on a real control plane with kills and restarts: no GPU above 1,000 milli, and right annotations.

A test creates 120 pods with each kind of scheduling. `GPU_PLACEMENTS=5000` creates more.
"""

import os
import signal
from collections import defaultdict
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any, Final, Protocol

import pytest

from tests.controlplane.api_client import ApiClient, JsonObject
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.extender_process import ExtenderProcess, grant_permissions
from tests.controlplane.history_recorder import HistoryRecorder
from tests.controlplane.process import Process
from tests.controlplane.scheduler_processes import create_all, make_configuration, start_scheduler, wait_until_bound
from tests.scheduling_history import History, find_assignments, find_double_bindings

PLACEMENTS: Final = int(os.environ.get("GPU_PLACEMENTS", "120"))
BATCH: Final = max(60, PLACEMENTS // 20)
NODES: Final = BATCH // 5
GPUS: Final = 8
REQUESTS: Final = ((810, 1), (470, 1), (320, 1), (160, 1), (1000, 1), (650, 1), (230, 1), (2000, 2))
"""The total milli and the number of GPUs. 60 pods request 42 GPUs on average; at most 90 pods run on 96 GPUs."""

MILLI: Final = "alibabacloud.com/gpu-milli"
COUNT: Final = "alibabacloud.com/gpu-count"
INDEX: Final = "alibabacloud.com/gpu-index"
PROFILE: Final = {
    "schedulerName": "default-scheduler",
    "plugins": {"multiPoint": {"enabled": [{"name": "GpuShare"}]}},
    "pluginConfig": [{"name": "GpuShare", "args": {"wastefulPodsWait": False}}],
}
SHORT_BACKOFF: Final = {"podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 1}
_TIMEOUT: Final = 180.0


def make_gpu_nodes() -> list[JsonObject]:
    """Make the nodes."""
    capacity = {"cpu": "96", "memory": "64Gi", "pods": "200", COUNT: str(GPUS), MILLI: str(1000 * GPUS)}
    status = {"capacity": capacity, "allocatable": capacity}
    return [{"kind": "Node", "metadata": {"name": f"gpu-{number}"}, "status": status} for number in range(NODES)]


def make_gpu_pod(name: str, milli: int, count: int) -> JsonObject:
    """Make a pod that requests *milli* in total on *count* GPUs."""
    gpus = {MILLI: str(milli), **({COUNT: str(count)} if milli >= 1000 else {})}
    resources = {"requests": {"cpu": "500m", **gpus}, "limits": gpus}
    container = {"name": "app", "image": "app", "resources": resources}
    spec = {"terminationGracePeriodSeconds": 0, "containers": [container]}
    return {"kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


class Scheduling(Protocol):
    """Schedulers that a test kills and starts again."""

    def kill_one(self, turn: int) -> None:
        """Kill a process and start it again."""


class Standalone:
    """`extender schedule` with GpuShare."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._process = self._start()

    def _start(self) -> Process:
        configuration = {**make_configuration(self._plane), "profiles": [PROFILE], **SHORT_BACKOFF}
        return start_scheduler(self._plane, configuration)

    def kill_one(self, turn: int) -> None:
        """Kill the scheduler and start it again."""
        self._process.signal(signal.SIGKILL)
        self._process.wait()
        self._process = self._start()


class WithKubeScheduler:
    """kube-scheduler, which calls `extender serve` with GpuShare to filter, prioritize and bind."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._extender = ExtenderProcess(plane, {"profiles": [PROFILE]})
        self._kube_scheduler = self._start()

    def _start(self) -> Process:
        entry = self._extender.configuration_entry(bindVerb="bind", httpTimeout="15s")
        return self._plane.start_kube_scheduler({"extenders": [entry], **SHORT_BACKOFF})

    def kill_one(self, turn: int) -> None:
        """Kill the extender and start it again, or kube-scheduler at each second turn."""
        if turn % 2:
            self._kube_scheduler.signal(signal.SIGKILL)
            self._kube_scheduler.wait()
            self._kube_scheduler = self._start()
        else:
            self._extender.process.signal(signal.SIGKILL)
            self._extender.process.wait()
            self._extender.restart()


class GpuHistory:
    """The milli on each GPU after each revision of a pod, from the annotations of the pods that have a node.

    Attributes:
        errors: the wrong annotations, and the GPUs that had more than 1,000 milli.
        most_used: the highest sum of all milli.
    """

    def __init__(self, history: History) -> None:
        self.errors: list[str] = []
        self.most_used = 0
        self._milli_by_gpu = defaultdict[tuple[str, int], int](int)
        self._gpus_by_pod: dict[str, tuple[int, list[tuple[str, int]]]] = {}
        for state in history.states:
            if state.kind == "Pod":
                self._read(state.key, state.object)
                self.most_used = max(self.most_used, sum(self._milli_by_gpu.values()))

    def _read(self, key: str, pod: Mapping[str, Any] | None) -> None:
        milli, gpus = self._gpus_by_pod.pop(key, (0, []))
        for gpu in gpus:
            self._milli_by_gpu[gpu] -= milli
        if pod is None or "nodeName" not in pod["spec"]:
            return
        milli, gpus = self._read_gpus(key, pod)
        self._gpus_by_pod[key] = milli, gpus
        for gpu in gpus:
            self._milli_by_gpu[gpu] += milli
            if self._milli_by_gpu[gpu] > 1000:
                self.errors.append(f"GPU {gpu} has {self._milli_by_gpu[gpu]} milli with {key}")

    def _read_gpus(self, key: str, pod: Mapping[str, Any]) -> tuple[int, list[tuple[str, int]]]:
        """Return the milli of each GPU of the pod, and its GPUs."""
        requests = pod["spec"]["containers"][0]["resources"]["requests"]
        count, text = int(requests.get(COUNT, "1")), pod["metadata"].get("annotations", {}).get(INDEX, "")
        indices = [int(part) for part in text.split("-") if part.isdecimal()]
        if len(set(indices)) != count or text.count("-") != count - 1 or max(indices) >= GPUS:
            self.errors.append(f'{key} has {requests} and {INDEX} "{text}"')
        milli = int(requests[MILLI].replace("k", "000"))  # the API server writes 1000 as 1k
        return milli // count, [(pod["spec"]["nodeName"], index) for index in indices]


def iterate_batches() -> Iterator[tuple[int, list[JsonObject]]]:
    """Yield the number and the pods of each batch."""
    rng = Random(7)
    for start in range(0, PLACEMENTS, BATCH):
        numbers = range(start, min(start + BATCH, PLACEMENTS))
        yield start // BATCH, [make_gpu_pod(f"gpu-pod-{number}", *rng.choice(REQUESTS)) for number in numbers]


@pytest.mark.parametrize("make_scheduling", [Standalone, WithKubeScheduler])
def test_no_gpu_is_overcommitted_by_schedulers_that_are_killed(
    control_plane: ControlPlane, api: ApiClient, make_scheduling: type[Standalone | WithKubeScheduler]
) -> None:
    grant_permissions(api, {"apiGroups": [""], "resources": ["pods/status"], "verbs": ["patch"]})
    recorder = HistoryRecorder(control_plane)
    create_all(api, make_gpu_nodes())
    scheduling, rng = make_scheduling(control_plane), Random(11)
    running: list[JsonObject] = []
    for turn, batch in iterate_batches():
        running += [api.create(pod) for pod in batch]
        wait_until_bound(api, len(running) - len(batch) // 2, _TIMEOUT)
        scheduling.kill_one(turn)
        wait_until_bound(api, len(running), _TIMEOUT)
        rng.shuffle(running)
        while len(running) > BATCH // 2:
            api.delete(running.pop())
    history = recorder.history()
    gpus = GpuHistory(history)
    assert gpus.errors == []
    assert gpus.most_used >= 500 * BATCH
    assert find_double_bindings(history) == []
    assert len(find_assignments(history)) == PLACEMENTS
