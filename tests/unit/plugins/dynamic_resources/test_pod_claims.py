"""Binding conditions of allocated claims."""

from typing import Any

import pytest

from extender.api.kinds.devices import ResourceClaim
from extender.plugins.dynamic_resources.pod_claims import (
    get_binding_error,
    has_binding_conditions,
    is_binding_timed_out,
    is_ready_for_binding,
)
from tests.unit.dra.builders import DRIVER, make_allocated_claim, make_claim

ALLOCATED_AT = 1_772_323_200.0  # 2026-03-01T00:00:00Z


def make_claim_with_conditions(**conditions: str) -> ResourceClaim:
    result = {"device": "d0", "bindingConditions": ["ready"], "bindingFailureConditions": ["broken"]}
    device_status: dict[str, Any] = {"driver": DRIVER, "pool": "pool", "device": "d0"}
    device_status["conditions"] = [
        {"type": kind, "status": status, "reason": "Reason", "message": "text"} for kind, status in conditions.items()
    ]
    allocation = {"allocationTimestamp": "2026-03-01T00:00:00Z"}
    return make_allocated_claim("one", [result], allocation=allocation, devices=[device_status])


@pytest.mark.parametrize(
    ("conditions", "is_ready", "error"),
    [
        pytest.param({}, False, None, id="a missing condition is not ready"),
        pytest.param({"ready": "False"}, False, None, id="a false condition is not ready"),
        pytest.param({"ready": "True"}, True, None, id="a true condition is ready"),
        pytest.param(
            {"ready": "True", "broken": "True"},
            False,
            'device binding failed: claim=one, reason=Reason, message="text"',
            id="a true failure condition is an error",
        ),
        pytest.param({"ready": "True", "broken": "False"}, True, None, id="a false failure condition does not matter"),
    ],
)
def test_readiness_of_a_claim(conditions: dict[str, str], is_ready: bool, error: str | None) -> None:
    claim = make_claim_with_conditions(**conditions)
    assert (is_ready_for_binding(claim), get_binding_error(claim)) == (is_ready, error)
    assert has_binding_conditions(claim)


def test_a_claim_without_an_allocation_is_not_ready() -> None:
    claim = make_claim("one", {"r": {}})
    assert not is_ready_for_binding(claim)
    assert not has_binding_conditions(claim)
    assert not is_binding_timed_out(claim, 600.0, ALLOCATED_AT + 601)


def test_a_claim_without_binding_conditions_is_ready() -> None:
    claim = make_allocated_claim("one", ["d0"])
    assert is_ready_for_binding(claim)
    assert not has_binding_conditions(claim)


@pytest.mark.parametrize(("elapsed", "expected"), [(600.0, False), (601.0, True)], ids=["in time", "timed out"])
def test_the_binding_timeout(elapsed: float, expected: bool) -> None:
    assert is_binding_timed_out(make_claim_with_conditions(), 600.0, ALLOCATED_AT + elapsed) is expected
