"""From a node with devices to what is written down, and what is given up. Source: B115, B117 to B121."""

from typing import Any

import numpy as np
import pytest

from extender.cluster.pods import PodQuery
from extender.cluster.state import ClusterState
from extender.config.gates import FeatureGates
from extender.decide.feasible import Feasibility, Refusal
from extender.decide.prefiltering import PreFilterOutcome
from extender.framework.points import Plan, PostFiltered, PreFlight
from extender.framework.setup import Setup
from extender.framework.verdict import SUCCESS, Code, Status, error, unresolvable
from extender.objects.devices import ResourceClaim
from extender.plugins.dynamic_resources.options import DynamicResourcesOptions
from extender.plugins.dynamic_resources.plugin import DynamicResources
from tests.build import a_cluster, a_node, a_pod, a_query, an_object
from tests.unit.allocation.worlds import DRIVER, a_claim, a_class, a_slice, allocated_claim

NOW = 1_772_323_200.0
STAMP = "2026-03-01T00:00:00Z"


class Stopped:
    """A clock that stands still."""

    def __init__(self, now: float = NOW) -> None:
        self.time = now

    def monotonic(self) -> float:
        return 0.0

    def now(self) -> float:
        return self.time


def a_plugin(clock: Stopped | None = None, **gates: bool) -> DynamicResources:
    return DynamicResources(Setup(DynamicResourcesOptions("10s", "10m0s"), FeatureGates(gates)), clock or Stopped())


def claiming(*names: str, name: str = "pod", **pod: Any) -> Any:
    entries = [{"name": each, "resourceClaimName": each} for each in names]
    return a_pod(name, spec={"resourceClaims": entries} if entries else None, **pod)


def a_world(*objects: Any, devices: Any = None) -> ClusterState:
    offered = a_slice({"node": "n", "devices": {"d0": {}, "d1": {}} if devices is None else devices})
    return a_cluster(a_node("n"), a_class("gpu"), offered, *objects)


def filtered(plugin: DynamicResources, pod: PodQuery, state: ClusterState) -> Any:
    """PreFilter's notes after Filter."""
    snapshot = state.snapshot()
    before = plugin.pre_filter(pod, snapshot)
    assert before.status is None
    plugin.filter(pod, snapshot.view(), before.notes)
    return before.notes


def planned(plugin: DynamicResources, state: ClusterState, pod: Any) -> Plan:
    query = a_query(pod, state)
    notes = filtered(plugin, query, state)
    assert plugin.reserve(query, "n", state.snapshot(), notes) is None
    plan = plugin.pre_bind(query, "n", state.snapshot(), notes)
    assert isinstance(plan, Plan)
    return plan


def test_a_reserved_device_is_taken_for_the_next_pod_until_it_is_unreserved() -> None:
    state = a_world(a_claim("one", {"r": {}}), a_claim("two", {"r": {"count": 2}}))
    plugin = a_plugin()
    first, second = a_query(claiming("one"), state), a_query(claiming("two", name="second"), state)
    notes = filtered(plugin, first, state)
    assert plugin.reserve(first, "n", state.snapshot(), notes) is None

    after = plugin.pre_filter(second, state.snapshot())
    (refused,) = plugin.filter(second, state.snapshot().view(), after.notes)
    assert (refused.nodes.tolist(), refused.reason.text) == ([True], "cannot allocate all claims")

    plugin.unreserve(first, "n", notes)
    after = plugin.pre_filter(second, state.snapshot())
    assert plugin.filter(second, state.snapshot().view(), after.notes) == ()


def test_a_claim_that_is_being_allocated_for_another_pod_is_waited_for() -> None:
    state = a_world(a_claim("one", {"r": {}}))
    plugin = a_plugin()
    first, second = a_query(claiming("one"), state), a_query(claiming("one", name="second"), state)
    plugin.reserve(first, "n", state.snapshot(), filtered(plugin, first, state))
    want = unresolvable("resource claim default/one is in the process of being allocated")
    assert plugin.pre_filter(second, state.snapshot()).status == want


