"""Device taint rules taint the selected devices of slices.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.PreFilter (1.36).
"""

import pytest

from extender.api.kinds.devices import DeviceTaintRule, ResourceSlice
from extender.dra.device_taint_rules import apply_taint_rules
from tests.build import make_object
from tests.unit.dra.builders import format_allocation, make_allocator, make_claim, make_cluster_with_devices, make_slice


def make_rule(**selector: str) -> DeviceTaintRule:
    taint = {"key": "broken", "effect": "NoSchedule"}
    raw = {"apiVersion": "resource.k8s.io/v1beta2", "kind": "DeviceTaintRule", "metadata": {"name": "rule"}}
    rule = make_object({**raw, "spec": {"deviceSelector": selector or None, "taint": taint}})
    assert isinstance(rule, DeviceTaintRule)
    return rule


SLICE = make_slice({"devices": {"a": {"taints": [{"key": "own", "effect": "None"}]}, "b": {}}})


@pytest.mark.parametrize(
    ("selector", "want"),
    [
        pytest.param({}, [["own", "broken"], ["broken"]], id="a rule without selector is for all devices"),
        pytest.param({"device": "b"}, [["own"], ["broken"]], id="one device"),
        pytest.param({"driver": "gpu.example.com", "pool": "pool"}, [["own", "broken"], ["broken"]], id="a pool"),
        pytest.param({"driver": "other.com"}, [["own"], []], id="another driver"),
        pytest.param({"pool": "other"}, [["own"], []], id="another pool"),
    ],
)
def test_a_rule_taints_the_selected_devices(selector: dict[str, str], want: list[list[str]]) -> None:
    assert isinstance(SLICE, ResourceSlice)
    tainted_slice = apply_taint_rules(SLICE, [make_rule(**selector)])
    assert [[taint.key for taint in device.taints] for device in tainted_slice.spec.devices] == want


@pytest.mark.parametrize(
    ("gates", "want"),
    [
        pytest.param({}, "a", id="without the gate, rules are ignored"),
        pytest.param({"DRADeviceTaintRules": True}, "b", id="with the gate, claims avoid the device"),
    ],
)
def test_claims_avoid_devices_that_rules_taint(gates: dict[str, bool], want: str) -> None:
    cache = make_cluster_with_devices({"slices": [{"devices": {"a": {}, "b": {}}}]})
    cache.add_or_update_object(make_rule(device="a"))
    allocator = make_allocator(gates)
    cluster = cache.snapshot()
    allocator.sync(cluster)
    claims = allocator.prepare([make_claim("c", {"r": {}})])
    assert format_allocation(allocator.allocate(claims, cluster.nodes[0])) == [[f"r: {want}"]]


def test_since_1_37_a_rule_without_a_selector_taints_no_device() -> None:
    """Source: dynamic-resource-allocation/resourceslice/tracker/tracker.go, Tracker.applyPatches (1.37)."""
    assert isinstance(SLICE, ResourceSlice)
    rule = make_rule()
    assert rule.spec.device_selector is None
    assert apply_taint_rules(SLICE, [rule], applies_rules_without_selector=False) is SLICE
    assert apply_taint_rules(SLICE, [rule], applies_rules_without_selector=True) is not SLICE
