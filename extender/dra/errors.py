"""Errors of the allocator; their texts are upstream's."""

from collections.abc import Iterable
from typing import Final

_MISSING_KEY_ADVICE: Final = (
    ". consider using CEL optional chaining (.? followed by orValue()) "
    "or guarding the check with has() for optional fields"
)


class AllocationError(Exception):
    """A claim, a class or a slice is invalid; the scheduling attempt ends."""


class AllocationTimeoutError(AllocationError):
    """The search for an allocation exceeded its timeout."""


class NodeAllocationError(Exception):
    """The devices of one node are invalid; other nodes may still fit."""


class CapacityError(AllocationError):
    """An amount of a capacity is negative or cannot be represented; the scheduling attempt ends."""


def make_selector_error(
    location: str, number: int, device_id: Iterable[str], error: Exception, *, explain: bool
) -> AllocationError:
    """Return the error of a selector whose evaluation fails on a device.

    Args:
        location: the object with the selector, such as `claim default/c`.
        number: the index of the selector.
        device_id: driver, pool and name of the device.
        error: the reason of the failure.
        explain: whether the error names the device, and gives advice if an attribute is missing.

    Source: dynamic-resource-allocation/cel/errors.go, EnhanceRuntimeError (1.37).
    """
    if not explain:
        return AllocationError(f"{location}: selector #{number}: CEL runtime error: {error}")
    advice = _MISSING_KEY_ADVICE if "no such key:" in str(error) else ""
    device = "/".join(device_id)
    return AllocationError(f"{location}: selector #{number} on device {device}: CEL runtime error: {error}{advice}")
