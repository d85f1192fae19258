"""Pod groups of 1.37 from the queue to their nodes, or back to the queue."""

from typing import Any

from extender.api.kinds.pod import Pod
from extender.app import wiring
from extender.client.errors import ServerError
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_37
from tests.build import make_node, make_object, make_pod
from tests.pod_group_builders import make_group_member, make_pod_group
from tests.unit.scheduler.builders import SchedulerHarness

PROFILE = wiring.build_setup(gates=FeatureGates({"GenericWorkload": True}, RELEASE_1_37)).first_profile
ALLOCATABLE = {"cpu": "2", "memory": "4Gi", "pods": "9"}
NO_VICTIMS = "pod group preemption: No preemption victims found for incoming preemptor"


def members(names: str, **more: Any) -> list[Pod]:
    return [make_group_member(name, requests={"cpu": "1"}, **more) for name in names]


def make_resource(kind: str, spec: dict[str, Any], **metadata: str) -> Any:
    metadata = {"uid": metadata["name"], "resourceVersion": "1", **metadata}
    return make_object({"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": metadata, "spec": spec})


def condition(harness: SchedulerHarness) -> tuple[str, str, str, str]:
    """Return type, status, reason and message of the last condition written to the group's status."""
    status_calls = [api_call for api_call in harness.api.calls_to("status") if api_call.kind == "PodGroup"]
    (only,) = status_calls[-1].body["status"]["conditions"]
    return only["type"], only["status"], only["reason"], only["message"]


def notes(harness: SchedulerHarness) -> dict[str, str]:
    return {key: note for key, reason, note in harness.events.recorded if reason == "FailedScheduling"}


def test_a_gang_that_fits_is_bound_and_the_group_has_the_condition_of_1_37() -> None:
    harness = SchedulerHarness(make_node("n1", allocatable=ALLOCATABLE), make_pod_group(min_count=2), profile=PROFILE)
    pods = members("ab")
    harness.create(*pods)
    harness.run()
    assert [harness.node_of(pod) for pod in pods] == ["n1", "n1"]
    assert condition(harness) == ("PodGroupInitiallyScheduled", "True", "Scheduled", "")


def test_members_that_permit_allows_at_once_are_not_nominated_before_their_binding() -> None:
    """A nomination tells others that a pod waits. The last member allows the first before its binding starts.

    Source: pkg/scheduler/schedule_one.go, Scheduler.bindingCycle (1.37).
    """
    harness = SchedulerHarness(make_node("n1", allocatable=ALLOCATABLE), make_pod_group(min_count=2), profile=PROFILE)
    harness.create(*members("ab"))
    harness.run()
    calls = [(api_call.kind, api_call.subresource, api_call.name) for api_call in harness.api.calls]
    assert sorted(calls) == [("Pod", "binding", "a"), ("Pod", "binding", "b"), ("PodGroup", "status", "ring")]


def test_a_gang_that_does_not_fit_has_the_reason_of_placement_feasible() -> None:
    """Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.submitPodGroupAlgorithmResult (1.37)."""
    harness = SchedulerHarness(make_node("n1", allocatable=ALLOCATABLE), make_pod_group(min_count=3), profile=PROFILE)
    harness.create(*members("abc"))
    harness.attempt()
    reason = f"minCount (3) cannot be satisfied: 2 scheduled, 0 remaining, {NO_VICTIMS}"
    assert notes(harness) == {
        "default/a": f"pod group is unschedulable, {reason}",
        "default/b": f"pod group is unschedulable, {reason}",
        "default/c": "0/1 nodes are available: 1 Insufficient cpu.",
    }
    assert condition(harness) == ("PodGroupInitiallyScheduled", "False", "Unschedulable", reason)


def test_members_that_share_a_claim_without_an_allocation_are_bound_together() -> None:
    """The first member allocates the claim, and the second uses its allocation.

    Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.PreFilter (1.37).
    """
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    slice_spec = {"driver": "gpu.example.com", "nodeName": "n1", "pool": pool, "devices": [{"name": "a"}]}
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    harness = SchedulerHarness(
        make_node("n1", allocatable=ALLOCATABLE),
        make_pod_group(min_count=2),
        make_resource("ResourceSlice", slice_spec, name="gpus"),
        make_resource("DeviceClass", {}, name="gpu"),
        make_resource(
            "ResourceClaim",
            {"devices": {"requests": [{"name": "r0", "exactly": exactly}]}},
            name="shared",
            namespace="default",
        ),
        profile=PROFILE,
    )
    pods = members("ab", spec={"resourceClaims": [{"name": "gpu", "resourceClaimName": "shared"}]})
    harness.create(*pods)
    harness.run()
    assert [harness.node_of(pod) for pod in pods] == ["n1", "n1"]
    allocated = [
        api_call.body["status"]
        for api_call in harness.api.calls
        if api_call.kind == "ResourceClaim" and api_call.subresource
    ]
    assert [status["reservedFor"][0]["name"] for status in allocated] == ["a", "b"]
    assert [status["allocation"]["devices"]["results"][0]["device"] for status in allocated] == ["a", "a"]


