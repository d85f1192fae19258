"""Claims that the pods of a group share, behind the gate DRAWorkloadResourceClaims. Source: B110, B115, B119."""

from typing import Any

import pytest

from extender.cluster.state import ClusterState
from extender.framework.points import Plan
from extender.framework.verdict import Code, Status, unresolvable
from extender.objects.devices import ResourceClaim
from tests.build import a_pod, a_query, an_object
from tests.unit.allocation.worlds import a_claim, allocated_claim
from tests.unit.plugins.test_dynamic_resources_binding import a_plugin, a_world, filtered, offered_with

GROUP = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "team", "uid": "uid-team"}
ENTRY = {"name": "shared", "resourceClaimName": "one"}


def a_group() -> Any:
    meta = {"name": "team", "namespace": "default", "uid": "uid-team"}
    raw = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": meta}
    return an_object({**raw, "spec": {"resourceClaims": [ENTRY]}})


def a_member(name: str = "pod", **body: Any) -> Any:
    spec = {"resourceClaims": [ENTRY], "schedulingGroup": {"podGroupName": "team"}, **body.pop("spec", {})}
    return a_pod(name, spec=spec, **body)


def plan_for(state: ClusterState, **gates: bool) -> Plan:
    plugin, query = a_plugin(**gates), a_query(a_member(), state)
    notes = filtered(plugin, query, state)
    assert plugin.reserve(query, "n", state.snapshot(), notes) is None
    plan = plugin.pre_bind(query, "n", state.snapshot(), notes)
    assert isinstance(plan, Plan)
    return plan


@pytest.mark.parametrize(
    ("on", "want"),
    [
        pytest.param(True, GROUP, id="with the gate for the group"),
        pytest.param(False, {"resource": "pods", "name": "pod", "uid": "uid-default-pod"}, id="without it for the pod"),
    ],
)
def test_a_claim_of_the_group_is_reserved(on: bool, want: dict[str, str]) -> None:
    plan = plan_for(a_world(a_claim("one", {"r": {}}), a_group()), DRAWorkloadResourceClaims=on)
    assert plan.writes[-1].body["status"]["reservedFor"] == [want]


def test_a_claim_that_is_reserved_for_the_group_needs_nothing_more() -> None:
    state = a_world(allocated_claim("one", ["d0"], reservedFor=[GROUP]), a_group())
    assert plan_for(state, DRAWorkloadResourceClaims=True) == Plan()


def test_a_group_that_is_missing_keeps_the_pod_waiting() -> None:
    state = a_world(a_claim("one", {"r": {}}))
    plugin = a_plugin(DRAWorkloadResourceClaims=True)
    answer = plugin.pre_filter(a_query(a_member(), state), state.snapshot())
    assert answer.status == unresolvable('podgroup.scheduling.k8s.io "team" not found')


def a_generated(owner: dict[str, Any]) -> ResourceClaim:
    return a_claim("one", {"r": {}}, metadata={"ownerReferences": [{**owner, "uid": "x", "controller": True}]})


@pytest.mark.parametrize(
    ("owner", "want"),
    [
        pytest.param(
            {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "name": "team"},
            None,
            id="the pod's group",
        ),
        pytest.param(
            {"apiVersion": "v1", "kind": "Pod", "name": "other"},
            unresolvable(
                "ResourceClaim default/one was not created for Pod default/pod "
                "(neither Pod nor PodGroup team is the owner)"
            ),
            id="somebody else",
        ),
    ],
)
def test_a_claim_from_a_template_may_belong_to(owner: dict[str, Any], want: Status | None) -> None:
    pod = a_member(
        spec={"resourceClaims": [{"name": "shared", "resourceClaimTemplateName": "t"}]},
        status={"resourceClaimStatuses": [{"name": "shared", "resourceClaimName": "one"}]},
    )
    state = a_world(a_generated(owner), a_group())
    plugin = a_plugin(DRAWorkloadResourceClaims=True)
    assert plugin.pre_enqueue(a_query(pod, state), state.snapshot()) == want


@pytest.mark.parametrize(
    ("placed", "code", "reason"),
    [
        pytest.param(False, Code.UNRESOLVABLE, "ResourceClaim unreserved for PodGroup", id="no pod of the group runs"),
        pytest.param(True, Code.UNSCHEDULABLE, "still not schedulable", id="a pod of the group runs"),
    ],
)
def test_a_reservation_is_given_up_while(placed: bool, code: Code, reason: str) -> None:
    state = a_world(allocated_claim("one", ["d0"], reservedFor=[GROUP]), a_claim("two", {"r": {"count": 3}}), a_group())
    if placed:
        state.put_pod(a_member("first", node="n"))
    two = {"resourceClaims": [ENTRY, {"name": "more", "resourceClaimName": "two"}]}
    answer = offered_with(a_plugin(DRAWorkloadResourceClaims=True), state, a_member(spec=two))
    assert answer.status == Status(code, (reason,))
    if answer.detail is not None:
        (write,) = answer.detail.writes
        assert (write.name, write.body["status"]) == ("one", {"reservedFor": []})
