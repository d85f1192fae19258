"""The history of a cluster with schedulers and faults, and the checks of its invariants.

A history has every state of every pod, node and lease in the order of their revisions, and the bindings and lease
renewals with their senders. Each check returns its violations, one a line:

    find_double_bindings: no pod is bound twice
    find_overcommitted_nodes: the pods on a node request no more than it offers
    find_unbound_pods: every pod is bound in the end, when there are no more faults
    find_bindings_without_lease: a scheduler binds only while it holds the lease
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from extender.api.quantity import to_base_units

Object = Mapping[str, Any]
"""An object as parsed JSON."""


@dataclass(frozen=True, slots=True)
class ObjectState:
    """The state of an object from a revision on; None if it is deleted. `key` is `namespace/name`, or the name."""

    revision: int
    kind: str
    key: str
    object: Object | None


@dataclass(frozen=True, slots=True)
class LeaseRenewal:
    """An accepted write of the lease: its sender, the holder in it, and the time of the response in seconds."""

    actor: str
    holder: str
    time: float


@dataclass(frozen=True, slots=True)
class Binding:
    """A binding: its sender, the uid of the pod, and the time of the request in seconds of the renewals' clock."""

    actor: str
    uid: str
    time: float
    accepted: bool = True


@dataclass(frozen=True, slots=True)
class History:
    """All states in the order of their revisions, all writes in the order of time."""

    states: Sequence[ObjectState]
    bindings: Sequence[Binding] = ()
    renewals: Sequence[LeaseRenewal] = ()


@dataclass(frozen=True, slots=True)
class Assignment:
    """A pod was assigned to a node at a revision."""

    revision: int
    uid: str
    key: str
    node_name: str


@dataclass(slots=True)
class _Cluster:
    """The nodes and pods at one revision, by key."""

    nodes: dict[str, Object] = field(default_factory=dict)
    pods: dict[str, Object] = field(default_factory=dict)

    def apply(self, state: ObjectState) -> None:
        table = {"Node": self.nodes, "Pod": self.pods}.get(state.kind)
        if table is None:
            return
        if state.object is None:
            table.pop(state.key, None)
        else:
            table[state.key] = state.object

    def find_excess(self, node: str) -> Iterator[str]:
        """Yield the resources of which the pods on *node* request more than it offers."""
        requested: Counter[str] = Counter()
        for pod in self.pods.values():
            if _node_name(pod) == node and pod.get("status", {}).get("phase") not in {"Succeeded", "Failed"}:
                requested += requested_amounts(pod)
        allocatable = self.nodes.get(node, {}).get("status", {}).get("allocatable", {})
        for name, amount in sorted(requested.items()):
            capacity = to_base_units(name, allocatable[name]) if name in allocatable else 0
            if amount > capacity:
                yield f"{amount} {name} of {capacity}"


def requested_amounts(pod: Object) -> Counter[str]:
    """Return the requests of the containers of *pod* in base units, and 1 of `pods`."""
    amounts: Counter[str] = Counter(pods=1)
    for container in pod["spec"]["containers"]:
        for name, amount in container.get("resources", {}).get("requests", {}).items():
            amounts[name] += to_base_units(name, amount)
    return amounts


def find_assignments(history: History) -> list[Assignment]:
    """Return every assignment of a pod to a node, in order."""
    node_names: dict[str, str] = {}
    assignments = []
    for state in history.states:
        if state.kind != "Pod" or state.object is None:
            continue
        uid, node_name = state.object["metadata"]["uid"], _node_name(state.object)
        if node_name != node_names.get(uid, ""):
            assignments.append(Assignment(state.revision, uid, state.key, node_name))
        node_names[uid] = node_name
    return assignments


def filter_by_actors(history: History, actors: Collection[str]) -> History:
    """Return the history with only the bindings of *actors* and the pods that they bound."""
    bindings = [binding for binding in history.bindings if binding.actor in actors]
    uids = {binding.uid for binding in bindings}
    states = [
        state
        for state in history.states
        if state.kind != "Pod" or state.object is None or state.object["metadata"]["uid"] in uids
    ]
    return History(states, bindings, history.renewals)


