"""The plugin Coscheduling of a configuration for kubernetes-sigs/scheduler-plugins, replaced by built-in plugins.

Its groups are scheduled as the pod groups of the release are: all pending members together. GangScheduling takes the
place of Coscheduling, and PrioritySort its place in queueSort.

Source: apis/config/v1/types.go, CoschedulingArgs; apis/config/validation/validation_pluginargs.go,
ValidateCoschedulingArgs; pkg/coscheduling/coscheduling.go, Coscheduling (kubernetes-sigs/scheduler-plugins 0.35).
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

import msgspec

from extender.api.label_syntax import invalid_value
from extender.config.errors import FieldError, child
from extender.config.feature_gates import FeatureGates
from extender.config.model import Configuration, Plugin, Plugins, PluginSet, Profile

COSCHEDULING: Final = "Coscheduling"
"""The name of the plugin."""

_GANG_SCHEDULING: Final = "GangScheduling"
_EFFECTS: Final[Mapping[str, str]] = {
    "permitWaitingTimeSeconds": "the members of a group are placed together, so no member waits for others on a node",
    "podGroupBackoffSeconds": "a group that cannot be placed backs off as pods do, by podInitialBackoffSeconds",
    "podGroupRejectPercentage": "a group is tried as a whole, so there is no early rejection of its members",
}
"""By argument of the plugin, what replaces it."""


def has_coscheduling(configuration: Configuration) -> bool:
    """Return whether a profile enables the plugin."""
    return any(_enables_coscheduling(profile) for profile in configuration.profiles)


def _enables_coscheduling(profile: Profile) -> bool:
    plugin_sets = (getattr(profile.plugins, point) for point in Plugins.__struct_fields__)
    return any(plugin.name == COSCHEDULING for plugin_set in plugin_sets for plugin in plugin_set.enabled)


def find_coscheduling_errors(configuration: Configuration, gates: FeatureGates) -> list[FieldError]:
    """Return the errors in arguments of the plugin, and the error if the gate GenericWorkload is enabled too."""
    errors = [error for profile in configuration.profiles for error in _find_args_errors(profile)]
    if "GenericWorkload" in gates and not gates.coscheduling:
        message = (
            "Coscheduling cannot be used with the feature gate GenericWorkload, because both define the pod groups;"
            " disable one of them"
        )
        errors.append(FieldError("profiles", message))
    return errors


def replace_coscheduling(configuration: Configuration, gates: FeatureGates) -> tuple[Configuration, FeatureGates]:
    """Return *configuration* with built-in plugins in place of Coscheduling, and the gates that schedule its groups."""
    profiles = tuple(map(_replace_in_profile, configuration.profiles))
    return replace(configuration, profiles=profiles), gates.with_coscheduling()


def restore_coscheduling(configuration: Configuration) -> Configuration:
    """Return *configuration*, which `replace_coscheduling` changed, with the plugin in place of GangScheduling."""

    def restore(plugin: Plugin) -> Plugin:
        return Plugin(COSCHEDULING) if plugin.name == _GANG_SCHEDULING else plugin

    def restore_in_profile(profile: Profile) -> Profile:
        multi_point = profile.plugins.multi_point
        enabled = tuple(map(restore, multi_point.enabled))
        plugins = msgspec.structs.replace(profile.plugins, multi_point=PluginSet(enabled, multi_point.disabled))
        return replace(profile, plugins=plugins)

    return replace(configuration, profiles=tuple(map(restore_in_profile, configuration.profiles)))


def list_ignored_args(configuration: Configuration) -> list[str]:
    """Return one sentence for each argument of the plugin, which has no effect."""
    return list(
        dict.fromkeys(
            f"Coscheduling: {name} has no effect: {_EFFECTS[name]}"
            for profile in configuration.profiles
            for name in profile.plugin_config.get(COSCHEDULING, ())
            if name in _EFFECTS
        )
    )


def _find_args_errors(profile: Profile) -> Iterator[FieldError]:
    path = profile.args_paths.get(COSCHEDULING, f"{profile.path}.pluginConfig[{COSCHEDULING}].args")
    for name, value in profile.plugin_config.get(COSCHEDULING, {}).items():
        if name in {"kind", "apiVersion"}:
            continue
        if name not in _EFFECTS:
            yield FieldError(child(path, name), f'unknown field "{name}"; want {", ".join(_EFFECTS)}')
        elif isinstance(value, bool) or not isinstance(value, int) or value < 0:
            yield FieldError(child(path, name), invalid_value(value, "must be an integer of at least 0"))


def _replace_in_profile(profile: Profile) -> Profile:
    plugin_sets = {point: getattr(profile.plugins, point) for point in Plugins.__struct_fields__}
    is_enabled = _enables_coscheduling(profile)
    for point, plugin_set in plugin_sets.items():
        plugin_sets[point] = _replace_in_plugin_set(plugin_set, "PrioritySort" if point == "queue_sort" else "")
    if is_enabled:
        multi_point = plugin_sets["multi_point"]
        plugin_sets["multi_point"] = PluginSet(
            (*multi_point.enabled, Plugin(_GANG_SCHEDULING)), _drop(multi_point.disabled, _GANG_SCHEDULING)
        )
    plugin_config = {name: args for name, args in profile.plugin_config.items() if name != COSCHEDULING}
    plugins = msgspec.structs.replace(profile.plugins, **plugin_sets)
    return replace(profile, plugins=plugins, plugin_config=plugin_config)


def _replace_in_plugin_set(plugin_set: PluginSet, substitute: str) -> PluginSet:
    """Return *plugin_set* with *substitute* in place of Coscheduling; without a substitute, Coscheduling is dropped."""
    enabled = plugin_set.enabled
    if substitute and any(plugin.name == COSCHEDULING for plugin in enabled):
        enabled = (Plugin(substitute), *_drop(enabled, substitute))
    return PluginSet(_drop(enabled, COSCHEDULING), _drop(plugin_set.disabled, COSCHEDULING))


def _drop(plugins: tuple[Plugin, ...], name: str) -> tuple[Plugin, ...]:
    return tuple(plugin for plugin in plugins if plugin.name != name)
