"""Compare the tables of a snapshot with tables rebuilt from the same objects."""

from collections.abc import Iterator

import numpy as np

from extender.cache.cluster_tables import ClusterTables
from extender.cache.pod_info import AssignedPodInfo
from extender.cache.snapshot import Snapshot
from extender.cache.tables.node_counts import NodeCounts
from extender.cache.tables.node_table import ABSENT


def find_inconsistencies(snapshot: Snapshot) -> list[str]:
    """Return a description of each difference between the tables of *snapshot* and rebuilt tables."""
    tables = snapshot.tables
    rebuilt = ClusterTables(tables.signatures)
    for obj in tables.objects:
        rebuilt.add_or_update_object(obj)
    for node in tables.nodes.objects:
        rebuilt.add_or_update_node(node)
    for pods in tables.pods_by_node.values():
        for pod in pods.values():
            rebuilt.add_pod(pod)
    inconsistencies = [
        *_check_columns(tables, rebuilt),
        *_check_labels(tables),
        *_check_host_ports(tables, rebuilt),
        *_check_claim_uses(tables, rebuilt),
        *_check_images(tables, rebuilt),
        *_check_selector_counts(tables, rebuilt),
        *_check_affinity_terms(tables, rebuilt),
    ]
    if tables.nodes.row_by_name != {name: row for row, name in enumerate(tables.nodes.names)}:
        inconsistencies.append("the map of node names to rows does not match the list of node names")
    if tables._pod_counts_by_priority != rebuilt._pod_counts_by_priority:
        inconsistencies.append("the numbers of pods by priority are wrong")
    return inconsistencies


def _check_columns(tables: ClusterTables, rebuilt: ClusterTables) -> Iterator[str]:
    resources = tables.nodes.symbols.resources
    tables._count_new_resources()
    rebuilt._count_new_resources()
    for row, name in enumerate(tables.nodes.names):
        rebuilt_row = rebuilt.nodes.row_by_name[name]
        for column in ("allocatable", "requested"):
            for resource_id, resource in enumerate(resources):
                actual = int(tables.nodes.columns.get(column)[resource_id, row])
                expected = int(rebuilt.nodes.columns.get(column)[resource_id, rebuilt_row])
                if actual != expected:
                    yield f"{name}: {column} {resource} is {actual}, expected {expected}"
                if column == "requested" and actual < 0:
                    yield f"{name}: requested {resource} is negative: {actual}"
        for column in ("nonzero_requested", "pod_count", "allowed_pods", "unschedulable"):
            actual_values = tables.nodes.columns.get(column)[..., row]
            expected_values = rebuilt.nodes.columns.get(column)[..., rebuilt_row]
            if not np.array_equal(actual_values, expected_values):
                yield f"{name}: {column} is {actual_values}, expected {expected_values}"


def _check_labels(tables: ClusterTables) -> Iterator[str]:
    for key in list(tables.nodes._label_columns):
        label_values = tables.nodes.symbols.get_label_values(key)
        for row, node in enumerate(tables.nodes.objects):
            value_id = int(tables.nodes.get_label_column(key)[row])
            actual = None if value_id == ABSENT else label_values[value_id]
            expected = node.metadata.labels.get(key)
            if actual != expected:
                yield f"{node.metadata.name}: label {key} is {actual}, expected {expected}"


def _check_host_ports(tables: ClusterTables, rebuilt: ClusterTables) -> Iterator[str]:
    for ports in {pod.signature.host_ports for pod in _iterate_assigned_pods(tables) if pod.signature.host_ports}:
        actual = {tables.nodes.names[row] for row in tables.host_ports.find_conflicting_rows(ports)}
        expected = {rebuilt.nodes.names[row] for row in rebuilt.host_ports.find_conflicting_rows(ports)}
        if actual != expected:
            yield f"host ports {ports}: in use on {sorted(actual)}, expected on {sorted(expected)}"


