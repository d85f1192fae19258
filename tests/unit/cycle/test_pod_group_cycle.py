"""The order of members, and the plugins of the pod group cycle."""

from random import Random

import pytest

from extender.app import wiring
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_36, RELEASE_1_37, Release
from extender.cycle.node_sampling import NodeSampler
from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.pod_group_cycle import get_member_sort_key, schedule_pod_group
from tests.build import make_cluster, make_node, make_pod
from tests.pod_group_builders import make_group_member, make_pod_group

GATE_NAMES = ("GenericWorkload", "GangScheduling", "TopologyAwareWorkloadScheduling")
GATES = FeatureGates(dict.fromkeys(GATE_NAMES, True), RELEASE_1_36)


GANGS = wiring.build_setup(gates=GATES).first_profile


def test_members_are_ordered_by_priority_and_then_by_age() -> None:
    """Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.podGroupInfoForPod (1.36)."""

    pods = [(make_pod("young"), 9.0), (make_pod("old"), 1.0), (make_pod("high", priority=5), 10.0)]
    order = sorted(pods, key=lambda each: get_member_sort_key(*each))
    assert [pod.metadata.name for pod, _ in order] == ["high", "old", "young"]


def test_without_the_gates_none_of_the_plugins_is_enabled() -> None:
    """Source: pkg/features/kube_features.go, GenericWorkload, TopologyAwareWorkloadScheduling (1.36)."""
    names = {"GangScheduling", "TopologyPlacementGenerator", "PodGroupPodsCount"}
    assert not names & wiring.build_setup().first_profile.plugins.keys()
    assert names <= GANGS.plugins.keys()
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"disabled": [{"name": "GangScheduling"}]}}}],
    }
    without = wiring.build_setup_from_document(document, "f", GATES).first_profile.plugins.keys()
    assert names - without == {"GangScheduling"}


@pytest.mark.parametrize("release", [RELEASE_1_36, RELEASE_1_37], ids=["1.36", "1.37"])
@pytest.mark.parametrize(
    ("pod_capacity", "node"),
    [pytest.param("2", "n1", id="two pods"), pytest.param("1", "", id="one pod")],
)
def test_a_nominated_member_counts_as_a_pod_without_requests(release: Release, pod_capacity: str, node: str) -> None:
    """The members left the queue, and the nominator reads requests from the queue.

    Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.nominatedPodToInfo (1.36).
    """
    large = make_group_member("large", requests={"cpu": "2"}, status={"nominatedNodeName": "n1"})
    small = make_group_member("small", requests={"cpu": "1"})
    allocatable = {"cpu": "1", "memory": "1Gi", "pods": pod_capacity}
    cache = make_cluster(make_node("n1", allocatable=allocatable), make_pod_group(), large, small)
    cache.nominate(large, "n1")
    snapshot = cache.snapshot()
    profile = wiring.build_setup(gates=FeatureGates({"GenericWorkload": True}, release)).first_profile
    decision = schedule_pod_group(
        [snapshot.make_pod_info(large), snapshot.make_pod_info(small)],
        snapshot,
        profile,
        PluginRuntime(),
        Random(0),
        NodeSampler(),
    )
    assert [member.node_name for member in decision.members] == ["", node]
