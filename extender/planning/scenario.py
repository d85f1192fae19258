"""A scenario: the changes of a cluster that a what-if question is about, and the check of their names."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from extender.api.kinds.node import Node, Taint
from extender.api.kinds.pod import Pod
from extender.cache.snapshot import Snapshot
from extender.config.did_you_mean import did_you_mean


class ScenarioError(Exception):
    """The exception for a scenario that does not match the cluster. Its text has one line per error."""

    def __init__(self, errors: Iterable[str]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join(self.errors))

    def __reduce__(self) -> tuple[type["ScenarioError"], tuple[tuple[str, ...]]]:
        """Return how to unpickle the error, which another process may raise."""
        return ScenarioError, (self.errors,)


@dataclass(frozen=True, slots=True)
class AddedNodes:
    """*count* new nodes with the size, labels and taints of the node *like*."""

    count: int
    like: str


@dataclass(frozen=True, slots=True)
class TaintChange:
    """A taint to add to a node, or to remove from it. An empty effect removes all taints with the key."""

    node: str
    taint: Taint
    remove: bool = False


@dataclass(frozen=True, slots=True)
class LabelChange:
    """A new value of a node's label; None removes the label."""

    node: str
    key: str
    value: str | None


@dataclass(frozen=True, slots=True)
class Scale:
    """A new number of pods of a workload.

    Attributes:
        kind: the kind of the controller in lower case, such as `deployment`.
    """

    kind: str
    namespace: str
    name: str
    replicas: int

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


@dataclass(frozen=True, slots=True)
class Scenario:
    """Changes of a cluster. They are applied in the order of the attributes.

    Attributes:
        add: new nodes like existing ones.
        remove: nodes that fail or are deleted.
        lose: labels whose nodes fail, as pairs of key and value.
        labels, taints: changes of nodes.
        cordon: nodes that are cordoned.
        drain: nodes that are cordoned and whose pods are evicted.
        scale: workloads with a new number of pods.
        pods: new pods, not assigned, with distinct names.
        preempt: whether pods may evict pods of lower priority.
    """

    add: tuple[AddedNodes, ...] = ()
    nodes: tuple[Node, ...] = ()
    remove: tuple[str, ...] = ()
    lose: tuple[tuple[str, str], ...] = ()
    labels: tuple[LabelChange, ...] = ()
    taints: tuple[TaintChange, ...] = ()
    cordon: tuple[str, ...] = ()
    drain: tuple[str, ...] = ()
    scale: tuple[Scale, ...] = ()
    pods: tuple[Pod, ...] = ()
    preempt: bool = False

    def find_lost_nodes(self, snapshot: Snapshot) -> list[str]:
        """Return the names of the nodes that are removed or lost, in the order of the cluster."""
        removed_names = set(self.remove)
        if not self.lose:  # usual; a scenario of a sweep should not visit all nodes
            rows = (snapshot.row(name) for name in removed_names)
            return [snapshot.names[row] for row in sorted(row for row in rows if row is not None)]
        return [
            node.metadata.name
            for node in snapshot.nodes
            if node.metadata.name in removed_names
            or any(node.metadata.labels.get(key) == value for key, value in self.lose)
        ]

    def check(self, snapshot: Snapshot) -> None:
        """Check that all nodes and labels exist and that the changes do not contradict each other.

        Raises:
            ScenarioError: the scenario has errors; contains all of them.
        """
        errors = [*_find_unknown_names(self, snapshot), *_find_contradictions(self, snapshot)]
        if errors:
            raise ScenarioError(errors)


