"""Node resources that a pod consumes through its claims (gate DRANodeAllocatableResources).

Source: pkg/scheduler/framework/plugins/dynamicresources/nodeallocatabledynamicresources.go (1.36).
"""

from typing import Any

from extender.api.kinds.pod import NodeAllocatableResourceClaimStatus, Pod
from extender.app import wiring
from extender.cache.cache import Cache
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_36
from extender.framework.api_plan import ApiCall, ApiPlan
from extender.framework.plugin_args import PluginArgs
from extender.plugins.dynamic_resources.args import DynamicResourcesArgs
from extender.plugins.dynamic_resources.plugin import DynamicResources
from extender.plugins.dynamic_resources.state import StateData
from tests.build import make_cluster, make_node, make_pod, make_pod_info
from tests.unit.dra.builders import make_allocated_claim, make_claim, make_device_class, make_slice

ON = FeatureGates({"DRANodeAllocatableResources": True}, RELEASE_1_36)
STALE = {"nodeAllocatableResourceClaimStatuses": [{"resourceClaimName": "old", "resources": {"cpu": "9"}}]}


def make_pod_with_claims(*claims: str, also: Any = None, **pod: Any) -> Pod:
    entries = [{"name": f"entry-{name}", "resourceClaimName": name} for name in claims]
    uses = [{"name": entry["name"]} for entry in entries]
    spec = {
        "initContainers": [{"name": "first", "resources": {"claims": uses[:1]}}],
        "containers": [{"name": "app", "resources": {"claims": [*uses, *uses[:1]]}}],
        "resourceClaims": entries,
        **(also or {}),
    }
    return make_pod(spec=spec, **pod)


def make_cache(*claims: Any, devices: Any) -> Cache:
    return make_cluster(
        make_node("n"), make_device_class("gpu"), make_slice({"node": "n", "devices": devices}), *claims, gates=ON
    )


def resource_mappings(**resources: Any) -> dict[str, Any]:
    return {"nodeAllocatableResourceMappings": resources}


class FilteredPod:
    """A pod that has been filtered on the node `n`."""

    def __init__(self, cache: Cache, pod: Pod, gates: FeatureGates = ON) -> None:
        self.plugin = DynamicResources(PluginArgs(DynamicResourcesArgs("10s", "10m0s"), gates))
        self.cache, self.pod_info = cache, make_pod_info(pod, cache)
        snapshot = cache.snapshot()
        self.state: StateData = self.plugin.pre_filter(self.pod_info, snapshot).state
        assert self.plugin.filter(self.pod_info, snapshot.view(), self.state) == ()

    def resource_claim_statuses(self) -> tuple[NodeAllocatableResourceClaimStatus, ...]:
        pod = self.plugin.make_assumed_pod(self.pod_info.pod, "n", self.state)
        return pod.status.node_allocatable_resource_claim_statuses

    def reserve(self) -> None:
        assert self.plugin.reserve(self.pod_info, "n", self.cache.snapshot(), self.state) is None

    def pre_bind_calls(self) -> tuple[ApiCall, ...]:
        plan = self.plugin.pre_bind(self.pod_info, "n", self.cache.snapshot(), self.state)
        assert isinstance(plan, ApiPlan)
        return plan.calls

    def unreserve_calls(self) -> list[ApiCall]:
        return list(self.plugin.unreserve(self.pod_info, "n", self.state))


def test_a_pod_consumes_the_sum_of_a_claims_devices_for_its_containers() -> None:
    two = {
        "d0": resource_mappings(cpu={"allocationMultiplier": "1500m"}, memory={}),
        "d1": resource_mappings(cpu={"allocationMultiplier": "1"}),
    }
    attempt = FilteredPod(make_cache(make_claim("one", {"r": {"count": 2}}), devices=two), make_pod_with_claims("one"))

    assert attempt.resource_claim_statuses() == (
        NodeAllocatableResourceClaimStatus(
            resource_claim_name="one", containers=("first", "app", "app"), resources={"cpu": "2500m", "memory": "0"}
        ),
    )


