"""Validation of a Policy with the messages of the releases up to 1.22.

Source: pkg/scheduler/framework/plugins/legacy_registry.go, validatePredicate, LegacyRegistry.ProcessPredicatePolicy
(1.21); pkg/scheduler/api/validation/validation.go, ValidatePolicy; pkg/scheduler/factory/factory.go,
configFactory.CreateFromKeys (1.14).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from extender.config.did_you_mean import did_you_mean
from extender.config.errors import FieldError, item
from extender.config.legacy_policy.plugin_names import (
    EQUAL_PRIORITY,
    PLUGIN_BY_PRIORITY,
    PLUGINS_BY_PREDICATE,
    PREDICATE_ALIASES,
    PRIORITY_ALIASES,
)
from extender.config.legacy_policy.policy_document import LegacyExtender, Policy, PredicatePolicy, PriorityPolicy
from extender.config.validation import validate_extended_resource_name

_MAX_WEIGHT: Final = 2**31 - 1  # the largest weight in a profile
_KIND_BY_ARGUMENT: Final[Mapping[str, str]] = {
    "label_preference": "LabelPreference",
    "service_anti_affinity": "ServiceAntiAffinity",
    "requested_to_capacity_ratio_arguments": "RequestedToCapacityRatio",
}
_UNIQUE_KIND: Final = "RequestedToCapacityRatio"
_KNOWN_PREDICATES: Final = (*PLUGINS_BY_PREDICATE, *PREDICATE_ALIASES)
_KNOWN_PRIORITIES: Final = (*PLUGIN_BY_PRIORITY, *PRIORITY_ALIASES, EQUAL_PRIORITY)


def validate_policy(policy: Policy) -> list[FieldError]:
    """Return all errors of *policy*."""
    weight = policy.hard_pod_affinity_symmetric_weight
    errors = [
        *_validate_predicates(policy.predicates or ()),
        *_validate_priorities(policy.priorities or ()),
        *_validate_extenders(policy.extenders),
    ]
    if not 0 <= weight <= 100:
        message = f"Invalid hardPodAffinitySymmetricWeight: {weight}, must be in the range 1-100"
        errors.append(FieldError("hardPodAffinitySymmetricWeight", message))
    return errors


def list_non_null_fields(argument: msgspec.Struct | None) -> list[str]:
    """Return the names of the fields of *argument* that are not None."""
    if argument is None:
        return []
    return [name for name in argument.__struct_fields__ if getattr(argument, name) is not None]


def _validate_predicates(predicates: Sequence[PredicatePolicy]) -> Iterator[FieldError]:
    for index, predicate in enumerate(predicates):
        path = item("predicates", index)
        argument_fields = list_non_null_fields(predicate.argument)
        if predicate.argument is not None and len(argument_fields) != 1:
            message = (
                f"exactly 1 predicate argument is required, numArgs: {len(argument_fields)}, predicate {predicate.name}"
            )
            yield FieldError(f"{path}.argument", message)
        elif not argument_fields and predicate.name not in _KNOWN_PREDICATES:
            message = (
                f'predicate type not found for "{predicate.name}"{did_you_mean(predicate.name, _KNOWN_PREDICATES)}'
            )
            yield FieldError(f"{path}.name", message)


def _validate_priorities(priorities: Sequence[PriorityPolicy]) -> Iterator[FieldError]:
    first_by_kind: dict[str, PriorityPolicy] = {}
    for index, priority in enumerate(priorities):
        path = item("priorities", index)
        argument_fields = list_non_null_fields(priority.argument)
        name = priority.name
        if not 0 < priority.weight <= _MAX_WEIGHT:
            message = f"Priority {name} should have a positive weight applied to it or it has overflown"
            yield FieldError(f"{path}.weight", message)
        if priority.argument is not None and len(argument_fields) != 1:
            message = f"exactly 1 priority argument is required, numArgs: {len(argument_fields)}, priority {name}"
            yield FieldError(f"{path}.argument", message)
        elif argument_fields:
            yield from _validate_custom_priority(_KIND_BY_ARGUMENT[argument_fields[0]], priority, first_by_kind, path)
        elif name not in _KNOWN_PRIORITIES:
            yield FieldError(
                f"{path}.name", f'priority type not found for "{name}"{did_you_mean(name, _KNOWN_PRIORITIES)}'
            )


def _validate_custom_priority(
    kind: str, priority: PriorityPolicy, first_by_kind: dict[str, PriorityPolicy], path: str
) -> Iterator[FieldError]:
    """Check that priorities of one kind have the same weight, because they become one plugin.

    Only one priority of the kind RequestedToCapacityRatio is allowed.

    Source: pkg/scheduler/framework/plugins/legacy_registry.go, LegacyRegistry.ProcessPredicatePolicy (1.21).
    """
    first_priority = first_by_kind.get(kind)
    if first_priority is not None and kind == _UNIQUE_KIND:
        message = f'priority "{priority.name}" redeclares custom priority "{kind}", from: "{first_priority.name}"'
        yield FieldError(f"{path}.argument", message)
        return
    if first_priority is not None and first_priority.weight != priority.weight:
        message = f'{kind} priority "{priority.name}" has a different weight with "{first_priority.name}"'
        yield FieldError(f"{path}.weight", message)
    first_by_kind[kind] = priority


def _validate_extenders(extenders: Sequence[LegacyExtender]) -> Iterator[FieldError]:
    """Validate weights, managed resources and bind verbs of the extenders.

    Source: pkg/scheduler/api/validation/validation.go, ValidatePolicy (1.14).
    """
    managed_names: set[str] = set()
    for index, extender in enumerate(extenders):
        path = item("extenders", index)
        if extender.prioritize_verb and extender.weight <= 0:
            message = f"Priority for extender {extender.url_prefix} should have a positive weight applied to it"
            yield FieldError(f"{path}.weight", message)
        for resource_index, resource in enumerate(extender.managed_resources):
            name_path = f"{path}.managedResources[{resource_index}].name"
            if validate_extended_resource_name(resource.name):
                yield FieldError(name_path, f"{resource.name} is an invalid extended resource name")
            if resource.name in managed_names:
                yield FieldError(name_path, f"Duplicate extender managed resource name {resource.name}")
            managed_names.add(resource.name)
    binder_count = sum(bool(extender.bind_verb) for extender in extenders)
    if binder_count > 1:
        yield FieldError("extenders", f"Only one extender can implement bind, found {binder_count}")
