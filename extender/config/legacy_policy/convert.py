"""Conversion of a Policy to an equivalent configuration: the plugins that it requests, with weights and arguments.

Source: pkg/scheduler/factory.go, Configurator.createFromConfig;
pkg/scheduler/framework/plugins/legacy_registry.go, NewLegacyRegistry (1.21).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from extender.api.defaults import DEFAULT_SCHEDULER_NAME
from extender.config.defaults import merge_with_default_plugins
from extender.config.errors import ConfigError, child, item
from extender.config.legacy_policy.algorithm_providers import DEFAULT_PROVIDER, get_provider
from extender.config.legacy_policy.plugin_names import (
    BEHAVIOR_DIFFERENCES,
    CAPACITY_RATIO_PLUGIN,
    EQUAL_PRIORITY,
    FILTER_AND_SCORE_PLUGINS,
    LABEL_PRESENCE_PREDICATE,
    MANDATORY_PREDICATES,
    NODE_LABEL_PLUGIN,
    PLUGIN_BY_PRIORITY,
    PLUGINS_BY_PREDICATE,
    PREDICATE_ALIASES,
    PRIORITY_ALIASES,
    SERVICE_AFFINITY_PLUGIN,
    SERVICE_AFFINITY_PREDICATE,
)
from extender.config.legacy_policy.policy_document import (
    LegacyExtender,
    Policy,
    PredicatePolicy,
    PriorityArgument,
    PriorityPolicy,
)
from extender.config.legacy_policy.policy_validation import validate_policy
from extender.config.model import Configuration, Extender, Plugin, Plugins, PluginSet, Profile

ArgsByPlugin = dict[str, dict[str, Any]]


@dataclass(slots=True)
class RequestedPlugins:
    """The plugins that a Policy requests.

    Attributes:
        filter_plugins: names of Filter plugins in execution order.
        args: plugin arguments as plain values, by plugin.
        args_paths: the field path of the arguments in the Policy, by plugin.
        warnings: one warning for each rule of the Policy that this scheduler applies differently.
    """

    filter_plugins: tuple[str, ...] = ()
    score_weights: dict[str, int] = field(default_factory=dict)
    args: ArgsByPlugin = field(default_factory=dict)
    args_paths: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def add_warning(self, text: str) -> None:
        """Add a warning, unless the same warning was added before."""
        if text not in self.warnings:
            self.warnings.append(text)

    def append_to_arg(self, plugin: str, key: str, values: Sequence[str], path: str) -> None:
        """Append *values* to the list *key* in the arguments of *plugin*. Several Policy entries can share one list."""
        arg_values: list[str] = self.args.setdefault(plugin, {}).setdefault(key, [])
        arg_values.extend(values)
        self.args_paths.setdefault(plugin, path)


def collect_requested_plugins(policy: Policy) -> RequestedPlugins:
    """Return the plugins that a valid *policy* requests."""
    requested_plugins = RequestedPlugins()
    default_policy = get_provider(DEFAULT_PROVIDER)
    policy_predicate_names = [
        _add_predicate(predicate, item("predicates", index), requested_plugins)
        for index, predicate in enumerate(
            (policy.predicates if policy.predicates is not None else default_policy.predicates) or ()
        )
    ]
    predicate_names = {*policy_predicate_names, *MANDATORY_PREDICATES}
    requested_plugins.filter_plugins = tuple(
        dict.fromkeys(
            plugin for name, plugins in PLUGINS_BY_PREDICATE.items() if name in predicate_names for plugin in plugins
        )
    )
    priorities = policy.priorities if policy.priorities is not None else default_policy.priorities
    for index, priority in enumerate(priorities or ()):
        _add_priority(priority, item("priorities", index), requested_plugins)
    for plugin in (NODE_LABEL_PLUGIN, SERVICE_AFFINITY_PLUGIN):
        if plugin in requested_plugins.score_weights:
            requested_plugins.score_weights[plugin] *= _count_preference_labels(requested_plugins.args[plugin])
    return requested_plugins


def _count_preference_labels(args: Mapping[str, Sequence[str]]) -> int:
    """Return the number of preference labels in *args*. The weight of a priority counts once for each label.

    Source: pkg/scheduler/framework/plugins/legacy_registry.go, LegacyRegistry.ProcessPredicatePolicy (1.21).
    """
    return sum(len(values) for key, values in args.items() if key.endswith("LabelsPreference"))


def _add_predicate(predicate: PredicatePolicy, path: str, requested_plugins: RequestedPlugins) -> str:
    """Add the argument of a predicate to its plugin and return the name of the predicate."""
    name = PREDICATE_ALIASES.get(predicate.name, predicate.name)
    argument = predicate.argument
    if name in BEHAVIOR_DIFFERENCES:
        requested_plugins.add_warning(f"{name}: {BEHAVIOR_DIFFERENCES[name]}")
    if name == "GeneralPredicates":
        requested_plugins.add_warning("GeneralPredicates: only the first predicate that a node fails is reported")
    if name in PLUGINS_BY_PREDICATE and name not in {LABEL_PRESENCE_PREDICATE, SERVICE_AFFINITY_PREDICATE}:
        if argument is not None:
            requested_plugins.add_warning(f"{path}.argument: {name} takes no argument; the argument is ignored")
        return name
    if argument is None:
        requested_plugins.add_warning(f"{path}: {name} without an argument rejects no node")
        return name
    if argument.service_affinity is not None:
        argument_path = child(path, "argument.serviceAffinity")
        requested_plugins.append_to_arg(
            SERVICE_AFFINITY_PLUGIN, "affinityLabels", argument.service_affinity.labels, argument_path
        )
        return SERVICE_AFFINITY_PREDICATE
    presence = argument.labels_presence
    if presence is not None:
        key = "presentLabels" if presence.presence else "absentLabels"
        requested_plugins.append_to_arg(NODE_LABEL_PLUGIN, key, presence.labels, child(path, "argument.labelsPresence"))
    return LABEL_PRESENCE_PREDICATE


def _add_priority(priority: PriorityPolicy, path: str, requested_plugins: RequestedPlugins) -> None:
    if priority.argument is not None:
        plugin = _add_custom_priority(priority.argument, path, requested_plugins)
    elif priority.name == EQUAL_PRIORITY:
        requested_plugins.add_warning("EqualPriority: gives all nodes the same score, which needs no plugin")
        return
    else:
        name = PRIORITY_ALIASES.get(priority.name, priority.name)
        plugin = PLUGIN_BY_PRIORITY[name]
        for priority_name in (priority.name, name):
            if priority_name in BEHAVIOR_DIFFERENCES:
                requested_plugins.add_warning(f"{priority_name}: {BEHAVIOR_DIFFERENCES[priority_name]}")
        if plugin in requested_plugins.score_weights:
            requested_plugins.add_warning(f"{path}: {plugin} is requested more than once; the last weight applies")
    requested_plugins.score_weights[plugin] = priority.weight


def _add_custom_priority(argument: PriorityArgument, path: str, requested_plugins: RequestedPlugins) -> str:
    """Add the argument of a custom priority to its plugin and return the plugin. The priority's name has no effect.

    Source: pkg/scheduler/framework/plugins/legacy_registry.go, LegacyRegistry.ProcessPredicatePolicy,
    LegacyRegistry.ProcessPriorityPolicy (1.21).
    """
    if argument.service_anti_affinity is not None:
        label = argument.service_anti_affinity.label
        argument_path = child(path, "argument.serviceAntiAffinity")
        requested_plugins.append_to_arg(SERVICE_AFFINITY_PLUGIN, "antiAffinityLabelsPreference", [label], argument_path)
        return SERVICE_AFFINITY_PLUGIN
    if argument.label_preference is not None:
        preference = argument.label_preference
        key = "presentLabelsPreference" if preference.presence else "absentLabelsPreference"
        requested_plugins.append_to_arg(
            NODE_LABEL_PLUGIN, key, [preference.label], child(path, "argument.labelPreference")
        )
        return NODE_LABEL_PLUGIN
    ratio = argument.requested_to_capacity_ratio_arguments
    if ratio is not None:
        shape = [{"utilization": point.utilization, "score": point.score} for point in ratio.shape]
        resources = [{"name": resource.name, "weight": resource.weight or 1} for resource in ratio.resources]
        requested_plugins.args[CAPACITY_RATIO_PLUGIN] = {
            "shape": shape,
            **({"resources": resources} if resources else {}),
        }
        requested_plugins.args_paths[CAPACITY_RATIO_PLUGIN] = child(path, "argument.requestedToCapacityRatioArguments")
    return CAPACITY_RATIO_PLUGIN


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
