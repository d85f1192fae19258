"""Nominations that new and changed pods have in their status."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from extender.api.kinds.pod import Pod
from extender.app import wiring
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_36, RELEASE_1_37, Release
from tests.build import make_node, make_pod
from tests.unit.client.scripted_server import Reply
from tests.unit.scheduler.builders import SchedulerHarness
from tests.unit.scheduler.extender_harness import (
    FILTER,
    ExtenderHarness,
    failure_messages,
    filter_response,
    run_with_extenders,
)

GATE = [{"name": "example.com/quota"}]
_TERM = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
ONLY_ON_N1 = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [_TERM]}}}


def make_nominated_pod(node: str, **given: Any) -> Pod:
    """Return a gated pod whose status nominates it for *node*."""
    return make_pod("web", spec={"schedulingGates": GATE}, status={"nominatedNodeName": node}, **given)


@pytest.mark.parametrize(("release", "node"), [(RELEASE_1_36, ""), (RELEASE_1_37, "n1")])
def test_a_new_gated_pod_is_nominated_since_1_37(release: Release, node: str) -> None:
    """In 1.36 any change of the pod nominates it.

    Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.moveToActiveQ, PriorityQueue.Update (1.36),
    PriorityQueue.addPod (1.37).
    """
    harness = SchedulerHarness(make_node("n1"), gates=FeatureGates(release=release))
    pod = make_nominated_pod("n1")

    harness.create(pod)
    assert harness.cache.find_nominated_node(pod.metadata.uid) == node

    harness.dispatcher.on_update(pod, make_nominated_pod("n1", labels={"a": "b"}))
    assert harness.cache.find_nominated_node(pod.metadata.uid) == "n1"


@pytest.mark.parametrize("release", [RELEASE_1_36, RELEASE_1_37])
def test_a_new_pod_without_a_gate_is_nominated(release: Release) -> None:
    """Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.moveToActiveQ (1.36)."""
    harness = SchedulerHarness(make_node("n1"), gates=FeatureGates(release=release))
    pod = make_pod("web", status={"nominatedNodeName": "n1"})
    harness.create(pod)
    assert harness.cache.find_nominated_node(pod.metadata.uid) == "n1"


@pytest.mark.parametrize("release", [RELEASE_1_36, RELEASE_1_37])
def test_the_nomination_of_a_terminating_pod_that_is_skipped_does_not_count(release: Release) -> None:
    """The pod, which has a finalizer, stays nominated in its status.

    Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.nominatedPodToInfo (1.36).
    """
    node = make_node("n1", allocatable={"cpu": "1", "memory": "9Gi", "pods": "9"})
    harness = SchedulerHarness(node, gates=FeatureGates(release=release))
    status, requests = {"nominatedNodeName": "n1"}, {"cpu": "1"}
    terminating = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["example.com/a"]}
    nominated = make_pod("high", priority=100, requests=requests, status=status, metadata=terminating)
    harness.create(nominated, web := make_pod("web", priority=0, requests=requests))

    harness.run()

    note = "skip schedule deleting pod: default/high"
    assert ("default/high", "FailedScheduling", note) in harness.events.recorded
    assert harness.node_of(web) == "n1"


def test_a_changed_pod_is_nominated_as_it_is_now() -> None:
    """A filter with nominated pods sees the new labels.

    Source: pkg/scheduler/backend/queue/nominator.go, nominator.UpdateNominatedPod (1.36).
    """
    harness = SchedulerHarness(make_node("n1"))
    pod = make_nominated_pod("n1")
    harness.create(pod)

    harness.dispatcher.on_update(pod, make_nominated_pod("n1", labels={"a": "b"}))

    (nominated_pod,) = harness.cache.snapshot().nominated_pods("n1")
    assert dict(nominated_pod.labels) == {"a": "b"}


def test_a_nomination_in_memory_outlasts_changes_without_one() -> None:
    """Source: pkg/scheduler/backend/queue/nominator.go, nominator.UpdateNominatedPod (1.36)."""
    harness = SchedulerHarness(make_node("n1"))
    pod = make_nominated_pod("")
    harness.create(pod)
    harness.cache.nominate(pod, "n1")

    changed_pod = msgspec.structs.replace(pod, metadata=make_pod("web", labels={"a": "b"}).metadata)
    harness.dispatcher.on_update(pod, changed_pod)
    assert harness.cache.find_nominated_node(pod.metadata.uid) == "n1"

    harness.dispatcher.on_update(changed_pod, make_nominated_pod("n2"))
    assert harness.cache.find_nominated_node(pod.metadata.uid) == "n2"

    harness.dispatcher.on_update(make_nominated_pod("n2"), pod)
    assert harness.cache.find_nominated_node(pod.metadata.uid) == ""


@pytest.mark.parametrize("release", [RELEASE_1_36, RELEASE_1_37])
@pytest.mark.parametrize(
    ("node", "reasons"),
    [
        ("n1", "1 Insufficient cpu, 1 node(s) didn't satisfy plugin(s) [NodeAffinity NodeResourcesFit]"),
        ("n2", "1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector"),
        ("gone", "1 Insufficient cpu, 1 node(s) didn't satisfy plugin(s) [NodeAffinity]"),
    ],
    ids=["its only node", "a node that PreFilter excludes", "no node"],
)
def test_a_nominated_node_is_evaluated_also_if_pre_filter_selects_nodes(
    release: Release, node: str, reasons: str
) -> None:
    """A pod of a DaemonSet waits on its only node for victims that are terminating.

    Source: pkg/scheduler/schedule_one.go, Scheduler.findNodesThatFitPod, Scheduler.evaluateNominatedNode (1.36).
    """
    harness = SchedulerHarness(make_node("n1"), make_node("n2"), gates=FeatureGates(release=release))
    status, spec = {"nominatedNodeName": node}, {"affinity": ONLY_ON_N1}
    harness.create(make_pod("agent", requests={"cpu": "64"}, spec=spec, status=status))

    harness.attempt()

    ((_, _, note),) = harness.events.recorded
    assert note.startswith(f"0/2 nodes are available: {reasons}. ")


@pytest.mark.parametrize("percentage", [None, 100])
def test_the_message_names_the_nominated_node_also_if_an_extender_rejects_the_others(percentage: int | None) -> None:
    """Source: pkg/scheduler/schedule_one.go, Scheduler.findNodesThatFitPod, findNodesThatPassExtenders (1.36)."""
    profile = replace(wiring.build_setup().first_profile, percentage_of_nodes_to_score=percentage)
    harness = SchedulerHarness(make_node("n1"), make_node("n2"), profile=profile)
    harness.create(make_pod("agent", spec={"affinity": ONLY_ON_N1}, status={"nominatedNodeName": "n2"}))

    async def test(extender_harness: ExtenderHarness) -> None:
        harness.api.notifies = False  # else the pod is tried again without its nomination
        extender_harness.server.respond("POST /a/filter", Reply(body=filter_response(failed={"n1": "no licence"})))
        await extender_harness.run_until_idle()

    run_with_extenders(harness, [FILTER], test)
    (message,) = failure_messages(harness)
    reasons = "1 no licence, 1 node(s) didn't match Pod's node affinity/selector"
    assert message.startswith(f"0/2 nodes are available: {reasons}. ")


def test_a_changed_pod_waits_in_the_queue_as_the_watch_shows_it_last() -> None:
    harness = SchedulerHarness(make_node("n1"))
    pod = make_pod("web", spec={"schedulingGates": GATE})
    harness.create(pod)
    harness.dispatcher.on_update(pod, make_pod("web", spec={"nodeSelector": {"disk": "ssd"}}))
    assert [queued_pod.pod_info.spec.node_selector for queued_pod in harness.queue] == [{"disk": "ssd"}]
