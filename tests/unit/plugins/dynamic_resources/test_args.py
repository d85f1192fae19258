"""The options of DynamicResources."""

import msgspec
import pytest

from extender.config.feature_gates import FeatureGates
from extender.config.strict_decoding import decode_strict
from extender.plugins.dynamic_resources.args import DynamicResourcesArgs


@pytest.mark.parametrize(
    ("raw", "gates", "expected"),
    [
        pytest.param({}, {}, {"filterTimeout": "10s", "bindingTimeout": "10m0s"}, id="defaults"),
        pytest.param(
            {"filterTimeout": "90s", "bindingTimeout": "1000ms"},
            {},
            {"filterTimeout": "1m30s", "bindingTimeout": "1s"},
            id="durations in their shortest form",
        ),
        pytest.param(
            {},
            {"DRASchedulerFilterTimeout": False, "DRAResourceClaimDeviceStatus": False},
            {"filterTimeout": None, "bindingTimeout": None},
            id="nothing with the gates off",
        ),
    ],
)
def test_options_are_written_out(raw: dict[str, str], gates: dict[str, bool], expected: dict[str, str | None]) -> None:
    feature_gates = FeatureGates(gates)
    options, errors = decode_strict(
        DynamicResourcesArgs.apply_defaults(raw, feature_gates), DynamicResourcesArgs, "args"
    )
    assert (options is not None and options.validate("args", feature_gates), errors) == ([], [])
    assert msgspec.to_builtins(options) == expected