def test_statuses_are_sorted_by_claim_name_and_only_for_claims_with_mappings() -> None:
    devices = {
        "d0": resource_mappings(cpu={"allocationMultiplier": "1"}),
        "d1": {},
        "d2": resource_mappings(memory={"allocationMultiplier": 1}),
    }
    claims = (make_claim("z", {"r": {}}), make_claim("plain", {"r": {}}), make_claim("a", {"r": {}}))
    attempt = FilteredPod(make_cache(*claims, devices=devices), make_pod_with_claims("z", "plain", "a"))

    statuses = [
        (status.resource_claim_name, status.containers, status.resources)
        for status in attempt.resource_claim_statuses()
    ]
    assert statuses == [("a", ("app",), {"memory": "1"}), ("z", ("first", "app", "app"), {"cpu": "1"})]


def test_consumed_capacity_rounded_by_the_scheduler_has_a_binary_suffix() -> None:
    capacity = {"x/mem": {"value": "8Gi", "requestPolicy": {"default": "1Gi", "validRange": {"min": "1Gi", "step": 1}}}}
    device = {
        "allowMultipleAllocations": True,
        "capacity": capacity,
        **resource_mappings(memory={"capacityKey": "x/mem"}),
    }
    claim = make_claim("one", {"r": {"capacity": {"requests": {"x/mem": "2147483648"}}}})
    attempt = FilteredPod(make_cache(claim, devices={"d0": device}), make_pod_with_claims("one"))

    assert attempt.resource_claim_statuses()[0].resources == {"memory": "2Gi"}


def test_an_allocated_claim_consumes_no_node_resources() -> None:
    """Upstream counts what is allocated in this attempt only."""
    attempt = FilteredPod(
        make_cache(
            make_allocated_claim("one", ["d0"]), devices={"d0": resource_mappings(cpu={"allocationMultiplier": "1"})}
        ),
        make_pod_with_claims("one", status=STALE),
    )

    assert attempt.resource_claim_statuses() == ()


def test_statuses_of_an_earlier_attempt_do_not_count() -> None:
    attempt = FilteredPod(
        make_cache(make_claim("one", {"r": {}}), devices={"d0": {}}), make_pod_with_claims("one", status=STALE)
    )

    assert attempt.resource_claim_statuses() == ()
    skipped = make_pod(status=STALE)
    assert attempt.plugin.make_assumed_pod(skipped, "n", None).status.node_allocatable_resource_claim_statuses == ()


def test_with_the_gate_off_a_pod_is_assumed_unchanged() -> None:
    devices = {"d0": resource_mappings(cpu={"allocationMultiplier": "99"})}
    pod = make_pod_with_claims("one", status=STALE)
    attempt = FilteredPod(make_cache(make_claim("one", {"r": {}}), devices=devices), pod, FeatureGates())

    assert attempt.plugin.make_assumed_pod(pod, "n", attempt.state) is pod
    attempt.reserve()
    assert [call.kind for call in attempt.pre_bind_calls()] == ["ResourceClaim", "ResourceClaim"]


def test_the_pods_status_is_written_after_its_claims() -> None:
    devices = {"d0": resource_mappings(cpu={"allocationMultiplier": "1"})}
    attempt = FilteredPod(make_cache(make_claim("one", {"r": {}}), devices=devices), make_pod_with_claims("one"))
    attempt.reserve()

    *claim, status_patch = attempt.pre_bind_calls()

    assert [call.kind for call in claim] == ["ResourceClaim", "ResourceClaim"]
    status = {"resourceClaimName": "one", "containers": ["first", "app", "app"], "resources": {"cpu": "1"}}
    assert status_patch == ApiCall(
        "patch",
        "Pod",
        "default",
        "pod",
        {"metadata": {"uid": "uid-default-pod"}, "status": {"nodeAllocatableResourceClaimStatuses": [status]}},
        "status",
    )