def test_members_of_another_priority_are_an_error_of_the_group() -> None:
    """Source: pkg/scheduler/schedule_one_podgroup.go, handlePodGroupFailureBeforeScheduling (1.37)."""
    group = make_pod_group(min_count=2, priority=5)
    harness = SchedulerHarness(make_node("n1", allocatable=ALLOCATABLE), group, profile=PROFILE)
    harness.create(*members("ab"))
    harness.attempt()
    message = "all pods in a single pod group should have the same priority as the pod group's priority, got 0 and 5"
    assert notes(harness) == {"default/a": message, "default/b": message}
    assert condition(harness) == ("PodGroupInitiallyScheduled", "False", "SchedulerError", message)


def test_a_remaining_member_is_retried_at_once_after_its_group_was_scheduled() -> None:
    """Source: pkg/scheduler/backend/queue/scheduling_queue.go, AddAttemptedPodGroupIfNeeded (1.37)."""
    harness = SchedulerHarness(make_node("n1", allocatable=ALLOCATABLE), make_pod_group(min_count=2), profile=PROFILE)
    harness.create(*members("abc"))
    harness.attempt()
    counts = harness.queue.count_pending_pods()
    assert (counts["active"], counts["backoff"], counts["unschedulable"]) == (1, 0, 0)
    (remaining,) = harness.queue
    assert (remaining.key, harness.queue.count_entities()["active", "podgroup"]) == ("default/c", 1)


def test_a_gated_member_holds_its_group_until_the_gate_is_removed() -> None:
    """Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.runPreEnqueuePlugins (1.37)."""
    harness = SchedulerHarness(make_node("n1", allocatable=ALLOCATABLE), make_pod_group(min_count=1), profile=PROFILE)
    (held,) = members("b", spec={"schedulingGates": [{"name": "hold"}]})
    (free,) = members("a")
    harness.create(held, free)
    harness.run()
    assert harness.queue.count_pending_pods()["gated"] == 2
    assert harness.node_of(free) == ""


def test_a_gang_is_scheduled_once_its_min_count_is_lowered() -> None:
    """Source: pkg/scheduler/framework/plugins/gangscheduling/gangscheduling.go, isSchedulableAfterPodGroupUpdated
    (1.37).
    """
    group = make_pod_group(min_count=3)
    harness = SchedulerHarness(make_node("n1", allocatable=ALLOCATABLE), group, profile=PROFILE)
    pods = members("ab")
    harness.create(*pods)
    harness.run()
    assert harness.queue.count_pending_pods()["gated"] == 2
    harness.dispatcher.on_update(group, make_pod_group(min_count=2))
    harness.run()
    assert [harness.node_of(pod) for pod in pods] == ["n1", "n1"]


def test_members_that_precede_their_group_are_scheduled_when_it_is_created() -> None:
    """Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.AddPodGroup (1.37)."""
    harness = SchedulerHarness(make_node("n1", allocatable=ALLOCATABLE), profile=PROFILE)
    pods = members("ab")
    harness.create(*pods)
    harness.run()
    assert harness.queue.count_pending_pods()["incomplete"] == 2
    harness.dispatcher.on_add(make_pod_group(min_count=2))
    harness.run()
    assert [harness.node_of(pod) for pod in pods] == ["n1", "n1"]


def test_a_failed_gang_backs_off_as_one_and_is_tried_again() -> None:
    harness = SchedulerHarness(make_node("n1", allocatable=ALLOCATABLE), make_pod_group(min_count=3), profile=PROFILE)
    harness.create(*members("abc"))
    harness.attempt()
    assert harness.queue.count_pending_pods()["backoff"] == 3
    harness.dispatcher.on_add(make_node("n2", allocatable=ALLOCATABLE))
    harness.run(turns=3)
    assert all(harness.node_of(pod) for pod in members("abc"))


def test_the_deletion_of_an_assumed_member_is_not_counted_for_its_gang() -> None:
    """Source: pkg/scheduler/backend/cache/cache.go, cacheImpl.RemoveAssumedPod (1.37)."""
    harness = SchedulerHarness(make_node("n1", allocatable=ALLOCATABLE), make_pod_group(min_count=2), profile=PROFILE)
    (pod,) = members("a")
    harness.cache.add_or_update_pod(pod)
    harness.cache.assume(pod, "n1")
    assert len(harness.cache.snapshot().pod_group("default/ring").assigned) == 1
    harness.dispatcher.on_delete(pod)
    assert harness.cache.snapshot().pod_group("default/ring").count == 0


