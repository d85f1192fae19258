"""Taints that rules add to the devices of a slice. Source: B112."""

from collections.abc import Collection

import msgspec

from extender.objects.devices import Device, DeviceTaintRule, DeviceTaintSelector, ResourceSlice

_ANY = DeviceTaintSelector()


def tainted(piece: ResourceSlice, rules: Collection[DeviceTaintRule]) -> ResourceSlice:
    """*piece* with the taints of *rules* after the devices' own; the very object if no rule concerns it."""
    concerned = [rule for rule in rules if _concerns(rule.spec.device_selector or _ANY, piece)]
    if not concerned:
        return piece
    devices = tuple(_with_taints(device, concerned) for device in piece.spec.devices)
    return msgspec.structs.replace(piece, spec=msgspec.structs.replace(piece.spec, devices=devices))


def _concerns(selector: DeviceTaintSelector, piece: ResourceSlice) -> bool:
    spec = piece.spec
    return selector.driver in {None, spec.driver} and selector.pool in {None, spec.pool.name}


def _with_taints(device: Device, rules: Collection[DeviceTaintRule]) -> Device:
    added = tuple(
        rule.spec.taint for rule in rules if (rule.spec.device_selector or _ANY).device in {None, device.name}
    )
    return msgspec.structs.replace(device, taints=(*device.taints, *added)) if added else device
