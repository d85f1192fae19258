"""Building profiles and plugins from configurations and Policies."""

import pytest

from extender.app.wiring import build_scheduling, build_scheduling_from_builtins, load_scheduling, make_runtime
from extender.config.errors import ConfigError

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def test_without_a_configuration_there_is_the_default_profile() -> None:
    scheduling = build_scheduling()
    assert list(scheduling.profiles) == ["default-scheduler"]
    assert scheduling.first_profile is scheduling.profiles["default-scheduler"]
    assert scheduling.warnings == ()


def test_the_rendered_configuration_builds_the_same_profiles() -> None:
    text = build_scheduling().render_with_defaults()
    assert load_scheduling(text.encode(), "config").render_with_defaults() == text


def test_errors_of_the_document_and_of_the_plugins_are_raised_together() -> None:
    text = HEAD + "paralelism: 3\nprofiles: [{plugins: {filter: {enabled: [{name: Nope}]}}}]\n"
    with pytest.raises(ConfigError) as caught:
        load_scheduling(text.encode(), "config")
    assert [error.path for error in caught.value.errors] == ["paralelism", "profiles[0].plugins.filter.enabled"]


def test_a_policy_is_converted_with_warnings() -> None:
    document = {
        "kind": "Policy",
        "apiVersion": "v1",
        "priorities": [{"name": "BalancedResourceAllocation", "weight": 2}],
    }
    scheduling = build_scheduling_from_builtins(document, "policy")
    assert list(scheduling.profiles) == ["default-scheduler"]
    assert any(warning.startswith("BalancedResourceAllocation: ") for warning in scheduling.warnings)


def test_a_runtime_caches_results_unless_disabled() -> None:
    assert make_runtime() is not make_runtime()
    assert make_runtime(cache_results=False) is not make_runtime(cache_results=False)
