"""The plugins that a Policy requests, with weights and arguments.

Source: pkg/scheduler/factory.go, Configurator.createFromConfig;
pkg/scheduler/framework/plugins/legacy_registry.go, NewLegacyRegistry (1.21).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from extender.config.errors import child, item
from extender.config.legacy_policy.algorithm_providers import DEFAULT_PROVIDER, get_provider
from extender.config.legacy_policy.plugin_names import (
    BEHAVIOR_DIFFERENCES,
    CAPACITY_RATIO_PLUGIN,
    EQUAL_PRIORITY,
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
from extender.config.legacy_policy.policy import Policy, PredicatePolicy, PriorityArgument, PriorityPolicy

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
