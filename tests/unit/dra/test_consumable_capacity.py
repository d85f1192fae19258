"""Consumable capacity: rounding to the request policy, and the available capacity of a shared device."""

import pytest

from extender.api.codec import from_builtins
from extender.api.kinds.devices import CapacityRequirements, Device
from extender.dra.consumable_capacity import (
    Amount,
    Capacity,
    CapacityRules,
    ValidRange,
    build_capacities,
    calculate_consumed_capacities,
    calculate_consumed_capacity,
    fits_capacity,
    parse_amount,
)
from extender.dra.errors import CapacityError

RULES_1_36 = CapacityRules(fractional_ranges=False, checks_amounts=False)
GI = parse_amount("1Gi")
RANGE = Capacity(parse_amount("10Gi"), valid_range=ValidRange(GI, parse_amount("8Gi").nanos, GI.nanos))
VALUES = Capacity(parse_amount("10Gi"), valid_values=(parse_amount("2Gi"), parse_amount("4Gi")))


@pytest.mark.parametrize(
    ("capacity", "requested", "text"),
    [
        pytest.param(Capacity(parse_amount("10Gi")), None, "10Gi", id="without a request the total"),
        pytest.param(Capacity(parse_amount("10Gi"), GI), None, "1Gi", id="without a request the default"),
        pytest.param(Capacity(parse_amount("10Gi")), "3Gi", "3Gi", id="without a policy the request"),
        pytest.param(RANGE, "500Mi", "1Gi", id="at least the minimum"),
        pytest.param(RANGE, "1500Mi", "2Gi", id="rounded up to the next step"),
        pytest.param(RANGE, "9Gi", "9Gi", id="not limited to the maximum"),
        pytest.param(VALUES, "3Gi", "4Gi", id="the next valid value"),
        pytest.param(VALUES, "5Gi", "5Gi", id="above the last valid value"),
    ],
)
def test_the_consumed_capacity_follows_the_request_policy(capacity: Capacity, requested: str | None, text: str) -> None:
    assert calculate_consumed_capacity(requested, capacity).text == text


@pytest.mark.parametrize(
    ("capacity", "requests", "in_use", "allocating", "fits"),
    [
        pytest.param(RANGE, {"memory": "8Gi"}, "0", "0", True, id="the maximum"),
        pytest.param(RANGE, {"memory": "9Gi"}, "0", "0", False, id="more than the maximum"),
        pytest.param(RANGE, {"memory": "4Gi"}, "4Gi", "2Gi", True, id="the rest of the capacity"),
        pytest.param(RANGE, {"memory": "4Gi"}, "4Gi", "3Gi", False, id="more than the rest"),
        pytest.param(VALUES, {"memory": "5Gi"}, "0", "0", False, id="no valid value"),
        pytest.param(VALUES, {"cores": "1"}, "0", "0", False, id="a capacity that the device lacks"),
    ],
)
def test_a_request_fits_in_the_available_capacity(
    capacity: Capacity, requests: dict[str, str | int | float], in_use: str, allocating: str, fits: bool
) -> None:
    requirements = CapacityRequirements(requests=requests)
    consumed = ({"memory": parse_amount(in_use).nanos}, {"memory": parse_amount(allocating).nanos})
    assert fits_capacity({"memory": capacity}, requirements, *consumed) is fits


def test_a_device_s_capacities_have_their_request_policies() -> None:
    policy = {"default": "1Gi", "validRange": {"min": "1Gi", "max": "8Gi", "step": "1Gi"}}
    raw = {"name": "d", "capacity": {"memory": {"value": "10Gi", "requestPolicy": policy}, "cores": {"value": "4"}}}
    capacities = build_capacities(from_builtins(raw, Device))
    assert capacities == {
        "memory": Capacity(parse_amount("10Gi"), GI, ValidRange(GI, 8 * GI.nanos, GI.nanos)),
        "cores": Capacity(parse_amount("4")),
    }
    assert calculate_consumed_capacities(None, capacities) == {"memory": GI, "cores": Amount(4 * 10**9, "4")}


def make_range(minimum: str, maximum: str, step: str) -> Capacity:
    policy = {"default": minimum, "validRange": {"min": minimum, "max": maximum, "step": step}}
    raw = {"name": "d", "capacity": {"mem": {"value": "10", "requestPolicy": policy}}}
    return build_capacities(from_builtins(raw, Device))["mem"]


@pytest.mark.parametrize(
    ("capacity", "requested", "text", "text_1_36"),
    [
        (make_range("500m", "4", "250m"), "600m", "750m", "1"),
        (make_range("500m", "4", "250m"), "1", "1", "1"),
        (make_range("500m", "4", "500m"), "1100m", "1500m", "2"),
        (make_range("1000", "9000", "1000"), "1500", "2k", "2000"),
        (make_range("1Ki", "9Ki", "1Ki"), "1500", "2Ki", "2Ki"),
        (make_range("1500u", "4", "500u"), "1200u", "1500u", "1500u"),
    ],
    ids=[
        "a fractional step", "a whole result of fractional steps", "half a unit", "a decimal step", "a binary step",
        "below the minimum",
    ],
)  # fmt: skip
def test_fractional_steps_are_in_milli_units_since_1_37(
    capacity: Capacity, requested: str, text: str, text_1_36: str
) -> None:
    """Release 1.36 rounds to whole units and formats the result with binary suffixes.

    Source: dynamic-resource-allocation/structured/internal/incubating/consumable_capacity.go, roundUpRange (1.37).
    """
    assert calculate_consumed_capacity(requested, capacity).text == text
    assert calculate_consumed_capacity(requested, capacity, RULES_1_36).text == text_1_36


def test_a_request_between_milli_units_of_a_fractional_range_is_an_error() -> None:
    requirements = CapacityRequirements(requests={"mem": "600500u"})
    message = (
        'capacity "mem": capacity request cannot be represented in the device\'s range arithmetic: '
        "request 600500u is not a representable milli value"
    )
    with pytest.raises(CapacityError) as caught:
        fits_capacity({"mem": make_range("500m", "4", "250m")}, requirements, {}, {})
    assert str(caught.value) == message


def test_a_negative_capacity_is_an_error_since_1_37() -> None:
    requirements = CapacityRequirements(requests={"mem": "-1"})
    capacities = {"mem": Capacity(parse_amount("10"))}
    assert fits_capacity(capacities, requirements, {}, {}, RULES_1_36)
    with pytest.raises(CapacityError, match='capacity "mem": capacity value is negative'):
        fits_capacity(capacities, requirements, {}, {})