def _check_claim_uses(tables: ClusterTables, rebuilt: ClusterTables) -> Iterator[str]:
    keys = {
        f"{pod.namespace}/{status.resource_claim_name}"
        for pod in _iterate_assigned_pods(tables)
        for status in pod.pod.status.node_allocatable_resource_claim_statuses
    }
    for key in sorted(keys):
        actual = {tables.nodes.names[row]: sorted(users) for row, users in tables.claim_uses.get_users(key).items()}
        expected = {rebuilt.nodes.names[row]: sorted(users) for row, users in rebuilt.claim_uses.get_users(key).items()}
        if actual != expected:
            yield f"claim {key}: node resources are taken by {actual}, expected {expected}"


def _iterate_assigned_pods(tables: ClusterTables) -> Iterator[AssignedPodInfo]:
    return (pod for pods in tables.pods_by_node.values() for pod in pods.values())


def _check_images(tables: ClusterTables, rebuilt: ClusterTables) -> Iterator[str]:
    for name in {name for node in tables.nodes.objects for image in node.status.images for name in image.names}:
        actual, expected = _find_nodes_with_image(name, tables), _find_nodes_with_image(name, rebuilt)
        if actual != expected:
            yield f"image {name}: on {sorted(actual)}, expected on {sorted(expected)}"


def _find_nodes_with_image(name: str, tables: ClusterTables) -> set[str]:
    image_state = tables.nodes.images.get(name)
    return {tables.nodes.names[row] for row in image_state.rows} if image_state else set()


def _check_selector_counts(tables: ClusterTables, rebuilt: ClusterTables) -> Iterator[str]:
    for matcher, actual in tables.selector_counts.items():
        expected = rebuilt.selector_counts.get(matcher, rebuilt.nodes)
        yield from _check_node_counts(f"pods matching {matcher.selectors}", actual, tables, expected, rebuilt)


def _check_affinity_terms(tables: ClusterTables, rebuilt: ClusterTables) -> Iterator[str]:
    expected_counts = dict(rebuilt.affinity_terms.items())
    for term, actual in tables.affinity_terms.items():
        if term in expected_counts:
            yield from _check_node_counts(f"pods with {term}", actual, tables, expected_counts[term], rebuilt)
        elif actual.total or actual.get_by_row(tables.nodes).any():
            yield f"pods with {term}: {actual.total} in total, expected 0"
    for term in expected_counts.keys() - dict(tables.affinity_terms.items()).keys():
        yield f"pods with {term}: 0 in total, expected {expected_counts[term].total}"


def _check_node_counts(
    subject: str, actual: NodeCounts, tables: ClusterTables, expected: NodeCounts, rebuilt: ClusterTables
) -> Iterator[str]:
    if actual.total != expected.total:
        yield f"{subject}: {actual.total} in total, expected {expected.total}"
    actual_by_row, expected_by_row = actual.get_by_row(tables.nodes), expected.get_by_row(rebuilt.nodes)
    for row, name in enumerate(tables.nodes.names):
        rebuilt_row = rebuilt.nodes.row_by_name[name]
        if actual_by_row[row] != expected_by_row[rebuilt_row]:
            yield f"{subject}: {actual_by_row[row]} on {name}, expected {expected_by_row[rebuilt_row]}"
        if actual_by_row[row] < 0:
            yield f"{subject}: a negative count on {name}"
    for key in tuple(actual.domain_counts):
        actual_by_value = _sum_by_label_value(key, actual, tables)
        expected_by_value = _sum_by_label_value(key, expected, rebuilt)
        if actual_by_value != expected_by_value:
            yield f"{subject}: by {key} {actual_by_value}, expected {expected_by_value}"


def _sum_by_label_value(key: str, counts: NodeCounts, tables: ClusterTables) -> dict[str, int]:
    label_values = tables.nodes.symbols.get_label_values(key)
    counts_by_id = counts.get_by_domain(key, tables.nodes)[: len(label_values)]
    return {label_values[value_id]: int(count) for value_id, count in enumerate(counts_by_id) if count}
