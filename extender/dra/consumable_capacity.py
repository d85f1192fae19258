"""Consumable capacity: the amounts that a request consumes of a shared device, and whether they are available.

Amounts are integers of nano units.

Source: dynamic-resource-allocation/structured/internal/incubating/consumable_capacity.go, CmpRequestOverCapacity,
roundUpRange (1.36, 1.37).
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from extender.api.kinds.devices import CapacityRequestPolicy, CapacityRequestPolicyRange, CapacityRequirements, Device
from extender.api.kinds.meta import RawQuantity
from extender.api.quantity import MAX_INT64, Format, FormattedQuantity, Quantity, parse_formatted
from extender.dra.cel.values import NANO, to_nanos
from extender.dra.errors import CapacityError

_MILLI: Final = NANO // 1000

_NOT_REPRESENTABLE: Final = "capacity request cannot be represented in the device's range arithmetic"

CapacityAmounts = Mapping[str, int]
"""Capacities by name, in nano units."""


class CapacityRules(NamedTuple):
    """The rules of a release for amounts.

    Attributes:
        fractional_ranges: whether ranges may have fractional steps, in milli units (gate DRAFractionalCapacityRange).
        checks_amounts: whether an amount that cannot be represented is an error, and rounded amounts have the format of
            the step. Otherwise, as in release 1.36, rounded amounts have a binary format.
    """

    fractional_ranges: bool = True
    checks_amounts: bool = True


_RULES: Final = CapacityRules()
"""The rules of the newest release."""


class Amount(NamedTuple):
    """An amount of a capacity.

    Attributes:
        nanos: the amount in nano units.
        text: the quantity as written.
        rounded: whether the scheduler rounded the amount. As upstream, a rounded amount never equals a default.
    """

    nanos: int
    text: str
    rounded: bool = False


class ValidRange(NamedTuple):
    """The valid amounts: from `minimum` to `maximum`, in multiples of `step` above `minimum`. None: no restriction."""

    minimum: Amount | None
    maximum: int | None
    step: int | None
    step_format: Format = Format.BINARY

    def find_unit(self, rules: CapacityRules) -> int:
        """Return the unit of the arithmetic in nano units: one, or one thousandth if all values are multiples of it."""
        values = (None if self.minimum is None else self.minimum.nanos, self.maximum, self.step)
        is_milli = rules.fractional_ranges and all(
            value is None or (value % _MILLI == 0 and abs(value) // _MILLI <= MAX_INT64) for value in values
        )
        return _MILLI if is_milli else NANO


class Capacity(NamedTuple):
    """A capacity of a device with its request policy.

    Attributes:
        value: the total capacity.
        default: the consumed amount of a request without an amount; None: `value`.
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
    step_format = Format.BINARY if valid_range.step is None else parse_formatted(valid_range.step).format
    maximum, step = _parse_optional_nanos(valid_range.max), _parse_optional_nanos(valid_range.step)
    return ValidRange(minimum, maximum, step, step_format)


def _parse_optional_nanos(raw: RawQuantity | None) -> int | None:
    return None if raw is None else to_nanos(raw)


def calculate_consumed_capacity(
    requested: RawQuantity | None, capacity: Capacity, rules: CapacityRules = _RULES
) -> Amount:
    """Return the amount that a request consumes of *capacity*.

    This is the request, rounded up to a valid amount. Without a request, it is the default amount. Without a default,
    it is the total.

    Raises:
        CapacityError: the amount cannot be represented.
    """
    if requested is None:
        return capacity.default or capacity.value
    amount = parse_amount(requested)
    if capacity.valid_range is not None and capacity.valid_range.minimum is not None:
        return _round_up_to_range(amount, capacity.valid_range, capacity.valid_range.minimum, rules)
    return next((valid_value for valid_value in capacity.valid_values if amount.nanos <= valid_value.nanos), amount)