def test_an_allocation_is_written_after_the_finalizer() -> None:
    claim = a_claim("one", {"r": {}}, metadata={"resourceVersion": "7"})
    plan = planned(a_plugin(), a_world(claim), claiming("one"))

    finalizer, status = plan.writes
    assert (finalizer.verb, finalizer.kind, finalizer.namespace, finalizer.name, finalizer.subresource) == (
        "patch", "ResourceClaim", "default", "one", "",
    )  # fmt: skip
    assert finalizer.body == {
        "metadata": {
            "uid": "uid-one",
            "resourceVersion": "7",
            "finalizers": ["resource.kubernetes.io/delete-protection"],
        }
    }
    assert (status.verb, status.name, status.subresource) == ("patch", "one", "status")
    assert status.body == {
        "metadata": {"uid": "uid-one"},
        "status": {
            "allocation": {
                "devices": {"results": [{"request": "r", "driver": DRIVER, "pool": "pool", "device": "d0"}]},
                "nodeSelector": {
                    "nodeSelectorTerms": [
                        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
                    ]
                },
                "allocationTimestamp": STAMP,
            },
            "reservedFor": [{"resource": "pods", "name": "pod", "uid": "uid-default-pod"}],
        },
    }
    assert (plan.wait_for, plan.timeout) == (None, 0.0)


def test_an_allocated_claim_is_only_reserved() -> None:
    other = {"resource": "pods", "name": "other", "uid": "other"}
    claim = allocated_claim("one", ["d0"], allocation={"allocationTimestamp": STAMP}, reservedFor=[other])
    plan = planned(a_plugin(), a_world(claim), claiming("one"))
    (status,) = plan.writes
    assert status.body["status"]["reservedFor"] == [
        other,
        {"resource": "pods", "name": "pod", "uid": "uid-default-pod"},
    ]


def test_a_claim_that_is_reserved_already_needs_nothing() -> None:
    claim = allocated_claim("one", ["d0"], reservedFor=[{"resource": "pods", "name": "pod", "uid": "uid-default-pod"}])
    assert planned(a_plugin(), a_world(claim), claiming("one")) == Plan()


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        pytest.param(
            lambda state: state.drop_object(ResourceClaim, "default/one"),
            "claim default/one got deleted in the meantime",
            id="gone",
        ),
        pytest.param(
            lambda state: state.put_object(allocated_claim("one", ["d1"])),
            "claim default/one got allocated elsewhere in the meantime",
            id="allocated",
        ),
    ],
)
def test_a_claim_that_changed_meanwhile_ends_the_binding(change: Any, fault: str) -> None:
    state = a_world(a_claim("one", {"r": {}}))
    plugin, query = a_plugin(), a_query(claiming("one"), state)
    notes = filtered(plugin, query, state)
    plugin.reserve(query, "n", state.snapshot(), notes)
    change(state)
    assert plugin.pre_bind(query, "n", state.snapshot(), notes) == error(fault)


def test_binding_conditions_are_waited_for() -> None:
    device = {"bindingConditions": ["ready"], "bindingFailureConditions": ["broken"]}
    state = a_world(a_claim("one", {"r": {}}), devices={"d0": device})
    clock = Stopped()
    plan = planned(a_plugin(clock), state, claiming("one"))
    assert plan.wait_for is not None
    assert (plan.timeout, plan.late) == (600.0, error("device binding timeout: context deadline exceeded"))
    assert plan.announced == ("BindingConditionsPending", "waiting for binding conditions for device on node n")
    result = plan.writes[-1].body["status"]["allocation"]["devices"]["results"][0]
    assert (result["bindingConditions"], result["bindingFailureConditions"]) == (["ready"], ["broken"])

    def told(*conditions: tuple[str, str]) -> Status | None:
        seen = {"driver": DRIVER, "pool": "pool", "device": "d0"}
        made = [{"type": kind, "status": status, "reason": "R", "message": "m"} for kind, status in conditions]
        allocation = {"allocationTimestamp": STAMP}
        state.put_object(
            allocated_claim("one", [result], allocation=allocation, devices=[{**seen, "conditions": made}])
        )
        assert plan.wait_for is not None
        return plan.wait_for(state.snapshot())

    assert told() is None
    assert told(("ready", "False")) is None
    assert told(("ready", "True")) == SUCCESS
    failed = 'device binding failed: claim=one, reason=R, message="m"'
    assert told(("ready", "True"), ("broken", "True")) == error(failed)
    clock.time += 601
    assert told() == error("device binding timeout: claim=one")


