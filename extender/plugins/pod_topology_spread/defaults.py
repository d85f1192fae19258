"""The default constraints of PodTopologySpread: the system's, and what may be set instead. Source: B067, G041."""

from collections.abc import Iterator, Sequence

from extender.config.faults import Fault
from extender.config.validate import invalid
from extender.objects.affinity import TopologySpreadConstraint
from extender.objects.label_syntax import qualified_name_faults
from extender.plugins.pod_topology_spread.constraints import HARD, SOFT

SYSTEM_DEFAULTS = (
    TopologySpreadConstraint(topology_key="kubernetes.io/hostname", when_unsatisfiable=SOFT, max_skew=3),
    TopologySpreadConstraint(topology_key="topology.kubernetes.io/zone", when_unsatisfiable=SOFT, max_skew=5),
)
"""What holds for pods without constraints under `defaultingType: System`."""

_EMPTY = "Required value: can not be empty"


def default_constraint_faults(
    path: str, defaulting_type: str, constraints: Sequence[TopologySpreadConstraint]
) -> list[Fault]:
    """Everything wrong with the options at *path*, in kube-scheduler's words and order. Source: G041."""
    return [*_of_type(f"{path}.defaultingType", defaulting_type, constraints), *_of_list(path, constraints)]


def _of_type(path: str, defaulting_type: str, constraints: Sequence[TopologySpreadConstraint]) -> Iterator[Fault]:
    if defaulting_type not in {"System", "List"}:
        yield Fault(path, f'Unsupported value: "{defaulting_type}": supported values: "System", "List"')
    elif defaulting_type == "System" and constraints:
        yield invalid(path, defaulting_type, "when .defaultConstraints are not empty")


def _of_list(path: str, constraints: Sequence[TopologySpreadConstraint]) -> Iterator[Fault]:
    seen: set[tuple[str, str]] = set()
    for index, constraint in enumerate(constraints):
        where = f"{path}.defaultConstraints[{index}]"
        key, action = constraint.topology_key, constraint.when_unsatisfiable
        if constraint.max_skew <= 0:
            yield invalid(f"{where}.maxSkew", constraint.max_skew, "not in valid range (0, inf)")
        if not key:
            yield Fault(f"{where}.topologyKey", _EMPTY)
        else:
            yield from (invalid(f"{where}.topologyKey", key, message) for message in qualified_name_faults(key))
        if not action:
            yield Fault(f"{where}.whenUnsatisfiable", _EMPTY)
        elif action not in {HARD, SOFT}:
            wanted = f'supported values: "{HARD}", "{SOFT}"'
            yield Fault(f"{where}.whenUnsatisfiable", f'Unsupported value: "{action}": {wanted}')
        if constraint.label_selector is not None:
            rule = "Forbidden: constraint must not define a selector, as they deduced for each pod"
            yield Fault(f"{where}.labelSelector", rule)
        if (key, action) in seen:
            yield Fault(where, f'Duplicate value: "{{{key}, {action}}}"')
        seen.add((key, action))
