"""What the API server shows of a play, remembered for those who watch: who came, who went where, who waits and why."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from extender.basics.clock import Clock
from extender.objects.quantity import milli_value, value
from extender.sandbox.served import NODES, PODS, Object
from extender.sandbox.store import Change, Happened, Store


class What(Enum):
    """What a fact tells, in the word that people see."""

    SAID = "story"
    ARRIVED = "arrived"
    PLACED = "placed"
    WAITS = "waits"
    PREEMPTED = "preempted"
    ENDED = "ended"
    NODE = "node"


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that happened.

    Attributes:
        at: seconds since the start.
        what: its kind.
        who: the pod as `namespace/name`, or the node; empty for the story's own words.
        text: the rest: a node, a reason.
    """

    at: float
    what: What
    who: str
    text: str


@dataclass(frozen=True, slots=True)
class Use:
    """How full a node is.

    Attributes:
        name: of the node.
        zone: it is in.
        cpu: (requested, allocatable) in milli-CPU.
        memory: (requested, allocatable) in bytes.
        pods: on it that are not finished.
    """

    name: str
    zone: str
    cpu: tuple[int, int]
    memory: tuple[int, int]
    pods: int


@dataclass(slots=True)
class Chronicle:
    """Reads a store from `begin` on.

    Attributes:
        store: of the sandbox; it is only read.
        clock: for the seconds that facts bear.
        tell: called with each fact.
        counts: facts by kind.
        waiting: pods without a node, and why as the scheduler wrote it; empty until it wrote.
        preempted: who made room for whom, a sentence each.
        took: seconds from created to bound, of each pod that was placed without having waited.
    """

    store: Store
    clock: Clock
    tell: Callable[[Fact], None] = lambda _: None
    counts: Counter[What] = field(default_factory=Counter)
    waiting: dict[str, str] = field(default_factory=dict)
    preempted: list[str] = field(default_factory=list)
    took: list[float] = field(default_factory=list)
    _began: float | None = None
    _came: dict[str, float] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict)
    _seen: dict[str, int] = field(default_factory=dict)

    def begin(self) -> None:
        """It starts; listen from here on, as long as the store lasts."""
        self._began = self.clock.monotonic()
        self._seen = dict.fromkeys((PODS.place, NODES.place, "events"), self.store.version)
        self.store.listen(self._look)

    def time(self) -> float:
        """Seconds since the start; 0 before it."""
        return 0.0 if self._began is None else self.clock.monotonic() - self._began

    def say(self, text: str) -> None:
        """The story goes on."""
        self._note(What.SAID, "", text)

    def uses(self) -> list[Use]:
        """How full the nodes are, by name."""
        on: dict[str, list[Object]] = {}
        for kept in self.store.all(PODS.place):
            pod = kept.object
            if pod["status"].get("phase") not in {"Succeeded", "Failed"}:
                on.setdefault(pod["spec"].get("nodeName", ""), []).append(pod)
        return [_use(kept.object, on.get(kept.object["metadata"]["name"], [])) for kept in self.store.all(NODES.place)]

    def _note(self, what: What, who: str, text: str = "") -> None:
        self.counts[what] += 1
        self.tell(Fact(self.time(), what, who, text))

    def _look(self, place: str) -> None:
        after = self._seen.get(place)
        if after is None:
            return
        self._seen[place] = self.store.version
        for change in self.store.changes(place, after):
            match place:
                case PODS.place:
                    self._pod(change)
                case NODES.place if change.before is None:
                    zone = change.kept.object["metadata"].get("labels", {}).get("topology.kubernetes.io/zone", "")
                    self._note(What.NODE, change.kept.object["metadata"]["name"], f"joins in zone {zone}")
                case "events" if change.before is None and change.kept.object.get("reason") == "Preempted":
                    self._preempted(change.kept.object)

    def _pod(self, change: Change) -> None:
        pod = change.kept.object
        uid, who = pod["metadata"]["uid"], f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        if change.happened is Happened.DELETED:
            self.waiting.pop(who, None)
            self._note(What.ENDED, who, "is gone")
            return
        before = change.before.object if change.before else None
        node = pod["spec"].get("nodeName", "")
        if before is None:
            self._came[uid], self._names[uid] = self.time(), who
            self._note(What.ARRIVED, who)
        if node and not (before and before["spec"].get("nodeName")):
            self._placed(uid, who, node)
        elif not node:
            self._waits(who, _why(pod))
        elif _phase(pod) == "Succeeded" != _phase(before):
            self._note(What.ENDED, who, f"has finished on {node}")

    def _placed(self, uid: str, who: str, node: str) -> None:
        why, took = self.waiting.pop(who, ""), self.time() - self._came[uid]
        if not why:
            self.took.append(took)
        self._note(What.PLACED, who, f"on {node} " + (f"after {took:.1f} s" if why else f"in {took * 1000:.0f} ms"))

    def _waits(self, who: str, why: str) -> None:
        known = self.waiting.get(who, "")
        self.waiting[who] = why or known
        if why and why != known:
            self._note(What.WAITS, who, why)

    def _preempted(self, event: Object) -> None:
        about, by = event["involvedObject"], (event.get("related") or {})
        who = f"{about['namespace']}/{about['name']}"
        text = f"makes room for {self._names.get(by.get('uid', ''), 'another pod')}"
        if f"{who} {text}" in self.preempted:
            return  # asked for once more before its end was seen
        self.preempted.append(f"{who} {text}")
        self._note(What.PREEMPTED, who, text)


def _phase(pod: Object | None) -> str:
    return str((pod or {}).get("status", {}).get("phase", ""))


def _why(pod: Object) -> str:
    """The first sentence of what is written into a pod's status, which tells of nodes; the rest is of preemption."""
    for condition in pod["status"].get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return str(condition.get("message", "")).partition(". ")[0].rstrip(".")
    return ""


def _use(node: Object, pods: list[Object]) -> Use:
    given: dict[str, Any] = node.get("status", {}).get("allocatable") or {}
    asked = [each.get("resources", {}).get("requests", {}) for pod in pods for each in pod["spec"]["containers"]]
    cpu = sum(milli_value(each.get("cpu", "0")) for each in asked)
    memory = sum(value(each.get("memory", "0")) for each in asked)
    return Use(
        node["metadata"]["name"],
        node["metadata"].get("labels", {}).get("topology.kubernetes.io/zone", ""),
        (cpu, milli_value(given.get("cpu", "0"))),
        (memory, value(given.get("memory", "0"))),
        len(pods),
    )
