"""The handling of each event is measured with upstream's label.

Source: pkg/scheduler/metrics/metrics.go, EventHandlingLatency (1.36).
"""

import pytest

from extender.api.kinds.pod import Pod
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_36, RELEASE_1_37, Release
from extender.framework.events import ActionType, EventResource, make_pod_event
from tests.build import make_node, make_pod
from tests.unit.scheduler.builders import SchedulerHarness

FAMILY = "scheduler_event_handling_duration_seconds_count"


def list_measured_events(harness: SchedulerHarness) -> dict[str, int]:
    """Return the number of handled events by label."""
    samples = [sample for family in harness.context.metrics.registry.collect() for sample in family.samples]
    return {sample.labels["event"]: int(sample.value) for sample in samples if sample.name == FAMILY}


@pytest.mark.parametrize(
    ("release", "resource"), [(RELEASE_1_36, "UnschedulablePod"), (RELEASE_1_37, "UnscheduledPod")]
)
def test_events_are_measured_by_label(release: Release, resource: str) -> None:
    harness = SchedulerHarness(make_node("n1"), gates=FeatureGates(release=release))
    pod: Pod = make_pod("web")
    harness.scheduler.on_pending_pod_add(pod)
    harness.scheduler.on_pending_pod_update(
        pod, pod, [make_pod_event(release, EventResource.TARGET_POD, ActionType.UPDATE, pod, pod)]
    )
    harness.scheduler.on_pending_pod_delete(pod)
    harness.dispatcher.on_add(make_node("n2"))

    assert list_measured_events(harness) == {
        f"{resource}Add": 1,
        f"{resource}Update": 1,
        f"{resource}Delete": 1,
        "NodeAdd": 1,
    }


def test_the_deletion_of_an_assumed_pod_is_measured_once() -> None:
    """Source: pkg/scheduler/eventhandlers.go, Scheduler.deletePodFromSchedulingQueue (1.37)."""
    pod = make_pod("web")
    harness = SchedulerHarness(make_node("n1"), pod, gates=FeatureGates(release=RELEASE_1_37))
    harness.cache.assume(pod, "n1")
    harness.dispatcher.on_delete(pod)
    assert list_measured_events(harness) == {"UnscheduledPodDelete": 1}


@pytest.mark.parametrize(
    ("release", "resource"), [(RELEASE_1_36, "UnschedulablePod"), (RELEASE_1_37, "UnscheduledPod")]
)
def test_an_update_of_an_assumed_pod_is_measured(release: Release, resource: str) -> None:
    """Such as the nomination that is written before a long PreBind.

    Source: pkg/scheduler/eventhandlers.go, Scheduler.updatePodInSchedulingQueue (1.36, 1.37).
    """
    pod, nominated = make_pod("web"), make_pod("web", status={"nominatedNodeName": "n1"})
    harness = SchedulerHarness(make_node("n1"), pod, gates=FeatureGates(release=release))
    harness.cache.assume(pod, "n1")
    harness.dispatcher.on_update(pod, nominated)
    assert list_measured_events(harness) == {f"{resource}Update": 1}


def test_an_update_of_an_assumed_pod_of_another_scheduler_is_not_measured() -> None:
    """The verb bind of `extender serve --standalone` assumes pods of kube-scheduler in the cache of the scheduler."""
    pod, nominated = (
        make_pod("web", spec={"schedulerName": "other"}, status=status) for status in ({}, {"nominatedNodeName": "n1"})
    )
    harness = SchedulerHarness(make_node("n1"), pod)
    harness.cache.assume(pod, "n1")
    harness.dispatcher.on_update(pod, nominated)
    assert list_measured_events(harness) == {}


def test_a_lost_nomination_is_measured_with_the_update_or_the_deletion_of_the_pod() -> None:
    """Source: pkg/scheduler/eventhandlers.go, Scheduler.updatePodInSchedulingQueue (1.37)."""
    nominated, pod = make_pod("web", status={"nominatedNodeName": "n1"}), make_pod("web")
    harness = SchedulerHarness(make_node("n1"), nominated, gates=FeatureGates(release=RELEASE_1_37))
    harness.dispatcher.on_update(nominated, pod)
    harness.dispatcher.on_delete(nominated)
    assert list_measured_events(harness) == {"UnscheduledPodUpdate": 1, "UnscheduledPodDelete": 1}


@pytest.mark.parametrize("release", [RELEASE_1_36, RELEASE_1_37])
def test_an_update_of_an_assigned_pod_is_measured_as_a_whole_and_by_event(release: Release) -> None:
    """A change that scheduling does not depend on has the event of the whole update.

    Source: pkg/scheduler/eventhandlers.go, Scheduler.updateAssignedPodInCache (1.36).
    """
    pod, label_event = make_pod("web", node="n1"), "AssignedPodUpdatePodLabel"
    harness = SchedulerHarness(make_node("n1"), pod, gates=FeatureGates(release=release))
    labelled = make_pod("web", node="n1", labels={"app": "web"})
    harness.dispatcher.on_update(pod, labelled)
    assert list_measured_events(harness) == {"AssignedPodUpdate": 1, label_event: 1}
    harness.dispatcher.on_update(labelled, labelled)
    assert list_measured_events(harness) == {"AssignedPodUpdate": 3, label_event: 1}
