"""The order of members, and the plugins of the pod group cycle."""

from extender.app import wiring
from extender.config.feature_gates import FeatureGates
from extender.cycle.pod_group_cycle import get_member_sort_key
from tests.build import make_pod

GATES = FeatureGates({"GenericWorkload": True, "GangScheduling": True, "TopologyAwareWorkloadScheduling": True})


GANGS = wiring.build_scheduling(gates=GATES).first_profile


def test_members_are_ordered_by_priority_and_then_by_age() -> None:
    """Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.podGroupInfoForPod (1.36)."""

    pods = [(make_pod("young"), 9.0), (make_pod("old"), 1.0), (make_pod("high", priority=5), 10.0)]
    order = sorted(pods, key=lambda each: get_member_sort_key(*each))
    assert [pod.metadata.name for pod, _ in order] == ["high", "old", "young"]


def test_without_the_gates_none_of_the_plugins_is_enabled() -> None:
    """Source: pkg/features/kube_features.go, GenericWorkload, TopologyAwareWorkloadScheduling (1.36)."""
    names = {"GangScheduling", "TopologyPlacementGenerator", "PodGroupPodsCount"}
    assert not names & wiring.build_scheduling().first_profile.plugins.keys()
    assert names <= GANGS.plugins.keys()
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"disabled": [{"name": "GangScheduling"}]}}}],
    }
    without = wiring.build_scheduling_from_builtins(document, "f", GATES).first_profile.plugins.keys()
    assert names - without == {"GangScheduling"}
