"""The watched kinds: nodes, pods, and the kinds that the enabled plugins need."""

from typing import Any

import pytest

from extender.api.kinds.meta import ObjectMeta
from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod
from extender.app import wiring
from extender.app.informers import Informers, list_kinds_to_watch
from extender.cache.cache import Cache
from extender.client.reflector import Delta
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_36, RELEASE_1_37, Release
from extender.scheduler.event_handlers import ClusterEventDispatcher, EventHandler


def kinds(profile: dict[str, Any], release: Release = RELEASE_1_36, **feature_gates: bool) -> set[str]:
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }
    gates = FeatureGates(feature_gates, release)
    return {kind.__name__ for kind in list_kinds_to_watch(wiring.build_setup_from_document(document, "test", gates))}


def profile_with_only(*names: str) -> dict[str, Any]:
    enabled = [{"name": name} for name in ("PrioritySort", "DefaultBinder", *names)]
    return {"plugins": {"multiPoint": {"disabled": [{"name": "*"}], "enabled": enabled}}}


def test_the_default_profile_watches_what_kube_scheduler_watches() -> None:
    """Compare with the kinds that kube-scheduler may list and watch.

    Source: pkg/scheduler/eventhandlers.go, addAllEventHandlers;
    plugin/pkg/auth/authorizer/rbac/bootstrappolicy/controller_policy.go, eventsRule;
    plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go, ClusterRoles (1.36).
    """
    assert kinds({}) == {
        "CSIDriver", "CSINode", "CSIStorageCapacity", "DeviceClass", "Namespace", "Node", "PersistentVolume",
        "PersistentVolumeClaim", "Pod", "PodDisruptionBudget", "ReplicaSet", "ReplicationController", "ResourceClaim",
        "ResourceSlice", "Service", "StatefulSet", "StorageClass", "VolumeAttachment",
    }  # fmt: skip


def test_a_small_profile_watches_nodes_and_pods_only() -> None:
    assert kinds(profile_with_only("NodeName", "TaintToleration")) == {"Node", "Pod"}


def test_topology_spread_adds_services_and_pod_controllers() -> None:
    assert kinds(profile_with_only("PodTopologySpread")) == {
        "Node", "Pod", "ReplicaSet", "ReplicationController", "Service", "StatefulSet"
    }  # fmt: skip


