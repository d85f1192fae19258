"""The checks of a recorded history: pure functions that return violations.

find_rebindings                a pod is bound once and never moves
find_broken_bindings           at a binding, the rules of the node and of the claims of the pod are true
find_shared_resources          no device is allocated twice and no volume is bound twice
find_bindings_by_other_leaders a binding is sent by the holder of the lease
find_unbound_pods              at the end, no pod is pending that fits on a node
find_wrong_conditions          at the end, each pending pod has the right PodScheduled condition
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Final

from tests.history.claim_rules import (
    can_get_claims,
    find_bound_claim_rejections,
    find_shared_devices,
    find_shared_volumes,
)
from tests.history.cluster_state import (
    Change,
    ClusterState,
    History,
    Object,
    final_state,
    is_finished,
    is_terminating,
    node_name,
    uid_of,
)
from tests.history.node_rules import Rejection, find_rejections

STALENESS_SECONDS: Final = 5.0
"""The age in seconds of a node's state on which a binding may be based: the watch and the binding take some time."""

PENDING_RULES: Final = ("bound in time", "condition")
"""The rules of pods that are pending at the end."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that is broken.

    Attributes:
        rule: the name of the rule.
        pod: the key of the pod, or of the claim.
        node: the name of the node; empty if there is none.
        revision: the revision at which the rule is broken.
        detail: the values that break it.
    """

    rule: str
    pod: str
    node: str
    revision: int
    detail: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.pod} on {self.node or 'no node'} at revision {self.revision}: {self.detail}"


def find_violations(history: History, staleness_seconds: float = STALENESS_SECONDS) -> list[Violation]:
    """Return the violations of all checks. The history must end when the scheduler had time to recover."""
    return [*find_safety_violations(history, staleness_seconds), *find_pending_violations(history)]


def find_safety_violations(history: History, staleness_seconds: float = STALENESS_SECONDS) -> list[Violation]:
    """Return the violations that no later change can repair."""
    return [
        *find_rebindings(history),
        *find_broken_bindings(history, staleness_seconds),
        *find_shared_resources(history),
        *find_bindings_by_other_leaders(history),
    ]


def find_pending_violations(history: History) -> list[Violation]:
    """Return the violations by pods that are pending at the end."""
    revision = history.changes[-1].revision if history.changes else 0
    state = final_state(history)
    return [*find_unbound_pods(state, revision), *find_wrong_conditions(state, revision)]


def find_assignments(history: History) -> Iterator[Change]:
    """Yield each change with which a pod gets a node name, or another one."""
    names: dict[str, str] = {}
    for change in history.changes:
        if change.kind == "Pod" and change.object is not None:
            uid, name = uid_of(change.object), node_name(change.object)
            if name and names.get(uid, "") != name:
                yield change
            names[uid] = name


def find_rebindings(history: History) -> list[Violation]:
    """Return the pods whose node name changed or was removed, and those whose binding was accepted twice."""
    first: dict[str, Change] = {}
    violations = []
    for change in history.changes:
        if change.kind != "Pod" or change.object is None:
            continue
        earlier, name = first.get(uid_of(change.object)), node_name(change.object)
        if earlier is None and name:
            first[uid_of(change.object)] = change
        elif earlier is not None and earlier.object is not None and node_name(earlier.object) != name:
            detail = f"bound to {node_name(earlier.object)} at {earlier.revision}"
            violations.append(Violation("bound once", change.key, name, change.revision, detail))
    accepted = [binding.uid for binding in history.bindings if binding.accepted]
    for uid in sorted({uid for uid in accepted if accepted.count(uid) > 1}):
        pod = first.get(uid)
        key, node = (uid, "") if pod is None or pod.object is None else (pod.key, node_name(pod.object))
        detail = f"{accepted.count(uid)} bindings were accepted"
        violations.append(Violation("bound once", key, node, 0 if pod is None else pod.revision, detail))
    return violations


class _NodeStates:
    """The states of each node with the times from which on they are valid."""

    def __init__(self) -> None:
        self._states: dict[str, list[tuple[float, Object | None]]] = {}

    def add(self, change: Change) -> None:
        self._states.setdefault(change.key, []).append((change.time, change.object))

    def newest_first(self, name: str, time: float) -> Iterator[tuple[float, Object | None]]:
        """Yield the states of a node with their ages in seconds: 0.0 if a state is valid at *time*."""
        superseded_at = time
        for valid_from, state in reversed(self._states.get(name, [])):
            yield time - superseded_at, state
            superseded_at = valid_from


@dataclass(frozen=True, slots=True)
class CheckedBinding:
    """A binding and the newest state of its node that permits it.

    Attributes:
        change: the change of the pod.
        staleness_seconds: the age of that state, 0.0 if the state is current, infinite if no state permits the binding.
        rejections: the rules that the current state of the node breaks.
    """

    change: Change
    staleness_seconds: float
    rejections: Sequence[Rejection]


def check_bindings(history: History) -> Iterator[CheckedBinding]:
    """Yield all bindings. Pods and claims are as at the binding, because only the scheduler adds to them."""
    assignments = {change.revision for change in find_assignments(history)}
    state, nodes = ClusterState(), _NodeStates()
    for change in history.changes:
        state.apply(change)
        if change.kind == "Node":
            nodes.add(change)
        if change.kind != "Pod" or change.object is None or change.revision not in assignments:
            continue
        current = _find_binding_rejections(change.object, state.find("Node", node_name(change.object)), state)
        staleness = inf if current else 0.0
        if current:
            for age, node in nodes.newest_first(node_name(change.object), change.time):
                if not _find_binding_rejections(change.object, node, state):
                    staleness = age
                    break
        yield CheckedBinding(change, staleness, current)


