"""Consumable capacity: the capacity that a request consumes of a shared device, and whether it is available.

Amounts are integers of nano units.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, AllocatorFeatures (1.36).
"""

from collections.abc import Mapping
from typing import NamedTuple

from extender.api.kinds.devices import CapacityRequestPolicy, CapacityRequestPolicyRange, CapacityRequirements, Device
from extender.api.kinds.struct_base import RawQuantity
from extender.dra.cel.values import NANO, to_nanos

_BINARY_SUFFIXES = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")

CapacityAmounts = Mapping[str, int]
"""Capacities by name, in nano units."""


class Amount(NamedTuple):
    """An amount of a capacity.

    Attributes:
        nanos: the amount in nano units.
        text: the quantity as written.
        computed: whether the amount was rounded. As upstream, a rounded amount never equals a default.
    """

    nanos: int
    text: str
    computed: bool = False


class ValidRange(NamedTuple):
    """Amounts from `minimum` to `maximum`, in multiples of `step` above `minimum`; None: unlimited."""

    minimum: Amount | None
    maximum: int | None
    step: int | None


class Capacity(NamedTuple):
    """A capacity of a device with its request policy.

    Attributes:
        value: the total capacity.
        default: the consumption of a request without an amount; None: the total.
        valid_range: the amounts that may be requested; None: any.
        valid_values: the only amounts that may be requested, ascending; empty: any.
    """

    value: Amount
    default: Amount | None = None
    valid_range: ValidRange | None = None
    valid_values: tuple[Amount, ...] = ()


def parse_amount(raw: RawQuantity) -> Amount:
    """Parse *raw* as an amount."""
    return Amount(to_nanos(raw), str(raw))


def build_capacities(device: Device) -> dict[str, Capacity]:
    """Return the capacities of *device* by name."""
    return {
        name: _parse_capacity(capacity.value, capacity.request_policy) for name, capacity in device.capacity.items()
    }


def _parse_capacity(value: RawQuantity, policy: CapacityRequestPolicy | None) -> Capacity:
    if policy is None:
        return Capacity(parse_amount(value))
    valid_range = policy.valid_range
    return Capacity(
        parse_amount(value),
        None if policy.default is None else parse_amount(policy.default),
        None if valid_range is None else _parse_range(valid_range),
        tuple(map(parse_amount, policy.valid_values)),
    )


def _parse_range(valid_range: CapacityRequestPolicyRange) -> ValidRange:
    minimum = None if valid_range.min is None else parse_amount(valid_range.min)
    return ValidRange(minimum, _parse_optional_nanos(valid_range.max), _parse_optional_nanos(valid_range.step))


def _parse_optional_nanos(raw: RawQuantity | None) -> int | None:
    return None if raw is None else to_nanos(raw)


def calculate_consumed_capacity(requested: RawQuantity | None, capacity: Capacity) -> Amount:
    """Return the consumed amount: the request rounded up to a valid amount, else the default, else the total."""
    if requested is None:
        return capacity.default or capacity.value
    amount = parse_amount(requested)
    if capacity.valid_range is not None and capacity.valid_range.minimum is not None:
        return _round_up_to_range(amount, capacity.valid_range, capacity.valid_range.minimum)
    return next((valid_value for valid_value in capacity.valid_values if amount.nanos <= valid_value.nanos), amount)


def _round_up_to_range(amount: Amount, valid_range: ValidRange, minimum: Amount) -> Amount:
    if amount.nanos < minimum.nanos:
        return minimum
    if not valid_range.step:
        return amount
    start, step = _round_up_to_units(minimum.nanos), max(_round_up_to_units(valid_range.step), 1)
    units = start + -(-(_round_up_to_units(amount.nanos) - start) // step) * step
    return Amount(units * NANO, _format_binary(units), computed=True)


def _round_up_to_units(amount_in_nanos: int) -> int:
    return -(-amount_in_nanos // NANO)


def _format_binary(units: int) -> str:
    """Format whole units with the largest binary suffix that divides them."""
    power = 0
    while units and units % 1024 == 0 and power < len(_BINARY_SUFFIXES) - 1:
        units, power = units // 1024, power + 1
    return f"{units}{_BINARY_SUFFIXES[power]}"


def _violates_policy(amount: Amount, capacity: Capacity) -> bool:
    if capacity.default is not None and amount == capacity.default:
        return False
    valid_range = capacity.valid_range
    if valid_range is not None:
        if valid_range.maximum is not None and amount.nanos > valid_range.maximum:
            return True
        if not valid_range.step:
            return False
        return (
            _round_up_to_units(amount.nanos)
            - (_round_up_to_units(valid_range.minimum.nanos) if valid_range.minimum else 0)
        ) % max(_round_up_to_units(valid_range.step), 1) != 0
    return bool(capacity.valid_values) and all(
        amount.nanos != valid_value.nanos for valid_value in capacity.valid_values
    )


def fits_capacity(
    capacities: Mapping[str, Capacity],
    requirements: CapacityRequirements | None,
    in_use: CapacityAmounts,
    allocating: CapacityAmounts,
) -> bool:
    """Return whether a request fits in the available capacity.

    Args:
        capacities: the device's capacities by name.
        requirements: the requested capacities; a capacity that is not requested is consumed by its default.
        in_use: the capacity consumed by other claims, in nano units.
        allocating: the capacity consumed by this search so far, in nano units.
    """
    requested = requirements.requests if requirements is not None else {}
    if any(name not in capacities for name in requested):
        return False
    for name, capacity in capacities.items():
        consumed = calculate_consumed_capacity(requested.get(name), capacity)
        if _violates_policy(consumed, capacity):
            return False
        if consumed.nanos + in_use.get(name, 0) + allocating.get(name, 0) > capacity.value.nanos:
            return False
    return True


def calculate_consumed_capacities(
    requirements: CapacityRequirements | None, capacities: Mapping[str, Capacity]
) -> dict[str, Amount]:
    """Return the consumed amount of each capacity of a device."""
    requested = requirements.requests if requirements is not None else {}
    return {name: calculate_consumed_capacity(requested.get(name), capacity) for name, capacity in capacities.items()}
