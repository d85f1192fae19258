"""Build profiles from a configuration and the plugin registry, and report all errors together.

Source: pkg/scheduler/framework/runtime/framework.go, NewFramework; kube-scheduler/config/v1/types.go,
PluginConfig.decodeNestedObjects; pkg/scheduler/apis/config/v1/defaults.go, setDefaults_KubeSchedulerProfile (1.36).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import msgspec

from extender.config import model
from extender.config.defaults import IN_TREE_PLUGINS
from extender.config.errors import ConfigError, FieldError
from extender.config.expand import ExpandedPlugins, expand_profiles
from extender.config.feature_gates import FeatureGates
from extender.config.model import EXTENSION_POINTS
from extender.config.strict_decoding import decode_strict
from extender.framework.binding_points import AssumeExtensions
from extender.framework.extension_points import EnqueueExtensions
from extender.framework.plugin_args import DefaultedOptions, PluginArgs, ValidatedOptions, takes_arguments
from extender.framework.plugin_errors import format_exception, is_own_module, plugin_exceptions
from extender.framework.plugin_inputs import protect_inputs
from extender.framework.pod_group_points import PlacementFeasible, PodGroupPostFilter
from extender.framework.profiles import Profile, WeightedPlacementScore, WeightedScore

PluginRegistry = Mapping[str, type[Any]]
"""Plugin classes by name."""

EXTENSION_POINT_METHODS: Mapping[str, str] = {
    "preEnqueue": "pre_enqueue",
    "queueSort": "sort_key",
    "preFilter": "pre_filter",
    "filter": "filter",
    "postFilter": "post_filter",
    "preScore": "pre_score",
    "score": "score",
    "reserve": "reserve",
    "permit": "permit",
    "preBind": "pre_bind",
    "bind": "bind",
    "postBind": "post_bind",
    "placementGenerate": "generate_placements",
    "placementScore": "score_placement",
    "podGroupPostFilter": "pod_group_post_filter",
}
"""The method of each extension point; points are named as in the configuration."""

_POD_GROUP_POST_FILTER = "podGroupPostFilter"
_OTHER_POINTS = frozenset({"queueSort", "score", "placementScore"})
"""The extension points whose plugins are in a profile in another form than a tuple of plugins."""


@dataclass(frozen=True, slots=True)
class ProfileSet:
    """The built profiles of one configuration.

    Attributes:
        profiles: the profiles by scheduler name.
        options: the plugins' options, by scheduler name and plugin name.
        shared_state: the state that plugins of all profiles share; see `PluginArgs`.
    """

    profiles: Mapping[str, Profile]
    options: Mapping[str, Mapping[str, Mapping[str, object]]]
    shared_state: dict[str, Any]


def get_extension_points(plugin: type[Any]) -> frozenset[str]:
    """Return the extension points that *plugin* implements."""
    points = EXTENSION_POINT_METHODS.items()
    return frozenset(point for point, method in points if callable(getattr(plugin, method, None)))


def build_profiles(
    configuration: model.Configuration,
    registry: PluginRegistry,
    gates: FeatureGates,
    shared_state: dict[str, Any] | None = None,
    installed_plugins: Mapping[str, str] = MappingProxyType({}),
) -> ProfileSet:
    """Build the profiles of *configuration*. Each profile has its own plugin instances.

    *installed_plugins* are the own names of the installed plugins, by entry point; empty if the plugin is invalid.

    Raises:
        ConfigError: a plugin is unknown, options are invalid, or plugins or profiles conflict. The exception has all
            errors.
    """

    def find_extension_points(name: str) -> frozenset[str] | None:
        plugin = registry.get(name)
        if plugin is None:
            return frozenset() if name in IN_TREE_PLUGINS else None
        extension_points = get_extension_points(plugin) - gates.release.later_extension_points.get(name, frozenset())
        return (
            extension_points if gates.release.has_pod_group_post_filter else extension_points - {_POD_GROUP_POST_FILTER}
        )

    known_names = {**dict.fromkeys(registry, ""), **installed_plugins}
    expanded_profiles, expansion_errors = expand_profiles(configuration.profiles, find_extension_points, known_names)
    errors = list(expansion_errors)
    profiles: dict[str, Profile] = {}
    shared_state = {} if shared_state is None else shared_state
    options: dict[str, Mapping[str, Mapping[str, object]]] = {}
    for profile in configuration.profiles:
        builder = _ProfileBuilder(profile, configuration, registry, gates, shared_state)
        plugins = expanded_profiles.get(profile.scheduler_name, {})
        builder.decode_options()
        if not expansion_errors and not builder.errors:
            built_profile = builder.build(plugins)
            if built_profile is not None:
                profiles[profile.scheduler_name] = built_profile
                options[profile.scheduler_name] = builder.options_to_builtins()
        errors = [*errors, *builder.errors]
    if errors:
        raise ConfigError(errors)
    return ProfileSet(profiles, options, shared_state)


@dataclass(slots=True)
class _ProfileBuilder:
    """Builds one profile, and collects its errors."""

    profile: model.Profile
    configuration: model.Configuration
    registry: PluginRegistry
    gates: FeatureGates
    shared_state: dict[str, Any]
    errors: list[FieldError] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)

    def decode_options(self) -> None:
        """Decode the options of the enabled plugins; missing options get defaults. Check the arguments of the others.

        A plugin in a list of enabled plugins counts as enabled even if it is disabled at all its extension points.
        Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.pluginsNeeded (1.36).
        """
        plugin_sets: tuple[model.PluginSet, ...] = msgspec.structs.astuple(self.profile.plugins)
        enabled_plugins = {plugin.name for plugin_set in plugin_sets for plugin in plugin_set.enabled}
        for name, plugin in self.registry.items():
            if name not in enabled_plugins and name not in self.profile.plugin_config:
                self._check_missing_args(name)
                continue
            raw = dict(self.profile.plugin_config.get(name, {}))
            path = self.profile.args_paths.get(name, f"{self.profile.path}.pluginConfig[{name}].args")
            options_type = getattr(plugin, "options", None)
            if options_type is None:
                unknown_args = sorted(set(raw) - {"kind", "apiVersion"})
                if unknown_args and name not in IN_TREE_PLUGINS:  # kube-scheduler ignores those of in-tree plugins
                    self.errors.append(FieldError(path, f"{name} takes no arguments, got {', '.join(unknown_args)}"))
                continue
            options = self._decode(name, options_type, raw, path)
            if name in enabled_plugins:
                self.options[name] = options

    def _check_missing_args(self, name: str) -> None:
        """Add an error if extenders change the arguments of the plugin, which the profile does not have.

        Source: pkg/scheduler/scheduler.go, buildExtenders (1.36).
        """
        if name == "NodeResourcesFit" and self._list_resources_ignored_by_scheduler():
            path = f"{self.profile.path}.pluginConfig"
            self.errors.append(FieldError(path, "can't find NodeResourcesFitArgs in plugin config"))

    def _decode(self, name: str, options_type: type[msgspec.Struct], raw: dict[str, Any], path: str) -> Any:
        if name == "NodeResourcesFit" and (ignored_resources := self._list_resources_ignored_by_scheduler()):
            # The profile is overridden, as in pkg/scheduler/scheduler.go, buildExtenders.
            raw["ignoredResources"] = ignored_resources
        values: Mapping[str, Any] = raw
        try:
            if issubclass(options_type, DefaultedOptions):
                values = options_type.apply_defaults(raw, self.gates)
            options, errors = decode_strict(values, options_type, path)
            if options is not None and isinstance(options, ValidatedOptions):
                errors = [*errors, *_check_field_errors(options.validate(path, self.gates))]
        except plugin_exceptions() as error:
            self.errors.append(_make_plugin_error(name, error, options_type.__module__, path))
            return None
        self.errors.extend(errors)
        return options

    def _list_resources_ignored_by_scheduler(self) -> list[str]:
        managed_resources = (
            resource for extender in self.configuration.extenders for resource in extender.managed_resources
        )
        return [resource.name for resource in managed_resources if resource.ignored_by_scheduler]

    def build(self, plugins: ExpandedPlugins) -> Profile | None:
        """Return the profile with its plugin instances. If a plugin cannot be created, add an error and return None."""
        names = dict.fromkeys(plugin.name for point in plugins.values() for plugin in point)
        instances = {name: self._create_plugin(name) for name in names}
        if self.errors:
            return None
        plugins_by_field = {
            f"{point.field}_plugins": tuple(instances[plugin.name] for plugin in plugins.get(point.key, ()))
            for point in EXTENSION_POINTS
            if point.key not in _OTHER_POINTS
        }
        if not self.gates.release.has_pod_group_post_filter:
            # In 1.36 only DefaultPreemption runs for a pod group, and no configuration changes this.
            # Source: pkg/scheduler/framework/interface.go, PodGroupPostFilterPlugin (1.36).
            preemption = instances.get("DefaultPreemption")
            is_plugin = isinstance(preemption, PodGroupPostFilter)
            plugins_by_field["pod_group_post_filter_plugins"] = (preemption,) if is_plugin else ()
        percentage = self.profile.percentage_of_nodes_to_score
        if percentage is None:
            percentage = self.configuration.percentage_of_nodes_to_score
        return Profile(
            scheduler_name=self.profile.scheduler_name,
            queue_sort=instances[plugins["queueSort"][0].name],
            percentage_of_nodes_to_score=percentage or None,
            score_plugins=tuple(
                WeightedScore(instances[plugin.name], plugin.weight) for plugin in plugins.get("score", ())
            ),
            placement_score_plugins=tuple(
                WeightedPlacementScore(instances[plugin.name], plugin.weight)
                for plugin in plugins.get("placementScore", ())
            ),
            assume_extensions=tuple(
                plugin for plugin in plugins_by_field["reserve_plugins"] if isinstance(plugin, AssumeExtensions)
            ),
            plugins=instances,
            check_all_filters=self.profile.check_all_filters,
            placement_feasible_plugins=tuple(
                plugin for plugin in instances.values() if isinstance(plugin, PlacementFeasible)
            ),
            gates=self.gates,
            **plugins_by_field,
        )

    def _create_plugin(self, name: str) -> Any:
        plugin = self.registry[name]
        try:
            protected_plugin = protect_inputs(plugin)
            args = PluginArgs(self.options.get(name), self.gates, self.profile.scheduler_name, self.shared_state)
            created = protected_plugin(args) if takes_arguments(plugin) else protected_plugin()
            if isinstance(created, EnqueueExtensions) and not is_own_module(plugin.__module__):
                created.events_to_register()  # so that an error is that of the plugin and is found before the start
        except plugin_exceptions() as error:
            self.errors.append(_make_plugin_error(name, error, plugin.__module__, self.profile.path))
            return None
        return created

    def options_to_builtins(self) -> Mapping[str, Mapping[str, object]]:
        return {name: msgspec.to_builtins(options) for name, options in self.options.items()}


def _make_plugin_error(name: str, error: BaseException, module: str, path: str) -> FieldError:
    return FieldError(path, f'initializing plugin "{name}": {format_exception(error, module)}')


def _check_field_errors(result: Any) -> list[FieldError]:
    """Return the errors that `validate` of the options of an installed plugin returned."""
    errors: list[Any] = list(result) if isinstance(result, Iterable) else [None]
    if not all(isinstance(error, FieldError) for error in errors):
        raise TypeError(f"validate returned {result!r:.100}, want a list of FieldError")
    return errors
