"""Details and suggestions for the reasons of rejected nodes: amounts, names, and changes that help.

Each function handles the reasons of one built-in plugin. Reasons of other plugins are shown unchanged.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from extender.analysis.resource_format import format_amount
from extender.api.kinds.node import Node
from extender.api.matching import Requirement
from extender.api.tolerations import find_untolerated_taint
from extender.cache.node_matching import get_compiled_node_affinity
from extender.cache.pod_info import AssignedPodInfo, PodInfo
from extender.cache.snapshot import Snapshot
from extender.cache.tables.host_ports import host_ports_conflict

INSUFFICIENT: Final = "Insufficient "
_MAX_NAMES: Final = 3
_CORDON_TAINT: Final = "node.kubernetes.io/unschedulable"


def explain_reason(plugin: str, reason: str, pod: PodInfo, snapshot: Snapshot, row: int) -> str:
    """Return the reason why *plugin* rejects the node in *row*, followed by details if they are available."""
    explain = _EXPLAINERS.get(plugin)
    details = explain(reason, pod, snapshot, row) if explain else ""
    return f"{reason}: {details}" if details else reason


def get_requested_amount(pod: PodInfo, resource: str, snapshot: Snapshot) -> tuple[int, int]:
    """Return the id of a resource, and the pod's request in base units."""
    resource_id = snapshot.symbols.resources.intern(resource)
    return resource_id, dict(pod.signature.requests).get(resource_id, 0)


def _explain_resources(reason: str, pod: PodInfo, snapshot: Snapshot, row: int) -> str:
    view = snapshot.view()
    if not reason.startswith(INSUFFICIENT):
        return f"{int(view.pod_count[row])} are there, {int(view.allowed_pods[row])} is the most"
    resource = reason.removeprefix(INSUFFICIENT)
    resource_id, requested_amount = get_requested_amount(pod, resource, snapshot)
    allocatable_amount = int(view.allocatable(resource_id)[row])
    free_amount = allocatable_amount - int(view.requested(resource_id)[row])

    def format_resource_amount(amount: int) -> str:
        return format_amount(resource, amount)

    if not allocatable_amount:
        return f"wants {format_resource_amount(requested_amount)}, the node has none"
    too_small_text = (
        f", and only {format_resource_amount(allocatable_amount)} with nothing else on the node"
        if allocatable_amount < requested_amount
        else ""
    )
    requested, free = format_resource_amount(requested_amount), format_resource_amount(free_amount)
    missing = format_resource_amount(requested_amount - free_amount)
    return f"wants {requested}, {free} free{too_small_text}; {missing} short"


def _explain_taint(_reason: str, pod: PodInfo, snapshot: Snapshot, row: int) -> str:
    taint = find_untolerated_taint(snapshot.nodes[row].spec.taints, pod.signature.tolerations)
    if taint is None:
        return ""
    if taint.key == _CORDON_TAINT:
        return "uncordon the node"
    value = f"={taint.value}" if taint.value else ""
    return f"tolerate {taint.key}{value}:{taint.effect}, or remove it from the node"


def _explain_cordon(_reason: str, _pod: PodInfo, _snapshot: Snapshot, _row: int) -> str:
    return "uncordon the node"


def _explain_node_affinity(reason: str, pod: PodInfo, snapshot: Snapshot, row: int) -> str:
    if "enforced" in reason:
        return "see addedAffinity in the arguments of NodeAffinity"
    node = snapshot.nodes[row]
    required_affinity = get_compiled_node_affinity(pod)
    unmet_requirements = list(_list_unmet_requirements(required_affinity.selector.requirements, node.metadata.labels))
    if not unmet_requirements and required_affinity.terms is not None:
        unmet_by_term = [
            list(_list_unmet_term_requirements(term.label_requirements, term.field_requirements, node))
            for term in required_affinity.terms.terms
        ]
        unmet_requirements = min(unmet_by_term, key=len, default=[])  # the term with the fewest unmet requirements
    return "; ".join(unmet_requirements)


def _list_unmet_term_requirements(
    labels: tuple[Requirement, ...], fields: tuple[Requirement, ...], node: Node
) -> Iterator[str]:
    yield from _list_unmet_requirements(labels, node.metadata.labels)
    yield from _list_unmet_requirements(fields, {"metadata.name": node.metadata.name})


