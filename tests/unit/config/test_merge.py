"""Merging of custom plugin sets with the default ones.

Source: pkg/scheduler/apis/config/v1/default_plugins.go, mergePluginSet (1.36).
"""

import pytest

from extender.config.merge import merge_plugin_set
from extender.config.model import Plugin, PluginSet

DEFAULT = PluginSet((Plugin("A"), Plugin("B", 2), Plugin("C")))


def plugins(*names: str) -> tuple[Plugin, ...]:
    return tuple(Plugin(name) for name in names)


CASES = {
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


@pytest.mark.parametrize(("custom", "merged"), CASES.values(), ids=CASES)
def test_a_custom_set_is_merged_with_the_default(custom, merged):
    assert merge_plugin_set(DEFAULT, custom) == merged


def test_plugins_disabled_by_the_default_follow_the_custom_ones():
    default = PluginSet(plugins("A", "B"), plugins("B"))
    assert merge_plugin_set(default, PluginSet(disabled=plugins("C"))) == PluginSet(plugins("A"), plugins("C", "B"))
