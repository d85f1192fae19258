"""The timeline of a demo: the changes of the API server's pods, nodes and events."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from extender.api.quantity import milli_value, value
from extender.basics.clock import Clock
from extender.fake_apiserver.registry.resources import NODES, PODS, Object
from extender.fake_apiserver.registry.store import Store, StoreChange, StoreEvent


class EntryKind(Enum):
    """The kind of an entry; the value is the label on the screen."""

    MESSAGE = "message"
    CREATED = "arrived"
    SCHEDULED = "placed"
    PENDING = "waits"
    PREEMPTED = "preempted"
    ENDED = "ended"
    NODE = "node"


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """An entry of the timeline.

    Attributes:
        at_seconds: the seconds since the start.
        subject: the pod as `namespace/name`, or the node; empty for messages of the scenario.
        text: details, such as a node or a reason.
    """

    at_seconds: float
    kind: EntryKind
    subject: str
    text: str


@dataclass(frozen=True, slots=True)
class NodeUsage:
    """The usage of a node.

    Attributes:
        cpu: the pair (requested, allocatable) in milli-CPU.
        memory: the pair (requested, allocatable) in bytes.
        pods: the number of assigned pods that are not finished.
    """

    name: str
    zone: str
    cpu: tuple[int, int]
    memory: tuple[int, int]
    pods: int


@dataclass(slots=True)
class Timeline:
    """Records the changes of a store after `start`.

    Attributes:
        store: the store of the fake API server; read only.
        counts: the numbers of entries by kind.
        pending_reasons: the scheduler's last message for each pending pod; an empty text before the first message.
        preemptions: one sentence per preemption.
        latencies: the seconds from creation to binding, for pods that were scheduled at the first attempt.
    """

    store: Store
    clock: Clock
    on_entry: Callable[[TimelineEntry], None] = lambda _: None
    counts: Counter[EntryKind] = field(default_factory=Counter)
    pending_reasons: dict[str, str] = field(default_factory=dict)
    preemptions: list[str] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)
    _start_time: float | None = None
    _created_at: dict[str, float] = field(default_factory=dict)
    _pod_keys: dict[str, str] = field(default_factory=dict)
    _observed_versions: dict[str, int] = field(default_factory=dict)

    def start(self) -> None:
        """Start the clock and subscribe to the store."""
        self._start_time = self.clock.monotonic()
        self._observed_versions = dict.fromkeys(
            (PODS.storage_key, NODES.storage_key, "events"), self.store.resource_version
        )
        self.store.subscribe(self._on_store_change)

    def get_elapsed_seconds(self) -> float:
        """Return the seconds since the start; 0 before the start."""
        return 0.0 if self._start_time is None else self.clock.monotonic() - self._start_time

    def add_message(self, text: str) -> None:
        """Add a message of the scenario."""
        self._add_entry(EntryKind.MESSAGE, "", text)

    def list_node_usages(self) -> list[NodeUsage]:
        """Return the usages of all nodes, sorted by name."""
        pods_by_node: dict[str, list[Object]] = {}
        for stored_object in self.store.list_objects(PODS.storage_key):
            pod = stored_object.content
            if pod["status"].get("phase") not in {"Succeeded", "Failed"}:
                pods_by_node.setdefault(pod["spec"].get("nodeName", ""), []).append(pod)
        return [
            _make_node_usage(stored_object.content, pods_by_node.get(stored_object.content["metadata"]["name"], []))
            for stored_object in self.store.list_objects(NODES.storage_key)
        ]

    def _add_entry(self, kind: EntryKind, subject: str, text: str = "") -> None:
        self.counts[kind] += 1
        self.on_entry(TimelineEntry(self.get_elapsed_seconds(), kind, subject, text))

    def _on_store_change(self, storage_key: str) -> None:
        observed_version = self._observed_versions.get(storage_key)
        if observed_version is None:
            return
        self._observed_versions[storage_key] = self.store.resource_version
        for change in self.store.list_changes_since(storage_key, observed_version):
            content = change.stored_object.content
            match storage_key:
                case PODS.storage_key:
                    self._on_pod_change(change)
                case NODES.storage_key if change.previous_object is None:
                    zone = content["metadata"].get("labels", {}).get("topology.kubernetes.io/zone", "")
                    self._add_entry(EntryKind.NODE, content["metadata"]["name"], f"joins in zone {zone}")
                case "events" if change.previous_object is None and content.get("reason") == "Preempted":
                    self._on_preempted(content)

    def _on_pod_change(self, change: StoreChange) -> None:
        pod = change.stored_object.content
        uid, pod_key = pod["metadata"]["uid"], f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        if change.event is StoreEvent.DELETED:
            self.pending_reasons.pop(pod_key, None)
            self._add_entry(EntryKind.ENDED, pod_key, "is gone")
            return
        previous = change.previous_object.content if change.previous_object else None
        node = pod["spec"].get("nodeName", "")
        if previous is None:
            self._created_at[uid], self._pod_keys[uid] = self.get_elapsed_seconds(), pod_key
            self._add_entry(EntryKind.CREATED, pod_key)
        if node and not (previous and previous["spec"].get("nodeName")):
            self._on_pod_scheduled(uid, pod_key, node)
        elif not node:
            self._on_pod_pending(pod_key, _get_pending_reason(pod))
        elif _get_phase(pod) == "Succeeded" != _get_phase(previous):
            self._add_entry(EntryKind.ENDED, pod_key, f"has finished on {node}")

    def _on_pod_scheduled(self, uid: str, pod_key: str, node: str) -> None:
        reason, latency = self.pending_reasons.pop(pod_key, ""), self.get_elapsed_seconds() - self._created_at[uid]
        if not reason:
            self.latencies.append(latency)
        self._add_entry(
            EntryKind.SCHEDULED,
            pod_key,
            f"on {node} " + (f"after {latency:.1f} s" if reason else f"in {latency * 1000:.0f} ms"),
        )

    def _on_pod_pending(self, pod_key: str, reason: str) -> None:
        previous_reason = self.pending_reasons.get(pod_key, "")
        self.pending_reasons[pod_key] = reason or previous_reason
        if reason and reason != previous_reason:
            self._add_entry(EntryKind.PENDING, pod_key, reason)

    def _on_preempted(self, event: Object) -> None:
        victim, preemptor = event["involvedObject"], (event.get("related") or {})
        pod_key = f"{victim['namespace']}/{victim['name']}"
        text = f"makes room for {self._pod_keys.get(preemptor.get('uid', ''), 'another pod')}"
        if f"{pod_key} {text}" in self.preemptions:
            return  # the eviction is repeated until the pod's deletion is observed
        self.preemptions.append(f"{pod_key} {text}")
        self._add_entry(EntryKind.PREEMPTED, pod_key, text)


def _get_phase(pod: Object | None) -> str:
    return str((pod or {}).get("status", {}).get("phase", ""))


def _get_pending_reason(pod: Object) -> str:
    """Return the first sentence of the PodScheduled message, without the sentences about preemption."""
    for condition in pod["status"].get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return str(condition.get("message", "")).partition(". ")[0].rstrip(".")
    return ""


def _make_node_usage(node: Object, pods: list[Object]) -> NodeUsage:
    allocatable: dict[str, Any] = node.get("status", {}).get("allocatable") or {}
    requests = [
        container.get("resources", {}).get("requests", {}) for pod in pods for container in pod["spec"]["containers"]
    ]
    cpu = sum(milli_value(request.get("cpu", "0")) for request in requests)
    memory = sum(value(request.get("memory", "0")) for request in requests)
    return NodeUsage(
        node["metadata"]["name"],
        node["metadata"].get("labels", {}).get("topology.kubernetes.io/zone", ""),
        (cpu, milli_value(allocatable.get("cpu", "0"))),
        (memory, value(allocatable.get("memory", "0"))),
        len(pods),
    )
