"""The policies by name, and the scheduler of each."""

from typing import Any

import pytest

from extender.app import wiring
from extender.experiments import policies
from extender.experiments.policies import POLICIES, Policy, UnknownPolicyError, build_setup, find_policies
from extender.experiments.runner import run_experiment
from extender.framework.per_node.decorators import unwrap_plugin
from extender.plugin import NodeInfo, Pod, score_plugin
from extender.plugins.gpu_share.target_workload import TargetPod
from extender.plugins.registry import load_registry
from tests.unit.experiments.small_trace import small_trace

WORKLOAD = (TargetPod(1000, 500, 1),)


@score_plugin("LeastCpu", normalize=True, reverse=True, cacheable=True)
def least_cpu(pod: Pod, node: NodeInfo) -> int:
    """The policy of docs/science.md."""
    return node.free("cpu")


def test_the_policies_are_found_once_each_in_order() -> None:
    found = find_policies(["FGD", "Fill", "FGD", "ImageLocality"])
    assert found == [Policy("FGD"), Policy("Fill"), Policy("ImageLocality", is_plugin=True)]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("fgd", 'there is no policy "fgd"; did you mean FGD?'),
        ("NodeName", 'there is no policy "NodeName"'),
        ("GpuShare", 'there is no policy "GpuShare"'),
    ],
    ids=["misspelt", "not a Score plugin", "the plugin of the policies"],
)
def test_an_unknown_policy_is_an_error_with_the_names(name: str, message: str) -> None:
    with pytest.raises(UnknownPolicyError) as caught:
        find_policies([name])
    assert str(caught.value).startswith(message)
    assert "Use Random, DotProd, GpuClustering" in str(caught.value)


@pytest.mark.parametrize("name", POLICIES)
def test_only_the_policy_scores(name: str) -> None:
    profile = build_setup(Policy(name), WORKLOAD, 7).first_profile
    assert [weighted.plugin.name for weighted in profile.score_plugins] == ["GpuShare"]
    assert [plugin.name for plugin in profile.filter_plugins][-2:] == ["NodeResourcesFit", "GpuShare"]
    assert profile.post_filter_plugins == ()


def test_fill_without_waiting_is_a_policy_of_its_own() -> None:
    for name, waits in (("Fill", True), ("FillNoWait", False)):
        options = build_setup(Policy(name), WORKLOAD, 7).profile_set.options["default-scheduler"]["GpuShare"]
        assert (options["scorePolicy"], options["seed"], options["wastefulPodsWait"]) == ("Fill", 7, waits)


def test_an_installed_score_plugin_replaces_the_score(monkeypatch: pytest.MonkeyPatch) -> None:
    registry: dict[str, Any] = {**load_registry(), "LeastCpu": unwrap_plugin(least_cpu)}
    monkeypatch.setattr(policies, "load_valid_plugins", lambda: (registry, []))
    monkeypatch.setattr(wiring, "load_valid_plugins", lambda: (registry, []))
    (policy,) = find_policies(["LeastCpu"])
    profile = build_setup(policy, WORKLOAD, 7).first_profile
    assert [weighted.plugin.name for weighted in profile.score_plugins] == ["LeastCpu"]
    assert [plugin.name for plugin in profile.reserve_plugins] == ["GpuShare"]
    allocated = run_experiment(small_trace(), policy, 1).allocated_percent
    assert 60 < allocated[max(allocated)] <= 100
