"""Add details to the reasons why plugins reject a node: amounts, names, and suggested changes.

Each `_explain` function handles the reasons of one built-in plugin. Reasons of other plugins are shown unchanged.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from extender.analysis.text_table import format_amounts, join_first
from extender.api.kinds.devices import ResourceSlice
from extender.api.kinds.meta import find_condition
from extender.api.kinds.node import Node
from extender.api.kinds.storage import PersistentVolume, PersistentVolumeClaim
from extender.api.matching import CompiledNodeSelector, Requirement
from extender.api.tolerations import find_untolerated_taint
from extender.basics.input_limits import shorten
from extender.cache.node_matching import get_compiled_required_node_affinity
from extender.cache.pod_info import AssignedPodInfo, PodInfo
from extender.cache.snapshot import Snapshot
from extender.cache.tables.host_ports import host_ports_conflict
from extender.volumes.claims import resolve_claim_uses
from extender.volumes.volume_index import compile_node_affinity

INSUFFICIENT_PREFIX: Final = "Insufficient "
_MAX_VALUES: Final = 10  # of a requirement; one on instance types may have hundreds
_CORDON_TAINT: Final = "node.kubernetes.io/unschedulable"

CONDITION_BY_TAINT: Final[Mapping[str, str]] = {
    "node.kubernetes.io/not-ready": "Ready",
    "node.kubernetes.io/unreachable": "Ready",
    "node.kubernetes.io/memory-pressure": "MemoryPressure",
    "node.kubernetes.io/disk-pressure": "DiskPressure",
    "node.kubernetes.io/pid-pressure": "PIDPressure",
    "node.kubernetes.io/network-unavailable": "NetworkUnavailable",
}
"""The conditions for which the node lifecycle controller taints a node, by the keys of the taints.

Source: pkg/controller/nodelifecycle/node_lifecycle_controller.go, nodeConditionToTaintKeyStatusMap (1.37).
"""

OWNER_BY_TAINT: Final[Mapping[str, str]] = {
    "ToBeDeletedByClusterAutoscaler": "the cluster autoscaler deletes the node",
    "karpenter.sh/disrupted": "Karpenter deletes the node",
    "karpenter.sh/unregistered": "Karpenter has not registered the node yet",
    "node.cloudprovider.kubernetes.io/uninitialized": "the cloud controller manager has not initialized the node yet",
    "node.cloudprovider.kubernetes.io/shutdown": "the node is shut down at the cloud provider",
}
"""What the taints of other controllers mean. Nobody should tolerate or remove these taints.

