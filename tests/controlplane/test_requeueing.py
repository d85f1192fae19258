"""Unschedulable pods are requeued within a second by events that may make them schedulable, and by no others.

The same cases run with kube-scheduler and with our scheduler. Their metrics show handled events and moved pods.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Any, Final

import pytest

from tests.controlplane import scheduling_scenario
from tests.controlplane.api_client import ApiClient, JsonObject, find_condition
from tests.controlplane.control_plane import ADMIN, ControlPlane
from tests.controlplane.process import free_ports
from tests.controlplane.scheduling_scenario import HOST, make_pod, make_volume_claim
from tests.controlplane.test_same_endpoints import SchedulerEndpoints, serving_flags

_CAPACITY: Final = {"cpu": "4", "memory": "8Gi", "pods": "30"}
_TIMEOUT: Final = 10.0
_REQUEUE_TIMEOUT: Final = 1.0
_HOST_PORT: Final = {"ports": [{"containerPort": 80, "hostPort": 80}]}

Change = Callable[[ApiClient], object]


@dataclass(frozen=True, slots=True)
class Case:
    """An unschedulable pod and changes of the cluster.

    Attributes:
        pod: does not fit on node `a`, on which only the pod `running` is, with port 80 and 3 CPUs.
        rejection_reason: a part of its message.
        irrelevant_changes: changes that do not requeue it.
        relevant_change: a change that requeues it.
        setup: creates additional objects.
    """

    pod: JsonObject
    rejection_reason: str
    irrelevant_changes: tuple[Change, ...]
    relevant_change: Change
    setup: Change = ApiClient.is_ready


def set_labels(**values: str) -> Change:
    """Set labels of the node."""
    return lambda api: api.patch(_node_reference(), {"metadata": {"labels": values}})


def remove_taints(api: ApiClient) -> None:
    """Remove the taints of the tainted node."""
    api.patch({"kind": "Node", "metadata": {"name": "tainted"}}, {"spec": {"taints": None}})


def set_allocatable(**amounts: str) -> Change:
    """Set allocatable amounts of the node."""
    change = {"status": {"allocatable": amounts, "capacity": amounts}}
    return lambda api: api.patch(_node_reference(), change, "status")


def _node_reference() -> JsonObject:
    return {"kind": "Node", "metadata": {"name": "a"}}


def delete_running_pod(api: ApiClient) -> None:
    """Delete the pod on the node."""
    api.delete({"kind": "Pod", "metadata": {"name": "running", "namespace": "default"}})


def create_node(name: str, cpu: str = "4", **more: Any) -> Change:
    """Create another node."""
    meta = {"name": name, "labels": {HOST: name, **more.pop("labels", {})}}
    status = {"capacity": {**_CAPACITY, "cpu": cpu}, "allocatable": {**_CAPACITY, "cpu": cpu}}
    return lambda api: api.create({"kind": "Node", "metadata": meta, "spec": more, "status": status})


def create(obj: JsonObject) -> Change:
    """Create an object."""
    return lambda api: api.create(obj)


CASES: Final = {
    "insufficient CPU": Case(
        make_pod("waits", "2", node="a"),
        "Insufficient cpu",
        (
            set_labels(colour="red"),
            create(make_volume_claim("unrelated", "local")),
            set_allocatable(memory="9Gi", cpu="4"),
        ),
        delete_running_pod,
    ),
    "insufficient CPU, then a larger node": Case(
        make_pod("waits", "2", node="a"),
        "Insufficient cpu",
        (create_node("b", cpu="1"),),
        set_allocatable(cpu="8"),
    ),
    "labels": Case(
        make_pod("waits", nodeSelector={"colour": "blue"}),
        "didn't match Pod's node affinity/selector",
        (set_labels(colour="red"), set_allocatable(cpu="8"), delete_running_pod),
        set_labels(colour="blue"),
    ),
    "a missing node": Case(
        make_pod("waits", nodeSelector={"colour": "blue"}),
        "didn't match Pod's node affinity/selector",
        (create_node("b"),),
        create_node("c", labels={"colour": "blue"}),
    ),
    "a port": Case(
        make_pod("waits", node="a", container=_HOST_PORT),
        "didn't have free ports",
        (set_labels(colour="red"), set_allocatable(cpu="8")),
        delete_running_pod,
    ),
    "taints": Case(
        make_pod("waits", node="tainted"),
        "had untolerated taint",
        (set_allocatable(cpu="8"), delete_running_pod),
        remove_taints,
        create_node("tainted", taints=[{"key": "other", "value": "x", "effect": "NoSchedule"}]),
    ),
    "anti-affinity": Case(
        make_pod("waits", node="a", **scheduling_scenario.pod_affinity_spec("running", "podAntiAffinity")),
        "didn't match pod anti-affinity rules",
        (set_labels(colour="red"), set_allocatable(cpu="8")),
        delete_running_pod,
    ),
    "a missing claim": Case(
        make_pod("waits", node="a", **scheduling_scenario.volume_spec("data")),
        'persistentvolumeclaim "data" not found',
        (create(make_volume_claim("other", "local")), set_labels(colour="red")),
        create(make_volume_claim("data", "at-once")),
    ),
    "a device": Case(
        make_pod("waits", node="a", **scheduling_scenario.device_spec("gpu")),
        "cannot allocate all claims",
        (create(make_volume_claim("unrelated", "local")),),
        create(
            {
                "kind": "ResourceSlice",
                "metadata": {"name": "a-gpus"},
                "spec": {
                    "driver": "gpu.example.com",
                    "nodeName": "a",
                    "pool": {"name": "a", "generation": 1, "resourceSliceCount": 1},
                    "devices": [{"name": "gpu-0"}],
                },
            }
        ),
    ),
}


@pytest.fixture(scope="module", params=["kube-scheduler", "ours"])
def endpoints(control_plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[SchedulerEndpoints]:
    """Start one of both schedulers and return its endpoints."""
    port = free_ports(1)[0]
    start = control_plane.start_extender if request.param == "ours" else control_plane.start_kube_scheduler
    endpoints = SchedulerEndpoints(start({}, *serving_flags(control_plane, port)), port)
    endpoints.wait_until_ready()
    yield endpoints
    control_plane.stop_other_programs()


@pytest.fixture
def cluster(control_plane: ControlPlane) -> Iterator[ApiClient]:
    """Create a node with one pod, storage classes, a device class and a device claim."""
    with control_plane.client() as api:
        for obj in scheduling_scenario.make_cluster_objects():
            if obj["kind"] in {"StorageClass", "DeviceClass"} or obj["metadata"]["name"] == "gpu":
                api.create(obj)
        create_node("a")(api)
        running = make_pod("running", "3", container={**_HOST_PORT, "resources": {"requests": {"cpu": "3"}}})
        running["spec"]["nodeName"] = "a"
        api.create(running)
        yield api
        api.delete_created()


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_pod_is_requeued_only_by_events_that_may_make_it_schedulable(
    control_plane: ControlPlane, endpoints: SchedulerEndpoints, cluster: ApiClient, case: Case
) -> None:
    """The metrics count a move only for the relevant change.

    Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.moveAllToActiveOrBackoffQueue,
    PriorityQueue.isPodWorthRequeuing, PriorityQueue.movePodsToActiveOrBackoffQueue; pkg/scheduler/framework/types.go,
    MatchClusterEvents (1.36).
    """
    token = control_plane.token(ADMIN)
    if case.setup is not ApiClient.is_ready:
        case.setup(cluster)
        # Nodes and pods have watches of their own. An attempt before the node is seen has other reasons.
        node_count = len(json.loads(cluster.list("Node"))["items"])
        wait_until(lambda: count_cached_nodes(endpoints, token) == node_count, _TIMEOUT, "reading of the nodes")
    pod = cluster.create(case.pod)

    def is_rejected(pod_: JsonObject) -> bool:
        return case.rejection_reason in find_condition(pod_, "PodScheduled").get("message", "")

    cluster.wait_for(pod, is_rejected, case.rejection_reason)
    for change in case.irrelevant_changes:
        handled, moved = count_events_and_moves(endpoints, token)
        change(cluster)
        wait_until(partial(_has_handled_more_than, endpoints, token, handled), _TIMEOUT, "handling of the event")
        assert count_events_and_moves(endpoints, token)[1] == moved
    _, moved = count_events_and_moves(endpoints, token)
    case.relevant_change(cluster)
    wait_until(lambda: count_events_and_moves(endpoints, token)[1] == moved + 1, _REQUEUE_TIMEOUT, "the requeueing")


def _has_handled_more_than(endpoints: SchedulerEndpoints, token: str, previous: int) -> bool:
    return count_events_and_moves(endpoints, token)[0] > previous


def wait_until(is_met: Callable[[], bool], seconds: float, description: str) -> None:
    """Poll until a condition is met."""
    deadline = monotonic() + seconds
    while not is_met():
        assert monotonic() < deadline, f"{description} took too long"


_HANDLED: Final = re.compile(
    r'(?m)^scheduler_event_handling_duration_seconds_count\{event="(?!UnschedulablePod)[^"]+"\} (\S+)$'
)
_MOVED: Final = re.compile(
    r"(?m)^scheduler_queue_incoming_pods_total"
    r'\{event="(?!UnschedulablePod|ScheduleAttemptFailure|BackoffComplete|PopFromBackoffQ)[^"]+",'
    r'queue="(?:active|backoff)"\} (\S+)$'
)


_CACHED_NODES: Final = re.compile(r'(?m)^scheduler_cache_size\{type="nodes"\} (\S+)$')


def count_cached_nodes(endpoints: SchedulerEndpoints, token: str) -> int:
    """Return the number of nodes in the cache, which kube-scheduler updates every second."""
    found = _CACHED_NODES.search(endpoints.get("/metrics", token)[1])
    return 0 if found is None else int(float(found[1]))


def count_events_and_moves(endpoints: SchedulerEndpoints, token: str) -> tuple[int, int]:
    """Return the counts of handled cluster events and of pods that they moved."""
    metrics = endpoints.get("/metrics", token)[1]
    handled, moved = (sum(int(float(count)) for count in pattern.findall(metrics)) for pattern in (_HANDLED, _MOVED))
    return handled, moved
