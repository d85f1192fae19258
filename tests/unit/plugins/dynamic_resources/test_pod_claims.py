"""Binding conditions of allocated claims."""

from typing import Any

import pytest

from extender.api.kinds.devices import ResourceClaim
from extender.cache.cache import Cache
from extender.framework.api_plan import ApiPlan
from extender.framework.status import Code, Status, unresolvable_status
from extender.plugins.dynamic_resources.pod_claims import (
    get_binding_error,
    has_binding_conditions,
    is_binding_timed_out,
    is_ready_for_binding,
)
from tests.build import make_object, make_pod, make_pod_info
from tests.unit.dra.builders import DRIVER, make_allocated_claim, make_claim
from tests.unit.plugins.dynamic_resources.test_api_calls import make_cache, make_plugin, run_filter
from tests.unit.plugins.dynamic_resources.test_deallocation import run_post_filter

ALLOCATED_AT = 1_772_323_200.0  # 2026-03-01T00:00:00Z


def make_claim_with_conditions(**conditions: str) -> ResourceClaim:
    result = {"device": "d0", "bindingConditions": ["ready"], "bindingFailureConditions": ["broken"]}
    device_status: dict[str, Any] = {"driver": DRIVER, "pool": "pool", "device": "d0"}
    device_status["conditions"] = [
        {"type": kind, "status": status, "reason": "Reason", "message": "text"} for kind, status in conditions.items()
    ]
    allocation = {"allocationTimestamp": "2026-03-01T00:00:00Z"}
    return make_allocated_claim("one", [result], allocation=allocation, devices=[device_status])


@pytest.mark.parametrize(
    ("conditions", "is_ready", "error"),
    [
        pytest.param({}, False, None, id="a missing condition is not ready"),
        pytest.param({"ready": "False"}, False, None, id="a false condition is not ready"),
        pytest.param({"ready": "True"}, True, None, id="a true condition is ready"),
        pytest.param(
            {"ready": "True", "broken": "True"},
            False,
            'device binding failed: claim=one, reason=Reason, message="text"',
            id="a true failure condition is an error",
        ),
        pytest.param({"ready": "True", "broken": "False"}, True, None, id="a false failure condition does not matter"),
    ],
)
def test_readiness_of_a_claim(conditions: dict[str, str], is_ready: bool, error: str | None) -> None:
    claim = make_claim_with_conditions(**conditions)
    assert (is_ready_for_binding(claim), get_binding_error(claim)) == (is_ready, error)
    assert has_binding_conditions(claim)


def test_a_claim_without_an_allocation_is_not_ready() -> None:
    claim = make_claim("one", {"r": {}})
    assert not is_ready_for_binding(claim)
    assert not has_binding_conditions(claim)
    assert not is_binding_timed_out(claim, 600.0, ALLOCATED_AT + 601)


def test_a_claim_without_binding_conditions_is_ready() -> None:
    claim = make_allocated_claim("one", ["d0"])
    assert is_ready_for_binding(claim)
    assert not has_binding_conditions(claim)


@pytest.mark.parametrize(("elapsed", "expected"), [(600.0, False), (601.0, True)], ids=["in time", "timed out"])
def test_the_binding_timeout(elapsed: float, expected: bool) -> None:
    assert is_binding_timed_out(make_claim_with_conditions(), 600.0, ALLOCATED_AT + elapsed) is expected


GROUP = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "team", "uid": "uid-team"}
ENTRY = {"name": "shared", "resourceClaimName": "one"}


def make_pod_group() -> Any:
    meta = {"name": "team", "namespace": "default", "uid": "uid-team"}
    raw = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": meta}
    return make_object({**raw, "spec": {"resourceClaims": [ENTRY]}})


def make_member(name: str = "pod", **body: Any) -> Any:
    spec = {"resourceClaims": [ENTRY], "schedulingGroup": {"podGroupName": "team"}, **body.pop("spec", {})}
    return make_pod(name, spec=spec, **body)


def plan_pre_bind(cache: Cache, **gates: Any) -> ApiPlan:
    plugin, pod_info = make_plugin(**gates), make_pod_info(make_member(), cache)
    state = run_filter(plugin, pod_info, cache)
    assert plugin.reserve(pod_info, "n", cache.snapshot(), state) is None
    plan = plugin.pre_bind(pod_info, "n", cache.snapshot(), state)
    assert isinstance(plan, ApiPlan)
    return plan