def _list_named_nodes(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """Yield each flag with a node that it names, except `--remove`."""
    yield from (("--drain", name) for name in scenario.drain)
    yield from (("--cordon", name) for name in scenario.cordon)
    yield from (("--taint", change.node) for change in scenario.taints)
    yield from (("--label", change.node) for change in scenario.labels)


def _find_unknown_names(scenario: Scenario, snapshot: Snapshot) -> Iterator[str]:
    names = list(snapshot.names)
    new_names = {node.metadata.name for node in scenario.nodes}
    flags = [
        *_list_named_nodes(scenario),
        *(("--remove", name) for name in scenario.remove),
        *(("--like", addition.like) for addition in scenario.add),
    ]
    for flag, name in flags:
        if snapshot.row(name) is None and (flag in ("--remove", "--like") or name not in new_names):
            yield f"{flag} {name}: there is no such node{did_you_mean(name, names)}"
    yield from _find_unknown_taints_and_labels(scenario, snapshot)
    for key, value in scenario.lose:
        values = Counter(node.metadata.labels[key] for node in snapshot.nodes if key in node.metadata.labels)
        if not values:
            keys = {label for node in snapshot.nodes for label in node.metadata.labels}
            yield f"--lose {key}={value}: no node has the label {key}{did_you_mean(key, keys)}"
        elif value not in values:
            known_values = ", ".join(sorted(values)[:5])
            yield f"--lose {key}={value}: no node has this value; {key} has {known_values}"


def _find_unknown_taints_and_labels(scenario: Scenario, snapshot: Snapshot) -> Iterator[str]:
    """Yield an error for each taint and label to remove that its node does not have."""
    nodes = {node.metadata.name: node for node in (*snapshot.nodes, *scenario.nodes)}
    added_keys = {(change.node, change.taint.key) for change in scenario.taints if not change.remove}
    for change in scenario.taints:
        node = nodes.get(change.node)
        if change.remove and node is not None and (change.node, change.taint.key) not in added_keys:
            effects = {taint.effect for taint in node.spec.taints if taint.key == change.taint.key}
            if not effects or change.taint.effect not in {"", *effects}:
                effect = f":{change.taint.effect}" if change.taint.effect else ""
                taints = ", ".join(f"{taint.key}:{taint.effect}" for taint in node.spec.taints) or "no taints"
                yield f"--taint {change.node}: there is no taint {change.taint.key}{effect} to remove; it has {taints}"
    set_labels = {(label.node, label.key) for label in scenario.labels if label.value is not None}
    for label in scenario.labels:
        node = nodes.get(label.node)
        is_set = (label.node, label.key) in set_labels
        if label.value is None and not is_set and node is not None and label.key not in node.metadata.labels:
            suggestion = did_you_mean(label.key, node.metadata.labels)
            yield f"--label {label.node}: there is no label {label.key} to remove{suggestion}"


def _find_contradictions(scenario: Scenario, snapshot: Snapshot) -> Iterator[str]:
    lost_names = set(scenario.find_lost_nodes(snapshot))
    for flag, name in _list_named_nodes(scenario):
        if name in lost_names:
            yield f"{flag} {name}: the scenario removes this node too; keep only one of the flags"
    for flag, named_nodes in (
        ("--drain", scenario.drain),
        ("--cordon", scenario.cordon),
        ("--remove", scenario.remove),
    ):
        yield from (f"{flag} {name}: is named twice" for name, count in Counter(named_nodes).items() if count > 1)
    for name in sorted(set(scenario.drain) & set(scenario.cordon)):
        yield f"--cordon {name}: --drain cordons this node too; keep only one of the flags"
    for node in scenario.nodes:
        if snapshot.row(node.metadata.name) is not None:
            yield f"--nodes: Node {node.metadata.name}: the cluster has a node of this name; use another name"
    changes = Counter((change.node, change.key) for change in scenario.labels)
    yield from (f"--label {name}: {key} is changed twice" for (name, key), count in changes.items() if count > 1)
    taints = Counter((change.node, change.taint.key, change.taint.effect) for change in scenario.taints)
    for (name, key, effect), count in taints.items():
        if count > 1:
            yield f"--taint {name}: {key}:{effect} is changed twice"
    workloads = Counter((scale.kind, scale.namespace, scale.name) for scale in scenario.scale)
    for (kind, _, name), count in workloads.items():
        if count > 1:
            yield f"--scale {kind}/{name}: is scaled twice"