def _round_up_to_range(amount: Amount, valid_range: ValidRange, minimum: Amount, rules: CapacityRules) -> Amount:
    if amount.nanos < minimum.nanos:
        return minimum
    if not valid_range.step:
        return amount
    unit = valid_range.find_unit(rules)
    if unit == _MILLI and amount.nanos % _MILLI:
        raise CapacityError(f"{_NOT_REPRESENTABLE}: request {amount.text} is not a representable milli value")
    start, step = _round_up_to_units(minimum.nanos, unit), max(_round_up_to_units(valid_range.step, unit), 1)
    units = start + -(-(_round_up_to_units(amount.nanos, unit) - start) // step) * step
    if rules.checks_amounts and units > MAX_INT64:
        raise CapacityError(f"{_NOT_REPRESENTABLE}: rounding request {amount.text} up to the next step passes MaxInt64")
    quantity_format = valid_range.step_format if rules.checks_amounts else Format.BINARY
    nanos = units * unit
    text = FormattedQuantity(Quantity(nanos, -9, is_int64_amount=False), quantity_format).text
    return Amount(nanos, text, rounded=True)


def _round_up_to_units(amount_in_nanos: int, unit: int) -> int:
    return -(-amount_in_nanos // unit)


def _violates_policy(amount: Amount, capacity: Capacity, rules: CapacityRules) -> bool:
    if capacity.default is not None and amount == capacity.default:
        return False
    valid_range = capacity.valid_range
    if valid_range is not None:
        if valid_range.maximum is not None and amount.nanos > valid_range.maximum:
            return True
        if not valid_range.step:
            return False
        unit = valid_range.find_unit(rules)
        if unit == _MILLI and amount.nanos % _MILLI:
            return True
        start = _round_up_to_units(valid_range.minimum.nanos, unit) if valid_range.minimum else 0
        step = max(_round_up_to_units(valid_range.step, unit), 1)
        return (_round_up_to_units(amount.nanos, unit) - start) % step != 0
    return bool(capacity.valid_values) and all(
        amount.nanos != valid_value.nanos for valid_value in capacity.valid_values
    )


def fits_capacity(
    capacities: Mapping[str, Capacity],
    requirements: CapacityRequirements | None,
    consumed_capacity: CapacityAmounts,
    allocating_capacity: CapacityAmounts,
    rules: CapacityRules = _RULES,
) -> bool:
    """Return whether a request fits in the available capacity.

    If a capacity is not in *requirements*, its default amount is consumed. *consumed_capacity* is that of other claims,
    and *allocating_capacity* what this search has consumed so far, in nano units.

    Raises:
        CapacityError: an amount is negative or cannot be represented.
    """
    requested = requirements.requests if requirements is not None else {}
    if any(name not in capacities for name in requested):
        return False
    amounts = calculate_consumed_capacities(requirements, capacities, rules)
    for name, capacity in capacities.items():
        consumed_amount = amounts[name]
        if _violates_policy(consumed_amount, capacity, rules):
            return False
        if (
            consumed_amount.nanos + consumed_capacity.get(name, 0) + allocating_capacity.get(name, 0)
            > capacity.value.nanos
        ):
            return False
    return True


def calculate_consumed_capacities(
    requirements: CapacityRequirements | None, capacities: Mapping[str, Capacity], rules: CapacityRules = _RULES
) -> dict[str, Amount]:
    """Return the consumed amount of each capacity of a device.

    Raises:
        CapacityError: an amount is negative or cannot be represented.
    """
    requested = requirements.requests if requirements is not None else {}
    amounts: dict[str, Amount] = {}
    for name, capacity in capacities.items():
        try:
            amounts[name] = calculate_consumed_capacity(requested.get(name), capacity, rules)
        except CapacityError as error:
            raise CapacityError(f'capacity "{name}": {error}') from error
        if rules.checks_amounts and amounts[name].nanos < 0:
            raise CapacityError(f'capacity "{name}": capacity value is negative')
    return amounts
