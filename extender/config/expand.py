"""Expansion of the plugin sets of a profile to the ordered plugins of each extension point, and its unused arguments.

Source: pkg/scheduler/apis/config/v1/default_plugins.go, mergePluginSet; pkg/scheduler/framework/runtime/framework.go,
frameworkImpl.expandMultiPointPlugins, getValidScoreWeights (1.36).
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from extender.config.defaults import IN_TREE_PLUGINS
from extender.config.did_you_mean import did_you_mean
from extender.config.errors import FieldError, child
from extender.config.model import EXTENSION_POINTS, ExtensionPoint, Plugin, PluginSet, Profile

ExtensionPointLookup = Callable[[str], frozenset[str] | None]
"""Returns the keys of the extension points that a plugin implements; None if the plugin is unknown."""

ExpandedPlugins = Mapping[str, tuple[Plugin, ...]]
"""The enabled plugins in execution order, by extension point."""

MAX_SCORE: Final = 100
MAX_TOTAL_SCORE: Final = 2**63 - 1
_IN_TREE_NAMES: Final = MappingProxyType(dict.fromkeys(IN_TREE_PLUGINS, ""))
_SCORE_MESSAGE_PREFIXES: Final = {"score": "score plugins", "placementScore": "placement score plugins"}


def expand_profile(
    profile: Profile, get_extension_points: ExtensionPointLookup, known_names: Mapping[str, str] = _IN_TREE_NAMES
) -> tuple[ExpandedPlugins, list[FieldError]]:
    """Return the plugins of each extension point of *profile*, and its errors.

    Args:
        profile: the loaded profile, already merged with the default plugin sets.
        get_extension_points: returns the keys of the extension points (`preFilter`, ...) that a plugin implements, or
            None if the plugin is unknown.
        known_names: the names that an error about an unknown plugin may suggest. An unknown plugin with one of these
            names is installed, but invalid; or, if the value is not empty, it is an entry point of that plugin.

    Returns:
        The plugins in execution order, by the key of the extension point, and the errors with kube-scheduler's
        messages. Weights are at least 1 at `score` and `placementScore`, and 0 elsewhere.

    Source: pkg/scheduler/framework/runtime/framework.go, NewFramework, updatePluginList,
    frameworkImpl.expandMultiPointPlugins (1.36).
    """
    expansion = _Expansion(profile, get_extension_points, known_names)
    expansion.check_multi_point()
    expanded_plugins = {point.key: expansion.order_plugins(point) for point in EXTENSION_POINTS}
    if not expansion.errors:  # an unknown plugin would also cause errors in the counts
        expansion.check_counts(expanded_plugins)
    for key, message_prefix in _SCORE_MESSAGE_PREFIXES.items():
        weights = expansion.resolve_score_weights(key, message_prefix)
        expanded_plugins[key] = [Plugin(plugin.name, weights[plugin.name]) for plugin in expanded_plugins[key]]
    return {key: tuple(plugins) for key, plugins in expanded_plugins.items()}, expansion.errors


def expand_profiles(
    profiles: Sequence[Profile],
    get_extension_points: ExtensionPointLookup,
    known_names: Mapping[str, str] = _IN_TREE_NAMES,
) -> tuple[Mapping[str, ExpandedPlugins], list[FieldError]]:
    """Expand every profile. Return the plugins by scheduler name, and the errors, including conflicts between profiles.

    Source: pkg/scheduler/profile/profile.go, cfgValidator.validate;
    pkg/scheduler/apis/config/validation/validation.go, validateCommonQueueSort (1.36).
    """
    plugins_by_profile: dict[str, ExpandedPlugins] = {}
    errors = [] if profiles else [FieldError("profiles", "at least one profile is required")]
    first_queue_sort: tuple[str, object] | None = None
    for profile in profiles:
        expanded_plugins, profile_errors = expand_profile(profile, get_extension_points, known_names)
        errors += profile_errors
        name, path = profile.scheduler_name, child(profile.path, "schedulerName")
        if not name:
            errors.append(FieldError(path, "scheduler name is needed"))
        elif name in plugins_by_profile:
            errors.append(FieldError(path, f'duplicate profile with scheduler name "{name}"'))
        else:
            plugins_by_profile[name] = expanded_plugins
        if not expanded_plugins["queueSort"]:
            continue
        queue_sort = expanded_plugins["queueSort"][0].name
        args = profile.plugin_config.get(queue_sort)
        path = child(profile.path, "plugins.queueSort")
        if first_queue_sort is None:
            first_queue_sort = queue_sort, args
        elif first_queue_sort[0] != queue_sort:
            message = (
                f'different queue sort plugins for profile "{name}": "{queue_sort}", first: "{first_queue_sort[0]}"'
            )
            errors.append(FieldError(path, message))
        elif first_queue_sort[1] != args:
            errors.append(FieldError(path, f'different queue sort plugin args for profile "{name}"'))
    return plugins_by_profile, errors


class _Expansion:
    """Expands the plugin sets of one profile and collects errors."""

    def __init__(
        self, profile: Profile, get_extension_points: ExtensionPointLookup, known_names: Mapping[str, str]
    ) -> None:
        self.profile = profile
        self.errors: list[FieldError] = []
        self._known_names = known_names
        self._multi_point = profile.plugins.multi_point.enabled
        listed_names = {
            plugin.name for point in EXTENSION_POINTS for plugin in point.get_plugin_set(profile.plugins).enabled
        }
        listed_names.update(plugin.name for plugin in self._multi_point)
        self._extension_points_by_plugin = {name: get_extension_points(name) for name in listed_names}

    def check_multi_point(self) -> None:
        """Add an error for each unknown multiPoint plugin.

        The message names the first extension point that does not disable all multiPoint plugins.

        Source: pkg/scheduler/framework/runtime/framework.go, updatePluginList (1.36).
        """
        plugins = self.profile.plugins
        first_point = next(
            (point for point in EXTENSION_POINTS if not _disables_all(point.get_plugin_set(plugins))), None
        )
        if first_point is None:
            return
        for name in dict.fromkeys(plugin.name for plugin in self._multi_point):
            if self._extension_points_by_plugin[name] is None:
                self._add_unknown_error(first_point, name, "plugins.multiPoint.enabled")

    def order_plugins(self, point: ExtensionPoint) -> list[Plugin]:
        """Return the plugins of an extension point in execution order.

        The multiPoint plugins that the extension point lists again come first. The other multiPoint plugins follow, and
        then the plugins that only the extension point lists.
        """
        plugin_set = point.get_plugin_set(self.profile.plugins)
        explicit_names = self._find_explicit_names(point, plugin_set)
        if _disables_all(plugin_set):
            return [Plugin(name) for name in explicit_names]
        listed_names = {plugin.name for plugin in plugin_set.enabled}
        disabled_names = {plugin.name for plugin in plugin_set.disabled}
        overridden_names: set[str] = set()
        multi_point_names: dict[str, None] = {}
        for plugin in self._multi_point:
            name = plugin.name
            if point.key not in (self._extension_points_by_plugin[name] or ()) or name in disabled_names:
                continue
            if name in listed_names:
                overridden_names.add(name)
            elif name in multi_point_names:
                self._add_duplicate_error(point, name, "plugins.multiPoint.enabled")
            else:
                multi_point_names[name] = None
        overrides = [name for name in explicit_names if name in overridden_names]
        additional_names = [name for name in explicit_names if name not in overridden_names]
        return [Plugin(name) for name in (*overrides, *multi_point_names, *additional_names)]

    def _find_explicit_names(self, point: ExtensionPoint, plugin_set: PluginSet) -> dict[str, None]:
        """Return the valid names of the plugins that *plugin_set* enables.

        Source: pkg/scheduler/framework/runtime/framework.go, updatePluginList (1.36).
        """
        names: dict[str, None] = {}
        path = f"plugins.{point.key}.enabled"
        for plugin in plugin_set.enabled:
            points = self._extension_points_by_plugin[plugin.name]
            if points is None:
                self._add_unknown_error(point, plugin.name, path)
            elif point.key not in points:
                self._add_error(path, f'plugin "{plugin.name}" does not extend {point.interface} plugin')
            elif plugin.name in names:
                self._add_duplicate_error(point, plugin.name, path)
            else:
                names[plugin.name] = None
        return names

    def check_counts(self, expanded_plugins: Mapping[str, Sequence[Plugin]]) -> None:
        """Check for one queue sort plugin, at least one bind plugin and at most one placement generator.

        Source: pkg/scheduler/framework/runtime/framework.go, NewFramework (1.36).
        """
        name = self.profile.scheduler_name
        sort_plugins = [plugin.name for plugin in expanded_plugins["queueSort"]]
        if len(sort_plugins) != 1:
            message = f'only one queue sort plugin required for profile with scheduler name "{name}", but got '
            message += str(len(sort_plugins))
            if sort_plugins:
                message += f": {', '.join(sort_plugins)}; name the others in queueSort.disabled"
            self._add_error("plugins.queueSort", message)
        if not expanded_plugins["bind"]:
            self._add_error(
                "plugins.bind", f'at least one bind plugin is needed for profile with scheduler name "{name}"'
            )
        if len(expanded_plugins["placementGenerate"]) > 1:
            message = f'at most one placement generate plugin is allowed for profile with scheduler name "{name}"'
            self._add_error("plugins.placementGenerate", message)

    def resolve_score_weights(self, key: str, message_prefix: str) -> dict[str, int]:
        """Return the weights by plugin name. The extension point's weight overrides the multiPoint weight; 0 means 1.

        As in kube-scheduler, the overflow check includes plugins that are disabled at the extension point. It also
        rejects each plugin after a negative sum of weights, because the limit minus this sum overflows in Go.

        Source: pkg/scheduler/framework/runtime/framework.go, getValidScoreWeights (1.36).
        """
        point = next(point for point in EXTENSION_POINTS if point.key == key)
        weights: dict[str, int] = {}
        total = 0
        for plugin in (*point.get_plugin_set(self.profile.plugins).enabled, *self._multi_point):
            if plugin.name in weights or key not in (self._extension_points_by_plugin[plugin.name] or ()):
                continue
            weights[plugin.name] = plugin.weight or 1
            is_negative = total < 0
            total += weights[plugin.name] * MAX_SCORE
            if is_negative or total > MAX_TOTAL_SCORE:
                self._add_error(
                    f"plugins.{key}.enabled", f"{message_prefix}: total score of Score plugins could overflow"
                )
                total = 0
        return weights

    def _add_unknown_error(self, point: ExtensionPoint, name: str, path: str) -> None:
        if name in self._known_names:
            problem = "is installed, but invalid"
            if own_name := self._known_names[name]:
                problem = f'does not exist; its entry point has the plugin "{own_name}"'
            self._add_error(path, f'{point.interface} "{name}" {problem}')
            return
        suggestion = did_you_mean(name, self._known_names) or "; is its package installed?"
        self._add_error(path, f'{point.interface} "{name}" does not exist{suggestion}')

    def _add_duplicate_error(self, point: ExtensionPoint, name: str, path: str) -> None:
        self._add_error(path, f'plugin "{name}" already registered as "{point.interface}"')

    def _add_error(self, path: str, message: str) -> None:
        self.errors.append(FieldError(child(self.profile.path, path), message))


def _disables_all(plugin_set: PluginSet) -> bool:
    return any(plugin.name == "*" for plugin in plugin_set.disabled)


def list_unused_args(
    profile: Profile,
    enabled_plugins: Collection[str],
    known_plugins: Collection[str],
    plugins_without_args: Collection[str] = (),
) -> list[str]:
    """Return one sentence for each plugin of *profile* whose arguments have no effect.

    Such a plugin is not one of *enabled_plugins*, or one of *plugins_without_args*. *known_plugins* are the built-in
    and installed plugins. kube-scheduler ignores such arguments silently.

    Source: pkg/scheduler/framework/runtime/framework.go, NewFramework (1.36).
    """
    sentences = []
    for name, args in profile.plugin_config.items():
        path = profile.args_paths.get(name, f"{profile.path}.pluginConfig[{name}].args")
        if name in enabled_plugins:
            if name in plugins_without_args and args.keys() - {"kind", "apiVersion"}:
                sentences.append(f'{path}: no effect: plugin "{name}" has no arguments')
            continue
        suggestion = "" if name in known_plugins else did_you_mean(name, enabled_plugins)
        sentences.append(f'{path}: no effect: the profile does not enable plugin "{name}"{suggestion}')
    return sentences
