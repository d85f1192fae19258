"""Conversion of a Policy to an equivalent configuration.

Source: pkg/scheduler/factory.go, Configurator.createFromConfig (1.21).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import msgspec

from extender.api.defaults import DEFAULT_SCHEDULER_NAME
from extender.config.defaults import merge_with_default_plugins
from extender.config.errors import ConfigError
from extender.config.legacy_policy.plugin_names import FILTER_AND_SCORE_PLUGINS
from extender.config.legacy_policy.policy import LegacyExtender, Policy
from extender.config.legacy_policy.policy_validation import validate_policy
from extender.config.legacy_policy.requested_plugins import RequestedPlugins, collect_requested_plugins
from extender.config.model import Configuration, Extender, Plugin, Plugins, PluginSet, Profile

_LEADING_PLUGINS: Final = ("SchedulingGates", "PrioritySort")
_TRAILING_PLUGINS: Final = ("DefaultPreemption", "DefaultBinder")
_ALL_PLUGINS: Final = Plugin("*")
_NANOSECONDS_PER_SECOND: Final = 1e9
_DEFAULT_HARD_POD_AFFINITY_WEIGHT: Final = 1


@dataclass(frozen=True, slots=True)
class ConvertedPolicy:
    """The configuration that is equivalent to a Policy, and a warning for each difference in behavior."""

    configuration: Configuration
    warnings: tuple[str, ...]


def convert_policy(policy: Policy, warnings: Iterable[str] = ()) -> ConvertedPolicy:
    """Convert *policy* to a configuration with one profile.

    The plugins are listed at `multiPoint`, in the order of the predicates, because validation rejects some plugin names
    at other extension points. If the Policy requests a plugin as predicate but not as priority, the plugin's Score is
    disabled. If the Policy requests a plugin as priority but not as predicate, the plugin's Filter is disabled.

    The *warnings* of decoding precede those of the conversion.

    Raises:
        ConfigError: all errors of *policy*.
    """
    errors = validate_policy(policy)
    if errors:
        raise ConfigError(errors)
    requested_plugins = collect_requested_plugins(policy)
    _add_policy_settings(policy, requested_plugins)
    profile = Profile(
        scheduler_name=DEFAULT_SCHEDULER_NAME,
        plugins=merge_with_default_plugins(_build_plugin_sets(requested_plugins)),
        plugin_config={name: dict(args) for name, args in requested_plugins.args.items()},
        check_all_filters=policy.always_check_all_predicates,
        args_paths=dict(requested_plugins.args_paths),
        path="profiles[0]",
    )
    extenders = tuple(_convert_extender(extender) for extender in policy.extenders)
    return ConvertedPolicy(
        Configuration(profiles=(profile,), extenders=extenders), (*warnings, *requested_plugins.warnings)
    )


def _add_policy_settings(policy: Policy, requested_plugins: RequestedPlugins) -> None:
    """Add the plugin arguments and warnings for the top-level settings of the Policy."""
    plugin_names = {*requested_plugins.filter_plugins, *requested_plugins.score_weights}
    weight = policy.hard_pod_affinity_symmetric_weight or _DEFAULT_HARD_POD_AFFINITY_WEIGHT
    if weight != _DEFAULT_HARD_POD_AFFINITY_WEIGHT and "InterPodAffinity" in plugin_names:
        requested_plugins.args["InterPodAffinity"] = {"hardPodAffinityWeight": weight}
        requested_plugins.args_paths["InterPodAffinity"] = "hardPodAffinitySymmetricWeight"
    if "PodTopologySpread" in plugin_names:
        # The default constraints of PodTopologySpread would duplicate SelectorSpread.
        requested_plugins.args["PodTopologySpread"] = {"defaultingType": "List"}
        requested_plugins.args_paths["PodTopologySpread"] = "predicates"
    if policy.always_check_all_predicates:
        requested_plugins.add_warning(
            "alwaysCheckAllPredicates: not supported by KubeSchedulerConfiguration, which reports only the first "
            "plugin that rejects a node. The rejected nodes are the same"
        )


def _build_plugin_sets(requested_plugins: RequestedPlugins) -> Plugins:
    score_only_names = [
        name for name in requested_plugins.score_weights if name not in requested_plugins.filter_plugins
    ]
    enabled_plugins = [
        Plugin(name, requested_plugins.score_weights.get(name, 0))
        for name in (*requested_plugins.filter_plugins, *score_only_names)
    ]
    disabled_filters = _build_disabled_set(name for name in score_only_names if name in FILTER_AND_SCORE_PLUGINS)
    disabled_scores = _build_disabled_set(
        name
        for name in requested_plugins.filter_plugins
        if name in FILTER_AND_SCORE_PLUGINS and name not in requested_plugins.score_weights
    )
    return Plugins(
        multi_point=PluginSet(
            enabled=(*map(Plugin, _LEADING_PLUGINS), *enabled_plugins, *map(Plugin, _TRAILING_PLUGINS)),
            disabled=(_ALL_PLUGINS,),
        ),
        pre_filter=disabled_filters,
        filter=disabled_filters,
        pre_score=disabled_scores,
        score=disabled_scores,
    )


def _build_disabled_set(names: Iterable[str]) -> PluginSet:
    return PluginSet(disabled=tuple(map(Plugin, names)))


def _convert_extender(extender: LegacyExtender) -> Extender:
    """Convert a legacy extender; its timeout is in nanoseconds.

    Source: kube-scheduler/config/v1/types.go, LegacyExtender (1.21).
    """
    http_timeout = extender.http_timeout / _NANOSECONDS_PER_SECOND
    return Extender(**{**msgspec.structs.asdict(extender), "http_timeout": http_timeout})
