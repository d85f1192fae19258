"""The checker finds each violation in a history written by hand, and none in the correct variants."""

from typing import Any

import pytest

from tests.history.checker import (
    Violation,
    check_bindings,
    find_bindings_by_other_leaders,
    find_safety_violations,
    find_violations,
)
from tests.history.history_builder import (
    HistoryBuilder,
    anti_affinity,
    device_of,
    node_affinity,
    volume_of,
)


def violated_rules(builder: HistoryBuilder) -> list[tuple[str, str, str]]:
    """Return rule, pod and node of each violation."""
    return [(each.rule, each.pod, each.node) for each in find_violations(builder.history())]


def bind(builder: HistoryBuilder, name: str = "web", node: str = "alpha", **spec: Any) -> None:
    """Add a pod and its binding."""
    builder.pod(name, **spec)
    builder.pod(name, node, **spec)


def test_a_correct_history_has_no_violation() -> None:
    builder = HistoryBuilder()
    builder.node()
    bind(builder, requests={"cpu": "2"})
    builder.pod("web", "alpha", requests={"cpu": "2"}, status={"phase": "Running"})
    bind(builder, "api", requests={"cpu": "2"})
    builder.pod("large", requests={"cpu": "1"})
    assert violated_rules(builder) == []


def test_a_violation_names_rule_pod_node_and_revision() -> None:
    builder = HistoryBuilder()
    builder.node()
    bind(builder, requests={"cpu": "5"})
    expected = Violation("allocatable", "default/web", "alpha", 3, "5 of 4 cpu (always)")
    assert find_violations(builder.history()) == [expected]
    assert str(expected) == "allocatable: default/web on alpha at revision 3: 5 of 4 cpu (always)"


@pytest.mark.parametrize(
    "requests",
    [{"cpu": "2500m"}, {"memory": "5Gi"}, {"example.com/gpu": "1"}, {"example.com/fpga": "1"}],
    ids=["cpu", "memory", "an extended resource", "a resource that the node does not have"],
)
def test_two_pods_that_request_more_than_the_node_offers_break_a_rule(requests: dict[str, str]) -> None:
    builder = HistoryBuilder()
    builder.node()
    bind(builder, "first", requests=requests)
    bind(builder, "second", requests=requests)
    found = violated_rules(builder)
    assert ("allocatable", "default/second", "alpha") in found
    assert (("allocatable", "default/first", "alpha") in found) == ("example.com/fpga" in requests)


def test_a_fourth_pod_on_a_node_with_room_for_three_breaks_a_rule() -> None:
    builder = HistoryBuilder()
    builder.node()
    for number in range(4):
        bind(builder, f"pod-{number}")
    assert violated_rules(builder) == [("allocatable", "default/pod-3", "alpha")]


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finished_pod_frees_its_node(phase: str) -> None:
    builder = HistoryBuilder()
    builder.node()
    bind(builder, "first", requests={"cpu": "3"}, port=80)
    builder.pod("first", "alpha", requests={"cpu": "3"}, port=80, status={"phase": phase})
    bind(builder, "second", requests={"cpu": "3"}, port=80)
    assert violated_rules(builder) == []


def test_a_terminating_pod_uses_its_node_until_it_is_deleted() -> None:
    builder = HistoryBuilder()
    builder.node()
    bind(builder, "first", requests={"cpu": "3"})
    terminating = {"metadata": {"uid": "first", "deletionTimestamp": "now"}}
    container = {"resources": {"requests": {"cpu": "3"}}}
    builder.add("Pod", "default/first", {**terminating, "spec": {"nodeName": "alpha", "containers": [container]}})
    bind(builder, "second", requests={"cpu": "3"})
    builder.delete("Pod", "default/first")
    assert violated_rules(builder) == [("allocatable", "default/second", "alpha")]


def test_a_pod_that_moves_breaks_a_rule() -> None:
    builder = HistoryBuilder()
    builder.node("alpha")
    builder.node("beta")
    bind(builder)
    builder.pod("web", "beta")
    assert violated_rules(builder) == [("bound once", "default/web", "beta")]


def test_a_binding_that_is_removed_breaks_a_rule() -> None:
    builder = HistoryBuilder()
    builder.node(unschedulable=False)
    bind(builder, schedulingGates=[{"name": "gate"}])
    gated = [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]
    builder.pod("web", schedulingGates=[{"name": "gate"}], status={"phase": "Pending", "conditions": gated})
    assert violated_rules(builder) == [("bound once", "default/web", "")]


def test_two_accepted_bindings_of_a_pod_break_a_rule() -> None:
    builder = HistoryBuilder()
    builder.node()
    bind(builder)
    builder.binding("web")
    builder.binding("web", accepted=False)
    assert violated_rules(builder) == []
    builder.binding("web")
    assert violated_rules(builder) == [("bound once", "default/web", "alpha")]


