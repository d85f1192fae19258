"""Capacities of devices that several claims may share: what a request takes, and whether that is still free.

Amounts are integers of nano units. Source: B122.
"""

from collections.abc import Mapping
from typing import NamedTuple

from extender.cel.values import NANO, nanos
from extender.objects.devices import CapacityRequestPolicy, CapacityRequestPolicyRange, CapacityRequirements, Device
from extender.objects.record import RawQuantity

_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")

Amounts = Mapping[str, int]
"""Capacities by name, in nano units."""


class Amount(NamedTuple):
    """An amount.

    Attributes:
        nanos: in nano units.
        text: as it was written.
        computed: it was not written but worked out; as upstream such an amount is never taken for a default.
    """

    nanos: int
    text: str
    computed: bool = False


class Range(NamedTuple):
    """Amounts from `least` to `most` in steps above `least`; None: not limited."""

    least: Amount | None
    most: int | None
    step: int | None


class Capacity(NamedTuple):
    """A capacity of a device.

    Attributes:
        value: all of it.
        default: what a request takes that does not say; None: all.
        range: what requests may take; None: anything.
        choices: the only amounts that requests may take, ascending; empty: any.
    """

    value: Amount
    default: Amount | None = None
    range: Range | None = None
    choices: tuple[Amount, ...] = ()


def amount(raw: RawQuantity) -> Amount:
    """*raw* as an amount."""
    return Amount(nanos(raw), str(raw))


def capacities(device: Device) -> dict[str, Capacity]:
    """The capacities of *device* by name."""
    return {name: _capacity(each.value, each.request_policy) for name, each in device.capacity.items()}


def _capacity(value: RawQuantity, policy: CapacityRequestPolicy | None) -> Capacity:
    if policy is None:
        return Capacity(amount(value))
    allowed = policy.valid_range
    return Capacity(
        amount(value),
        None if policy.default is None else amount(policy.default),
        None if allowed is None else _range(allowed),
        tuple(map(amount, policy.valid_values)),
    )


def _range(allowed: CapacityRequestPolicyRange) -> Range:
    least = None if allowed.min is None else amount(allowed.min)
    return Range(least, _nanos(allowed.max), _nanos(allowed.step))


def _nanos(raw: RawQuantity | None) -> int | None:
    return None if raw is None else nanos(raw)


def consumed(requested: RawQuantity | None, capacity: Capacity) -> Amount:
    """What a request takes of *capacity*: rounded up to what is allowed; without a request the default, else all."""
    if requested is None:
        return capacity.default or capacity.value
    wanted = amount(requested)
    if capacity.range is not None and capacity.range.least is not None:
        return _rounded_up(wanted, capacity.range, capacity.range.least)
    return next((choice for choice in capacity.choices if wanted.nanos <= choice.nanos), wanted)


def _rounded_up(wanted: Amount, allowed: Range, least: Amount) -> Amount:
    if wanted.nanos < least.nanos:
        return least
    if not allowed.step:
        return wanted
    start, step = _whole(least.nanos), max(_whole(allowed.step), 1)
    result = start + -(-(_whole(wanted.nanos) - start) // step) * step
    return Amount(result * NANO, _canonical(result), computed=True)


def _whole(amount_in_nanos: int) -> int:
    return -(-amount_in_nanos // NANO)


def _canonical(whole: int) -> str:
    """A whole amount with the largest binary suffix that divides it."""
    power = 0
    while whole and whole % 1024 == 0 and power < len(_BINARY) - 1:
        whole, power = whole // 1024, power + 1
    return f"{whole}{_BINARY[power]}"


def _violates(taken: Amount, capacity: Capacity) -> bool:
    if capacity.default is not None and taken == capacity.default:
        return False
    allowed = capacity.range
    if allowed is not None:
        if allowed.most is not None and taken.nanos > allowed.most:
            return True
        if not allowed.step:
            return False
        return (_whole(taken.nanos) - (_whole(allowed.least.nanos) if allowed.least else 0)) % max(
            _whole(allowed.step), 1
        ) != 0
    return bool(capacity.choices) and all(taken.nanos != choice.nanos for choice in capacity.choices)


def has_room(
    offered: Mapping[str, Capacity], request: CapacityRequirements | None, in_use: Amounts, promised: Amounts
) -> bool:
    """Whether a request fits beside what is taken already.

    Args:
        offered: the capacities of the device.
        request: what is asked of them; other capacities are taken by default.
        in_use: what other claims have.
        promised: what this search has given away so far.
    """
    wanted = request.requests if request is not None else {}
    if any(name not in offered for name in wanted):
        return False
    for name, capacity in offered.items():
        taken = consumed(wanted.get(name), capacity)
        if _violates(taken, capacity):
            return False
        if taken.nanos + in_use.get(name, 0) + promised.get(name, 0) > capacity.value.nanos:
            return False
    return True


def taken_by(request: CapacityRequirements | None, offered: Mapping[str, Capacity]) -> dict[str, Amount]:
    """What a request takes of each capacity of a device."""
    wanted = request.requests if request is not None else {}
    return {name: consumed(wanted.get(name), capacity) for name, capacity in offered.items()}
