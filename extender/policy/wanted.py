"""The plugins a Policy asks for, with weights and arguments: its predicates and priorities read one after another.

Source: C013, C019, C050, C077 to C081.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from extender.config.paths import child, item
from extender.policy.model import Policy, PredicatePolicy, PriorityPolicy
from extender.policy.names import (
    CAPACITY_RATIO,
    DIFFERS,
    EQUAL,
    LABEL_PREFERENCE,
    LABEL_PRESENCE,
    MANDATORY,
    PREDICATE_ALIASES,
    PREDICATES,
    PRIORITIES,
    PRIORITY_ALIASES,
    SERVICE_AFFINITY,
    SERVICE_ANTI_AFFINITY,
)
from extender.policy.providers import DEFAULT_PROVIDER, provider

Args = dict[str, dict[str, Any]]


@dataclass(slots=True)
class Wanted:
    """What a Policy comes to.

    Attributes:
        filters: plugins that filter, in the order they run.
        scores: plugins that score, with their weights.
        args: by plugin, builtins.
        places: by plugin, where in the Policy its arguments stand.
        notes: what is not quite the same, a sentence each.
    """

    filters: tuple[str, ...] = ()
    scores: dict[str, int] = field(default_factory=dict)
    args: Args = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Add a note, once."""
        if text not in self.notes:
            self.notes.append(text)

    def append(self, plugin: str, key: str, values: Sequence[str], path: str) -> None:
        """Add *values* to the list *key* of the arguments of *plugin*; several entries of a Policy share one plugin."""
        listed: list[str] = self.args.setdefault(plugin, {}).setdefault(key, [])
        listed.extend(values)
        self.places.setdefault(plugin, path)


def wanted(policy: Policy) -> Wanted:
    """What *policy*, which is valid, asks for."""
    found = Wanted()
    default = provider(DEFAULT_PROVIDER)
    names = [
        _predicate(predicate, item("predicates", index), found)
        for index, predicate in enumerate(
            (policy.predicates if policy.predicates is not None else default.predicates) or ()
        )
    ]
    asked = {*names, *MANDATORY}
    found.filters = tuple(
        dict.fromkeys(plugin for name, plugins in PREDICATES.items() if name in asked for plugin in plugins)
    )
    priorities = policy.priorities if policy.priorities is not None else default.priorities
    for index, priority in enumerate(priorities or ()):
        _priority(priority, item("priorities", index), found)
    if "NodeLabel" in found.scores:
        found.scores["NodeLabel"] *= _number(found.args, "NodeLabel", "LabelsPreference")
    if "ServiceAffinity" in found.scores:
        found.scores["ServiceAffinity"] *= _number(found.args, "ServiceAffinity", "LabelsPreference")
    return found


def _number(args: Args, plugin: str, suffix: str) -> int:
    """How many labels of *plugin* score; each priority of the Policy brought one with its weight. Source: C080."""
    return sum(len(values) for key, values in args[plugin].items() if key.endswith(suffix))


def _predicate(predicate: PredicatePolicy, path: str, found: Wanted) -> str:
    """The predicate's own name, whatever the Policy calls it; its argument goes to the plugin."""
    name = PREDICATE_ALIASES.get(predicate.name, predicate.name)
    argument = predicate.argument
    if name in DIFFERS:
        found.note(f"{name}: {DIFFERS[name]}")
    if name == "GeneralPredicates":
        found.note("GeneralPredicates: a node that fails several of its parts is told the first one only")
    if name in PREDICATES and name not in {LABEL_PRESENCE, SERVICE_AFFINITY}:
        if argument is not None:
            found.note(f"{path}.argument: {name} takes none; it is passed over")
        return name
    if argument is None:
        found.note(f"{path}: {name} without an argument refuses nothing")
        return name
    if argument.service_affinity is not None:
        where = child(path, "argument.serviceAffinity")
        found.append("ServiceAffinity", "affinityLabels", argument.service_affinity.labels, where)
        return SERVICE_AFFINITY
    presence = argument.labels_presence
    if presence is not None:
        key = "presentLabels" if presence.presence else "absentLabels"
        found.append("NodeLabel", key, presence.labels, child(path, "argument.labelsPresence"))
    return LABEL_PRESENCE


def _priority(priority: PriorityPolicy, path: str, found: Wanted) -> None:
    if priority.argument is not None:
        plugin = _custom(priority, path, found)
    elif priority.name == EQUAL:
        found.note("EqualPriority: rates all nodes alike, which needs no plugin")
        return
    else:
        name = PRIORITY_ALIASES.get(priority.name, priority.name)
        plugin = PRIORITIES[name]
        for each in (priority.name, name):
            if each in DIFFERS:
                found.note(f"{each}: {DIFFERS[each]}")
        if plugin in found.scores:
            found.note(f"{path}: {plugin} was asked for before; the weight given last counts")
    found.scores[plugin] = priority.weight


def _custom(priority: PriorityPolicy, path: str, found: Wanted) -> str:
    """The plugin of a priority with an argument; the Policy's name for it does not matter. Source: C080, C081."""
    argument = priority.argument
    if argument is not None and argument.service_anti_affinity is not None:
        label = argument.service_anti_affinity.label
        where = child(path, "argument.serviceAntiAffinity")
        found.append(SERVICE_ANTI_AFFINITY, "antiAffinityLabelsPreference", [label], where)
        return SERVICE_ANTI_AFFINITY
    if argument is not None and argument.label_preference is not None:
        preference = argument.label_preference
        key = "presentLabelsPreference" if preference.presence else "absentLabelsPreference"
        found.append(LABEL_PREFERENCE, key, [preference.label], child(path, "argument.labelPreference"))
        return LABEL_PREFERENCE
    ratio = argument.requested_to_capacity_ratio_arguments if argument is not None else None
    if ratio is not None:
        shape = [{"utilization": point.utilization, "score": point.score} for point in ratio.shape]
        resources = [{"name": resource.name, "weight": resource.weight or 1} for resource in ratio.resources]
        found.args[CAPACITY_RATIO] = {"shape": shape, **({"resources": resources} if resources else {})}
        found.places[CAPACITY_RATIO] = child(path, "argument.requestedToCapacityRatioArguments")
    return CAPACITY_RATIO
