"""Pods that wait are tried again when something happens that can help them, within a second, and not otherwise.

One and the same table is put before kube-scheduler and before ours. That an event was taken in, and whether it moved a
pod, is read from the metrics of both.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Any, Final

import pytest

from tests.controlplane import acts
from tests.controlplane.acts import HOST, a_claim, a_pod
from tests.controlplane.api import Api, Thing, condition
from tests.controlplane.plane import ADMIN, ControlPlane
from tests.controlplane.process import free_ports
from tests.controlplane.test_same_pages import Pages, flags

_ROOM: Final = {"cpu": "4", "memory": "8Gi", "pods": "30"}
_PATIENCE: Final = 10.0
_SECOND: Final = 1.0
_PORT: Final = {"ports": [{"containerPort": 80, "hostPort": 80}]}

Event = Callable[[Api], object]


@dataclass(frozen=True, slots=True)
class Case:
    """A pod that is refused, and what then happens.

    Attributes:
        pod: cannot be placed on the node `a`, where nothing but the pod `there` is, with port 80 and 3 CPUs.
        because: why, a part of the message.
        useless: changes that cannot help it.
        helpful: a change that may.
        before: what else there is.
    """

    pod: Thing
    because: str
    useless: tuple[Event, ...]
    helpful: Event
    before: Event = Api.ready


def labels(**values: str) -> Event:
    """The node has other labels."""
    return lambda api: api.patch(_node(), {"metadata": {"labels": values}})


def no_taints(api: Api) -> None:
    """The tainted node is tainted no more."""
    api.patch({"kind": "Node", "metadata": {"name": "tainted"}}, {"spec": {"taints": None}})


def room(**amounts: str) -> Event:
    """The node offers more, or less."""
    change = {"status": {"allocatable": amounts, "capacity": amounts}}
    return lambda api: api.patch(_node(), change, "status")


def _node() -> Thing:
    return {"kind": "Node", "metadata": {"name": "a"}}


def there_goes(api: Api) -> None:
    """The pod on the node is gone."""
    api.delete({"kind": "Pod", "metadata": {"name": "there", "namespace": "default"}})


def a_node(name: str, cpu: str = "4", **more: Any) -> Event:
    """Another node comes."""
    meta = {"name": name, "labels": {HOST: name, **more.pop("labels", {})}}
    status = {"capacity": {**_ROOM, "cpu": cpu}, "allocatable": {**_ROOM, "cpu": cpu}}
    return lambda api: api.create({"kind": "Node", "metadata": meta, "spec": more, "status": status})


def creating(thing: Thing) -> Event:
    """Something else comes."""
    return lambda api: api.create(thing)


CASES: Final = {
    "no room": Case(
        a_pod("waits", "2", on="a"),
        "Insufficient cpu",
        (labels(colour="red"), creating(a_claim("unrelated", "local")), room(memory="9Gi", cpu="4")),
        there_goes,
    ),
    "no room, and then a larger node": Case(
        a_pod("waits", "2", on="a"),
        "Insufficient cpu",
        (a_node("b", cpu="1"),),
        room(cpu="8"),
    ),
    "labels": Case(
        a_pod("waits", nodeSelector={"colour": "blue"}),
        "didn't match Pod's node affinity/selector",
        (labels(colour="red"), room(cpu="8"), there_goes),
        labels(colour="blue"),
    ),
    "a node that is not there": Case(
        a_pod("waits", nodeSelector={"colour": "blue"}),
        "didn't match Pod's node affinity/selector",
        (a_node("b"),),
        a_node("c", labels={"colour": "blue"}),
    ),
    "a port": Case(
        a_pod("waits", on="a", container=_PORT),
        "didn't have free ports",
        (labels(colour="red"), room(cpu="8")),
        there_goes,
    ),
    "taints": Case(
        a_pod("waits", on="tainted"),
        "had untolerated taint",
        (room(cpu="8"), there_goes),
        no_taints,
        a_node("tainted", taints=[{"key": "other", "value": "x", "effect": "NoSchedule"}]),
    ),
    "a rival": Case(
        a_pod("waits", on="a", **acts.near("there", "podAntiAffinity")),
        "didn't match pod anti-affinity rules",
        (labels(colour="red"), room(cpu="8")),
        there_goes,
    ),
    "a claim that is missing": Case(
        a_pod("waits", on="a", **acts.mounting("data")),
        'persistentvolumeclaim "data" not found',
        (creating(a_claim("other", "local")), labels(colour="red")),
        creating(a_claim("data", "at-once")),
    ),
    "a device": Case(
        a_pod("waits", on="a", **acts.using("gpu")),
        "cannot allocate all claims",
        (creating(a_claim("unrelated", "local")),),
        creating(
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
def pages(control_plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[Pages]:
    """Of one of both."""
    port = free_ports(1)[0]
    start = control_plane.ours if request.param == "ours" else control_plane.scheduler
    found = Pages(start({}, *flags(control_plane, port)), port)
    found.wait()
    yield found
    control_plane.end_guests()


@pytest.fixture
def cluster(control_plane: ControlPlane) -> Iterator[Api]:
    """A node with one pod, classes of storage and devices, a claim of a device."""
    with control_plane.api() as api:
        for thing in acts.things():
            if thing["kind"] in {"StorageClass", "DeviceClass"} or thing["metadata"]["name"] == "gpu":
                api.create(thing)
        a_node("a")(api)
        there = a_pod("there", "3", container={**_PORT, "resources": {"requests": {"cpu": "3"}}})
        there["spec"]["nodeName"] = "a"
        api.create(there)
        yield api
        api.clean()


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_pod_is_tried_again_when_that_may_help_and_not_otherwise(
    control_plane: ControlPlane, pages: Pages, cluster: Api, case: Case
) -> None:
    """Source: D029 to D033, and the events of each plugin."""
    token = control_plane.token(ADMIN)
    case.before(cluster)
    pod = cluster.create(case.pod)

    def refused(each: Thing) -> bool:
        return case.because in condition(each, "PodScheduled").get("message", "")

    cluster.wait_for(pod, refused, case.because)
    for useless in case.useless:
        handled, moved = counts(pages, token)
        useless(cluster)
        until(partial(_handled_more, pages, token, handled), _PATIENCE, "the event's arrival")
        assert counts(pages, token)[1] == moved
    _, moved = counts(pages, token)
    case.helpful(cluster)
    until(lambda: counts(pages, token)[1] == moved + 1, _SECOND, "another attempt")


def _handled_more(pages: Pages, token: str, than: int) -> bool:
    return counts(pages, token)[0] > than


def until(happened: Callable[[], bool], seconds: float, what: str) -> None:
    """Waits for something that is asked for."""
    end = monotonic() + seconds
    while not happened():
        assert monotonic() < end, f"{what} took too long"


_HANDLED: Final = re.compile(
    r'(?m)^scheduler_event_handling_duration_seconds_count\{event="(?!UnschedulablePod)[^"]+"\} (\S+)$'
)
_MOVED: Final = re.compile(
    r"(?m)^scheduler_queue_incoming_pods_total"
    r'\{event="(?!UnschedulablePod|ScheduleAttemptFailure|BackoffComplete|PopFromBackoffQ)[^"]+",'
    r'queue="(?:active|backoff)"\} (\S+)$'
)


def counts(pages: Pages, token: str) -> tuple[int, int]:
    """Events of the cluster that were taken in, and pods that such events moved."""
    page = pages.ask("/metrics", token)[1]
    handled, moved = (sum(int(float(count)) for count in pattern.findall(page)) for pattern in (_HANDLED, _MOVED))
    return handled, moved