def test_unreserve_clears_the_pods_status_even_before_pre_bind() -> None:
    devices = {"d0": resource_mappings(cpu={"allocationMultiplier": "1"})}
    attempt = FilteredPod(make_cache(make_claim("one", {"r": {}}), devices=devices), make_pod_with_claims("one"))
    attempt.reserve()

    (cleared,) = attempt.unreserve_calls()

    assert (cleared.verb, cleared.kind, cleared.subresource) == ("patch", "Pod", "status")
    assert cleared.body["status"] == {"nodeAllocatableResourceClaimStatuses": None}


def test_unreserve_removes_the_pod_from_reserved_for() -> None:
    attempt = FilteredPod(make_cache(make_claim("one", {"r": {}}), devices={"d0": {}}), make_pod_with_claims("one"))
    attempt.reserve()
    attempt.pre_bind_calls()

    (patch,) = attempt.unreserve_calls()

    assert patch.strategic
    assert (patch.kind, patch.name, patch.subresource) == ("ResourceClaim", "one", "status")
    assert patch.body == {
        "metadata": {"uid": "uid-one"},
        "status": {"reservedFor": [{"$patch": "delete", "uid": "uid-default-pod"}]},
    }
    assert attempt.unreserve_calls() == []


def test_unreserve_removes_the_pod_from_a_claim_reserved_earlier() -> None:
    reserve = {"resource": "pods", "name": "pod", "uid": "uid-default-pod"}
    claim = make_allocated_claim("one", ["d0"], reservedFor=[reserve])
    attempt = FilteredPod(make_cache(claim, devices={"d0": {}}), make_pod_with_claims("one"))

    assert [call.name for call in attempt.unreserve_calls()] == ["one"]


def test_unreserve_deletes_a_claim_created_for_extended_resources() -> None:
    resource_slice = make_slice({"node": "n", "devices": {"d0": {}}})
    device_class = make_device_class("gpu", extendedResourceName="example.com/gpu")
    cache = make_cluster(make_node("n"), device_class, resource_slice, gates=ON)
    attempt = FilteredPod(cache, make_pod(requests={"example.com/gpu": "1"}))
    attempt.reserve()
    create_call = attempt.pre_bind_calls()[0]

    finalizers, deleted = attempt.unreserve_calls()

    name = create_call.body["metadata"]["name"]
    assert (finalizers.verb, finalizers.name, finalizers.body) == ("patch", name, {"metadata": {"finalizers": []}})
    assert (deleted.verb, deleted.kind, deleted.name) == ("delete", "ResourceClaim", name)


def test_devices_in_flight_for_one_profile_are_allocated_for_the_others() -> None:
    """Upstream shares one DRA manager between all profiles."""
    header = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    configured = wiring.build_setup_from_document(
        {**header, "profiles": [{"schedulerName": "one"}, {"schedulerName": "two"}]}, "test"
    )
    first_plugin, second_plugin = (configured.profiles[name].plugins["DynamicResources"] for name in ("one", "two"))
    cache = make_cache(make_claim("first", {"r": {}}), make_claim("second", {"r": {}}), devices={"d0": {}})
    first, second = (
        make_pod_info(make_pod_with_claims("first"), cache),
        make_pod_info(make_pod_with_claims("second", name="other"), cache),
    )
    snapshot = cache.snapshot()
    state = first_plugin.pre_filter(first, snapshot).state
    assert first_plugin.filter(first, snapshot.view(), state) == ()
    assert first_plugin.reserve(first, "n", snapshot, state) is None

    second_state = second_plugin.pre_filter(second, snapshot).state
    (rejection,) = second_plugin.filter(second, snapshot.view(), second_state)
    assert rejection.reason.text == "cannot allocate all claims"

    first_plugin.unreserve(first, "n", state)
    assert second_plugin.filter(second, snapshot.view(), second_plugin.pre_filter(second, snapshot).state) == ()