def test_a_pod_of_the_same_name_may_be_bound_to_another_node() -> None:
    builder = HistoryBuilder()
    builder.node("alpha")
    builder.node("beta")
    bind(builder, uid="one")
    builder.delete("Pod", "default/web")
    bind(builder, node="beta", uid="two")
    assert violated_rules(builder) == []


ATTRIBUTE_CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "a node selector": ("nodeSelector", {}, {"nodeSelector": {"disk": "ssd"}}),
    "affinity In": ("nodeAffinity", {}, {"affinity": node_affinity("disk", "In", "ssd", "nvme")}),
    "affinity NotIn": (
        "nodeAffinity",
        {"labels": {"disk": "hdd"}},
        {"affinity": node_affinity("disk", "NotIn", "hdd")},
    ),
    "affinity Exists": ("nodeAffinity", {}, {"affinity": node_affinity("disk", "Exists")}),
    "affinity DoesNotExist": (
        "nodeAffinity",
        {"labels": {"disk": "hdd"}},
        {"affinity": node_affinity("disk", "DoesNotExist")},
    ),
    "affinity Gt": ("nodeAffinity", {"labels": {"rack": "5"}}, {"affinity": node_affinity("rack", "Gt", "5")}),
    "affinity Lt": ("nodeAffinity", {"labels": {"rack": "5"}}, {"affinity": node_affinity("rack", "Lt", "5")}),
    "an empty term": (
        "nodeAffinity",
        {},
        {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}]}}}},
    ),
    "a taint": ("taint", {"taints": [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]}, {}),
    "a taint NoExecute with a toleration of another effect": (
        "taint",
        {"taints": [{"key": "dedicated", "effect": "NoExecute"}]},
        {"tolerations": [{"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}]},
    ),
    "a taint with a toleration of another value": (
        "taint",
        {"taints": [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]},
        {"tolerations": [{"key": "dedicated", "value": "y"}]},
    ),
    "a cordon": ("unschedulable", {"unschedulable": True}, {}),
}


@pytest.mark.parametrize("case", ATTRIBUTE_CASES)
def test_a_binding_to_a_node_with_attributes_that_forbid_it_breaks_a_rule(case: str) -> None:
    rule, node, pod = ATTRIBUTE_CASES[case]
    builder = HistoryBuilder()
    builder.node(**node)
    bind(builder, **pod)
    assert violated_rules(builder) == [(rule, "default/web", "alpha")]


PERMITTED_CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a node selector": ({"labels": {"disk": "ssd"}}, {"nodeSelector": {"disk": "ssd"}}),
    "affinity In": ({"labels": {"disk": "ssd"}}, {"affinity": node_affinity("disk", "In", "ssd")}),
    "affinity NotIn without the label": ({}, {"affinity": node_affinity("disk", "NotIn", "hdd")}),
    "affinity DoesNotExist": ({}, {"affinity": node_affinity("disk", "DoesNotExist")}),
    "affinity Gt": ({"labels": {"rack": "6"}}, {"affinity": node_affinity("rack", "Gt", "5")}),
    "affinity Lt": ({"labels": {"rack": "4"}}, {"affinity": node_affinity("rack", "Lt", "5")}),
    "a taint PreferNoSchedule": ({"taints": [{"key": "old", "effect": "PreferNoSchedule"}]}, {}),
    "a tolerated taint": (
        {"taints": [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]},
        {"tolerations": [{"key": "dedicated", "operator": "Equal", "value": "x", "effect": "NoSchedule"}]},
    ),
    "a tolerated cordon": (
        {"unschedulable": True},
        {"tolerations": [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]},
    ),
}


@pytest.mark.parametrize("case", PERMITTED_CASES)
def test_a_binding_to_a_node_with_attributes_that_permit_it_breaks_no_rule(case: str) -> None:
    node, pod = PERMITTED_CASES[case]
    builder = HistoryBuilder()
    builder.node(**node)
    bind(builder, **pod)
    assert violated_rules(builder) == []


@pytest.mark.parametrize(("seconds", "expected"), [(4.9, []), (5.1, ["unschedulable"])])
def test_a_binding_may_be_based_on_a_node_state_of_the_last_five_seconds(seconds: float, expected: list[str]) -> None:
    builder = HistoryBuilder()
    builder.node()
    builder.pod("web")
    builder.node(unschedulable=True)
    builder.wait(seconds - 0.01)
    builder.pod("web", "alpha")
    assert [each.rule for each in find_violations(builder.history())] == expected
    assert [round(each.staleness_seconds, 6) for each in check_bindings(builder.history())] == [seconds]


def test_a_binding_needs_one_state_of_the_node_that_satisfies_all_rules() -> None:
    builder = HistoryBuilder()
    builder.node(labels={"disk": "ssd"}, unschedulable=True)
    builder.node(labels={"disk": "hdd"})
    bind(builder, nodeSelector={"disk": "ssd"})
    assert violated_rules(builder) == [("nodeSelector", "default/web", "alpha")]


def test_a_binding_to_a_node_that_was_deleted_long_ago_or_never_existed_breaks_a_rule() -> None:
    builder = HistoryBuilder()
    builder.node("alpha")
    builder.delete("Node", "alpha")
    builder.wait(10.0)
    bind(builder)
    bind(builder, "api", "omega")
    expected = [("node exists", "default/web", "alpha"), ("node exists", "default/api", "omega")]
    assert violated_rules(builder) == expected


def test_two_pods_with_the_same_host_port_on_a_node_break_a_rule() -> None:
    builder = HistoryBuilder()
    builder.node()
    bind(builder, "first", port=80)
    bind(builder, "second", port=81)
    assert violated_rules(builder) == []
    bind(builder, "third", port=80)
    assert violated_rules(builder) == [("hostPort", "default/third", "alpha")]


def test_required_anti_affinity_is_checked_in_both_directions() -> None:
    builder = HistoryBuilder()
    builder.node()
    bind(builder, "first", app="web", affinity=anti_affinity("api"))
    bind(builder, "second", app="api")
    assert violated_rules(builder) == [("podAntiAffinity", "default/second", "alpha")]
    bind(builder, "third", app="batch", affinity=anti_affinity("web"))
    assert violated_rules(builder)[1:] == [("podAntiAffinity", "default/third", "alpha")]


def test_a_pod_is_bound_only_where_its_volume_is() -> None:
    builder = HistoryBuilder()
    builder.node("alpha")
    builder.node("beta")
    builder.volume("disk", "alpha")
    builder.claim("data")
    bind(builder, "early", volumes=volume_of("data"))
    builder.claim("data", "disk")
    bind(builder, "right", volumes=volume_of("data"))
    assert violated_rules(builder) == [("volume", "default/early", "alpha")]
    bind(builder, "wrong", "beta", volumes=volume_of("data"))
    assert violated_rules(builder)[1:] == [("volume", "default/wrong", "beta")]


def test_a_volume_of_two_claims_breaks_a_rule() -> None:
    builder = HistoryBuilder()
    builder.volume("disk", "alpha")
    builder.claim("first", "disk")
    builder.claim("second", "disk")
    assert violated_rules(builder) == [("shared volume", "default/second", "")]


def test_a_device_of_two_claims_breaks_a_rule() -> None:
    builder = HistoryBuilder()
    builder.device_claim("first", "gpu-0")
    builder.device_claim("first")
    builder.device_claim("second", "gpu-0")
    builder.device_claim("third", "gpu-0", node="beta")
    assert violated_rules(builder) == []
    builder.device_claim("first", "gpu-0")
    assert violated_rules(builder) == [("shared device", "default/first", "")]


def test_a_device_that_a_claim_gets_twice_breaks_a_rule() -> None:
    builder = HistoryBuilder()
    result = {"driver": "gpu.example.com", "pool": "alpha", "device": "gpu-0"}
    status = {"allocation": {"devices": {"results": [result, result]}}}
    builder.add("ResourceClaim", "default/gpu", {"status": status})
    assert violated_rules(builder) == [("shared device", "default/gpu", "")]


@pytest.mark.parametrize(
    ("claim", "node"),
    [({}, "alpha"), ({"device": "gpu-0", "reserved_for": "other"}, "alpha"), ({"device": "gpu-0"}, "beta")],
    ids=["not allocated", "reserved for another pod", "on another node"],
)
def test_a_pod_is_bound_only_with_its_device(claim: dict[str, str], node: str) -> None:
    builder = HistoryBuilder()
    builder.node("alpha")
    builder.node("beta")
    builder.device_claim("gpu", **{"reserved_for": "web", **claim})
    bind(builder, node=node, resourceClaims=device_of("gpu"))
    assert violated_rules(builder) == [("device", "default/web", node)]


def test_a_binding_by_a_replica_without_the_lease_breaks_a_rule() -> None:
    builder = HistoryBuilder()
    builder.node()
    builder.lease("one")
    bind(builder, "first")
    builder.binding("first", "one")
    builder.lease("two")
    bind(builder, "second")
    builder.binding("second", "two")
    bind(builder, "third")
    builder.binding("third", "one")
    found = find_bindings_by_other_leaders(builder.history())
    assert found == [
        Violation("leader", "default/third", "alpha", 9, "bound by one while two held the lease"),
    ]


def test_a_binding_without_a_known_sender_is_not_checked_for_the_lease() -> None:
    builder = HistoryBuilder()
    builder.node()
    builder.lease("one")
    bind(builder)
    builder.binding("web", "two", accepted=False)
    assert find_safety_violations(builder.history()) == []
