"""Selectors on devices: the fields and attributes that they read, by release and gates."""

from typing import Any

import pytest

from extender.api.codec import from_builtins
from extender.api.kinds.devices import DeviceSelector, ResourceSlice
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_36, RELEASE_1_37
from extender.dra.allocation_search import match_selectors
from extender.dra.errors import AllocationError
from extender.dra.features import make_features
from extender.dra.resource_slices import CompiledSlice

ATTRIBUTES = 'device.attributes["gpu.example.com"]'
DEVICE = {
    "name": "a",
    "allowMultipleAllocations": True,
    "attributes": {"models": {"strings": ["A100", "H100"]}},
}
STABLE = {"DRAConsumableCapacity": False, "DRADeviceBindingConditions": False, "DRAFractionalCapacityRange": False}


def matches(expression: str, gates: FeatureGates, device: dict[str, Any] = DEVICE) -> bool:
    spec = {"driver": "gpu.example.com", "devices": [device]}
    (compiled_device,) = CompiledSlice(from_builtins({"spec": spec}, ResourceSlice)).devices
    selector = from_builtins({"cel": {"expression": expression}}, DeviceSelector)
    return match_selectors(compiled_device, [selector], "class gpu", make_features(gates))


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
