"""The system's default constraints of PodTopologySpread, and validation of configured default constraints.

Source: pkg/scheduler/framework/plugins/podtopologyspread/plugin.go, systemDefaultConstraints;
pkg/scheduler/apis/config/validation/validation_pluginargs.go, ValidatePodTopologySpreadArgs (1.36).
"""

from collections.abc import Iterator, Sequence

from extender.api.kinds.affinity import TopologySpreadConstraint
from extender.api.label_syntax import validate_qualified_name
from extender.config.errors import FieldError
from extender.config.validation import make_invalid_value_error
from extender.plugins.pod_topology_spread.constraints import DO_NOT_SCHEDULE, SCHEDULE_ANYWAY

SYSTEM_DEFAULT_CONSTRAINTS = (
    TopologySpreadConstraint(topology_key="kubernetes.io/hostname", when_unsatisfiable=SCHEDULE_ANYWAY, max_skew=3),
    TopologySpreadConstraint(
        topology_key="topology.kubernetes.io/zone", when_unsatisfiable=SCHEDULE_ANYWAY, max_skew=5
    ),
)
"""The constraints for pods that have none, with `defaultingType: System`."""

_REQUIRED_MESSAGE = "Required value: can not be empty"


def validate_default_constraints(
    path: str, defaulting_type: str, constraints: Sequence[TopologySpreadConstraint]
) -> list[FieldError]:
    """Return the errors of the options at *path*, with upstream's messages in upstream's order.

    Source: pkg/scheduler/apis/config/validation/validation_pluginargs.go, ValidatePodTopologySpreadArgs (1.36).
    """
    return [
        *_validate_defaulting_type(f"{path}.defaultingType", defaulting_type, constraints),
        *_validate_constraints(path, constraints),
    ]


def _validate_defaulting_type(
    path: str, defaulting_type: str, constraints: Sequence[TopologySpreadConstraint]
) -> Iterator[FieldError]:
    if defaulting_type not in {"System", "List"}:
        yield FieldError(path, f'Unsupported value: "{defaulting_type}": supported values: "System", "List"')
    elif defaulting_type == "System" and constraints:
        yield make_invalid_value_error(path, defaulting_type, "when .defaultConstraints are not empty")


def _validate_constraints(path: str, constraints: Sequence[TopologySpreadConstraint]) -> Iterator[FieldError]:
    seen_pairs: set[tuple[str, str]] = set()
    for index, constraint in enumerate(constraints):
        constraint_path = f"{path}.defaultConstraints[{index}]"
        key, action = constraint.topology_key, constraint.when_unsatisfiable
        if constraint.max_skew <= 0:
            yield make_invalid_value_error(
                f"{constraint_path}.maxSkew", constraint.max_skew, "not in valid range (0, inf)"
            )
        if not key:
            yield FieldError(f"{constraint_path}.topologyKey", _REQUIRED_MESSAGE)
        else:
            yield from (
                make_invalid_value_error(f"{constraint_path}.topologyKey", key, message)
                for message in validate_qualified_name(key)
            )
        if not action:
            yield FieldError(f"{constraint_path}.whenUnsatisfiable", _REQUIRED_MESSAGE)
        elif action not in {DO_NOT_SCHEDULE, SCHEDULE_ANYWAY}:
            supported_values = f'supported values: "{DO_NOT_SCHEDULE}", "{SCHEDULE_ANYWAY}"'
            yield FieldError(
                f"{constraint_path}.whenUnsatisfiable", f'Unsupported value: "{action}": {supported_values}'
            )
        if constraint.label_selector is not None:
            message = "Forbidden: constraint must not define a selector, as they deduced for each pod"
            yield FieldError(f"{constraint_path}.labelSelector", message)
        if (key, action) in seen_pairs:
            yield FieldError(constraint_path, f'Duplicate value: "{{{key}, {action}}}"')
        seen_pairs.add((key, action))
