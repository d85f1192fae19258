"""Rules of the API server for the spec of a pod, as far as its fields influence scheduling, with its messages.

`api.validation` has the rules that follow from the types of fields: quantities and operators. Rules that only refuse
pods and do not change a decision are left out, such as a missing image or a missing limit of an extended resource.

Source: pkg/apis/core/validation/validation.go, ValidatePodSpec; apimachinery/pkg/apis/meta/v1/validation/validation.go,
ValidateLabelSelector (1.37).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from extender.analysis.input.field_errors import (
    check_label_value,
    check_labels,
    check_names,
    check_qualified_name,
    check_supported_value,
    duplicate_value,
    required_value,
)
from extender.api.kinds.affinity import (
    Affinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    Toleration,
    TopologySpreadConstraint,
)
from extender.api.kinds.meta import LabelSelector, LabelSelectorRequirement, RawQuantity, ResourceList
from extender.api.kinds.pod import Container, ContainerPort, PodSpec, ResourceRequirements
from extender.api.label_syntax import invalid_value
from extender.api.quantity import Quantity, parse
from extender.api.requests import is_prefixed_native_resource
from extender.api.validation import ObjectError, prefix_paths

TAINT_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
PREEMPTION_POLICIES: Final = ("PreemptLowerPriority", "Never")
_RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_POSITIVE: Final = "must be greater than zero"
_MAX_PORT: Final = 65535
_MAX_WEIGHT: Final = 100
_HUGE_PAGES: Final = "hugepages-"
_SET_OPERATORS: Final = ("In", "NotIn")
_EXISTENCE_OPERATORS: Final = ("Exists", "DoesNotExist")
_NUMBER_OPERATORS: Final = ("Gt", "Lt")


def check_pod_spec(spec: PodSpec) -> Iterator[ObjectError]:
    """Yield the path and the error of each invalid field of a pod's spec."""
    if not spec.containers:
        yield "containers", required_value("a pod needs a container, such as {name: app, image: nginx}")
    yield from _check_containers(spec)
    yield from prefix_paths("nodeSelector", check_labels(spec.node_selector))
    if spec.affinity is not None:
        yield from prefix_paths("affinity", _check_affinity(spec.affinity))
    yield from _check_items("tolerations", spec.tolerations, _check_toleration)
    yield from _check_spread_constraints(spec.topology_spread_constraints)
    yield from check_names("schedulingGates", [gate.name for gate in spec.scheduling_gates], check_qualified_name)
    if spec.resources is not None:
        yield from prefix_paths("resources", _check_resources(spec.resources))
    yield from check_quantities("overhead", spec.overhead)
    if spec.preemption_policy is not None:
        yield from check_supported_value("preemptionPolicy", spec.preemption_policy, PREEMPTION_POLICIES)
    if spec.restart_policy:
        yield from check_supported_value("restartPolicy", spec.restart_policy, _RESTART_POLICIES)


def check_quantities(path: str, amounts: ResourceList) -> Iterator[ObjectError]:
    """Yield an error for each fraction of a resource that is counted, and of huge pages that are no multiple."""
    for name, raw in amounts.items():
        quantity, page = _parse(raw), _parse(name.removeprefix(_HUGE_PAGES)) if name.startswith(_HUGE_PAGES) else None
        if quantity is None:
            continue
        if (name == "pods" or _is_extended(name)) and quantity.scaled_value(-3) % 1000:
            yield f"{path}.{name}", invalid_value(raw, "must be an integer")
        elif page is not None and page.unscaled > 0 and quantity.scaled_value(0) % page.scaled_value(0):
            size = name.removeprefix(_HUGE_PAGES)
            yield f"{path}.{name}", invalid_value(raw, f"must be a multiple of the page size {size}")


def check_label_selector(selector: LabelSelector | None, path: str = "labelSelector") -> Iterator[ObjectError]:
    """Yield the errors of a label selector; None has none."""
    if selector is not None:
        yield from prefix_paths(f"{path}.matchLabels", check_labels(selector.match_labels))
        yield from _check_items(f"{path}.matchExpressions", selector.match_expressions, _check_requirement)


def _check_items(
    path: str, items: Iterable[Any], check: Callable[[Any], Iterable[ObjectError]]
) -> Iterator[ObjectError]:
    for index, item in enumerate(items):
        yield from prefix_paths(f"{path}[{index}]", check(item))


