"""The feature gates that affect scheduling."""

import pytest

from extender.config.errors import ConfigError
from extender.config.feature_gates import SCHEDULING_GATE_DEFAULTS, FeatureGates


def test_without_overrides_the_default_gates_are_enabled() -> None:
    assert FeatureGates().list_enabled() == sorted(name for name, value in SCHEDULING_GATE_DEFAULTS.items() if value)


def test_overrides_enable_and_disable_gates() -> None:
    gates = FeatureGates({"GangScheduling": True, "DRADeviceTaints": False})
    assert "GangScheduling" in gates
    assert "DRADeviceTaints" not in gates
    assert "DynamicResourceAllocation" in gates


def test_an_unknown_gate_is_rejected_with_a_suggestion() -> None:
    with pytest.raises(ConfigError) as caught:
        FeatureGates({"GangSchedulin": True})
    assert str(caught.value) == ('featureGates: unknown feature gate "GangSchedulin"; did you mean "GangScheduling"?')
