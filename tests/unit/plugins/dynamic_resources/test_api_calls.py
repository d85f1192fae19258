"""Reserve, PreBind and Unreserve of DynamicResources: in-flight devices, API calls and binding conditions."""

from typing import Any

import msgspec
import pytest

from extender.api.kinds.devices import ResourceClaim
from extender.cache.cache import Cache
from extender.cache.pod_info import PodInfo
from extender.config.feature_gates import FeatureGates
from extender.framework.api_plan import ApiPlan
from extender.framework.binding_points import PreBindPreFlightResult
from extender.framework.plugin_args import PluginArgs
from extender.framework.status import SUCCESS, Code, Status, error_status, unresolvable_status
from extender.plugins.dynamic_resources.args import DynamicResourcesArgs
from extender.plugins.dynamic_resources.plugin import DynamicResources
from tests.build import make_cluster, make_node, make_pod, make_pod_info
from tests.unit.dra.builders import DRIVER, make_allocated_claim, make_claim, make_device_class, make_slice

NOW = 1_772_323_200.0
STAMP = "2026-03-01T00:00:00Z"


class FakeClock:
    """A clock that does not advance by itself."""

    def __init__(self, now: float = NOW) -> None:
        self.time = now

    def monotonic(self) -> float:
        return 0.0

    def now(self) -> float:
        return self.time


def make_plugin(clock: FakeClock | None = None, **gates: bool) -> DynamicResources:
    return DynamicResources(PluginArgs(DynamicResourcesArgs("10s", "10m0s"), FeatureGates(gates)), clock or FakeClock())


def make_pod_with_claims(*names: str, name: str = "pod", **pod: Any) -> Any:
    entries = [{"name": entry, "resourceClaimName": entry} for entry in names]
    return make_pod(name, spec={"resourceClaims": entries} if entries else None, **pod)


def make_cache(*objects: Any, devices: Any = None) -> Cache:
    resource_slice = make_slice({"node": "n", "devices": {"d0": {}, "d1": {}} if devices is None else devices})
    return make_cluster(make_node("n"), make_device_class("gpu"), resource_slice, *objects)


def run_filter(plugin: DynamicResources, pod: PodInfo, cache: Cache) -> Any:
    """Return the PreFilter state after Filter."""
    snapshot = cache.snapshot()
    result = plugin.pre_filter(pod, snapshot)
    assert result.status is None
    plugin.filter(pod, snapshot.view(), result.state)
    return result.state


def plan_pre_bind(plugin: DynamicResources, cache: Cache, pod: Any) -> ApiPlan:
    pod_info = make_pod_info(pod, cache)
    state = run_filter(plugin, pod_info, cache)
    assert plugin.reserve(pod_info, "n", cache.snapshot(), state) is None
    plan = plugin.pre_bind(pod_info, "n", cache.snapshot(), state)
    assert isinstance(plan, ApiPlan)
    return plan


def test_reserve_is_an_error_if_pre_filter_is_disabled() -> None:
    plugin, cache = make_plugin(), make_cache()
    info = make_pod_info(make_pod("pod"), cache)

    assert plugin.reserve(info, "n", cache.snapshot(), None) == error_status("not found")
    skipped = plugin.pre_filter(info, cache.snapshot())
    assert plugin.reserve(info, "n", cache.snapshot(), skipped.state) is None


def test_a_reserved_device_is_allocated_until_it_is_unreserved() -> None:
    cache = make_cache(make_claim("one", {"r": {}}), make_claim("two", {"r": {"count": 2}}))
    plugin = make_plugin()
    first, second = (
        make_pod_info(make_pod_with_claims("one"), cache),
        make_pod_info(make_pod_with_claims("two", name="second"), cache),
    )
    state = run_filter(plugin, first, cache)
    assert plugin.reserve(first, "n", cache.snapshot(), state) is None

    second_result = plugin.pre_filter(second, cache.snapshot())
    (rejection,) = plugin.filter(second, cache.snapshot().view(), second_result.state)
    assert (rejection.nodes.tolist(), rejection.reason.text) == ([True], "cannot allocate all claims")

    plugin.unreserve(first, "n", state)
    second_result = plugin.pre_filter(second, cache.snapshot())
    assert plugin.filter(second, cache.snapshot().view(), second_result.state) == ()


def test_a_claim_in_flight_for_another_pod_rejects_the_pod() -> None:
    cache = make_cache(make_claim("one", {"r": {}}))
    plugin = make_plugin()
    first, second = (
        make_pod_info(make_pod_with_claims("one"), cache),
        make_pod_info(make_pod_with_claims("one", name="second"), cache),
    )
    plugin.reserve(first, "n", cache.snapshot(), run_filter(plugin, first, cache))
    want = unresolvable_status("resource claim default/one is in the process of being allocated")
    assert plugin.pre_filter(second, cache.snapshot()).status == want


