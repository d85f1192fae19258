"""Tests of the player of the nodes: what becomes of bound pods, with a clock that is set by hand."""

from extender.sandbox.api import Api
from extender.sandbox.nodes import Nodes, Pace
from extender.sandbox.placing import bind
from extender.sandbox.served import NODES, PODS
from tests.unit.sandbox.calls import HandClock, Object, a_binding, a_node, a_pod


def world(pace: Pace) -> tuple[HandClock, Api, Nodes]:
    clock = HandClock()
    api = Api(clock=clock)
    return clock, api, Nodes(api, pace)


def phase(api: Api, name: str = "web") -> str:
    return str(api.get(PODS, "default", name)["status"]["phase"])


def a_job_pod(**annotations: str) -> Object:
    pod = a_pod()
    owner = {"kind": "Job", "name": "import", "uid": "1", "apiVersion": "batch/v1", "controller": True}
    return {**pod, "metadata": {"name": "web", "ownerReferences": [owner], "annotations": annotations}}


def test_a_bound_pod_runs_and_is_ready_after_a_while() -> None:
    clock, api, nodes = world(Pace(start=2))
    api.add(a_pod())
    assert nodes.step() is None
    bind(api, "default", "web", a_binding("n1"))
    assert nodes.step() == 2
    clock.seconds += 1
    assert (nodes.step(), phase(api)) == (1, "Pending")
    clock.seconds += 1
    assert (nodes.step(), phase(api)) == (None, "Running")
    conditions = {each["type"]: each["status"] for each in api.get(PODS, "default", "web")["status"]["conditions"]}
    assert conditions == {"PodScheduled": "True", "Initialized": "True", "ContainersReady": "True", "Ready": "True"}


def test_the_pod_of_a_job_finishes() -> None:
    clock, api, nodes = world(Pace(job=5))
    api.add(a_job_pod())
    bind(api, "default", "web", a_binding("n1"))
    assert (nodes.step(), phase(api)) == (5, "Running")
    clock.seconds += 5
    assert (nodes.step(), phase(api)) == (None, "Succeeded")


def test_an_annotation_says_how_long_a_pod_runs() -> None:
    clock, api, nodes = world(Pace(job=5))
    api.add(a_job_pod(**{"sandbox/runs-for-seconds": "1.5"}))
    bind(api, "default", "web", a_binding("n1"))
    assert nodes.step() == 1.5
    clock.seconds += 1.5
    nodes.step()
    assert phase(api) == "Succeeded"


def test_a_pod_without_an_end_runs_on() -> None:
    clock, api, nodes = world(Pace())
    api.add(a_pod(nodeName="n1"))
    assert nodes.step() is None
    clock.seconds += 3600
    assert (nodes.step(), phase(api)) == (None, "Running")


def test_a_deleted_pod_goes_after_the_time_it_takes_but_within_its_grace_period() -> None:
    clock, api, nodes = world(Pace(stop=10))
    for name, grace in (("slow", 30), ("hurried", 4)):
        api.add(a_pod(name, nodeName="n1", terminationGracePeriodSeconds=grace))
    nodes.step()
    for name in ("slow", "hurried"):
        api.delete(PODS, "default", name)
    assert nodes.step() == 4
    clock.seconds += 4
    assert nodes.step() == 6
    assert [pod["metadata"]["name"] for pod in api.each(PODS)] == ["slow"]
    clock.seconds += 6
    assert nodes.step() is None
    assert api.each(PODS) == []


def test_a_finalizer_keeps_a_pod_that_has_ended() -> None:
    _, api, nodes = world(Pace())
    pod = a_pod(nodeName="n1")
    api.add({**pod, "metadata": {"name": "web", "finalizers": ["example.com/a"]}})
    nodes.step()
    api.delete(PODS, "default", "web")
    assert nodes.step() is None
    assert api.get(PODS, "default", "web")["metadata"]["deletionGracePeriodSeconds"] == 0


def test_a_pod_created_again_under_the_same_name_starts_anew() -> None:
    clock, api, nodes = world(Pace(start=2))
    api.add(a_pod(nodeName="n1"))
    nodes.step()
    clock.seconds += 1
    api.delete(PODS, "default", "web", {"gracePeriodSeconds": 0})
    api.add(a_pod(nodeName="n1"))
    assert nodes.step() == 2


def test_nothing_is_missed_when_the_changes_were_forgotten() -> None:
    _, api, nodes = world(Pace())
    nodes.step()
    api.add(a_pod(nodeName="n1"))
    api.store.forget()
    nodes.step()
    assert phase(api) == "Running"


def test_a_new_node_says_that_it_is_ready_unless_somebody_said_otherwise() -> None:
    _, api, nodes = world(Pace())
    api.add(a_node("new"))
    api.add({**a_node("broken"), "status": {"conditions": [{"type": "Ready", "status": "False"}]}})
    nodes.step()
    ready = {name: api.get(NODES, "", name)["status"]["conditions"][0]["status"] for name in ("new", "broken")}
    assert ready == {"new": "True", "broken": "False"}
