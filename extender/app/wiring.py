"""Build profiles, plugins and runtimes from a configuration, for all commands."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from extender.config import load
from extender.config.coscheduling import (
    COSCHEDULING,
    find_coscheduling_errors,
    has_coscheduling,
    list_ignored_args,
    replace_coscheduling,
    restore_coscheduling,
)
from extender.config.defaults import IN_TREE_PLUGINS, add_gated_plugins, make_default_configuration
from extender.config.documents import dump_yaml, normalize, parse_document
from extender.config.errors import ConfigError, FieldError, drop_cascading_errors
from extender.config.expand import list_unused_args
from extender.config.feature_gates import FeatureGates
from extender.config.legacy_policy import policy_document
from extender.config.legacy_policy.convert import convert_policy
from extender.config.model import Configuration
from extender.config.render import build_document
from extender.cycle.plugin_runtime import PluginRuntime
from extender.framework.observer import PluginObserver, SlowCallObserver
from extender.framework.plugin_runner import ExceptionObserver, PluginError, PluginRunner
from extender.framework.profile_builder import PluginRegistry, ProfileSet, build_profiles
from extender.framework.profiles import Profile
from extender.framework.result_cache import ResultCache
from extender.logs.klog import verbosity
from extender.plugins.registry import BUILT_IN_PLUGINS, find_own_names, load_valid_plugins
from extender.volumes.in_tree_limits import get_limit_variable_error

log = logging.getLogger("extender.app")

_PLUGINS_WITH_LIMIT_VARIABLE = frozenset(("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"))


@dataclass(frozen=True, slots=True)
class SchedulerSetup:
    """A configuration with the profiles and plugins that are built from it.

    Attributes:
        configuration: the configuration, including plugins that feature gates add.
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

    def list_plugins_of_extender(self) -> list[str]:
        """Return the sorted names of the profiles' plugins that kube-scheduler does not have."""
        names = {name for profile in self.profiles.values() for name in profile.plugins} - set(IN_TREE_PLUGINS)
        return sorted(names | {COSCHEDULING} if self.gates.coscheduling else names)

    def build_document(self) -> dict[str, object]:
        """Return the configuration with all defaults, as dictionaries, lists and scalars."""
        configuration = restore_coscheduling(self.configuration) if self.gates.coscheduling else self.configuration
        return build_document(configuration, self.profile_set.options, self.gates.release)

    def render_with_defaults(self) -> str:
        """Return the configuration with all defaults, as YAML."""
        return dump_yaml(self.build_document())

    def render_for_log(self) -> str:
        """Return the configuration as `render_with_defaults`, without the private keys of HTTP extenders."""
        document: Any = self.build_document()
        for extender in document.get("extenders") or ():
            if (tls := extender.get("tlsConfig")) and tls.get("keyData"):
                tls["keyData"] = "DATA+OMITTED"  # as in kubectl config view
        return dump_yaml(document)


def build_setup(
    configuration: Configuration | None = None,
    gates: FeatureGates | None = None,
    shared_state: dict[str, Any] | None = None,
    plugins: PluginRegistry | None = None,
) -> SchedulerSetup:
    """Build the profiles and plugins of a configuration.

    Without *gates*, those of the default release have their default values. *shared_state* is the state that plugins of
    all profiles share, from the previous setup; None: new state. *plugins* are more plugins than those of installed
    packages, and replace plugins of the same name.

    Raises:
        ConfigError: the configuration is invalid; contains all errors.
    """
    gates = gates or FeatureGates()
    configuration = configuration or make_default_configuration(gates.release)
    warnings = list_ignored_args(configuration)
    errors: list[FieldError] = []
    if has_coscheduling(configuration):
        errors = find_coscheduling_errors(configuration, gates)
        configuration, gates = replace_coscheduling(configuration, gates)
    full_configuration = add_gated_plugins(configuration, gates)
    loaded_plugins, plugin_errors = load_valid_plugins()
    registry = {**loaded_plugins, **(plugins or {})}
    try:
        profile_set = build_profiles(full_configuration, registry, gates, shared_state, find_own_names(registry))
    except ConfigError as error:
        raise ConfigError([*plugin_errors, *errors, *error.errors]) from error
    if errors:
        raise ConfigError(errors)
    plugin_names = {name for profile in profile_set.profiles.values() for name in profile.plugins}
    warning = get_limit_variable_error() if plugin_names & _PLUGINS_WITH_LIMIT_VARIABLE else None
    for profile in full_configuration.profiles:
        enabled_plugins = profile_set.profiles[profile.scheduler_name].plugins
        without_args = {name for name, plugin in enabled_plugins.items() if getattr(plugin, "options", None) is None}
        warnings += list_unused_args(profile, enabled_plugins, registry, without_args)
    all_warnings = (*map(str, plugin_errors), *warnings, *filter(None, (warning,)))
    return SchedulerSetup(full_configuration, profile_set, gates, all_warnings)


