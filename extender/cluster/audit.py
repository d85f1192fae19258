"""Are the kept tables what a fresh count of the same objects would give? For tests and drift checks."""

from collections.abc import Iterator

import numpy as np

from extender.cluster.nodes import ABSENT
from extender.cluster.rowcounts import RowCounts
from extender.cluster.snapshot import Snapshot
from extender.cluster.tables import Tables


def validate(snapshot: Snapshot) -> list[str]:
    """What is wrong with the tables behind *snapshot*, in words; empty if nothing is."""
    kept = snapshot.tables
    fresh = Tables(kept.shapes)
    for thing in kept.objects:
        fresh.put_object(thing)
    for node in kept.nodes.objects:
        fresh.put_node(node)
    for pods in kept.on_node.values():
        for pod in pods.values():
            fresh.put_pod(pod)
    problems = [
        *_columns(kept, fresh),
        *_ports(kept, fresh),
        *_claims(kept, fresh),
        *_images(kept, fresh),
        *_counts(kept, fresh),
        *_terms(kept, fresh),
    ]
    if kept.nodes.row_of != {name: row for row, name in enumerate(kept.nodes.names)}:
        problems.append("the rows of the node names are not the names of the rows")
    return problems


def _columns(kept: Tables, fresh: Tables) -> Iterator[str]:
    size = len(kept.nodes)
    resources = kept.nodes.vocabulary.resources
    kept.nodes.deepen()
    fresh.nodes.deepen()
    for row in range(size):
        name = kept.nodes.names[row]
        there = fresh.nodes.row_of[name]
        for column in ("allocatable", "requested"):
            for number, resource in enumerate(resources):
                mine = int(kept.nodes.columns.read(column)[number, row])
                want = int(fresh.nodes.columns.read(column)[number, there])
                if mine != want:
                    yield f"{name}: {column} {resource} is {mine}, counted anew {want}"
                if column == "requested" and mine < 0:
                    yield f"{name}: requested {resource} is negative: {mine}"
        for column in ("nonzero", "pod_count", "allowed_pods", "unschedulable"):
            mine_array = kept.nodes.columns.read(column)[..., row]
            want_array = fresh.nodes.columns.read(column)[..., there]
            if not np.array_equal(mine_array, want_array):
                yield f"{name}: {column} is {mine_array}, counted anew {want_array}"
    for key in kept.nodes.indexed_labels():
        values = kept.nodes.vocabulary.label_values(key)
        for row, node in enumerate(kept.nodes.objects):
            number = int(kept.nodes.label(key)[row])
            kept_value = None if number == ABSENT else values[number]
            value = node.metadata.labels.get(key)
            if kept_value != value:
                yield f"{node.metadata.name}: label {key} is kept as {kept_value}, the node says {value}"


def _ports(kept: Tables, fresh: Tables) -> Iterator[str]:
    pods = [pod for _, there in kept.on_node.items() for pod in there.values()]
    for ports in {pod.shape.host_ports for pod in pods if pod.shape.host_ports}:
        mine = {kept.nodes.names[row] for row in kept.ports.conflicts(ports)}
        want = {fresh.nodes.names[row] for row in fresh.ports.conflicts(ports)}
        if mine != want:
            yield f"host ports {ports}: taken on {sorted(mine)}, counted anew on {sorted(want)}"


def _claims(kept: Tables, fresh: Tables) -> Iterator[str]:
    pods = [pod for _, there in kept.on_node.items() for pod in there.values()]
    keys = {
        f"{pod.namespace}/{status.resource_claim_name}"
        for pod in pods
        for status in pod.pod.status.node_allocatable_resource_claim_statuses
    }
    for key in sorted(keys):
        mine = {kept.nodes.names[row]: sorted(users) for row, users in kept.claims.users(key).items()}
        want = {fresh.nodes.names[row]: sorted(users) for row, users in fresh.claims.users(key).items()}
        if mine != want:
            yield f"claim {key}: node resources are taken by {mine}, counted anew by {want}"


def _images(kept: Tables, fresh: Tables) -> Iterator[str]:
    for name in {name for node in kept.nodes.objects for image in node.status.images for name in image.names}:
        mine, want = kept.nodes.images.get(name), fresh.nodes.images.get(name)
        here = {kept.nodes.names[row] for row in mine.rows} if mine else set()
        there = {fresh.nodes.names[row] for row in want.rows} if want else set()
        if here != there:
            yield f"image {name}: on {sorted(here)}, counted anew on {sorted(there)}"


def _counts(kept: Tables, fresh: Tables) -> Iterator[str]:
    for matcher, counts in kept.counts.known():
        yield from _row_counts(
            f"pods matching {matcher.terms}", counts, kept, fresh.counts.of(matcher, fresh.nodes), fresh
        )


def _terms(kept: Tables, fresh: Tables) -> Iterator[str]:
    anew = dict(fresh.terms.known())
    for term, counts in kept.terms.known():
        if term in anew:
            yield from _row_counts(f"carriers of {term}", counts, kept, anew[term], fresh)
        elif counts.total or counts.rows.any():
            yield f"carriers of {term}: {counts.total} are kept, none counted anew"
    for term in anew.keys() - dict(kept.terms.known()).keys():
        yield f"carriers of {term}: none are kept"


def _row_counts(what: str, mine: RowCounts, kept: Tables, want: RowCounts, fresh: Tables) -> Iterator[str]:
    if mine.total != want.total:
        yield f"{what}: {mine.total} in all, counted anew {want.total}"
    rows, others = mine.fitted(kept.nodes), want.fitted(fresh.nodes)
    for row, name in enumerate(kept.nodes.names):
        there = fresh.nodes.row_of[name]
        if rows[row] != others[there]:
            yield f"{what}: {rows[row]} on {name}, counted anew {others[there]}"
        if rows[row] < 0:
            yield f"{what}: a negative count on {name}"
    for key in tuple(mine.domains):
        here = _by_value(key, mine, kept)
        there_too = _by_value(key, want, fresh)
        if here != there_too:
            yield f"{what}: by {key} {here}, counted anew {there_too}"


def _by_value(key: str, counts: RowCounts, tables: Tables) -> dict[str, int]:
    values = tables.nodes.vocabulary.label_values(key)
    return {values[number]: int(n) for number, n in enumerate(counts.in_domains(key, tables.nodes)[: len(values)]) if n}
