"""Default plugins behind feature gates, their merging with custom ones, and defaults of empty fields."""

from typing import Any

import pytest

from extender.config.defaults import (
    DEFAULT_PLUGINS,
    add_gated_plugins,
    make_default_configuration,
    merge_plugin_set,
    replace_empty_fields,
)
from extender.config.feature_gates import FeatureGates
from extender.config.load import from_builtins
from extender.config.model import API_VERSION, KIND, ClientConnection, LeaderElection, Plugin, PluginSet
from extender.config.releases import RELEASE_1_36, RELEASE_1_37

GATES = FeatureGates({"GenericWorkload": True, "GangScheduling": True}, RELEASE_1_36)
DEFAULT_NAMES = [plugin.name for plugin in DEFAULT_PLUGINS["1.36"].multi_point.enabled]


def multi_point_names(**multi_point: list[str]) -> list[str]:
    sets = {key: [{"name": name} for name in names] for key, names in multi_point.items()}
    document = {"apiVersion": API_VERSION, "kind": KIND, "profiles": [{"plugins": {"multiPoint": sets}}]}
    (profile,) = add_gated_plugins(from_builtins(document, "f", RELEASE_1_36), GATES).profiles
    return [plugin.name for plugin in profile.plugins.multi_point.enabled]


def test_without_enabled_gates_the_configuration_is_not_changed() -> None:
    configuration = make_default_configuration()
    assert add_gated_plugins(configuration, FeatureGates()) is configuration


def test_node_name_comes_before_node_unschedulable_since_1_37() -> None:
    """Source: pkg/scheduler/apis/config/v1/default_plugins.go, getDefaultPlugins (1.36, 1.37)."""
    names_1_37 = [plugin.name for plugin in DEFAULT_PLUGINS["1.37"].multi_point.enabled]
    assert DEFAULT_NAMES[2:5] == ["NodeUnschedulable", "NodeName", "TaintToleration"]
    assert names_1_37[2:5] == ["NodeName", "NodeUnschedulable", "TaintToleration"]
    assert names_1_37[4:] == DEFAULT_NAMES[4:]


def test_generic_workload_alone_adds_gang_scheduling_since_1_37() -> None:
    """Source: pkg/scheduler/apis/config/v1/default_plugins.go, applyFeatureGates (1.37)."""
    gates = FeatureGates({"GenericWorkload": True}, RELEASE_1_37)
    (profile,) = add_gated_plugins(make_default_configuration(RELEASE_1_37), gates).profiles
    assert profile.plugins.multi_point.enabled[-1].name == "GangScheduling"


def test_deferred_pod_scheduling_comes_before_node_resources_fit() -> None:
    """Source: pkg/scheduler/apis/config/v1/default_plugins.go, applyDeferredPodScheduling (1.37)."""
    gates = FeatureGates({"InPlacePodVerticalScalingSchedulerPreemption": True, "GenericWorkload": True}, RELEASE_1_37)
    (profile,) = add_gated_plugins(make_default_configuration(RELEASE_1_37), gates).profiles
    names = [plugin.name for plugin in profile.plugins.multi_point.enabled]
    assert names[6:9] == ["NodePorts", "DeferredPodScheduling", "NodeResourcesFit"]
    assert names[-1] == "GangScheduling"


def test_a_gated_plugin_follows_the_default_plugins() -> None:
    assert multi_point_names() == [*DEFAULT_NAMES, "GangScheduling"]
    assert multi_point_names(enabled=["Custom"]) == [*DEFAULT_NAMES, "GangScheduling", "Custom"]
    moved = multi_point_names(enabled=["NodePorts"], disabled=["NodePorts"])
    assert moved[-2:] == ["GangScheduling", "NodePorts"]


def test_a_gated_plugin_that_is_listed_keeps_its_place_among_the_default_plugins() -> None:
    """Source: pkg/scheduler/apis/config/v1/default_plugins.go, mergePluginSet (1.36)."""
    assert multi_point_names(enabled=["Custom", "GangScheduling"]) == [*DEFAULT_NAMES, "GangScheduling", "Custom"]


def test_a_gated_plugin_that_is_disabled_is_not_added() -> None:
    assert multi_point_names(disabled=["GangScheduling"]) == DEFAULT_NAMES
    assert multi_point_names(enabled=["Custom"], disabled=["*"]) == ["Custom"]


def test_empty_strings_and_zeros_get_the_default() -> None:
    empty = LeaderElection(lease_duration=0.0, retry_period=3.0, resource_lock="", resource_name="x")
    assert replace_empty_fields(empty) == LeaderElection(retry_period=3.0, resource_name="x")
    assert replace_empty_fields(ClientConnection(content_type="", qps=0.0, burst=7)) == ClientConnection(burst=7)


DEFAULT = PluginSet((Plugin("A"), Plugin("B", 2), Plugin("C")))


def plugins(*names: str) -> tuple[Plugin, ...]:
    return tuple(Plugin(name) for name in names)


MERGED_SETS = {
    "nothing custom leaves the default": (PluginSet(), DEFAULT),
    "a custom plugin comes last": (PluginSet(plugins("X")), PluginSet((*DEFAULT.enabled, Plugin("X")))),
    "a disabled plugin is removed": (
        PluginSet(disabled=plugins("B")),
        PluginSet(plugins("A", "C"), plugins("B")),
    ),
    "a star removes all defaults": (
        PluginSet(plugins("X"), plugins("*")),
        PluginSet(plugins("X"), plugins("*")),
    ),
    "a plugin listed again keeps its position and takes the new weight": (
        PluginSet((Plugin("B", 7),)),
        PluginSet((Plugin("A"), Plugin("B", 7), Plugin("C"))),
    ),
    "a plugin disabled and listed again moves to the end": (
        PluginSet((Plugin("B", 7),), plugins("B")),
        PluginSet((Plugin("A"), Plugin("C"), Plugin("B", 7)), plugins("B")),
    ),
    "a plugin listed twice stays twice, the last in place of the default": (
        PluginSet((Plugin("B", 7), Plugin("B", 8))),
        PluginSet((Plugin("A"), Plugin("B", 8), Plugin("C"), Plugin("B", 7))),
    ),
    "the weight of a disabled plugin is ignored": (
        PluginSet(disabled=(Plugin("B", 3),)),
        PluginSet(plugins("A", "C"), plugins("B")),
    ),
}


@pytest.mark.parametrize(("custom", "merged"), MERGED_SETS.values(), ids=MERGED_SETS)
def test_a_custom_set_is_merged_with_the_default(custom: Any, merged: Any) -> None:
    assert merge_plugin_set(DEFAULT, custom) == merged


def test_plugins_disabled_by_the_default_follow_the_custom_ones() -> None:
    default = PluginSet(plugins("A", "B"), plugins("B"))
    assert merge_plugin_set(default, PluginSet(disabled=plugins("C"))) == PluginSet(plugins("A"), plugins("C", "B"))
