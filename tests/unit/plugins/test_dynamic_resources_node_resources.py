"""What a pod takes of its node through claims: told to the pod, counted where it is assumed, taken back.

Gate DRANodeAllocatableResources. Source: B117 to B119, A022, H063.
"""

from typing import Any

from extender import wiring
from extender.cluster.state import ClusterState
from extender.config.gates import FeatureGates
from extender.framework.points import Plan, Write
from extender.framework.setup import Setup
from extender.objects.pod import NodeAllocatableResourceClaimStatus, Pod
from extender.plugins.dynamic_resources.cycle import Cycle
from extender.plugins.dynamic_resources.options import DynamicResourcesOptions
from extender.plugins.dynamic_resources.plugin import DynamicResources
from tests.build import a_cluster, a_node, a_pod, a_query
from tests.unit.allocation.worlds import a_claim, a_class, a_slice, allocated_claim

ON = FeatureGates({"DRANodeAllocatableResources": True})
STALE = {"nodeAllocatableResourceClaimStatuses": [{"resourceClaimName": "old", "resources": {"cpu": "9"}}]}


def claiming(*claims: str, also: Any = None, **pod: Any) -> Pod:
    entries = [{"name": f"entry-{name}", "resourceClaimName": name} for name in claims]
    uses = [{"name": entry["name"]} for entry in entries]
    spec = {
        "initContainers": [{"name": "first", "resources": {"claims": uses[:1]}}],
        "containers": [{"name": "app", "resources": {"claims": [*uses, *uses[:1]]}}],
        "resourceClaims": entries,
        **(also or {}),
    }
    return a_pod(spec=spec, **pod)


def a_world(*claims: Any, devices: Any) -> ClusterState:
    return a_cluster(a_node("n"), a_class("gpu"), a_slice({"node": "n", "devices": devices}), *claims, gates=ON)


def maps(**resources: Any) -> dict[str, Any]:
    return {"nodeAllocatableResourceMappings": resources}


class Attempt:
    """A pod that has been filtered on the node `n`."""

    def __init__(self, state: ClusterState, pod: Pod, gates: FeatureGates = ON) -> None:
        self.plugin = DynamicResources(Setup(DynamicResourcesOptions("10s", "10m0s"), gates))
        self.state, self.query = state, a_query(pod, state)
        snapshot = state.snapshot()
        self.notes: Cycle = self.plugin.pre_filter(self.query, snapshot).notes
        assert self.plugin.filter(self.query, snapshot.view(), self.notes) == ()

    def assumed(self) -> tuple[NodeAllocatableResourceClaimStatus, ...]:
        pod = self.plugin.assumed(self.query.pod, "n", self.notes)
        return pod.status.node_allocatable_resource_claim_statuses

    def reserved(self) -> None:
        assert self.plugin.reserve(self.query, "n", self.state.snapshot(), self.notes) is None

    def planned(self) -> tuple[Write, ...]:
        plan = self.plugin.pre_bind(self.query, "n", self.state.snapshot(), self.notes)
        assert isinstance(plan, Plan)
        return plan.writes

    def undone(self) -> list[Write]:
        return list(self.plugin.unreserve(self.query, "n", self.notes))


def test_a_pod_takes_the_sum_of_a_claims_devices_for_the_containers_that_refer_to_it() -> None:
    two = {"d0": maps(cpu={"allocationMultiplier": "1500m"}, memory={}), "d1": maps(cpu={"allocationMultiplier": "1"})}
    attempt = Attempt(a_world(a_claim("one", {"r": {"count": 2}}), devices=two), claiming("one"))

    assert attempt.assumed() == (
        NodeAllocatableResourceClaimStatus(
            resource_claim_name="one", containers=("first", "app", "app"), resources={"cpu": "2500m", "memory": "0"}
        ),
    )


def test_claims_are_told_by_name_and_those_without_such_devices_not_at_all() -> None:
    devices = {"d0": maps(cpu={"allocationMultiplier": "1"}), "d1": {}, "d2": maps(memory={"allocationMultiplier": 1})}
    claims = (a_claim("z", {"r": {}}), a_claim("plain", {"r": {}}), a_claim("a", {"r": {}}))
    attempt = Attempt(a_world(*claims, devices=devices), claiming("z", "plain", "a"))

    taken = [(each.resource_claim_name, each.containers, each.resources) for each in attempt.assumed()]
    assert taken == [("a", ("app",), {"memory": "1"}), ("z", ("first", "app", "app"), {"cpu": "1"})]


def test_a_share_rounded_up_by_the_scheduler_is_written_in_binary() -> None:
    capacity = {"x/mem": {"value": "8Gi", "requestPolicy": {"default": "1Gi", "validRange": {"min": "1Gi", "step": 1}}}}
    device = {"allowMultipleAllocations": True, "capacity": capacity, **maps(memory={"capacityKey": "x/mem"})}
    claim = a_claim("one", {"r": {"capacity": {"requests": {"x/mem": "2147483648"}}}})
    attempt = Attempt(a_world(claim, devices={"d0": device}), claiming("one"))

    assert attempt.assumed()[0].resources == {"memory": "2Gi"}


def test_an_allocated_claim_takes_nothing_more() -> None:
    """Upstream counts what is allocated in this attempt only."""
    attempt = Attempt(
        a_world(allocated_claim("one", ["d0"]), devices={"d0": maps(cpu={"allocationMultiplier": "1"})}),
        claiming("one", status=STALE),
    )

    assert attempt.assumed() == ()


