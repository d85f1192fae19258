"""Evaluate the CEL selectors of device classes and requests on devices.

Source: dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go, allocator.selectorsMatch
(1.36).
"""

from collections.abc import Sequence

from extender.api.kinds.devices import DeviceSelector
from extender.dra.cel.environment import CompileError, EvaluationError
from extender.dra.errors import AllocationError, make_selector_error
from extender.dra.features import Features
from extender.dra.resource_slices import SliceDevice


def match_selectors(
    device: SliceDevice, selectors: Sequence[DeviceSelector], location: str, features: Features
) -> bool:
    """Return whether *device* matches all *selectors*.

    For upstream's stable allocator, no device allows multiple allocations.

    *location* is the class or the claim with the selectors, for error messages.

    Raises:
        AllocationError: a selector is invalid or its evaluation fails.
    """
    allow_multiple = device.allow_multiple_allocations and features.needs_non_stable_allocator
    for number, selector in enumerate(selectors):
        expression = selector.cel.expression if selector.cel is not None else ""
        try:
            if not device.matches_expression(
                expression, reads_lists=features.reads_list_attributes, allow_multiple=allow_multiple
            ):
                return False
        except CompileError as error:
            raise AllocationError(f"{location}: selector #{number}: CEL compile error: {error}") from error
        except EvaluationError as error:
            explain = features.release.explains_selector_errors
            raise make_selector_error(location, number, device.id, error, explain=explain) from error
    return True