def _check_containers(spec: PodSpec) -> Iterator[ObjectError]:
    names: set[str] = set()
    for field, containers in (("initContainers", spec.init_containers), ("containers", spec.containers)):
        for index, container in enumerate(containers):
            path = f"{field}[{index}]"
            if container.name and container.name in names:
                yield f"{path}.name", duplicate_value(container.name)
            names.add(container.name)
            yield from prefix_paths(path, _check_container(container))


def _check_container(container: Container) -> Iterator[ObjectError]:
    yield from prefix_paths("resources", _check_resources(container.resources))
    yield from _check_items("ports", container.ports, _check_port)
    if container.restart_policy is not None:
        yield from check_supported_value("restartPolicy", container.restart_policy, _RESTART_POLICIES)


def _check_port(port: ContainerPort) -> Iterator[ObjectError]:
    for name, number in (("hostPort", port.host_port), ("containerPort", port.container_port)):
        if not 0 <= number <= _MAX_PORT:
            yield name, invalid_value(number, f"must be between 1 and {_MAX_PORT}, inclusive")
    if port.protocol:
        yield from check_supported_value("protocol", port.protocol, _PROTOCOLS)


def _check_resources(resources: ResourceRequirements) -> Iterator[ObjectError]:
    yield from check_quantities("limits", resources.limits)
    yield from check_quantities("requests", resources.requests)
    for name, raw in resources.requests.items():
        request, limit = _parse(raw), _parse(resources.limits.get(name, ""))
        if request is None or limit is None:
            continue
        path, text = f"requests.{name}", f"{name} limit of {resources.limits[name]}"
        if request.exceeds(limit):
            yield path, invalid_value(raw, f"must be less than or equal to {text}")
        elif limit.exceeds(request) and (_is_extended(name) or name.startswith(_HUGE_PAGES)):
            yield path, invalid_value(raw, f"must be equal to {text}")


def _parse(raw: RawQuantity) -> Quantity | None:
    """Return a quantity; None if the text is none, which `api.validation` reports."""
    try:
        return parse(raw)
    except ValueError:
        return None


def _is_extended(resource: str) -> bool:
    """Return whether nodes offer a resource in whole units.

    Source: pkg/apis/core/v1/helper/helpers.go, IsExtendedResourceName (1.37).
    """
    return "/" in resource and not is_prefixed_native_resource(resource)


def _check_affinity(affinity: Affinity) -> Iterator[ObjectError]:
    node_affinity = affinity.node_affinity
    if node_affinity is not None:
        required = node_affinity.required_during_scheduling_ignored_during_execution
        if required is not None:
            path = "nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
            yield from prefix_paths(path, _check_node_selector(required))
        preferred = node_affinity.preferred_during_scheduling_ignored_during_execution
        for index, term in enumerate(preferred):
            path = f"nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[{index}]"
            yield from _check_weight(path, term.weight)
            yield from prefix_paths(f"{path}.preference", _check_node_selector_term(term.preference))
    for name, rules in (("podAffinity", affinity.pod_affinity), ("podAntiAffinity", affinity.pod_anti_affinity)):
        if rules is not None:
            yield from prefix_paths(name, _check_pod_affinity(rules))


def _check_pod_affinity(rules: PodAffinity | PodAntiAffinity) -> Iterator[ObjectError]:
    required = rules.required_during_scheduling_ignored_during_execution
    yield from _check_items("requiredDuringSchedulingIgnoredDuringExecution", required, _check_pod_affinity_term)
    for index, term in enumerate(rules.preferred_during_scheduling_ignored_during_execution):
        path = f"preferredDuringSchedulingIgnoredDuringExecution[{index}]"
        yield from _check_weight(path, term.weight)
        yield from prefix_paths(f"{path}.podAffinityTerm", _check_pod_affinity_term(term.pod_affinity_term))


def _check_weight(path: str, weight: int) -> Iterator[ObjectError]:
    if not 0 < weight <= _MAX_WEIGHT:
        yield f"{path}.weight", invalid_value(weight, f"must be in the range 1-{_MAX_WEIGHT}")


def _check_pod_affinity_term(term: PodAffinityTerm) -> Iterator[ObjectError]:
    yield from check_label_selector(term.label_selector)
    yield from check_label_selector(term.namespace_selector, "namespaceSelector")
    if term.topology_key:
        yield from check_qualified_name("topologyKey", term.topology_key)
    else:
        yield "topologyKey", required_value("can not be empty")


