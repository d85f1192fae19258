"""The documents of the pages Cluster and Node: the use of resources, groups of nodes, pods."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, TypeAlias

import numpy as np

from extender.analysis.text_table import format_amount, format_percent
from extender.analysis.utilization import get_resource_amounts, sum_amounts
from extender.answers.answer_struct import ResourceUse
from extender.api.kinds.node import Node
from extender.basics.input_limits import shorten
from extender.cache.snapshot import Snapshot
from extender.cache.tables.arrays import IntArray

ZONE_LABEL: Final = "topology.kubernetes.io/zone"
TAINTS_KEY: Final = "taints"
"""The key of the grouping by taints; it replaces the grouping by a label with this key."""

_MAX_LABEL_KEYS: Final = 12
_MAX_LABEL_VALUES: Final = 40
_FIRST_RESOURCES: Final = ("cpu", "memory", "pods")
_NO_TAINT: Final = "no taint"
NO_VALUE: Final = "no such label"
"""The group of the nodes without a label. The value of a label has no space."""

_Amounts: TypeAlias = dict[str, tuple[IntArray, IntArray]]
"""The requested and allocatable amounts of each node, by resource."""


def make_cluster_document(snapshot: Snapshot) -> dict[str, Any]:
    """Return the document of the page, as plain values.

    `nodes` has the names of the nodes. The other lists have one element per node, in the same order: `use` by resource
    has the requested part of the allocatable amount in thousandths, or -1 if the node does not have the resource;
    `groups` by key has the index of the node's value in `values`; `pods` is the number of pods on the node. `totals`
    has one entry per resource with amounts as text.
    """
    totals = _make_totals(get_resource_amounts(snapshot))
    return {**make_use_document(snapshot), "groups": make_groups(snapshot.nodes), "totals": totals}


def make_use_document(snapshot: Snapshot) -> dict[str, Any]:
    """Return the part of the document about the use of each node: `nodes`, `use`, `pods` and `unschedulable`."""
    view, amounts = snapshot.view(), get_resource_amounts(snapshot)
    return {
        "nodes": list(snapshot.names),
        "use": {resource: _calculate_thousandths(*amounts[resource]).tolist() for resource in sort_resources(amounts)},
        "pods": view.pod_count.tolist(),
        "unschedulable": view.unschedulable.tolist(),
    }


def _calculate_thousandths(requested: IntArray, allocatable: IntArray) -> IntArray:
    """Return the requested part in thousandths; -1 for a node without the resource."""
    fraction = requested / np.where(allocatable == 0, 1, allocatable)
    return np.where(allocatable == 0, -1, np.rint(1000 * fraction)).astype(np.int64)


def _make_totals(amounts: _Amounts) -> list[dict[str, Any]]:
    totals, usages = [], sum_amounts(amounts)
    for resource in sort_resources(amounts):
        requested, allocatable = amounts[resource]
        full_count = int(((allocatable != 0) & (requested >= allocatable)).sum())
        totals.append({**_describe_use(resource, usages[resource]), "full": full_count})
    return totals


def _describe_use(resource: str, usage: ResourceUse) -> dict[str, Any]:
    return {
        "resource": resource,
        "requested": format_amount(resource, usage.requested),
        "allocatable": format_amount(resource, usage.allocatable),
        "percent": format_percent(usage.requested, usage.allocatable),
        "thousandths": round(1000 * usage.fraction),
    }


def sort_resources(names: Iterable[str]) -> list[str]:
    """Return resource names with CPU, memory and pods first, then the others by name."""
    first = {name: position for position, name in enumerate(_FIRST_RESOURCES)}
    return sorted(names, key=lambda name: (first.get(name, len(first)), name))


def make_groups(nodes: Sequence[Node]) -> dict[str, dict[str, Any]]:
    """Return the groupings by label key and by taints; zones come first."""
    node_labels = [node.metadata.labels for node in nodes]
    groups = {
        key: _make_group([labels.get(key, NO_VALUE) for labels in node_labels])
        for key in _select_label_keys(node_labels)
    }
    groups[TAINTS_KEY] = _make_group(
        [", ".join(taint.text for taint in node.spec.taints) or _NO_TAINT for node in nodes]
    )
    return groups


def _make_group(values: Sequence[str]) -> dict[str, Any]:
    ordered = sorted(set(values))
    positions = {value: position for position, value in enumerate(ordered)}
    return {"values": ordered, "index": [positions[value] for value in values]}


def _select_label_keys(node_labels: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the label keys that divide the nodes into some groups: zones first, then the keys of most nodes."""
    node_counts = Counter(key for labels in node_labels for key in labels)
    values_by_key: dict[str, set[str]] = {key: set() for key in node_counts}
    for labels in node_labels:
        for key, value in labels.items():
            values_by_key[key].add(value)
    keys = [
        key
        for key, values in values_by_key.items()
        if key == ZONE_LABEL or 1 < len(values) + (node_counts[key] < len(node_labels)) <= _MAX_LABEL_VALUES
    ]
    return sorted(keys, key=lambda key: (key != ZONE_LABEL, -node_counts[key], key))[:_MAX_LABEL_KEYS]


def make_node_document(snapshot: Snapshot, name: str) -> dict[str, Any] | None:
    """Return the document of node *name* as plain values; None if there is no such node.

    `resources` has the requested, allocatable and free amounts as text, and the requested part in percent and
    thousandths. `pods` has the keys of the pods with their requests, the largest CPU request first.
    """
    row = snapshot.row(name)
    if row is None:
        return None
    node = snapshot.nodes[row]
    return {
        "name": name,
        "labels": dict(sorted(node.metadata.labels.items())),
        "taints": [{"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in node.spec.taints],
        "unschedulable": node.spec.unschedulable,
        "conditions": [
            {
                "type": condition.type,
                "status": condition.status,
                "reason": condition.reason,
                "message": shorten(condition.message),
            }
            for condition in node.status.conditions
        ],
        "resources": _list_resources(snapshot, row),
        "pods": _list_pods(snapshot, name),
        "nominatedPods": [pod.key for pod in snapshot.nominated_pods(name)],
    }


def _list_resources(snapshot: Snapshot, row: int) -> list[dict[str, Any]]:
    view = snapshot.view()
    amounts = {"pods": view.pod_count_and_limit(row)}
    for resource_id, resource in enumerate(snapshot.symbols.resources):
        requested, allocatable = view.requested_and_allocatable(row, resource_id)
        if requested or allocatable:
            amounts[resource] = (requested, allocatable)
    resources = []
    for resource in sort_resources(amounts):
        usage = ResourceUse(*amounts[resource])
        free = format_amount(resource, usage.allocatable - usage.requested)
        full = {} if usage.allocatable else {"thousandths": 1000}
        resources.append({**_describe_use(resource, usage), "free": free, **full})
    return resources


def _list_pods(snapshot: Snapshot, name: str) -> list[dict[str, Any]]:
    pods = []
    for pod in snapshot.pods_on(name).values():
        requests = pod.signature.requested_amounts
        texts = {resource: format_amount(resource, requests[resource]) for resource in sort_resources(requests)}
        pods.append((-requests.get("cpu", 0), pod.key, pod.priority, texts))
    return [
        {"pod": key, "priority": priority, "requests": texts}
        for _, key, priority, texts in sorted(pods, key=itemgetter(0, 1))
    ]
