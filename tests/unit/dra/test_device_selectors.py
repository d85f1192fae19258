"""Selectors on devices: the fields and attributes that they read, by release and gates."""

from typing import Any

import pytest

from extender.api.codec import from_builtins
from extender.api.kinds.devices import DeviceSelector, ResourceSlice
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_36, RELEASE_1_37
from extender.dra.allocation_search import match_selectors
from extender.dra.errors import AllocationError
from extender.dra.features import Features
from extender.dra.resource_slices import CompiledSlice, SliceDevice, _compile_long, _compile_short

ATTRIBUTES = 'device.attributes["gpu.example.com"]'
DEVICE = {
    "name": "a",
    "allowMultipleAllocations": True,
    "attributes": {"models": {"strings": ["A100", "H100"]}},
}
STABLE = {"DRAConsumableCapacity": False, "DRADeviceBindingConditions": False, "DRAFractionalCapacityRange": False}


def compile_device(device: dict[str, Any] = DEVICE) -> SliceDevice:
    spec = {"driver": "gpu.example.com", "devices": [device]}
    (compiled_device,) = CompiledSlice(from_builtins({"spec": spec}, ResourceSlice)).devices
    return compiled_device


def matches(expression: str, gates: FeatureGates, device: dict[str, Any] = DEVICE) -> bool:
    selector = from_builtins({"cel": {"expression": expression}}, DeviceSelector)
    return match_selectors(compile_device(device), [selector], "class gpu", Features(gates))


def test_selectors_read_lists_without_the_gate_since_1_37() -> None:
    """Recorded by `tests/oracle`."""
    expression = f'{ATTRIBUTES}.models.includes("H100")'
    assert matches(expression, FeatureGates(release=RELEASE_1_37))
    assert matches(expression, FeatureGates({"DRAListTypeAttributes": True}, release=RELEASE_1_36))
    with pytest.raises(AllocationError, match="attribute models: unsupported attribute value"):
        matches(expression, FeatureGates(release=RELEASE_1_36))


@pytest.mark.parametrize("release", [RELEASE_1_36, RELEASE_1_37], ids=["1.36", "1.37"])
def test_no_gate_removes_a_field_or_a_function(release: Any) -> None:
    """Source: dynamic-resource-allocation/cel/compile.go, newCompiler (1.36)."""
    gates = FeatureGates({"DRAConsumableCapacity": False, "DRAFractionalCapacityRange": False}, release=RELEASE_1_37)
    if release is RELEASE_1_36:
        gates = FeatureGates({"DRAConsumableCapacity": False}, release=release)
    device = {**DEVICE, "attributes": {"model": {"string": "A100"}}}
    assert matches(f'device.allowMultipleAllocations && {ATTRIBUTES}.model.includes("A100")', gates, device)


def test_for_the_stable_allocator_no_device_allows_multiple_allocations() -> None:
    """Source: dynamic-resource-allocation/structured/internal/stable/allocator_stable.go, selectorsMatch (1.37)."""
    assert not matches("device.allowMultipleAllocations", FeatureGates(STABLE, release=RELEASE_1_37))


def test_the_results_of_at_most_64_expressions_are_cached_for_a_device() -> None:
    """A slice stays for months, and each claim may select a device by its own name."""
    device = compile_device()
    results = [
        device.matches_expression(f"device.driver != 'other-{number}'", reads_lists=True, allow_multiple=True)
        for number in range(200)
    ]
    attributes = [device.derive_attribute(f"{number}").int_value for number in range(200)]
    assert results == [True] * 200
    assert attributes == list(range(200))
    assert len(device._expression_results) <= 64
    assert len(device._derived_attributes) <= 64


def test_at_most_64_expressions_of_more_than_1000_characters_are_cached() -> None:
    """One of 9,630 characters takes 0.7 MB."""
    device = compile_device()
    for number in range(70):
        expression = f"device.driver != 'other-{number}'".ljust(1001)
        assert device.matches_expression(expression, reads_lists=True, allow_multiple=True)
    assert _compile_long.cache_info().currsize == 64
    assert _compile_short.cache_info().maxsize == 1024