def find_broken_bindings(history: History, staleness_seconds: float = STALENESS_SECONDS) -> list[Violation]:
    """Return the bindings that break a rule on the node.

    The scheduler reads nodes with a delay. So a binding breaks a rule only if every state of the node in the last
    *staleness_seconds* breaks one.
    """
    violations = []
    for binding in check_bindings(history):
        if binding.staleness_seconds > staleness_seconds and binding.change.object is not None:
            change, name = binding.change, node_name(binding.change.object)
            since = f"for {binding.staleness_seconds:.1f} s" if isfinite(binding.staleness_seconds) else "always"
            violations += [
                Violation(rule, change.key, name, change.revision, f"{detail} ({since})")
                for rule, detail in binding.rejections
            ]
    return violations


def _find_binding_rejections(pod: Object, node: Object | None, state: ClusterState) -> list[Rejection]:
    if node is None:
        return [("node exists", "the node is deleted")]
    return [*find_rejections(pod, node, state), *find_bound_claim_rejections(pod, node, state)]


def find_shared_resources(history: History) -> list[Violation]:
    """Return the allocations of a device that is allocated, and the bindings of a volume that is bound."""
    state = ClusterState()
    violations = []
    for change in history.changes:
        state.apply(change)
        if change.object is None:
            continue
        if change.kind == "ResourceClaim":
            rejections = list(find_shared_devices(change.key, change.object, state))
        elif change.kind == "PersistentVolumeClaim":
            rejections = list(find_shared_volumes(change.key, change.object, state))
        else:
            continue
        violations += [Violation(rule, change.key, "", change.revision, detail) for rule, detail in rejections]
    return violations


def find_bindings_by_other_leaders(history: History) -> list[Violation]:
    """Return the bindings whose sender did not hold the lease at the revision of the binding.

    Senders are read from the audit log. A binding without an entry is skipped, because an API server that is killed
    loses its last entries. Without renewals there is no leader election.
    """
    actors = {renewal.holder: renewal.actor for renewal in history.renewals if renewal.holder}
    if not actors:
        return []
    senders = {binding.uid: binding.actor for binding in history.bindings if binding.accepted}
    assignments = {change.revision for change in find_assignments(history)}
    holder, violations = "", []
    for change in history.changes:
        if change.kind == "Lease":
            holder = "" if change.object is None else str(change.object["spec"].get("holderIdentity") or "")
        if change.revision not in assignments or change.object is None:
            continue
        sender, leader = senders.get(uid_of(change.object)), actors.get(holder, "nobody" if not holder else None)
        if sender is not None and leader is not None and sender != leader:
            detail = f"bound by {sender} while {leader} held the lease"
            violations.append(Violation("leader", change.key, node_name(change.object), change.revision, detail))
    return violations


def pending_pods(state: ClusterState) -> dict[str, Object]:
    """Return the pods by key that are neither bound nor finished nor terminating."""
    return {
        key: pod
        for key, pod in state.pods.items()
        if not node_name(pod) and not is_terminating(pod) and not is_finished(pod)
    }


def find_fitting_node(pod: Object, state: ClusterState) -> str:
    """Return the name of a node on which a pending pod fits; empty if there is none.

    A pod that is nominated to the node and has at least the same priority counts as bound, as for the scheduler.
    """
    for name, node in sorted(state.nodes.items()):
        if is_terminating(node) or find_rejections(pod, node, state) or not can_get_claims(pod, node, state):
            continue
        if not find_rejections(pod, node, _with_nominated_pods(pod, name, state)):
            return name
    return ""


def _with_nominated_pods(pod: Object, node: str, state: ClusterState) -> ClusterState:
    extended = state.copy()
    for key, other in pending_pods(state).items():
        is_important = _priority(other) >= _priority(pod)
        if other.get("status", {}).get("nominatedNodeName") == node and uid_of(other) != uid_of(pod) and is_important:
            extended.objects["Pod"][key] = {**other, "spec": {**other["spec"], "nodeName": node}}
    return extended


def _priority(pod: Object) -> int:
    return int(pod["spec"].get("priority") or 0)


def find_unbound_pods(state: ClusterState, revision: int) -> list[Violation]:
    """Return the pending pods that fit on a node."""
    violations = []
    for key, pod in pending_pods(state).items():
        if not pod["spec"].get("schedulingGates") and (name := find_fitting_node(pod, state)):
            violations.append(Violation("bound in time", key, name, revision, "the pod is pending and fits the node"))
    return violations


def find_wrong_conditions(state: ClusterState, revision: int) -> list[Violation]:
    """Return the pending pods without the PodScheduled condition of a gated or an unschedulable pod."""
    violations = []
    for key, pod in pending_pods(state).items():
        conditions: Sequence[Object] = pod.get("status", {}).get("conditions") or ()
        found = next((each for each in conditions if each["type"] == "PodScheduled"), {})
        actual = (found.get("status"), found.get("reason"))
        expected = ("False", "SchedulingGated" if pod["spec"].get("schedulingGates") else "Unschedulable")
        if actual != expected:
            detail = f"the condition is {actual}, not {expected}: {found.get('message', '')}"
            violations.append(Violation("condition", key, "", revision, detail))
        elif expected[1] == "Unschedulable" and not str(found.get("message", "")).startswith("0/"):
            violations.append(Violation("condition", key, "", revision, f"message {found.get('message', '')!r}"))
    return violations