def test_extended_resources_get_a_claim_and_the_pod_is_told() -> None:
    state = a_world(a_class("served", extendedResourceName="example.com/gpu"))
    plan = planned(a_plugin(), state, a_pod(requests={"example.com/gpu": "2"}))

    create, status, pod = plan.writes
    name = create.name
    assert name.startswith("pod-extended-resources-")
    assert len(name) == len("pod-extended-resources-") + 5
    assert (create.verb, create.kind) == ("create", "ResourceClaim")
    assert create.body["metadata"] == {
        "name": name,
        "namespace": "default",
        "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
        "finalizers": ["resource.kubernetes.io/delete-protection"],
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Pod", "name": "pod", "uid": "uid-default-pod", "controller": True}
        ],
    }
    exactly = {"deviceClassName": "served", "allocationMode": "ExactCount", "count": 2}
    assert create.body["spec"] == {"devices": {"requests": [{"name": "container-0-request-0", "exactly": exactly}]}}
    devices = [each["device"] for each in status.body["status"]["allocation"]["devices"]["results"]]
    assert (status.name, status.subresource, devices) == (name, "status", ["d0", "d1"])
    assert (pod.kind, pod.name, pod.subresource) == ("Pod", "pod", "status")
    assert pod.body["status"]["extendedResourceClaimStatus"] == {
        "requestMappings": [
            {"containerName": "app", "resourceName": "example.com/gpu", "requestName": "container-0-request-0"}
        ],
        "resourceClaimName": name,
    }


def test_extended_resources_of_a_device_plugin_need_no_claim() -> None:
    served = a_class("served", extendedResourceName="example.com/gpu")
    state = a_cluster(a_node("n", allocatable={"example.com/gpu": "2"}), served)
    assert planned(a_plugin(), state, a_pod(requests={"example.com/gpu": "2"})) == Plan()


def test_pre_bind_is_announced_for_pods_with_claims_only() -> None:
    state = a_world(a_claim("one", {"r": {}}))
    plugin, query = a_plugin(), a_query(claiming("one"), state)
    notes = filtered(plugin, query, state)
    assert plugin.pre_bind_pre_flight(query, "n", notes) == PreFlight(parallel=True)
    assert plugin.pre_bind_pre_flight(query, "n", None) == Status(Code.SKIP)


def offered(state: ClusterState, pod: Any) -> PostFiltered:
    """What PostFilter says after every node was refused by this plugin."""
    return offered_with(a_plugin(), state, pod)


def offered_with(plugin: DynamicResources, state: ClusterState, pod: Any) -> PostFiltered:
    """As `offered`, by *plugin*."""
    query = a_query(pod, state)
    before = plugin.pre_filter(query, state.snapshot())
    assert before.status is None
    view = state.snapshot().view()
    refusals = tuple(Refusal(plugin.name, each.reason, each.nodes) for each in plugin.filter(query, view, before.notes))
    outcome = PreFilterOutcome(notes={plugin.name: before.notes})
    found = Feasibility(len(view), outcome, np.zeros(len(view), dtype=np.bool_), refusals)

    class Failed:
        feasibility = found

    return plugin.post_filter(query, state.snapshot(), Failed())  # type: ignore[arg-type]


ELSEWHERE = {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "z", "operator": "Exists"}]}]}}


def test_an_allocation_that_is_of_no_use_is_given_up() -> None:
    state = a_world(allocated_claim("one", ["d0"], allocation=ELSEWHERE))
    answer = offered(state, claiming("one"))
    assert answer.status == Status(Code.UNSCHEDULABLE, ("deallocation of ResourceClaim completed",))
    (write,) = answer.detail.writes
    assert (write.verb, write.name, write.subresource) == ("patch", "one", "status")
    assert write.body["status"] == {"allocation": None, "reservedFor": None, "devices": None}


def test_it_stays_while_another_pod_holds_it() -> None:
    other = {"resource": "pods", "name": "other", "uid": "other"}
    state = a_world(allocated_claim("one", ["d0"], allocation=ELSEWHERE, reservedFor=[other]))
    answer = offered(state, claiming("one"))
    assert (answer.status.reasons, answer.detail) == (("still not schedulable",), None)


def test_a_claim_that_was_not_in_the_way_stays() -> None:
    state = a_world(allocated_claim("one", ["d0"]), a_claim("two", {"r": {"count": 2}}))
    assert offered(state, claiming("one", "two")).status.reasons == ("still not schedulable",)


def test_a_left_over_claim_for_extended_resources_is_deleted() -> None:
    left = an_object(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {
                "name": "left",
                "namespace": "default",
                "uid": "left",
                "finalizers": ["mine", "resource.kubernetes.io/delete-protection"],
                "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
                "ownerReferences": [{"kind": "Pod", "name": "pod", "uid": "uid-default-pod", "controller": True}],
            },
            "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "served"}}]}},
        }
    )
    state = a_world(a_class("served", extendedResourceName="example.com/gpu"), left)
    answer = offered(state, a_pod(requests={"example.com/gpu": "1"}))
    assert answer.status.reasons == ("deletion of ResourceClaim completed",)
    unprotected, deleted = answer.detail.writes
    assert unprotected.body["metadata"]["finalizers"] == ["mine"]
    assert (deleted.verb, deleted.name) == ("delete", "left")
