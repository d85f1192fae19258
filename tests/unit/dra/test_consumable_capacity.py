"""Consumable capacity: rounding to the request policy, and the available capacity of a shared device."""

import pytest

from extender.api.codec import from_builtins
from extender.api.kinds.devices import CapacityRequirements, Device
from extender.dra.consumable_capacity import (
    Amount,
    Capacity,
    ValidRange,
    build_capacities,
    calculate_consumed_capacities,
    calculate_consumed_capacity,
    fits_capacity,
    parse_amount,
)

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
    capacity: Capacity, requests: dict[str, str], in_use: str, allocating: str, fits: bool
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
