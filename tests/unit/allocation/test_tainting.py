"""Taints that rules add to devices. Source: B112."""

import pytest

from extender.allocation.tainting import tainted
from extender.objects.devices import DeviceTaintRule, ResourceSlice
from tests.build import an_object
from tests.unit.allocation.worlds import a_claim, a_slice, a_world, an_allocator, told


def a_rule(**selector: str) -> DeviceTaintRule:
    taint = {"key": "broken", "effect": "NoSchedule"}
    raw = {"apiVersion": "resource.k8s.io/v1beta2", "kind": "DeviceTaintRule", "metadata": {"name": "rule"}}
    rule = an_object({**raw, "spec": {"deviceSelector": selector or None, "taint": taint}})
    assert isinstance(rule, DeviceTaintRule)
    return rule


SLICE = a_slice({"devices": {"a": {"taints": [{"key": "own", "effect": "None"}]}, "b": {}}})


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
def test_a_rule_taints(selector: dict[str, str], want: list[list[str]]) -> None:
    assert isinstance(SLICE, ResourceSlice)
    found = tainted(SLICE, [a_rule(**selector)])
    assert [[taint.key for taint in device.taints] for device in found.spec.devices] == want


@pytest.mark.parametrize(
    ("gates", "want"),
    [
        pytest.param({}, "a", id="rules are nothing while their gate is off"),
        pytest.param({"DRADeviceTaintRules": True}, "b", id="with the gate they keep claims off"),
    ],
)
def test_claims_are_kept_off_by_rules(gates: dict[str, bool], want: str) -> None:
    state = a_world({"slices": [{"devices": {"a": {}, "b": {}}}]})
    state.put_object(a_rule(device="a"))
    allocator = an_allocator(gates)
    cluster = state.snapshot()
    allocator.catch_up(cluster)
    asked = allocator.asked([a_claim("c", {"r": {}})])
    assert told(allocator.allocate(asked, cluster.nodes[0], 0)) == [[f"r: {want}"]]
