"""DeviceTaintRules: taints added to the devices of a slice.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.PreFilter (1.36).
"""

from collections.abc import Collection

import msgspec

from extender.api.kinds.devices import Device, DeviceTaintRule, DeviceTaintSelector, ResourceSlice

_ANY_DEVICE = DeviceTaintSelector()


def apply_taint_rules(
    resource_slice: ResourceSlice, rules: Collection[DeviceTaintRule], *, applies_rules_without_selector: bool = True
) -> ResourceSlice:
    """Return the slice with the taints of *rules* on its devices; the same object if no rule selects it.

    With *applies_rules_without_selector*, as in release 1.36, a rule without a selector applies to all devices;
    otherwise to none.

    Source: dynamic-resource-allocation/resourceslice/tracker/tracker.go, Tracker.applyPatches (1.36, 1.37).
    """
    matching_rules = [
        rule
        for rule in rules
        if (applies_rules_without_selector or rule.spec.device_selector is not None)
        and _selects_slice(rule.spec.device_selector or _ANY_DEVICE, resource_slice)
    ]
    if not matching_rules:
        return resource_slice
    devices = tuple(_add_taints(device, matching_rules) for device in resource_slice.spec.devices)
    return msgspec.structs.replace(resource_slice, spec=msgspec.structs.replace(resource_slice.spec, devices=devices))


def _selects_slice(selector: DeviceTaintSelector, resource_slice: ResourceSlice) -> bool:
    spec = resource_slice.spec
    return selector.driver in {None, spec.driver} and selector.pool in {None, spec.pool.name}


def _add_taints(device: Device, rules: Collection[DeviceTaintRule]) -> Device:
    added_taints = tuple(
        rule.spec.taint for rule in rules if (rule.spec.device_selector or _ANY_DEVICE).device in {None, device.name}
    )
    return msgspec.structs.replace(device, taints=(*device.taints, *added_taints)) if added_taints else device