Source: kubernetes/autoscaler, cluster-autoscaler/utils/taints/taints.go, ToBeDeletedTaint; kubernetes-sigs/karpenter,
pkg/apis/v1/taints.go; cloud-provider/api/well_known_taints.go (1.37).
"""


def explain_reason(plugin: str, reason: str, pod: PodInfo, snapshot: Snapshot, row: int) -> str:
    """Return the reason why *plugin* rejects the node in *row*, followed by details if there are any."""
    explain = _EXPLAINERS.get(plugin)
    details = explain(reason, pod, snapshot, row) if explain else ""
    return f"{reason}: {details}" if details else reason


def get_resource_id_and_request(pod: PodInfo, resource: str, snapshot: Snapshot) -> tuple[int, int]:
    """Return the id of a resource, and the amount that the pod requests, in base units."""
    return snapshot.symbols.get_resource_id(resource), pod.signature.requested_amounts.get(resource, 0)


def _explain_resources(reason: str, pod: PodInfo, snapshot: Snapshot, row: int) -> str:
    view = snapshot.view()
    if not reason.startswith(INSUFFICIENT_PREFIX):
        return f"the node has {int(view.pod_count[row])}, and allows at most {int(view.allowed_pods[row])}"
    resource = reason.removeprefix(INSUFFICIENT_PREFIX)
    resource_id, requested_amount = get_resource_id_and_request(pod, resource, snapshot)
    allocatable_amount = int(view.allocatable(resource_id)[row])
    free_amount = allocatable_amount - int(view.requested(resource_id)[row])
    if not allocatable_amount:
        return f"wants {format_amounts(resource, requested_amount)[0]}, but the node has none"
    shown_amounts = [requested_amount, abs(free_amount), requested_amount - free_amount]
    if allocatable_amount < requested_amount:
        shown_amounts.append(allocatable_amount)
    requested, free, missing, *allocatable = format_amounts(resource, *shown_amounts)
    state = f"only {free} are free" if free_amount >= 0 else f"the node is overcommitted by {free}"
    details = f"wants {requested}, but {state} ({missing} short)"
    return f"{details}; even the empty node has only {allocatable[0]}" if allocatable else details


def _explain_taint(_reason: str, pod: PodInfo, snapshot: Snapshot, row: int) -> str:
    taint = find_untolerated_taint(snapshot.nodes[row].spec.taints, pod.signature.tolerations)
    if taint is None:
        return ""
    if taint.key == _CORDON_TAINT:
        return "uncordon the node"
    if taint.key in OWNER_BY_TAINT:
        return f"{taint.text}; {OWNER_BY_TAINT[taint.key]}"
    condition = find_condition(snapshot.nodes[row].status.conditions, CONDITION_BY_TAINT.get(taint.key, ""))
    if condition is None or condition.status == ("True" if condition.type == "Ready" else "False"):
        return f"tolerate {taint.text}, or remove it from the node"
    cause = ": ".join(filter(None, (condition.reason, " ".join(condition.message.split()))))
    state = f"{condition.type} is {condition.status}" + (f" ({shorten(cause)})" if cause else "")
    return f"{taint.text}; repair the node, whose condition {state}"


def _explain_cordon(_reason: str, _pod: PodInfo, _snapshot: Snapshot, _row: int) -> str:
    return "uncordon the node"


def _explain_node_affinity(reason: str, pod: PodInfo, snapshot: Snapshot, row: int) -> str:
    if "enforced" in reason:
        return "see addedAffinity in the arguments of NodeAffinity"
    node = snapshot.nodes[row]
    required_affinity = get_compiled_required_node_affinity(pod)
    unmet_requirements = list(
        _list_unmet_requirements(required_affinity.label_selector.requirements, node.metadata.labels)
    )
    if not unmet_requirements and required_affinity.node_selector is not None:
        unmet_requirements = _find_nearest_term(required_affinity.node_selector, node)
    return "; ".join(unmet_requirements)


def _find_nearest_term(selector: CompiledNodeSelector, node: Node) -> list[str]:
    """Return the unmet requirements of the term that has the fewest; none if a term matches."""
    unmet_by_term = [
        list(_list_unmet_term_requirements(term.label_requirements, term.field_requirements, node))
        for term in selector.terms
    ]
    return min(unmet_by_term, key=len, default=[])


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
            yield f"wants {_format_requirement(requirement)}, but {node_value_text}"


def _format_requirement(requirement: Requirement) -> str:
    match requirement.operator:
        case "Exists":
            return f"label {requirement.key}"
        case "DoesNotExist":
            return f"no label {requirement.key}"
        case "In" if len(requirement.values) == 1:
            return f"{requirement.key}={requirement.values[0]}"
    return f"{requirement.key} {requirement.operator} {join_first(requirement.values, _MAX_VALUES)}"


def _explain_volumes(reason: str, pod: PodInfo, snapshot: Snapshot, row: int) -> str:
    """Name each bound volume that the node cannot use, with the labels that the volume wants."""
    if "node affinity" not in reason:
        return ""
    conflicts: list[str] = []
    for _, _, key in resolve_claim_uses(pod.pod, pod.signature.volume_uses.claims):
        claim = snapshot.get_object(PersistentVolumeClaim, key)
        volume = snapshot.get_object(PersistentVolume, claim.spec.volume_name) if claim is not None else None
        selector = compile_node_affinity(volume) if volume is not None else None
        unmet_requirements = _find_nearest_term(selector, snapshot.nodes[row]) if selector is not None else []
        if volume is not None and unmet_requirements:
            conflicts.append(f"volume {volume.metadata.name} of claim {key} {'; '.join(unmet_requirements)}")
    return "; ".join(conflicts)


def _explain_devices(reason: str, _pod: PodInfo, snapshot: Snapshot, row: int) -> str:
    """Say that a node has no devices at all. Without any slice in the cluster, slices may not be recorded."""
    name, slices = snapshot.names[row], snapshot.objects(ResourceSlice).values()
    if "allocate" not in reason or not slices or any(obj.spec.node_name in {None, "", name} for obj in slices):
        return ""
    return "no ResourceSlice has devices of the node; check that its device driver runs"


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
        f"maxSkew {constraint.max_skew} over {constraint.topology_key} would be exceeded"
        f" in {labels[constraint.topology_key]}"
        for constraint in constraints[:1]
    )


def _explain_pod_affinity(reason: str, pod: PodInfo, snapshot: Snapshot, row: int) -> str:
    labels = snapshot.nodes[row].metadata.labels
    terms = pod.signature.pod_affinity_terms
    if "anti-affinity" not in reason:
        topology_keys = dict.fromkeys(term.topology_key for term in terms.required_affinity)
        missing_keys = [key for key in topology_keys if key not in labels]
        if missing_keys:
            return f"label the node with {', '.join(missing_keys)}"
        return f"no pod in {', '.join(f'{key}={labels[key]}' for key in topology_keys)} matches the pod's affinity"
    is_existing_anti_affinity = "existing" in reason
    conflicting_keys = [
        conflicting_pod.key
        for conflicting_pod in _find_conflicting_pods(
            pod, snapshot, row, check_existing_anti_affinity=is_existing_anti_affinity
        )
    ]
    names = join_first(conflicting_keys)
    if not names:
        return ""
    return (
        f"the pod violates the anti-affinity of {names}"
        if is_existing_anti_affinity
        else f"the pod has anti-affinity to {names}"
    )


def _find_conflicting_pods(
    pod: PodInfo, snapshot: Snapshot, row: int, *, check_existing_anti_affinity: bool
) -> Iterator[AssignedPodInfo]:
    """Yield the existing pods in the node's domain that conflict with *pod*.

    If *check_existing_anti_affinity* is true, *pod* violates the anti-affinity of these existing pods. Otherwise the
    existing pods violate the anti-affinity of *pod*.
    """
    labels = snapshot.nodes[row].metadata.labels
    for assigned_pod in snapshot.assigned_pods():
        term_owner, target = (assigned_pod, pod) if check_existing_anti_affinity else (pod, assigned_pod)
        namespace_labels = snapshot.namespace_labels(target.namespace)
        assigned_node_labels = snapshot.nodes[snapshot.row(assigned_pod.node_name) or 0].metadata.labels
        for term in term_owner.signature.pod_affinity_terms.required_anti_affinity:
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
    "VolumeBinding": _explain_volumes,
    "DynamicResources": _explain_devices,
    "NodePorts": _explain_ports,
    "PodTopologySpread": _explain_spread,
    "InterPodAffinity": _explain_pod_affinity,
}