def test_what_an_earlier_attempt_left_on_a_pod_does_not_count() -> None:
    attempt = Attempt(a_world(a_claim("one", {"r": {}}), devices={"d0": {}}), claiming("one", status=STALE))

    assert attempt.assumed() == ()
    skipped = a_pod(status=STALE)
    assert attempt.plugin.assumed(skipped, "n", None).status.node_allocatable_resource_claim_statuses == ()


def test_while_the_gate_is_off_a_pod_is_assumed_as_it_is() -> None:
    devices = {"d0": maps(cpu={"allocationMultiplier": "99"})}
    pod = claiming("one", status=STALE)
    attempt = Attempt(a_world(a_claim("one", {"r": {}}), devices=devices), pod, FeatureGates())

    assert attempt.plugin.assumed(pod, "n", attempt.notes) is pod
    attempt.reserved()
    assert [write.kind for write in attempt.planned()] == ["ResourceClaim", "ResourceClaim"]


def test_the_pod_is_told_after_its_claims_were_written() -> None:
    devices = {"d0": maps(cpu={"allocationMultiplier": "1"})}
    attempt = Attempt(a_world(a_claim("one", {"r": {}}), devices=devices), claiming("one"))
    attempt.reserved()

    *claim, told = attempt.planned()

    assert [write.kind for write in claim] == ["ResourceClaim", "ResourceClaim"]
    status = {"resourceClaimName": "one", "containers": ["first", "app", "app"], "resources": {"cpu": "1"}}
    assert told == Write(
        "patch",
        "Pod",
        "default",
        "pod",
        {"metadata": {"uid": "uid-default-pod"}, "status": {"nodeAllocatableResourceClaimStatuses": [status]}},
        "status",
    )


def test_a_pod_that_was_not_written_yet_is_cleared_all_the_same() -> None:
    devices = {"d0": maps(cpu={"allocationMultiplier": "1"})}
    attempt = Attempt(a_world(a_claim("one", {"r": {}}), devices=devices), claiming("one"))
    attempt.reserved()

    (cleared,) = attempt.undone()

    assert (cleared.verb, cleared.kind, cleared.subresource) == ("patch", "Pod", "status")
    assert cleared.body["status"] == {"nodeAllocatableResourceClaimStatuses": None}


def test_a_claim_is_no_longer_reserved_for_a_pod_that_does_not_come() -> None:
    attempt = Attempt(a_world(a_claim("one", {"r": {}}), devices={"d0": {}}), claiming("one"))
    attempt.reserved()
    attempt.planned()

    (released,) = attempt.undone()

    assert released.strategic
    assert (released.kind, released.name, released.subresource) == ("ResourceClaim", "one", "status")
    assert released.body == {
        "metadata": {"uid": "uid-one"},
        "status": {"reservedFor": [{"$patch": "delete", "uid": "uid-default-pod"}]},
    }
    assert attempt.undone() == []


def test_a_claim_reserved_earlier_is_given_up_too() -> None:
    reserved = {"resource": "pods", "name": "pod", "uid": "uid-default-pod"}
    claim = allocated_claim("one", ["d0"], reservedFor=[reserved])
    attempt = Attempt(a_world(claim, devices={"d0": {}}), claiming("one"))

    assert [write.name for write in attempt.undone()] == ["one"]


def test_a_claim_made_for_extended_resources_is_deleted_again() -> None:
    offered = a_slice({"node": "n", "devices": {"d0": {}}})
    served = a_class("gpu", extendedResourceName="example.com/gpu")
    state = a_cluster(a_node("n"), served, offered, gates=ON)
    attempt = Attempt(state, a_pod(requests={"example.com/gpu": "1"}))
    attempt.reserved()
    made = attempt.planned()[0]

    finalizers, deleted = attempt.undone()

    name = made.body["metadata"]["name"]
    assert (finalizers.verb, finalizers.name, finalizers.body) == ("patch", name, {"metadata": {"finalizers": []}})
    assert (deleted.verb, deleted.kind, deleted.name) == ("delete", "ResourceClaim", name)


def test_what_one_profile_has_promised_is_taken_for_the_others() -> None:
    """Upstream's DRA manager is one for all profiles. Source: B117."""
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    made = wiring.from_builtins({**head, "profiles": [{"schedulerName": "one"}, {"schedulerName": "two"}]}, "test")
    ours, theirs = (made.profiles[name].plugins["DynamicResources"] for name in ("one", "two"))
    state = a_world(a_claim("first", {"r": {}}), a_claim("second", {"r": {}}), devices={"d0": {}})
    first, second = a_query(claiming("first"), state), a_query(claiming("second", name="other"), state)
    snapshot = state.snapshot()
    notes = ours.pre_filter(first, snapshot).notes
    assert ours.filter(first, snapshot.view(), notes) == ()
    assert ours.reserve(first, "n", snapshot, notes) is None

    late = theirs.pre_filter(second, snapshot).notes
    (refused,) = theirs.filter(second, snapshot.view(), late)
    assert refused.reason.text == "cannot allocate all claims"

    ours.unreserve(first, "n", notes)
    assert theirs.filter(second, snapshot.view(), theirs.pre_filter(second, snapshot).notes) == ()