@pytest.mark.parametrize(
    ("enabled", "expected"),
    [
        pytest.param(True, GROUP, id="with the gate for the group"),
        pytest.param(False, {"resource": "pods", "name": "pod", "uid": "uid-default-pod"}, id="without it for the pod"),
    ],
)
def test_a_claim_of_the_group_is_reserved(enabled: bool, expected: dict[str, str]) -> None:
    plan = plan_pre_bind(make_cache(make_claim("one", {"r": {}}), make_pod_group()), DRAWorkloadResourceClaims=enabled)
    assert plan.calls[-1].body["status"]["reservedFor"] == [expected]


def test_a_claim_that_is_reserved_for_the_group_needs_no_call() -> None:
    cache = make_cache(make_allocated_claim("one", ["d0"], reservedFor=[GROUP]), make_pod_group())
    assert plan_pre_bind(cache, DRAWorkloadResourceClaims=True) == ApiPlan()


def test_a_missing_group_rejects_the_pod() -> None:
    cache = make_cache(make_claim("one", {"r": {}}))
    plugin = make_plugin(DRAWorkloadResourceClaims=True)
    result = plugin.pre_filter(make_pod_info(make_member(), cache), cache.snapshot())
    assert result.status == unresolvable_status('podgroup.scheduling.k8s.io "team" not found')


def test_the_name_of_a_missing_claim_is_quoted() -> None:
    """A file may have any text as the name."""
    cache = make_cache()
    pod = make_pod(spec={"resourceClaims": [{"name": "x", "resourceClaimName": "a\n\x9b31m"}]})
    result = make_plugin().pre_filter(make_pod_info(pod, cache), cache.snapshot())
    assert result.status == unresolvable_status(r'could not find ResourceClaim "default/a\n\u009b31m"')


def make_generated_claim(owner: dict[str, Any]) -> ResourceClaim:
    return make_claim("one", {"r": {}}, metadata={"ownerReferences": [{**owner, "uid": "x", "controller": True}]})


@pytest.mark.parametrize(
    ("owner", "expected"),
    [
        pytest.param(
            {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "name": "team"},
            None,
            id="the pod's group",
        ),
        pytest.param(
            {"apiVersion": "v1", "kind": "Pod", "name": "other"},
            unresolvable_status(
                "ResourceClaim default/one was not created for Pod default/pod "
                "(neither Pod nor PodGroup team is the owner)"
            ),
            id="another pod",
        ),
    ],
)
def test_the_owner_of_a_claim_from_a_template(owner: dict[str, Any], expected: Status | None) -> None:
    pod = make_member(
        spec={"resourceClaims": [{"name": "shared", "resourceClaimTemplateName": "t"}]},
        status={"resourceClaimStatuses": [{"name": "shared", "resourceClaimName": "one"}]},
    )
    cache = make_cache(make_generated_claim(owner), make_pod_group())
    plugin = make_plugin(DRAWorkloadResourceClaims=True)
    assert plugin.pre_enqueue(make_pod_info(pod, cache), cache.snapshot()) == expected


@pytest.mark.parametrize(
    ("assigned", "code", "reasons"),
    [
        pytest.param(False, Code.UNRESOLVABLE, ("ResourceClaim unreserved for PodGroup",), id="no pod runs"),
        pytest.param(True, Code.UNSCHEDULABLE, (), id="a pod runs"),
    ],
)
def test_a_reservation_for_the_group_is_removed_if_no_pod_of_it_is_assigned(
    assigned: bool, code: Code, reasons: tuple[str, ...]
) -> None:
    cache = make_cache(
        make_allocated_claim("one", ["d0"], reservedFor=[GROUP]),
        make_claim("two", {"r": {"count": 3}}),
        make_pod_group(),
    )
    if assigned:
        cache.add_or_update_pod(make_member("first", node="n"))
    resource_claims = {"resourceClaims": [ENTRY, {"name": "more", "resourceClaimName": "two"}]}
    result = run_post_filter(make_plugin(DRAWorkloadResourceClaims=True), cache, make_member(spec=resource_claims))
    assert result.status == Status(code, reasons)
    if result.plan is not None:
        (call,) = result.plan.calls
        assert (call.name, call.body["status"]) == ("one", {"reservedFor": []})