def load_setup(
    data: bytes,
    source: str,
    gates: FeatureGates | None = None,
    shared_state: dict[str, Any] | None = None,
    plugins: PluginRegistry | None = None,
) -> SchedulerSetup:
    """Build profiles and plugins from YAML or JSON text. A Policy, or a ConfigMap with one, is converted first.

    *source* is the name of *data* in error messages; see `build_setup` for the other arguments.

    Raises:
        ConfigError: the configuration is invalid; contains all errors.
    """
    return _build_from_document(*parse_document(data, source), source, gates, shared_state, plugins)


def build_setup_from_document(
    document: object, source: str, gates: FeatureGates | None = None, plugins: PluginRegistry | None = None
) -> SchedulerSetup:
    """Build profiles and plugins from a decoded document, such as the `config` of a recording; see `load_setup`.

    Raises:
        ConfigError: the configuration is invalid; contains all errors.
    """
    return _build_from_document(*normalize(document), source, gates, plugins=plugins)


def build_setup_from_policy(
    policy: policy_document.LoadedPolicy,
    gates: FeatureGates | None = None,
    shared_state: dict[str, Any] | None = None,
    plugins: PluginRegistry | None = None,
) -> SchedulerSetup:
    """Convert a Policy and build its profiles and plugins; see `load_setup`.

    Raises:
        ConfigError: the Policy is invalid; contains all errors.

    Source: pkg/scheduler/factory.go, Configurator.createFromConfig (1.21).
    """
    conversion = convert_policy(policy.policy, policy.warnings)
    setup = build_setup(conversion.configuration, gates, shared_state, plugins)
    return replace(setup, warnings=(*conversion.warnings, *setup.warnings))


def _build_from_document(
    document: object,
    errors: list[FieldError],
    source: str,
    gates: FeatureGates | None,
    shared_state: dict[str, Any] | None = None,
    plugins: PluginRegistry | None = None,
) -> SchedulerSetup:
    """Load a configuration or a Policy and build its plugins; raise the errors of both steps together."""
    if policy_document.is_policy_or_config_map(document):
        policy = policy_document.decode_document(document, source, errors)
        return build_setup_from_policy(policy, gates, shared_state, plugins)
    release = (gates or FeatureGates()).release
    try:
        return build_setup(load.build_configuration(document, source, errors, release), gates, shared_state, plugins)
    except load.InvalidConfigurationError as load_error:
        try:
            build_setup(load_error.configuration, gates, plugins=plugins)
        except ConfigError as plugin_error:
            plugin_errors = drop_cascading_errors(plugin_error.errors, load_error.errors)
            raise ConfigError([*load_error.errors, *plugin_errors]) from load_error
        raise


def log_plugin_exception(error: PluginError, exception: BaseException) -> None:
    """Log the traceback of an *exception* that a plugin raised, with `-v=1` or higher."""
    names = {"plugin": error.plugin, "extensionPoint": error.extension_point}
    log.log(verbosity(1), "A plugin raised an exception", extra=names, exc_info=exception)


def make_runtime(
    *observers: PluginObserver, cache_results: bool = True, on_exception: ExceptionObserver = log_plugin_exception
) -> PluginRuntime:
    """Return a plugin runtime for one thread.

    *observers* observe the calls of plugins.
    """
    return PluginRuntime(PluginRunner(observers, on_exception), ResultCache(enabled=cache_results))


def make_slow_call_observer(warn: Callable[[str], None]) -> PluginObserver:
    """Return an observer that calls *warn* once per slow third-party plugin."""
    return SlowCallObserver(warn, exempt_plugins=[plugin.name for plugin in BUILT_IN_PLUGINS])
