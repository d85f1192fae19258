"""Default plugins behind feature gates, and defaults of empty fields."""

from extender.config.defaults import (
    DEFAULT_PLUGINS,
    add_gated_plugins,
    default_client_connection,
    default_leader_election,
    make_default_configuration,
)
from extender.config.feature_gates import FeatureGates
from extender.config.load import from_builtins
from extender.config.model import API_VERSION, KIND, ClientConnection, LeaderElection

GATES = FeatureGates({"GenericWorkload": True, "GangScheduling": True})
DEFAULT_NAMES = [plugin.name for plugin in DEFAULT_PLUGINS.multi_point.enabled]


def multi_point_names(**multi_point: list[str]) -> list[str]:
    sets = {key: [{"name": name} for name in names] for key, names in multi_point.items()}
    document = {"apiVersion": API_VERSION, "kind": KIND, "profiles": [{"plugins": {"multiPoint": sets}}]}
    (profile,) = add_gated_plugins(from_builtins(document, "f"), GATES).profiles
    return [plugin.name for plugin in profile.plugins.multi_point.enabled]


def test_without_enabled_gates_the_configuration_is_not_changed() -> None:
    configuration = make_default_configuration()
    assert add_gated_plugins(configuration, FeatureGates()) is configuration


def test_a_gated_plugin_follows_the_default_plugins() -> None:
    assert multi_point_names() == [*DEFAULT_NAMES, "GangScheduling"]
    assert multi_point_names(enabled=["Custom"]) == [*DEFAULT_NAMES, "GangScheduling", "Custom"]


def test_a_gated_plugin_that_is_listed_or_disabled_is_not_added() -> None:
    assert multi_point_names(enabled=["Custom", "GangScheduling"]) == [*DEFAULT_NAMES, "Custom", "GangScheduling"]
    assert multi_point_names(disabled=["GangScheduling"]) == DEFAULT_NAMES
    assert multi_point_names(enabled=["Custom"], disabled=["*"]) == ["Custom"]


def test_empty_strings_and_zeros_get_the_default() -> None:
    empty = LeaderElection(lease_duration=0.0, retry_period=3.0, resource_lock="", resource_name="x")
    assert default_leader_election(empty) == LeaderElection(retry_period=3.0, resource_name="x")
    assert default_client_connection(ClientConnection(content_type="", qps=0.0, burst=7)) == ClientConnection(burst=7)
