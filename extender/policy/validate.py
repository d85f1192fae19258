"""What a Policy may not say, in the words of the releases that read it. Source: C077 to C080, C097."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from extender.config.faults import Fault
from extender.config.nearest import hint
from extender.config.paths import item
from extender.config.resource_names import extended_resource_faults
from extender.policy.model import LegacyExtender, Policy, PredicatePolicy, PriorityPolicy
from extender.policy.names import EQUAL, PREDICATE_ALIASES, PREDICATES, PRIORITIES, PRIORITY_ALIASES

_MOST_WEIGHT: Final = 2**31 - 1  # what a profile can hold; a Policy that exceeds it counts as overflown
_KINDS: Final[Mapping[str, str]] = {
    "label_preference": "LabelPreference",
    "service_anti_affinity": "ServiceAntiAffinity",
    "requested_to_capacity_ratio_arguments": "RequestedToCapacityRatio",
}
_ONLY_ONCE: Final = "RequestedToCapacityRatio"
_KNOWN_PREDICATES: Final = (*PREDICATES, *PREDICATE_ALIASES)
_KNOWN_PRIORITIES: Final = (*PRIORITIES, *PRIORITY_ALIASES, EQUAL)


def validate(policy: Policy) -> list[Fault]:
    """Everything wrong with *policy*, each with its field path."""
    weight = policy.hard_pod_affinity_symmetric_weight
    faults = [
        *_predicates(policy.predicates or ()),
        *_priorities(policy.priorities or ()),
        *_extenders(policy.extenders),
    ]
    if not 0 <= weight <= 100:
        message = f"Invalid hardPodAffinitySymmetricWeight: {weight}, must be in the range 1-100"
        faults.append(Fault("hardPodAffinitySymmetricWeight", message))
    return faults


def arguments(argument: msgspec.Struct | None) -> list[str]:
    """The names of the fields of *argument* that are set."""
    if argument is None:
        return []
    return [name for name in argument.__struct_fields__ if getattr(argument, name) is not None]


def _predicates(predicates: Sequence[PredicatePolicy]) -> Iterator[Fault]:
    for index, predicate in enumerate(predicates):
        path = item("predicates", index)
        given = arguments(predicate.argument)
        if predicate.argument is not None and len(given) != 1:
            message = f"exactly 1 predicate argument is required, numArgs: {len(given)}, predicate {predicate.name}"
            yield Fault(f"{path}.argument", message)
        elif not given and predicate.name not in _KNOWN_PREDICATES:
            message = f'predicate type not found for "{predicate.name}"{hint(predicate.name, _KNOWN_PREDICATES)}'
            yield Fault(f"{path}.name", message)


def _priorities(priorities: Sequence[PriorityPolicy]) -> Iterator[Fault]:
    seen: dict[str, PriorityPolicy] = {}
    for index, priority in enumerate(priorities):
        path = item("priorities", index)
        given = arguments(priority.argument)
        name = priority.name
        if not 0 < priority.weight <= _MOST_WEIGHT:
            message = f"Priority {name} should have a positive weight applied to it or it has overflown"
            yield Fault(f"{path}.weight", message)
        if priority.argument is not None and len(given) != 1:
            message = f"exactly 1 priority argument is required, numArgs: {len(given)}, priority {name}"
            yield Fault(f"{path}.argument", message)
        elif given:
            yield from _custom(_KINDS[given[0]], priority, seen, path)
        elif name not in _KNOWN_PRIORITIES:
            yield Fault(f"{path}.name", f'priority type not found for "{name}"{hint(name, _KNOWN_PRIORITIES)}')


def _custom(kind: str, priority: PriorityPolicy, seen: dict[str, PriorityPolicy], path: str) -> Iterator[Fault]:
    """Several of one kind become one plugin, so their weights must agree. Source: C080."""
    other = seen.get(kind)
    if other is not None and kind == _ONLY_ONCE:
        message = f'priority "{priority.name}" redeclares custom priority "{kind}", from: "{other.name}"'
        yield Fault(f"{path}.argument", message)
        return
    if other is not None and other.weight != priority.weight:
        message = f'{kind} priority "{priority.name}" has a different weight with "{other.name}"'
        yield Fault(f"{path}.weight", message)
    seen[kind] = priority


def _extenders(extenders: Sequence[LegacyExtender]) -> Iterator[Fault]:
    """Source: C079."""
    managed: set[str] = set()
    for index, extender in enumerate(extenders):
        path = item("extenders", index)
        if extender.prioritize_verb and extender.weight <= 0:
            message = f"Priority for extender {extender.url_prefix} should have a positive weight applied to it"
            yield Fault(f"{path}.weight", message)
        for number, resource in enumerate(extender.managed_resources):
            where = f"{path}.managedResources[{number}].name"
            if extended_resource_faults(resource.name):
                yield Fault(where, f"{resource.name} is an invalid extended resource name")
            if resource.name in managed:
                yield Fault(where, f"Duplicate extender managed resource name {resource.name}")
            managed.add(resource.name)
    binders = sum(bool(extender.bind_verb) for extender in extenders)
    if binders > 1:
        yield Fault("extenders", f"Only one extender can implement bind, found {binders}")
