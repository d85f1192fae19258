"""The document of the page of a node: its resources, taints, labels, and the pods on it."""

from operator import itemgetter
from typing import Any

from extender.analysis.text_table import format_amount, format_percent
from extender.cache.snapshot import Snapshot
from extender.ui.cluster_document import sort_resources


def make_node_document(snapshot: Snapshot, name: str) -> dict[str, Any] | None:
    """Return the document of node *name* as plain values; None if there is no such node.

    `resources` has the requested, allocatable and free amounts as text, and the requested part in
    percent and thousandths. `pods` has
    the keys of the pods with their requests, the largest CPU request first.
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
            {"type": condition.type, "status": condition.status, "reason": condition.reason}
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
    return [
        {
            "resource": resource,
            "requested": format_amount(resource, amounts[resource][0]),
            "allocatable": format_amount(resource, amounts[resource][1]),
            "free": format_amount(resource, amounts[resource][1] - amounts[resource][0]),
            "percent": format_percent(*amounts[resource]),
            "thousandths": round(1000 * amounts[resource][0] / amounts[resource][1]) if amounts[resource][1] else 1000,
        }
        for resource in sort_resources(amounts)
    ]


def _list_pods(snapshot: Snapshot, name: str) -> list[dict[str, Any]]:
    cpu = snapshot.symbols.resources.intern("cpu")
    pods = []
    for pod in snapshot.pods_on(name).values():
        requests = dict(pod.signature.requests)
        texts = {
            resource: format_amount(resource, requests[resource_id])
            for resource_id, resource in enumerate(snapshot.symbols.resources)
            if requests.get(resource_id)
        }
        sorted_texts = {resource: texts[resource] for resource in sort_resources(texts)}
        pods.append((-requests.get(cpu, 0), pod.key, pod.priority, sorted_texts))
    return [
        {"pod": key, "priority": priority, "requests": texts}
        for _, key, priority, texts in sorted(pods, key=itemgetter(0, 1))
    ]
