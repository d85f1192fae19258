"""The simulated kubelets with a manual clock."""

import asyncio

import pytest

from extender.fake_apiserver.kubelets import Kubelets, KubeletTiming
from extender.fake_apiserver.registry.api import Api
from extender.fake_apiserver.registry.pod_subresources import bind
from extender.fake_apiserver.registry.resources import NODES, PODS
from extender.fake_apiserver.server import _run_kubelets
from tests.coroutines import check_cancellation
from tests.unit.client.virtual_time import run
from tests.unit.fake_apiserver.builders import ManualClock, Object, make_binding, make_node, make_pod


def make_kubelets(timing: KubeletTiming) -> tuple[ManualClock, Api, Kubelets]:
    clock = ManualClock()
    api = Api(clock=clock)
    return clock, api, Kubelets(api, timing)


def phase(api: Api, name: str = "web") -> str:
    return str(api.get(PODS, "default", name)["status"]["phase"])


def make_job_pod(**annotations: str) -> Object:
    pod = make_pod()
    owner = {"kind": "Job", "name": "import", "uid": "1", "apiVersion": "batch/v1", "controller": True}
    return {**pod, "metadata": {"name": "web", "ownerReferences": [owner], "annotations": annotations}}


@pytest.mark.parametrize("turns", range(5))
def test_the_kubelets_end_although_a_pod_changes_at_the_same_moment(turns: int) -> None:
    """The demo did not end after Ctrl-C if a pod had just changed."""

    async def main() -> None:
        _, api, kubelets = make_kubelets(KubeletTiming(start_seconds=2))
        api.create_from_manifest(make_pod())
        bind(api, "default", "web", make_binding("n1"))
        task = asyncio.create_task(_run_kubelets(kubelets))
        await asyncio.sleep(0.01)
        api.create_from_manifest(make_node("n2"))
        await check_cancellation(task, turns)

    run(main())


def test_a_bound_pod_is_ready_after_the_start_time() -> None:
    clock, api, kubelets = make_kubelets(KubeletTiming(start_seconds=2))
    api.create_from_manifest(make_pod())
    assert kubelets.step() is None
    bind(api, "default", "web", make_binding("n1"))
    assert kubelets.step() == 2
    clock.seconds += 1
    assert (kubelets.step(), phase(api)) == (1, "Pending")
    clock.seconds += 1
    assert (kubelets.step(), phase(api)) == (None, "Running")
    conditions = {
        condition["type"]: condition["status"] for condition in api.get(PODS, "default", "web")["status"]["conditions"]
    }
    assert conditions == {"PodScheduled": "True", "Initialized": "True", "ContainersReady": "True", "Ready": "True"}


def test_the_pod_of_a_job_finishes() -> None:
    clock, api, kubelets = make_kubelets(KubeletTiming(job_seconds=5))
    api.create_from_manifest(make_job_pod())
    bind(api, "default", "web", make_binding("n1"))
    assert (kubelets.step(), phase(api)) == (5, "Running")
    clock.seconds += 5
    assert (kubelets.step(), phase(api)) == (None, "Succeeded")


def test_an_annotation_sets_the_run_time_of_a_pod() -> None:
    clock, api, kubelets = make_kubelets(KubeletTiming(job_seconds=5))
    api.create_from_manifest(make_job_pod(**{"fake-apiserver/run-seconds": "1.5"}))
    bind(api, "default", "web", make_binding("n1"))
    assert kubelets.step() == 1.5
    clock.seconds += 1.5
    kubelets.step()
    assert phase(api) == "Succeeded"


def test_a_pod_of_no_job_keeps_running() -> None:
    clock, api, kubelets = make_kubelets(KubeletTiming())
    api.create_from_manifest(make_pod(nodeName="n1"))
    assert kubelets.step() is None
    clock.seconds += 3600
    assert (kubelets.step(), phase(api)) == (None, "Running")


def test_a_deleted_pod_is_removed_after_the_stop_time_within_its_grace_period() -> None:
    clock, api, kubelets = make_kubelets(KubeletTiming(stop_seconds=10))
    for name, grace in (("slow", 30), ("hurried", 4)):
        api.create_from_manifest(make_pod(name, nodeName="n1", terminationGracePeriodSeconds=grace))
    kubelets.step()
    for name in ("slow", "hurried"):
        api.delete(PODS, "default", name)
    assert kubelets.step() == 4
    clock.seconds += 4
    assert kubelets.step() == 6
    assert [pod["metadata"]["name"] for pod in api.list_objects(PODS)] == ["slow"]
    clock.seconds += 6
    assert kubelets.step() is None
    assert api.list_objects(PODS) == []


def test_a_finalizer_delays_the_removal_of_a_stopped_pod() -> None:
    _, api, kubelets = make_kubelets(KubeletTiming())
    pod = make_pod(nodeName="n1")
    api.create_from_manifest({**pod, "metadata": {"name": "web", "finalizers": ["example.com/a"]}})
    kubelets.step()
    api.delete(PODS, "default", "web")
    assert kubelets.step() is None
    assert api.get(PODS, "default", "web")["metadata"]["deletionGracePeriodSeconds"] == 0


def test_a_recreated_pod_starts_again() -> None:
    clock, api, kubelets = make_kubelets(KubeletTiming(start_seconds=2))
    api.create_from_manifest(make_pod(nodeName="n1"))
    kubelets.step()
    clock.seconds += 1
    api.delete(PODS, "default", "web", {"gracePeriodSeconds": 0})
    api.create_from_manifest(make_pod(nodeName="n1"))
    assert kubelets.step() == 2


def test_changes_before_a_compaction_are_observed() -> None:
    _, api, kubelets = make_kubelets(KubeletTiming())
    kubelets.step()
    api.create_from_manifest(make_pod(nodeName="n1"))
    api.store.compact()
    kubelets.step()
    assert phase(api) == "Running"


def test_a_new_node_becomes_ready_unless_it_has_a_ready_condition() -> None:
    _, api, kubelets = make_kubelets(KubeletTiming())
    api.create_from_manifest(make_node("new"))
    api.create_from_manifest({**make_node("broken"), "status": {"conditions": [{"type": "Ready", "status": "False"}]}})
    kubelets.step()
    ready = {name: api.get(NODES, "", name)["status"]["conditions"][0]["status"] for name in ("new", "broken")}
    assert ready == {"new": "True", "broken": "False"}
