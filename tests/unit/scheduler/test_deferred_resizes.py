"""Pods on nodes whose in-place resize is deferred: they are scheduled again, preempt others and stay on their node."""

from typing import Any

from extender.api.kinds.pod import Pod
from extender.client.errors import ApiError
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_37
from tests.build import make_node, make_pod
from tests.unit.scheduler.builders import SchedulerHarness

GATES = FeatureGates({"InPlacePodVerticalScalingSchedulerPreemption": True}, RELEASE_1_37)
WITHOUT_GATE = FeatureGates({}, RELEASE_1_37)


def make_resized_pod(name: str = "grows", cpu: str = "3", reason: str = "Deferred", **given: Any) -> Pod:
    """Make a pod on n1 that got one CPU, and now requests *cpu*."""
    resources = {"requests": {"cpu": "1"}}
    status = {
        "conditions": [{"type": "PodResizePending", "status": "True", "reason": reason}] if reason else [],
        "containerStatuses": [{"name": "app", "allocatedResources": {"cpu": "1"}, "resources": resources}],
    }
    return make_pod(name, node="n1", requests={"cpu": cpu}, priority=10, status=status, **given)


def make_victim(name: str = "low", node: str = "n1", cpu: str = "2") -> Pod:
    return make_pod(name, node=node, requests={"cpu": cpu}, priority=1)


def make_harness(*objects: Any, gates: FeatureGates = GATES) -> SchedulerHarness:
    return SchedulerHarness(*objects, gates=gates)


def count_attempts(harness: SchedulerHarness) -> dict[str, int]:
    """Return the number of attempts by result."""
    page = b"".join(harness.context.metrics.render()).decode()
    results = {}
    for line in page.splitlines():
        if line.startswith("scheduler_schedule_attempts_total{"):
            results[line.split('result="')[1].split('"')[0]] = int(float(line.rsplit(" ", 1)[1]))
    return results


def test_a_deferred_resize_preempts_pods_of_its_node_only() -> None:
    harness = make_harness(make_node("n1"), make_node("n2"), make_victim(), make_victim("elsewhere", "n2"))
    pod = make_resized_pod()
    harness.create(pod)

    harness.run()

    assert sorted(harness.api.pods) == ["default/elsewhere", "default/grows"]
    assert harness.api.calls_to("binding") == []
    assert [call.name for call in harness.api.calls_to("status")] == ["low"]  # the victim's DisruptionTarget
    assert harness.events.recorded == [("default/low", "Preempted", "Preempted by pod uid-default-grows on node n1")]
    assert harness.cache.find_nominated_node(pod.metadata.uid) == ""


def test_a_resize_that_becomes_deferred_is_handled() -> None:
    harness = make_harness(make_node("n1"), make_victim())
    before = make_resized_pod(cpu="1", reason="")
    harness.create(before)
    harness.run()
    assert "default/low" in harness.api.pods

    harness.dispatcher.on_update(before, make_resized_pod())
    harness.run()

    assert "default/low" not in harness.api.pods


def test_a_deferred_resize_is_ignored_without_the_gate_and_with_another_reason() -> None:
    for gates, reason in ((WITHOUT_GATE, "Deferred"), (GATES, "Infeasible")):
        harness = make_harness(make_node("n1"), make_victim(), gates=gates)
        harness.create(make_resized_pod(reason=reason))
        harness.run()
        assert "default/low" in harness.api.pods
        assert len(list(harness.queue)) == 0


def test_a_node_that_disables_preemption_for_resizes_keeps_its_pods_until_it_allows_it() -> None:
    policy = {"podPreemptionPolicy": {"disableResizePreemption": ["autoscaler.example.com/owner"]}}
    node = make_node("n1", spec=policy)
    harness = make_harness(node, make_victim())
    harness.create(make_resized_pod())

    harness.run(turns=3)
    assert "default/low" in harness.api.pods
    assert harness.queue.count_pending_pods()["unschedulable"] == 1

    harness.dispatcher.on_update(node, make_node("n1"))
    harness.run(turns=3)
    assert "default/low" not in harness.api.pods


def test_other_filters_than_resources_are_ignored() -> None:
    """The pod is on its node already, although the node got a taint and was cordoned later."""
    taint = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}
    harness = make_harness(make_node("n1", taints=[taint], unschedulable=True), make_victim())
    harness.create(make_resized_pod(spec={"nodeSelector": {"disk": "ssd"}}))

    harness.run()

    assert "default/low" not in harness.api.pods


def test_a_resize_that_fits_cannot_be_assumed_and_is_retried() -> None:
    """kube-scheduler 1.37.2 counts such an attempt as an error: its cache has the pod already.

    Source: pkg/scheduler/backend/cache/cache.go, cacheImpl.AssumePod (1.37).
    """
    harness = make_harness(make_node("n1"), make_victim(cpu="1"))
    harness.create(make_resized_pod())

    harness.run()

    assert "default/low" in harness.api.pods
    assert (count_attempts(harness), harness.queue.count_pending_pods()["backoff"]) == ({"error": 1}, 1)
    (attempt,) = harness.context.attempt_history.list_attempts(10)
    assert attempt.message == "pod uid-default-grows(default/grows) is in the cache, so can't be assumed"
    assert (harness.api.calls, harness.events.recorded) == ([], [])


def test_a_pod_leaves_the_queue_when_its_resize_ends_or_the_pod_is_deleted() -> None:
    for finish in ("resize", "deletion"):
        harness = make_harness(make_node("n1"), make_pod("peer", node="n1", requests={"cpu": "3"}, priority=10))
        pod = make_resized_pod()
        harness.create(pod)
        harness.run()
        assert [queued.key for queued in harness.queue] == ["default/grows"]
        if finish == "resize":
            harness.dispatcher.on_update(pod, make_resized_pod(cpu="1", reason=""))
        else:
            harness.dispatcher.on_delete(pod)
        assert list(harness.queue) == []


def test_a_deleted_pod_of_its_node_requeues_the_pod_and_one_of_another_node_does_not() -> None:
    peers = [make_pod(f"peer-{node}", node=node, requests={"cpu": "3"}, priority=10) for node in ("n1", "n2")]
    harness = make_harness(make_node("n1"), make_node("n2"), *peers)
    harness.create(make_resized_pod())
    harness.run()

    harness.dispatcher.on_delete(peers[1])
    assert harness.queue.count_pending_pods()["unschedulable"] == 1
    harness.dispatcher.on_delete(peers[0])
    assert harness.queue.count_pending_pods()["unschedulable"] == 0


def test_a_full_node_rejects_the_pod_because_it_counts_once_more() -> None:
    """Source: pkg/scheduler/framework/plugins/noderesources/fit.go, fitsRequest (1.37)."""
    harness = make_harness(make_node("n1", allocatable={"cpu": "4", "pods": "2"}), make_victim(cpu="1"))
    harness.create(make_resized_pod())

    harness.run()

    assert "default/low" not in harness.api.pods  # preempted for the number of pods


def test_a_deferred_resize_is_attempted_again_after_a_failed_eviction() -> None:
    """Source: pkg/scheduler/framework/preemption/executor.go, Executor.prepareCandidateAsync (1.37)."""
    harness = make_harness(make_node("n1"), make_victim())
    harness.api.errors["delete"] = [ApiError("admission webhook denied the request")]
    harness.create(make_resized_pod())

    harness.attempt()
    assert harness.queue_of("grows") == "active"

    harness.attempt()
    assert "default/low" not in harness.api.pods
