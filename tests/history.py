"""What happened while schedulers were at work and things broke, and whether all of it was right.

A history holds every state of every pod, node and lease in the order of their revisions, which is one order for all
of them, and the bindings and renewals of the lease with who sent them. Whoever records one brings it into this form;
the checks are the same for all. Each gives what is wrong, a line each; nothing wrong is an empty list:

    bound_twice    I1: no pod is bound twice
    overfull       I2: no node is given more than it has
    waiting        I3: no pod is lost; asked when all faults are over
    out_of_turn    I4: nobody binds while another leads, or after the own lease ran out
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from extender.objects.quantity import base_units

Thing = Mapping[str, Any]
"""An object as parsed JSON."""


@dataclass(frozen=True, slots=True)
class State:
    """An object from a revision on: `thing`, or None when it is gone. `key` is `namespace/name`, or the name."""

    revision: int
    kind: str
    key: str
    thing: Thing | None


@dataclass(frozen=True, slots=True)
class Renewal:
    """A write of the lease that was accepted: who wrote it, the holder it names, when it was answered in seconds."""

    actor: str
    holder: str
    at: float


@dataclass(frozen=True, slots=True)
class Binding:
    """A binding that was sent: by whom, of the pod with which uid, when it arrived (seconds of the renewals' clock)."""

    actor: str
    uid: str
    at: float
    accepted: bool = True


@dataclass(frozen=True, slots=True)
class History:
    """All states in the order of their revisions, all writes in the order of time."""

    states: Sequence[State]
    bindings: Sequence[Binding] = ()
    renewals: Sequence[Renewal] = ()


@dataclass(frozen=True, slots=True)
class Placement:
    """A pod came to a node, at a revision."""

    revision: int
    uid: str
    key: str
    node: str


@dataclass(slots=True)
class _Cluster:
    """Nodes and pods at one moment, by key."""

    nodes: dict[str, Thing] = field(default_factory=dict)
    pods: dict[str, Thing] = field(default_factory=dict)

    def take(self, state: State) -> None:
        table = {"Node": self.nodes, "Pod": self.pods}.get(state.kind)
        if table is None:
            return
        if state.thing is None:
            table.pop(state.key, None)
        else:
            table[state.key] = state.thing

    def excess(self, node: str) -> Iterator[str]:
        """What the pods on *node* ask for beyond what it offers."""
        used: Counter[str] = Counter()
        for pod in self.pods.values():
            if _node_of(pod) == node and pod.get("status", {}).get("phase") not in {"Succeeded", "Failed"}:
                used += requests(pod)
        offered = self.nodes.get(node, {}).get("status", {}).get("allocatable", {})
        for name, amount in sorted(used.items()):
            room = base_units(name, offered[name]) if name in offered else 0
            if amount > room:
                yield f"{amount} {name} of {room}"


def requests(pod: Thing) -> Counter[str]:
    """What the containers of *pod* ask for, in base units, with the one place that any pod takes."""
    asked: Counter[str] = Counter(pods=1)
    for container in pod["spec"]["containers"]:
        for name, amount in container.get("resources", {}).get("requests", {}).items():
            asked[name] += base_units(name, amount)
    return asked


def placements(history: History) -> list[Placement]:
    """Every time that a pod came to a node, or from one to another, in order."""
    where: dict[str, str] = {}
    found = []
    for state in history.states:
        if state.kind != "Pod" or state.thing is None:
            continue
        uid, node = state.thing["metadata"]["uid"], _node_of(state.thing)
        if node != where.get(uid, ""):
            found.append(Placement(state.revision, uid, state.key, node))
        where[uid] = node
    return found


def bound_by(history: History, actors: Collection[str]) -> History:
    """The history of what *actors* sent and of the pods they bound; of nodes and lease it is whole."""
    sent = [binding for binding in history.bindings if binding.actor in actors]
    uids = {binding.uid for binding in sent}
    states = [
        state
        for state in history.states
        if state.kind != "Pod" or state.thing is None or state.thing["metadata"]["uid"] in uids
    ]
    return History(states, sent, history.renewals)


def wrong(history: History, lasts: float | None = None) -> list[str]:
    """What any of the checks finds; the last only where there is a lease, which *lasts* seconds."""
    found = [*bound_twice(history), *overfull(history), *waiting(history)]
    return found if lasts is None else found + out_of_turn(history, lasts)


def bound_twice(history: History) -> list[str]:
    """Pods that came to a node more than once, or whose binding was accepted more than once."""
    places: dict[str, list[str]] = {}
    for placement in placements(history):
        places.setdefault(placement.uid, []).append(placement.node)
    accepted = Counter(binding.uid for binding in history.bindings if binding.accepted)
    moved = [f"{uid}: on {', then '.join(nodes)}" for uid, nodes in places.items() if len(nodes) > 1]
    return moved + [f"{uid}: bound {times} times" for uid, times in accepted.items() if times > 1]


def overfull(history: History) -> list[str]:
    """Nodes on which the pods asked for more than there was, when the last of them came."""
    cluster, came, found = _Cluster(), {each.revision: each for each in placements(history)}, []
    for state in history.states:
        cluster.take(state)
        if (placement := came.get(state.revision)) is not None:
            excess = cluster.excess(placement.node)
            found += [f"{placement.key} on {placement.node} at {state.revision}: {each}" for each in excess]
    return found


def waiting(history: History) -> list[str]:
    """Pods that are on no node in the end."""
    cluster = _Cluster()
    for state in history.states:
        cluster.take(state)
    return [key for key, pod in cluster.pods.items() if not _node_of(pod)]


def out_of_turn(history: History, lasts: float) -> list[str]:
    """Bindings by somebody who did not hold the lease, or had not renewed it for more than *lasts* seconds.

    Of those that were accepted, who held the lease is read off the revisions of lease and pod, so that nothing depends
    on a clock. Those that were refused are as wrong; for them and for ages the server's clock has to do.
    """
    return [*_usurped(history), *_late(history, lasts)]


def _usurped(history: History) -> Iterator[str]:
    actors = {renewal.holder: renewal.actor for renewal in history.renewals if renewal.holder}
    # Who is killed while its request is under way is answered with an error that nobody hears; the store may have taken
    # it all the same.
    senders = {binding.uid: binding.actor for binding in sorted(history.bindings, key=lambda each: each.accepted)}
    leaders = _leaders(history)
    for placement in placements(history):
        sender = senders.get(placement.uid, "nobody known")
        leader = actors.get(leaders[placement.revision], "nobody")
        if leader != sender:
            yield f"{placement.key}: bound by {sender} while {leader} led"


def _late(history: History, lasts: float) -> Iterator[str]:
    for binding in history.bindings:
        renewals = [renewal for renewal in history.renewals if renewal.at <= binding.at]
        last = renewals[-1] if renewals else Renewal("nobody", "", 0.0)
        if not last.holder or last.actor != binding.actor:
            yield f"{binding.uid}: sent by {binding.actor} after {last.actor} wrote the lease"
        elif binding.at - last.at > lasts:
            yield f"{binding.uid}: sent by {binding.actor} {binding.at - last.at:.1f} s after its last renewal"


def _leaders(history: History) -> dict[int, str]:
    """The identity in the lease at each revision; empty: nobody's."""
    holder, found = "", {}
    for state in history.states:
        if state.kind == "Lease":
            holder = "" if state.thing is None else state.thing["spec"].get("holderIdentity") or ""
        found[state.revision] = holder
    return found


def _node_of(pod: Thing) -> str:
    return str(pod["spec"].get("nodeName") or "")
