"""PreEnqueue for pod groups: a rejected member holds the others since 1.37."""

import pytest

from extender.app import wiring
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_36, RELEASE_1_37, Release
from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.pod_group.pre_enqueue import run_pre_enqueue_plugins_for_entity
from tests.build import make_cluster, make_node, make_pod
from tests.pod_group_builders import make_group_member, make_pod_group

GATED = {"schedulingGates": [{"name": "hold"}]}


def rejector(name: str, release: Release = RELEASE_1_37, *, on: bool = True) -> str | None:
    """Return the plugin that rejects the pod. Member b is gated; pod c belongs to no group."""
    pods = [make_group_member("a"), make_group_member("b", spec=GATED), make_pod("c")]
    snapshot = make_cluster(make_node("n1"), make_pod_group(min_count=1), *pods).snapshot()
    profile = wiring.build_setup(gates=FeatureGates({"GenericWorkload": on}, release)).first_profile
    (pod,) = (snapshot.make_pod_info(pod) for pod in pods if pod.metadata.name == name)
    status = run_pre_enqueue_plugins_for_entity(pod, snapshot, profile, PluginRuntime())
    return None if status is None else status.plugin


def test_a_gated_member_holds_the_other_members() -> None:
    """Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.runPreEnqueuePlugins (1.37)."""
    assert [rejector(name) for name in "abc"] == ["SchedulingGates", "SchedulingGates", None]


@pytest.mark.parametrize(
    ("release", "on"), [(RELEASE_1_36, True), (RELEASE_1_37, False)], ids=["in 1.36", "without the gate"]
)
def test_a_gated_member_holds_only_itself(release: Release, on: bool) -> None:
    assert [rejector(name, release, on=on) for name in "abc"] == [None, "SchedulingGates", None]