@pytest.mark.parametrize(
    ("uid", "is_free"), [pytest.param("uid-one", True, id="allocated"), pytest.param("other", False, id="recreated")]
)
def test_a_claim_that_was_allocated_meanwhile_is_not_in_flight(uid: str, is_free: bool) -> None:
    """Only d1 is allocated, so that the other pod gets d0. A new claim of the same name is another claim.

    Source: pkg/scheduler/framework/plugins/dynamicresources/dra_manager.go, claimTracker.SignalClaimPendingAllocation
    (1.37).
    """
    cache = make_cache(make_claim("one", {"r": {}}), make_claim("two", {"r": {}}))
    plugin = make_plugin()
    first = make_pod_info(make_pod_with_claims("one"), cache)
    state = run_filter(plugin, first, cache)
    claim = make_allocated_claim("one", ("d1",))
    metadata = msgspec.structs.replace(claim.metadata, uid=uid)
    cache.add_or_update_object(msgspec.structs.replace(claim, metadata=metadata))
    second = make_pod_info(make_pod_with_claims("two", name="second"), cache)
    plugin.pre_filter(second, cache.snapshot())  # reads the allocation
    assert plugin.reserve(first, "n", cache.snapshot(), state) is None

    second_result = plugin.pre_filter(second, cache.snapshot())
    rejections = plugin.filter(second, cache.snapshot().view(), second_result.state)
    assert (rejections == ()) is is_free


def test_binding_conditions_are_waited_for() -> None:
    device = {"bindingConditions": ["ready"], "bindingFailureConditions": ["broken"]}
    cache = make_cache(make_claim("one", {"r": {}}), devices={"d0": device})
    clock = FakeClock()
    plan = plan_pre_bind(make_plugin(clock), cache, make_pod_with_claims("one"))
    assert plan.wait_condition is not None
    assert (plan.timeout, plan.timeout_status) == (
        600.0,
        error_status("device binding timeout: context deadline exceeded"),
    )
    assert plan.event == ("BindingConditionsPending", "waiting for binding conditions for device on node n")
    result = plan.calls[-1].body["status"]["allocation"]["devices"]["results"][0]
    assert (result["bindingConditions"], result["bindingFailureConditions"]) == (["ready"], ["broken"])

    def check_wait(*conditions: tuple[str, str]) -> Status | None:
        device_key = {"driver": DRIVER, "pool": "pool", "device": "d0"}
        device_conditions = [
            {"type": kind, "status": status, "reason": "R", "message": "m"} for kind, status in conditions
        ]
        allocation = {"allocationTimestamp": STAMP}
        cache.add_or_update_object(
            make_allocated_claim(
                "one", [result], allocation=allocation, devices=[{**device_key, "conditions": device_conditions}]
            )
        )
        assert plan.wait_condition is not None
        return plan.wait_condition(cache.snapshot())

    assert check_wait() is None
    assert check_wait(("ready", "False")) is None
    assert check_wait(("ready", "True")) == SUCCESS
    failed = 'device binding failed: claim=one, reason=R, message="m"'
    assert check_wait(("ready", "True"), ("broken", "True")) == error_status(failed)
    clock.time += 601
    assert check_wait() == error_status("device binding timeout: claim=one")


def test_pre_bind_pre_flight_skips_pods_without_claims() -> None:
    cache = make_cache(make_claim("one", {"r": {}}))
    plugin, pod_info = make_plugin(), make_pod_info(make_pod_with_claims("one"), cache)
    state = run_filter(plugin, pod_info, cache)
    assert plugin.pre_bind_pre_flight(pod_info, "n", state) == PreBindPreFlightResult(allow_parallel=True)
    assert plugin.pre_bind_pre_flight(pod_info, "n", None) == Status(Code.SKIP)


def plan_new_claim_with_conditions() -> tuple[Cache, FakeClock, ApiPlan]:
    """Return the plan of PreBind for an extended resource, whose device has a binding condition."""
    device = {"bindingConditions": ["ready"], "bindingFailureConditions": ["broken"]}
    served = make_device_class("served", extendedResourceName="example.com/gpu")
    cache, clock = make_cache(served, devices={"d0": device}), FakeClock()
    plan = plan_pre_bind(make_plugin(clock), cache, make_pod("pod", requests={"example.com/gpu": "1"}))
    return cache, clock, plan


def test_binding_conditions_of_a_new_claim_are_checked_when_the_watch_shows_the_claim() -> None:
    cache, _, plan = plan_new_claim_with_conditions()
    assert plan.wait_condition is not None
    assert plan.wait_condition(cache.snapshot()) is None

    name, result = plan.calls[0].name, plan.calls[1].body["status"]["allocation"]["devices"]["results"][0]
    cache.add_or_update_object(make_claim(name, {"r": {}}))
    assert plan.wait_condition(cache.snapshot()) is None

    ready = {"driver": DRIVER, "pool": "pool", "device": "d0", "conditions": [{"type": "ready", "status": "True"}]}
    cache.add_or_update_object(make_allocated_claim(name, [result], devices=[ready]))
    assert plan.wait_condition(cache.snapshot()) == SUCCESS
    cache.remove_object(ResourceClaim, f"default/{name}")
    assert plan.wait_condition(cache.snapshot()) == error_status(f'could not find ResourceClaim "default/{name}"')


def test_a_new_claim_that_the_watch_does_not_show_fails_the_binding_after_two_minutes() -> None:
    cache, clock, plan = plan_new_claim_with_conditions()
    assert plan.wait_condition is not None
    clock.time += 119
    assert plan.wait_condition(cache.snapshot()) is None
    clock.time += 1
    missing = f'could not find ResourceClaim "default/{plan.calls[0].name}"'
    assert plan.wait_condition(cache.snapshot()) == error_status(missing)