def find_violations(history: History, lease_seconds: float | None = None) -> list[str]:
    """Return the violations of all checks; that of the lease only with its duration *lease_seconds*."""
    violations = [*find_double_bindings(history), *find_overcommitted_nodes(history), *find_unbound_pods(history)]
    return violations if lease_seconds is None else violations + find_bindings_without_lease(history, lease_seconds)


def find_double_bindings(history: History) -> list[str]:
    """Return the pods that were assigned more than once, or whose binding was accepted more than once."""
    node_names: dict[str, list[str]] = {}
    for assignment in find_assignments(history):
        node_names.setdefault(assignment.uid, []).append(assignment.node_name)
    accepted = Counter(binding.uid for binding in history.bindings if binding.accepted)
    reassigned = [f"{uid}: on {', then '.join(names)}" for uid, names in node_names.items() if len(names) > 1]
    return reassigned + [f"{uid}: bound {count} times" for uid, count in accepted.items() if count > 1]


def find_overcommitted_nodes(history: History) -> list[str]:
    """Return the assignments after which the pods on the node requested more than it offers."""
    assignments = {assignment.revision: assignment for assignment in find_assignments(history)}
    cluster, violations = _Cluster(), []
    for state in history.states:
        cluster.apply(state)
        if (assignment := assignments.get(state.revision)) is not None:
            location = f"{assignment.key} on {assignment.node_name} at {state.revision}"
            violations += [f"{location}: {excess}" for excess in cluster.find_excess(assignment.node_name)]
    return violations


def find_unbound_pods(history: History) -> list[str]:
    """Return the pods without a node at the end."""
    cluster = _Cluster()
    for state in history.states:
        cluster.apply(state)
    return [key for key, pod in cluster.pods.items() if not _node_name(pod)]


def find_bindings_without_lease(history: History, lease_seconds: float) -> list[str]:
    """Return the bindings by actors that did not hold the lease, or last renewed it more than *lease_seconds* before.

    For accepted bindings, the holder follows from the revisions of lease and pod, without a clock. For rejected ones,
    and for the age of a renewal, the server's clock is used.
    """
    return [*_find_other_leaders(history), *_find_expired_leases(history, lease_seconds)]


def _find_other_leaders(history: History) -> Iterator[str]:
    actors = {renewal.holder: renewal.actor for renewal in history.renewals if renewal.holder}
    # The store may have accepted a binding whose sender was killed and never saw the response; prefer accepted ones.
    senders = {binding.uid: binding.actor for binding in sorted(history.bindings, key=lambda binding: binding.accepted)}
    holders = _holder_by_revision(history)
    for assignment in find_assignments(history):
        sender = senders.get(assignment.uid, "nobody known")
        leader = actors.get(holders[assignment.revision], "nobody")
        if leader != sender:
            yield f"{assignment.key}: bound by {sender} while {leader} led"


def _find_expired_leases(history: History, lease_seconds: float) -> Iterator[str]:
    for binding in history.bindings:
        renewals = [renewal for renewal in history.renewals if renewal.time <= binding.time]
        last = renewals[-1] if renewals else LeaseRenewal("nobody", "", 0.0)
        age = binding.time - last.time
        if not last.holder or last.actor != binding.actor:
            yield f"{binding.uid}: sent by {binding.actor} after {last.actor} wrote the lease"
        elif age > lease_seconds:
            yield f"{binding.uid}: sent by {binding.actor} {age:.1f} s after its last renewal"


def _holder_by_revision(history: History) -> dict[int, str]:
    """Return the identity in the lease at each revision; empty if no one holds it."""
    holder, holders = "", {}
    for state in history.states:
        if state.kind == "Lease":
            holder = "" if state.object is None else state.object["spec"].get("holderIdentity") or ""
        holders[state.revision] = holder
    return holders


def _node_name(pod: Object) -> str:
    return str(pod["spec"].get("nodeName") or "")
