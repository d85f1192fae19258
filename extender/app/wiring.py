"""Build profiles, plugins and runtimes from a configuration, for all commands."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from extender.config import documents, load
from extender.config.defaults import add_gated_plugins, make_default_configuration
from extender.config.errors import ConfigError
from extender.config.feature_gates import FeatureGates
from extender.config.field_path import drop_consequential_errors
from extender.config.legacy_policy import policy_document
from extender.config.legacy_policy.convert import convert_policy
from extender.config.model import Configuration
from extender.config.render import render_configuration
from extender.cycle.plugin_runtime import PluginRuntime
from extender.framework.observer import PluginObserver
from extender.framework.plugin_runner import PluginRunner
from extender.framework.profile_builder import ProfileSet, build_profiles
from extender.framework.profiles import Profile
from extender.framework.result_cache import ResultCache
from extender.framework.slow_calls import SlowCallObserver
from extender.plugins.registry import BUILT_IN_PLUGINS, load_registry
from extender.volumes.in_tree_limits import find_environment_error

_ENVIRONMENT_LIMITED_PLUGINS = frozenset(("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"))


@dataclass(frozen=True, slots=True)
class Scheduling:
    """A configuration with its profiles and plugins.

    Attributes:
        configuration: the configuration, including plugins that feature gates add.
        profile_set: the configuration's profiles and their plugins' options.
        gates: the feature gates in force.
        warnings: one sentence per ignored setting, and per part of a Policy without an equivalent.
    """

    configuration: Configuration
    profile_set: ProfileSet
    gates: FeatureGates
    warnings: tuple[str, ...] = ()

    @property
    def profiles(self) -> Mapping[str, Profile]:
        """Profiles by scheduler name."""
        return self.profile_set.profiles

    @property
    def first_profile(self) -> Profile:
        """The first profile of the configuration."""
        return self.profiles[self.configuration.profiles[0].scheduler_name]

    def render_with_defaults(self) -> str:
        """Return the configuration with all defaults, as YAML."""
        return render_configuration(self.configuration, self.profile_set.options)


def build_scheduling(
    configuration: Configuration | None = None,
    gates: FeatureGates | None = None,
    shared: dict[str, Any] | None = None,
) -> Scheduling:
    """Build the profiles and plugins of a configuration.

    Args:
        configuration: the configuration; None: the default configuration.
        gates: the feature gates; None: the default feature gates.
        shared: the state that plugins of all profiles share, kept from the previous configuration; None: new state.

    Raises:
        ConfigError: the configuration is invalid; contains all errors.
    """
    gates = gates or FeatureGates()
    full_configuration = add_gated_plugins(configuration or make_default_configuration(), gates)
    profile_set = build_profiles(full_configuration, load_registry(), gates, shared)
    plugin_names = {name for profile in profile_set.profiles.values() for name in profile.plugins}
    warning = find_environment_error() if plugin_names & _ENVIRONMENT_LIMITED_PLUGINS else None
    return Scheduling(full_configuration, profile_set, gates, () if warning is None else (warning,))


def load_scheduling(
    data: bytes, source: str, gates: FeatureGates | None = None, shared: dict[str, Any] | None = None
) -> Scheduling:
    """Build profiles and plugins from YAML or JSON text; a Policy, or a ConfigMap with one, is converted first.

    Args:
        data: the YAML or JSON text.
        source: the text's name in error messages.
        gates: the feature gates; None: the default feature gates.
        shared: the plugin state that profiles share; see `build_scheduling`.

    Raises:
        ConfigError: the configuration is invalid; contains all errors.
    """
    if policy_document.is_policy(documents.parse_document(data, source)[0]):
        return build_scheduling_from_policy(policy_document.load_policy(data, source), gates, shared)
    return _load_and_build(lambda: load.load_configuration(data, source), gates, shared)


def build_scheduling_from_builtins(document: object, source: str, gates: FeatureGates | None = None) -> Scheduling:
    """Build profiles and plugins from a decoded document (the `config` of a recording); see `load_scheduling`.

    Raises:
        ConfigError: the configuration is invalid; contains all errors.
    """
    if policy_document.is_policy(document):
        return build_scheduling_from_policy(policy_document.from_builtins(document, source), gates)
    return _load_and_build(lambda: load.from_builtins(document, source), gates)


def build_scheduling_from_policy(
    policy: policy_document.LoadedPolicy, gates: FeatureGates | None = None, shared: dict[str, Any] | None = None
) -> Scheduling:
    """Convert a Policy and build its profiles and plugins; see `load_scheduling`.

    Raises:
        ConfigError: the Policy is invalid; contains all errors.

    Source: pkg/scheduler/factory.go, Configurator.createFromConfig (1.21).
    """
    conversion = convert_policy(policy.policy, policy.warnings)
    scheduling = build_scheduling(conversion.configuration, gates, shared)
    return replace(scheduling, warnings=(*conversion.warnings, *scheduling.warnings))


def _load_and_build(
    load_configuration: Callable[[], Configuration], gates: FeatureGates | None, shared: dict[str, Any] | None = None
) -> Scheduling:
    """Load a configuration and build its plugins; raise the errors of the document and of the plugins together."""
    try:
        return build_scheduling(load_configuration(), gates, shared)
    except load.LoadError as load_error:
        try:
            build_scheduling(load_error.configuration, gates)
        except ConfigError as plugin_error:
            plugin_errors = drop_consequential_errors(plugin_error.errors, load_error.errors)
            raise ConfigError([*load_error.errors, *plugin_errors]) from load_error
        raise


def make_runtime(observer: PluginObserver | None = None, *, cache_results: bool = True) -> PluginRuntime:
    """Return a plugin runtime for one thread. Without *cache_results* the runtime caches no plugin results."""
    return PluginRuntime(PluginRunner(observer), ResultCache(enabled=cache_results))


def make_slow_call_observer(warn: Callable[[str], None], observer: PluginObserver | None = None) -> PluginObserver:
    """Return an observer that calls *warn* once for each slow plugin not built in, and forwards to *observer*."""
    return SlowCallObserver(warn, observer, exempt_plugins=[plugin.name for plugin in BUILT_IN_PLUGINS])
