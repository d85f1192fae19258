"""The plugin Coscheduling of a configuration is replaced by built-in plugins."""

from typing import Any

import pytest

from extender.app.wiring import build_setup_from_document, load_setup
from extender.config.errors import ConfigError
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_36, RELEASE_1_37, Release

MULTI_POINT = {"multiPoint": {"enabled": [{"name": "Coscheduling"}]}}
SORTED_BY_COSCHEDULING = {
    **MULTI_POINT,
    "queueSort": {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "*"}]},
}
SEPARATE_POINTS = {point: {"enabled": [{"name": "Coscheduling"}]} for point in ("preFilter", "permit", "reserve")}


def make_document(plugins: dict[str, Any], args: dict[str, Any] | None = None) -> dict[str, Any]:
    profile = {"plugins": plugins, "pluginConfig": [{"name": "Coscheduling", "args": args}] if args else []}
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return {**head, "profiles": [profile]}


@pytest.mark.parametrize("release", [RELEASE_1_36, RELEASE_1_37])
@pytest.mark.parametrize("plugins", [MULTI_POINT, SORTED_BY_COSCHEDULING, SEPARATE_POINTS])
def test_gang_scheduling_takes_its_place(plugins: dict[str, Any], release: Release) -> None:
    setup = build_setup_from_document(make_document(plugins), "scheduler.yaml", FeatureGates(release=release))

    profile = setup.first_profile
    assert setup.gates.coscheduling
    assert "GangScheduling" in profile.plugins
    assert "Coscheduling" not in profile.plugins
    assert profile.queue_sort.name == "PrioritySort"
    assert profile.gates.coscheduling
    assert "GenericWorkload" in profile.gates
    assert ("WorkloadAwarePreemption" in profile.gates) is (release is RELEASE_1_37)


def test_without_the_plugin_nothing_changes() -> None:
    setup = build_setup_from_document(make_document({}), "scheduler.yaml")
    assert not setup.gates.coscheduling
    assert "GenericWorkload" not in setup.first_profile.gates


def test_each_argument_without_effect_is_a_warning() -> None:
    args = {"permitWaitingTimeSeconds": 10, "podGroupBackoffSeconds": 0, "podGroupRejectPercentage": 10}
    warnings = build_setup_from_document(make_document(MULTI_POINT, args), "scheduler.yaml").warnings
    assert [warning.split(" has no effect")[0] for warning in warnings] == [f"Coscheduling: {name}" for name in args]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            {"permitWaitingTime": 10},
            'profiles[0].pluginConfig[0].args.permitWaitingTime: unknown field "permitWaitingTime"; '
            "want permitWaitingTimeSeconds, podGroupBackoffSeconds, podGroupRejectPercentage",
        ),
        (
            {"podGroupBackoffSeconds": -1},
            "profiles[0].pluginConfig[0].args.podGroupBackoffSeconds: "
            "Invalid value: -1: must be an integer of at least 0",
        ),
    ],
)
def test_a_wrong_argument_is_an_error(args: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        build_setup_from_document(make_document(MULTI_POINT, args), "scheduler.yaml")
    assert [str(error) for error in caught.value.errors] == [message]


def test_a_wrong_argument_hides_no_error_of_another_plugin() -> None:
    plugins = {"multiPoint": {"enabled": [{"name": "Coscheduling"}]}, "filter": {"enabled": [{"name": "Topology"}]}}
    with pytest.raises(ConfigError) as caught:
        build_setup_from_document(make_document(plugins, {"podGroupBackoffSeconds": -1}), "scheduler.yaml")
    assert [error.path for error in caught.value.errors] == [
        "profiles[0].pluginConfig[0].args.podGroupBackoffSeconds",
        "profiles[0].plugins.filter.enabled",
    ]


def test_generic_workload_beside_the_plugin_is_an_error() -> None:
    gates = FeatureGates({"GenericWorkload": True})
    with pytest.raises(ConfigError, match="Coscheduling cannot be used with the feature gate GenericWorkload"):
        build_setup_from_document(make_document(MULTI_POINT), "scheduler.yaml", gates)


def test_a_second_configuration_with_the_gates_of_the_first_is_accepted() -> None:
    first_setup = build_setup_from_document(make_document(MULTI_POINT), "scheduler.yaml")
    second_setup = build_setup_from_document(make_document(MULTI_POINT), "other.yaml", first_setup.gates)
    assert second_setup.gates.coscheduling


def test_the_rendered_configuration_schedules_the_same_groups() -> None:
    setup = build_setup_from_document(make_document(SORTED_BY_COSCHEDULING), "scheduler.yaml")
    text = setup.render_with_defaults()
    reloaded_setup = load_setup(text.encode(), "rendered.yaml")
    assert reloaded_setup.gates.coscheduling
    assert reloaded_setup.render_with_defaults() == text
    assert reloaded_setup.first_profile.plugins.keys() == setup.first_profile.plugins.keys()
