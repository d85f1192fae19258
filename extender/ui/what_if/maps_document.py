"""The document of the two maps of the page What if: the same nodes before and after the changes."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from extender.cache.snapshot import Snapshot
from extender.ui.cluster_document import make_groups, make_use_document

ABSENT: Final = -2
"""The use of a node that does not exist before or after the changes."""


def make_maps_document(before: Snapshot, after: Snapshot) -> dict[str, Any]:
    """Return the document, as plain values.

    `nodes` has the names of the nodes that exist before or after the changes, and `groups` their groups, as in
    `make_cluster_document`. `before` and `after` have the lists of that document for these nodes: `use` by resource,
    `pods` and `unschedulable`. A node that does not exist has the use `ABSENT`.
    """
    new_nodes = [node for node in after.nodes if before.row(node.metadata.name) is None]
    # A node in both has the labels and taints that it has after the changes.
    rows = [after.row(node.metadata.name) for node in before.nodes]
    nodes = [
        *(old if row is None else after.nodes[row] for old, row in zip(before.nodes, rows, strict=True)),
        *new_nodes,
    ]
    names = [node.metadata.name for node in nodes]
    documents = {"before": make_use_document(before), "after": make_use_document(after)}
    resources = list(dict.fromkeys(resource for document in documents.values() for resource in document["use"]))
    return {
        "nodes": names,
        "groups": make_groups(nodes),
        "resources": resources,
        **{side: _select(document, names, resources) for side, document in documents.items()},
    }


def _select(document: Mapping[str, Any], names: Sequence[str], resources: Sequence[str]) -> dict[str, Any]:
    """Return the lists of *document* for the nodes *names*."""
    positions = {name: position for position, name in enumerate(document["nodes"])}
    order = [positions.get(name) for name in names]

    def select(values: Sequence[Any], missing: Any) -> list[Any]:
        return [missing if position is None else values[position] for position in order]

    no_use = [-1] * len(document["nodes"])
    return {
        "use": {resource: select(document["use"].get(resource, no_use), ABSENT) for resource in resources},
        "pods": select(document["pods"], 0),
        "unschedulable": select(document["unschedulable"], missing=False),
    }