def _check_node_selector(selector: NodeSelector) -> Iterator[ObjectError]:
    if not selector.node_selector_terms:
        yield "nodeSelectorTerms", required_value("must have at least one node selector term")
    yield from _check_items("nodeSelectorTerms", selector.node_selector_terms, _check_node_selector_term)


def _check_node_selector_term(term: NodeSelectorTerm) -> Iterator[ObjectError]:
    yield from _check_items("matchExpressions", term.match_expressions, _check_requirement)
    yield from _check_items("matchFields", term.match_fields, _check_field_requirement)


def _check_field_requirement(requirement: NodeSelectorRequirement) -> Iterator[ObjectError]:
    if requirement.operator in _SET_OPERATORS and len(requirement.values) != 1:
        yield (
            "values",
            required_value("must be only one value when `operator` is 'In' or 'NotIn' for node field selector"),
        )
    if requirement.key != "metadata.name":
        yield "key", invalid_value(requirement.key, "not a valid field selector key; want metadata.name")


def _check_requirement(requirement: NodeSelectorRequirement | LabelSelectorRequirement) -> Iterator[ObjectError]:
    operator, values = requirement.operator, requirement.values
    if operator in _SET_OPERATORS and not values:
        yield "values", required_value("must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in _EXISTENCE_OPERATORS and values:
        yield "values", "Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
    elif operator in _NUMBER_OPERATORS and len(values) != 1:
        yield "values", required_value("must be specified single value when `operator` is 'Lt' or 'Gt'")
    yield from check_qualified_name("key", requirement.key)
    for index, value in enumerate(values):
        yield from check_label_value(f"values[{index}]", value)


def _check_toleration(toleration: Toleration) -> Iterator[ObjectError]:
    operator = toleration.operator
    if toleration.key:
        yield from check_qualified_name("key", toleration.key)
    elif operator != "Exists":
        message = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield "operator", invalid_value(operator, message)
    if toleration.toleration_seconds is not None and toleration.effect != "NoExecute":
        yield "effect", invalid_value(toleration.effect, "must be 'NoExecute' when `tolerationSeconds` is set")
    if operator in {"", "Equal"}:
        yield from check_label_value("value", toleration.value)
    elif operator == "Exists" and toleration.value:
        yield "value", invalid_value(toleration.value, "must be empty when `operator` is 'Exists'")
    if toleration.effect:
        yield from check_supported_value("effect", toleration.effect, TAINT_EFFECTS)


def _check_spread_constraints(constraints: Iterable[TopologySpreadConstraint]) -> Iterator[ObjectError]:
    pairs: set[tuple[str, str]] = set()
    for index, constraint in enumerate(constraints):
        path = f"topologySpreadConstraints[{index}]"
        pair = (constraint.topology_key, constraint.when_unsatisfiable)
        if pair in pairs:
            message = duplicate_value(f"{{{', '.join(pair)}}}")
            yield f"{path}.{{topologyKey, whenUnsatisfiable}}", message
        pairs.add(pair)
        yield from prefix_paths(path, _check_spread_constraint(constraint))


def _check_spread_constraint(constraint: TopologySpreadConstraint) -> Iterator[ObjectError]:
    if constraint.max_skew <= 0:
        yield "maxSkew", invalid_value(constraint.max_skew, _POSITIVE)
    if not constraint.topology_key:
        yield "topologyKey", required_value("can not be empty")
    yield from check_supported_value(
        "whenUnsatisfiable", constraint.when_unsatisfiable, ("DoNotSchedule", "ScheduleAnyway")
    )
    if constraint.min_domains is not None:
        if constraint.min_domains <= 0:
            yield "minDomains", invalid_value(constraint.min_domains, _POSITIVE)
        if constraint.when_unsatisfiable != "DoNotSchedule":
            message = "can only use minDomains if whenUnsatisfiable=DoNotSchedule"
            yield "minDomains", invalid_value(constraint.min_domains, message)
    policies: Mapping[str, str | None] = {
        "nodeAffinityPolicy": constraint.node_affinity_policy,
        "nodeTaintsPolicy": constraint.node_taints_policy,
    }
    for name, policy in policies.items():
        if policy is not None:
            yield from check_supported_value(name, policy, ("Honor", "Ignore"))
    yield from check_label_selector(constraint.label_selector)