def make_preempting_harness() -> SchedulerHarness:
    """Return a scheduler that waits for evictions, with a group of two new pods and two victims on two nodes."""
    gates = FeatureGates({"GenericWorkload": True, "SchedulerAsyncPreemption": False}, RELEASE_1_37)
    nodes = [make_node(f"n{at}", allocatable=ALLOCATABLE) for at in (1, 2)]
    victims = [make_pod(f"low-{at}", node=f"n{at}", requests={"cpu": "2"}, priority=0) for at in (1, 2)]
    harness = SchedulerHarness(*nodes, *victims, make_pod_group(min_count=2, priority=10), gates=gates)
    harness.create(*(make_group_member(name, requests={"cpu": "2"}, priority=10) for name in "ab"))
    return harness


def test_without_the_gate_of_asynchronous_preemption_a_group_waits_for_the_evictions() -> None:
    """Source: pkg/scheduler/framework/preemption/executor.go, Executor.actuatePodGroupPreemption (1.37)."""
    harness = make_preempting_harness()

    harness.attempt()

    calls = [(api_call.verb, api_call.kind) for api_call in harness.api.calls]
    assert calls.index(("delete", "Pod")) < calls.index(("patch", "PodGroup"))
    assert sorted(api_call.name for api_call in harness.api.calls_to("delete")) == ["low-1", "low-2"]
    harness.run(turns=3)
    assert sorted(pod.spec.node_name for pod in harness.api.pods.values()) == ["n1", "n2"]


def test_without_the_gate_of_asynchronous_preemption_a_failed_eviction_is_an_error_of_the_group() -> None:
    """Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunPodGroupPostFilterPlugins (1.37)."""
    harness = make_preempting_harness()
    harness.api.errors["delete"] = [ServerError("etcd is down", 500)]

    harness.attempt()

    message = 'error in "DefaultPreemption" PodGroupPostFilter plugins: pod group preemption: etcd is down'
    assert notes(harness) == {"default/a": message, "default/b": message}
    assert condition(harness) == ("PodGroupInitiallyScheduled", "False", "SchedulerError", message)


def test_the_events_of_all_victims_of_a_pod_name_its_node() -> None:
    """Also the event of a member on another node, whose group is disrupted as a whole.

    Source: pkg/scheduler/framework/preemption/executor.go, NewExecutor (1.37).
    """
    nodes = [make_node(name, allocatable=ALLOCATABLE) for name in ("n1", "n2")]
    group = make_pod_group(disruptionMode={"all": {}}, priority=1)
    running = [
        make_group_member("a", node="n1", requests={"cpu": "2"}, priority=1),
        make_group_member("b", node="n2", requests={"cpu": "1"}, priority=1),
        make_pod("c", node="n2", requests={"cpu": "1"}, priority=99),
    ]
    harness = SchedulerHarness(*nodes, group, *running, profile=PROFILE)
    harness.create(make_pod("high", requests={"cpu": "2"}, priority=10))

    harness.attempt()

    preempted = {key: note for key, reason, note in harness.events.recorded if reason == "Preempted"}
    assert preempted == {
        "default/a": "Preempted by pod uid-default-high on node n1",
        "default/b": "Preempted by pod uid-default-high on node n1",
    }


def test_the_other_members_of_a_deleted_member_stay_in_their_queue() -> None:
    """PreEnqueue of the other members runs before the deleted one leaves the cache, so the gang is tried once more.

    Source: pkg/scheduler/eventhandlers.go, Scheduler.deletePodFromSchedulingQueue (1.37).
    """
    harness = SchedulerHarness(make_pod_group(min_count=2), profile=PROFILE)
    first, second = members("ab")
    harness.create(first, second)
    harness.run()
    assert harness.queue.count_pending_pods()["backoff"] == 2

    harness.events.recorded.clear()
    harness.dispatcher.on_delete(second)
    assert harness.queue.count_pending_pods()["backoff"] == 1
    harness.run(turns=3)
    assert notes(harness) == {first.key: 'error in "DynamicResources" PodGroupPostFilter plugins: not found'}
    assert harness.queue.count_pending_pods()["gated"] == 1


def test_a_pending_member_of_another_scheduler_does_not_count() -> None:
    """Source: pkg/scheduler/eventhandlers.go, Scheduler.addPod (1.37)."""
    harness = SchedulerHarness(make_node("n1", allocatable=ALLOCATABLE), make_pod_group(min_count=2), profile=PROFILE)
    (own,) = members("a")
    (other,) = members("b", spec={"schedulerName": "other-scheduler"})
    harness.create(own, other)
    harness.run()
    assert (harness.node_of(own), harness.queue.count_pending_pods()["gated"]) == ("", 1)

    harness.dispatcher.on_delete(other)
    harness.create(*members("c", spec={"schedulerName": "other-scheduler"}, node="n1"))
    harness.run()
    rule = "all pods in a single pod group should have the same .spec.schedulerName set"
    assert notes(harness) == {own.key: f'{rule}, got: "other-scheduler" and "default-scheduler"'}
