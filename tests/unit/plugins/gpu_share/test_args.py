"""The options of GpuShare: defaults and errors with their field paths."""

from typing import Any

import pytest

from extender.config.errors import ConfigError
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_36
from extender.plugins.gpu_share.args import ClaimedDriver, GpuShareArgs
from extender.plugins.gpu_share.plugin import GpuShare
from extender.testing import make_cluster, run_plugin
from tests.unit.plugins.gpu_share.gpu_builders import gpu_node, shared_pod


def test_the_default_policy_is_fill_and_wasteful_pods_wait() -> None:
    args = GpuShareArgs()
    assert (args.score_policy, args.target_workload, args.wasteful_pods_wait) == ("Fill", (), True)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"scorePolicy": "Fgd"}, 'scorePolicy: Unsupported value: "Fgd": supported values: "Random", "DotProd"'),
        ({"wastefulPodsWait": "yes"}, "wastefulPodsWait"),
        ({"targetWorkload": [{"gpuMilli": 2000, "gpuCount": 2}]}, "targetWorkload[0].gpuMilli: Invalid value: 2000"),
        ({"targetWorkload": [{"gpus": 2}]}, "targetWorkload[0]"),
        ({"dynamicResources": [{"resource": "memory"}]}, "dynamicResources[0]"),
        ({"dynamicResources": [{"driver": ""}]}, "dynamicResources[0].driver: Required value"),
        ({"dynamicResources": [{"driver": "a", "resource": ""}]}, "dynamicResources[0].resource: Required value"),
        ({"dynamicResources": [{"driver": "a"}] * 2}, 'dynamicResources[1].driver: Duplicate value: "a"'),
    ],
)
def test_an_invalid_option_is_an_error_with_its_path(args: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        run_plugin(GpuShare, make_cluster(gpu_node("a"), shared_pod("p", 100)), "p", args)
    assert message in str(caught.value)


def test_drivers_need_the_feature_gate_of_dynamic_resources() -> None:
    args = GpuShareArgs(dynamic_resources=(ClaimedDriver("gpu.example.com"),))
    assert args.validate("args", FeatureGates()) == []
    (error,) = args.validate("args", FeatureGates({"DynamicResourceAllocation": False}, RELEASE_1_36))
    assert str(error) == "args.dynamicResources: Forbidden: DynamicResourceAllocation feature gate is disabled"