def test_volume_limits_add_all_kinds_that_tell_the_driver_of_a_volume() -> None:
    """Source: pkg/scheduler/framework/plugins/nodevolumelimits/csi.go, NewCSI (1.36)."""
    assert kinds(profile_with_only("NodeVolumeLimits")) == {
        "CSIDriver", "CSINode", "Node", "PersistentVolume", "PersistentVolumeClaim", "Pod", "StorageClass",
        "VolumeAttachment",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"])
def test_limits_of_in_tree_volumes_add_the_kinds_that_tell_the_type_of_a_volume(name: str) -> None:
    """Source: pkg/scheduler/framework/plugins/nodevolumelimits/non_csi.go, newNonCSILimits (1.30)."""
    assert kinds(profile_with_only(name)) == {
        "CSINode", "Node", "PersistentVolume", "PersistentVolumeClaim", "Pod", "StorageClass"
    }  # fmt: skip


def test_device_taint_rules_are_watched_with_their_feature_gate() -> None:
    """The plugin reads the rules only with the gate.

    Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.PreFilter (1.36).
    """
    assert kinds({}, DRADeviceTaintRules=True) - kinds({}) == {"DeviceTaintRule"}
    assert kinds({}, RELEASE_1_37) - kinds({}, RELEASE_1_37, DRADeviceTaintRules=False) == {"DeviceTaintRule"}


@pytest.mark.parametrize(
    ("resource", "gate", "want"),
    [
        ("example.com/gpu", True, {"DeviceClass", "ResourceClaim", "ResourceSlice", "Node", "Pod"}),
        ("example.com/gpu", False, {"Node", "Pod"}),
        ("cpu", True, {"DeviceClass", "Node", "Pod"}),
    ],
)
def test_scores_of_an_extended_resource_count_devices_also_without_dynamic_resources(
    resource: str, gate: bool, want: set[str]
) -> None:
    """Source: pkg/scheduler/framework/plugins/noderesources/resource_allocation.go, getDRAPreScoredParams (1.36)."""
    strategy = {"type": "MostAllocated", "resources": [{"name": resource, "weight": 1}]}
    args = [{"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}]
    profile = {**profile_with_only("NodeResourcesFit"), "pluginConfig": args}
    assert kinds(profile, DRAExtendedResource=gate) == want


def test_pod_groups_are_watched_with_the_feature_gate_generic_workload() -> None:
    """kube-scheduler may watch pod groups only with the gate.

    Source: plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go, ClusterRoles (1.36).
    """
    assert kinds(profile_with_only("NodeName"), GenericWorkload=True) == {"Node", "Pod", "PodGroup"}
    assert kinds({}, GenericWorkload=True, GangScheduling=True) - kinds({}) == {"PodGroup"}
    assert kinds({}, RELEASE_1_37, GenericWorkload=True) - kinds({}, RELEASE_1_37) == {"PodGroup"}
    gates = dict.fromkeys(("GenericWorkload", "TopologyAwareWorkloadScheduling", "CompositePodGroup"), True)
    assert kinds({}, RELEASE_1_37, **gates) - kinds({}, RELEASE_1_37) == {"PodGroup", "CompositePodGroup"}


class AdjustableClock:
    """A clock whose time a test sets."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> float:
        return self.seconds


class ListedKinds:
    """The informers of a profile; by default, those of nodes and pods. All were listed now; nothing is connected."""

    def __init__(
        self,
        make_dispatcher: type[ClusterEventDispatcher] = ClusterEventDispatcher,
        profile: dict[str, Any] | None = None,
    ) -> None:
        document = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [profile_with_only("NodeName") if profile is None else profile],
        }
        setup: Any = wiring.build_setup_from_document(document, "test")
        unused: Any = None
        dispatcher = make_dispatcher(Cache(setup.gates), EventHandler(), (), setup.gates)
        self.clock = AdjustableClock()
        self.informers = Informers(setup, unused, dispatcher, self.clock)
        for reflector in self.informers.reflectors.values():
            reflector.synced.set()
            reflector.last_contact = self.clock.seconds

    def fail_to_watch_pods(self, error: str, *, forbidden: bool = False) -> None:
        pods = self.informers.reflectors[Pod]
        pods.last_error, pods.forbidden = error, forbidden


def test_an_api_server_without_the_kinds_of_devices_has_no_devices_but_known_claims_stay() -> None:
    """Kubernetes serves resource.k8s.io/v1 since 1.34. Without the allocated claims, devices would be allocated twice.

    Source: kubernetes/CHANGELOG/CHANGELOG-1.34.md.
    """
    informers = ListedKinds(profile={}).informers
    optional = {kind.__name__ for kind, reflector in informers.reflectors.items() if reflector.is_optional}
    retained = {kind.__name__ for kind, reflector in informers.reflectors.items() if reflector.retains_objects}
    assert optional == {"DeviceClass", "DeviceTaintRule", "ResourceClaim", "ResourceSlice"}
    assert retained == {"DeviceClass", "ResourceClaim", "ResourceSlice"}


@pytest.mark.parametrize("forbidden", [False, True], ids=["no response", "forbidden"])
def test_decisions_end_180_seconds_after_the_last_contact_of_a_failed_watch(forbidden: bool) -> None:
    listed = ListedKinds()
    assert listed.informers.describe_missing_data() == ""
    listed.clock.seconds += 170.0
    listed.fail_to_watch_pods("pods: connection refused", forbidden=forbidden)
    assert listed.informers.describe_missing_data() == ""
    listed.clock.seconds += 11.0
    assert listed.informers.describe_missing_data() == (
        "the cache of the extender is out of date: Pod cannot be watched (pods: connection refused)"
    )


def test_the_reason_names_one_kind_and_stays_the_same_so_that_its_events_are_counted_together() -> None:
    listed = ListedKinds()
    for reflector in listed.informers.reflectors.values():
        reflector.last_error = "connection refused"
    reasons = []
    for _ in range(2):
        listed.clock.seconds += 200.0
        reasons.append(listed.informers.describe_missing_data())
    reason = "the cache of the extender is out of date: Node cannot be watched (connection refused) and 1 more"
    assert reasons == [reason, reason]


def test_a_process_that_may_not_read_a_kind_is_not_ready_at_once_but_decides_for_180_seconds() -> None:
    listed = ListedKinds()
    listed.fail_to_watch_pods("pods: no permission", forbidden=True)
    listed.clock.seconds += 1.0
    assert listed.informers.describe_staleness() == "reading Pod is forbidden: pods: no permission"
    assert listed.informers.describe_missing_data() == ""


def test_no_decision_is_made_before_all_kinds_are_listed() -> None:
    listed = ListedKinds()
    listed.informers.reflectors[Node].synced.clear()
    assert listed.informers.describe_missing_data() == (
        "the cache of the extender is not synced yet: Node not listed yet"
    )


def test_a_failed_watch_may_miss_changes_until_five_seconds_after_it_works_again() -> None:
    listed = ListedKinds()
    pods = listed.informers.reflectors[Pod]
    assert not listed.informers.may_miss_changes(Pod)
    listed.fail_to_watch_pods("pods: connection refused")
    assert listed.informers.may_miss_changes(Pod)
    assert not listed.informers.may_miss_changes(Node)
    pods.last_error, pods.recovered_at = "", listed.clock.seconds
    listed.clock.seconds += 4.0
    assert listed.informers.may_miss_changes(Pod)
    listed.clock.seconds += 2.0
    assert not listed.informers.may_miss_changes(Pod)


def test_a_process_that_was_stopped_for_a_minute_may_miss_changes() -> None:
    """A working watch is never silent for 55 seconds, because the API server ends it after 50 seconds at the latest."""
    listed = ListedKinds()
    listed.clock.seconds += 54.0
    assert not listed.informers.may_miss_changes(Pod)
    listed.clock.seconds += 2.0
    assert listed.informers.may_miss_changes(Pod)


class FailingHandlers(ClusterEventDispatcher):
    """Handlers that raise `error` for each new object."""

    error: Exception = MemoryError()

    def on_add(self, obj: Any) -> None:
        raise self.error


def test_a_change_that_lacks_memory_ends_the_process_but_another_error_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    deltas: list[Delta[Any]] = [Delta(None, Node(metadata=ObjectMeta(name="one")))]
    listed = ListedKinds(FailingHandlers)
    with pytest.raises(MemoryError):
        listed.informers.reflectors[Node].deliver(deltas)
    monkeypatch.setattr(FailingHandlers, "error", KeyError("zone"))
    listed.informers.reflectors[Node].deliver(deltas)