def _list_unmet_requirements(requirements: tuple[Requirement, ...], labels: Mapping[str, str]) -> Iterator[str]:
    for requirement in requirements:
        value = labels.get(requirement.key)
        if not requirement.matches(value):
            node_value_text = "the node lacks it" if value is None else f'the node has "{value}"'
            yield f"wants {_format_requirement(requirement)}, {node_value_text}"


def _format_requirement(requirement: Requirement) -> str:
    match requirement.operator:
        case "Exists":
            return f"label {requirement.key}"
        case "DoesNotExist":
            return f"no label {requirement.key}"
        case "In" if len(requirement.values) == 1:
            return f"{requirement.key}={requirement.values[0]}"
    return f"{requirement.key} {requirement.operator} {', '.join(requirement.values)}"


def _explain_ports(_reason: str, pod: PodInfo, snapshot: Snapshot, row: int) -> str:
    for existing_pod in snapshot.pods_on(snapshot.names[row]).values():
        for port in pod.signature.host_ports:
            if host_ports_conflict((port,), existing_pod.signature.host_ports):
                return f"{port[1]}/{port[0]} is taken by {existing_pod.key}"
    return ""


def _explain_spread(_reason: str, pod: PodInfo, snapshot: Snapshot, row: int) -> str:
    labels = snapshot.nodes[row].metadata.labels
    constraints = [
        constraint
        for constraint in pod.spec.topology_spread_constraints
        if constraint.when_unsatisfiable == "DoNotSchedule"
    ]
    missing_keys = [constraint.topology_key for constraint in constraints if constraint.topology_key not in labels]
    if missing_keys:
        return f"label the node with {', '.join(missing_keys)}"
    return "; ".join(
        f"maxSkew {constraint.max_skew} over {constraint.topology_key}, {labels[constraint.topology_key]} is ahead"
        for constraint in constraints[:1]
    )


def _explain_pod_affinity(reason: str, pod: PodInfo, snapshot: Snapshot, row: int) -> str:
    labels = snapshot.nodes[row].metadata.labels
    terms = pod.signature.affinity
    if "anti-affinity" not in reason:
        topology_keys = dict.fromkeys(term.topology_key for term in terms.required)
        missing_keys = [key for key in topology_keys if key not in labels]
        if missing_keys:
            return f"label the node with {', '.join(missing_keys)}"
        return f"no pod that matches its affinity is in {', '.join(f'{key}={labels[key]}' for key in topology_keys)}"
    existing = "existing" in reason
    conflicting_keys = [
        conflicting_pod.key for conflicting_pod in _find_conflicting_pods(pod, snapshot, row, existing=existing)
    ]
    names = ", ".join(conflicting_keys[:_MAX_NAMES])
    if len(conflicting_keys) > _MAX_NAMES:
        names += f" and {len(conflicting_keys) - _MAX_NAMES} more"
    if not names:
        return ""
    return f"{names} has anti-affinity to the pod" if existing else f"the pod has anti-affinity to {names}"


def _find_conflicting_pods(pod: PodInfo, snapshot: Snapshot, row: int, *, existing: bool) -> Iterator[AssignedPodInfo]:
    """Yield the pods in the node's domain that violate the anti-affinity of *pod*.

    With *existing*, yield the pods whose own anti-affinity *pod* violates.
    """
    labels = snapshot.nodes[row].metadata.labels
    for assigned_pod in snapshot.assigned_pods():
        owner, target = (assigned_pod, pod) if existing else (pod, assigned_pod)
        namespace_labels = snapshot.namespace_labels(target.namespace)
        assigned_node_labels = snapshot.nodes[snapshot.row(assigned_pod.node_name) or 0].metadata.labels
        for term in owner.signature.affinity.required_anti:
            domain = labels.get(term.topology_key)
            same_domain = domain is not None and assigned_node_labels.get(term.topology_key) == domain
            if same_domain and term.pod_selector.matches(target.namespace, target.labels, namespace_labels):
                yield assigned_pod
                break


_EXPLAINERS: Final[Mapping[str, Callable[[str, PodInfo, Snapshot, int], str]]] = {
    "NodeResourcesFit": _explain_resources,
    "TaintToleration": _explain_taint,
    "NodeUnschedulable": _explain_cordon,
    "NodeAffinity": _explain_node_affinity,
    "NodePorts": _explain_ports,
    "PodTopologySpread": _explain_spread,
    "InterPodAffinity": _explain_pod_affinity,
}
