"""The algorithm providers and the error for an unknown one."""

import pytest

from extender.config.errors import ConfigError
from extender.config.legacy_policy.algorithm_providers import ALGORITHM_PROVIDERS, get_provider
from extender.config.legacy_policy.plugin_names import PLUGIN_BY_PRIORITY, PLUGINS_BY_PREDICATE


@pytest.mark.parametrize("name", ALGORITHM_PROVIDERS)
def test_a_provider_has_known_predicates_and_priorities(name: str) -> None:
    policy = get_provider(name)
    assert {predicate.name for predicate in policy.predicates or ()} <= PLUGINS_BY_PREDICATE.keys()
    assert {priority.name for priority in policy.priorities or ()} <= PLUGIN_BY_PRIORITY.keys()


def test_an_unknown_provider_is_reported_with_the_known_ones() -> None:
    with pytest.raises(ConfigError) as caught:
        get_provider("DefaultProvder")
    assert str(caught.value) == (
        'couldn\'t create scheduler using provider "DefaultProvder": algorithm provider "DefaultProvder" is not '
        'registered: want ClusterAutoscalerProvider | DefaultProvider; did you mean "DefaultProvider"?'
    )
