"""The scheduling queue: every pod that waits, where it waits, and what moves it on. Source: reference D.

Time is passed in, in seconds of one clock; nothing here waits, and nothing is woken: whoever runs the loop asks
`can_pop` after each call.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from extender.basics.heap import KeyedHeap
from extender.cluster.pods import PodQuery
from extender.framework.changes import Action, Change, Resource
from extender.framework.profiles import Profile
from extender.framework.verdict import Status
from extender.queueing.backoff import BackoffQueue
from extender.queueing.hints import HintObserver, Hints, Worth
from extender.queueing.inflight import InFlight
from extender.queueing.queued import QueuedPod

ADDED, UPDATED, FAILED = "UnschedulablePodAdd", "UnschedulablePodUpdate", "ScheduleAttemptFailure"
BACKOFF_COMPLETE, POPPED_EARLY, ACTIVATED, TIMED_OUT = (
    "BackoffComplete",
    "PopFromBackoffQ",
    "ForceActivate",
    "UnschedulableTimeout",
)
"""What moves are told under, beside the labels of changes. Source: D052."""

Gate = Callable[[PodQuery, str], Status | None]
"""PreEnqueue: who keeps a pod out, the plugin named (or nobody) asked first. Source: D038, D039."""

MoveObserver = Callable[[str, str], None]
"""Hears the queue a pod was put into (active, backoff, unschedulable) and why. Source: H015."""


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """How the queue behaves.

    Attributes:
        initial_backoff, max_backoff: seconds. Source: G013, G014.
        max_parked: seconds after which a parked pod is tried again whatever happened. Source: D027.
        pop_early: gate SchedulerPopFromBackoffQ. Source: D007.
        groups: gate GenericWorkload: members of pod groups back off whatever happened meanwhile (D019). Though
            rejected, they are not popped early while nothing happens: kube-scheduler would try the same group over and
            over as long as no other pod waits.
    """

    initial_backoff: float = 1.0
    max_backoff: float = 10.0
    max_parked: float = 300.0
    pop_early: bool = True
    groups: bool = False


class SchedulingQueue:
    """Active, backing off, parked (gated ones among them), in flight. A pod is in one of them at most. Source: D003."""

    def __init__(
        self,
        profiles: Mapping[str, Profile],
        gate: Gate,
        settings: QueueSettings,
        *,
        on_hint: HintObserver | None = None,
        on_move: MoveObserver | None = None,
    ) -> None:
        """An empty queue.

        Args:
            profiles: by scheduler name; their QueueSort plugin is one and the same (A084).
            gate: PreEnqueue.
            settings: times and gates.
            on_hint: hears of hints that were asked for.
            on_move: hears of pods put into a queue.
        """
        sort = next(iter(profiles.values())).queue_sort

        def order(pod: QueuedPod) -> Any:
            return sort.sort_key(pod.entry)

        self._gate, self._settings, self._on_move = gate, settings, on_move
        self._active: KeyedHeap[QueuedPod] = KeyedHeap(lambda pod: pod.key, order)
        self._backoff = BackoffQueue(
            order, initial=settings.initial_backoff, most=settings.max_backoff, windows=settings.pop_early
        )
        self._parked: dict[str, QueuedPod] = {}
        self._flying = InFlight()
        self._hints = Hints(profiles, on_hint)

    # -- reading

    @property
    def can_pop(self) -> bool:
        """Whether `pop` has a pod. Source: D006."""
        return len(self._active) > 0 or (self._settings.pop_early and self._backoff.can_pop_early)

    def counts(self) -> dict[str, int]:
        """How many pods wait where, as the gauge pending_pods has it. Source: H006, D040."""
        gated = sum(1 for pod in self._parked.values() if pod.gate)
        return {
            "active": len(self._active),
            "backoff": len(self._backoff),
            "unschedulable": len(self._parked) - gated,
            "gated": gated,
        }

    @property
    def in_flight(self) -> InFlight:
        """The pods without an outcome; read only."""
        return self._flying

    def __iter__(self) -> Iterator[QueuedPod]:
        yield from self._active
        yield from self._backoff
        yield from list(self._parked.values())

    def find(self, key: str) -> QueuedPod | None:
        """The waiting pod *key* (`namespace/name`), or None; pods in flight are not waiting."""
        return self._active.get(key) or self._backoff.get(key) or self._parked.get(key)

    # -- pods come, change and go

    def add(self, query: PodQuery, now: float) -> None:
        """A pod appeared. Source: D011."""
        self._to_active(QueuedPod(query, now), ADDED, now)

    def update(self, query: PodQuery, changes: Iterable[Change], now: float) -> None:
        """A waiting pod changed: *changes* says what, one event a property. Source: D012 to D015."""
        if query.uid in self._flying:
            for change in changes:
                self._flying.note(change)
            return
        known = self.find(query.key)
        if known is None or known.uid != query.uid:
            self.add(query, now)
            return
        known.query = query
        for heap in (self._active, self._backoff):
            if query.key in heap:
                heap.put(known)
                return
        for change in changes:
            if self._requeue(known, self._hints.worth(known, change), change.label, now):
                return

    def delete(self, key: str) -> None:
        """A pod is gone, or has a node. Source: D016."""
        self._take(key)

    def _take(self, key: str) -> QueuedPod | None:
        return self._active.remove(key) or self._backoff.remove(key) or self._parked.pop(key, None)

    # -- attempts

    def pop(self) -> QueuedPod | None:
        """The next pod to try, in flight from now on; None if there is none. Source: D007 to D009."""
        while True:
            pod = self._active.pop()
            if pod is None and self._settings.pop_early:
                pod = self._backoff.pop_early()
                if pod is not None:
                    self._told("active", POPPED_EARLY)
            if pod is None:
                return None
            if self._flying.begin(pod):
                pod.attempts += 1
                return pod

    def pop_this(self, query: PodQuery, now: float) -> QueuedPod | None:
        """The waiting pod *query*, in flight from now on; None if it does not wait or is kept out. Source: D010."""
        self._activate(query, now)
        pod = self._active.remove(query.key)
        if pod is None or not self._flying.begin(pod):
            return None
        pod.attempts += 1
        return pod

    def done(self, uid: str) -> None:
        """The attempt of pod *uid* needs no event any more: it is bound, or about to be, or gone. Source: D043."""
        self._flying.done(uid)

    def came_back(self, pod: QueuedPod, now: float) -> None:
        """A popped pod found no node: it waits for an event, or backs off if one has come already.

        Its `rejectors` and `pending` say who rejected it; empty both means that something went wrong.
        Source: D017 to D019.
        """
        try:
            if self.find(pod.key) is not None:
                return
            if pod.all_rejectors:
                pod.rejections, pod.errors = pod.rejections + 1, 0
            else:
                pod.errors += 1
            pod.since, pod.flushed = now, False
            happened = self._flying.since(pod.uid)
            worth = Worth.AFTER_BACKOFF
            if pod.all_rejectors and happened is not None and not self._in_group(pod):
                worth = self._hints.worth_of_all(pod, happened)
            self._requeue(pod, worth, FAILED, now)
        finally:
            self._flying.done(pod.uid)

    def _in_group(self, pod: QueuedPod) -> bool:
        return self._settings.groups and pod.query.spec.scheduling_group is not None

    # -- what moves pods on

    def happened(self, change: Change, now: float, concerns: Callable[[QueuedPod], bool] | None = None) -> None:
        """Something happened to the cluster: try the pods again that it may help. Source: D029 to D033.

        Args:
            change: what happened.
            now: seconds.
            concerns: only pods it is true for are looked at.
        """
        self._backoff.release()
        if self._hints.interested(change):
            self._move([pod for pod in self._parked.values() if concerns is None or concerns(pod)], change, now)

    def _move(self, pods: list[QueuedPod], change: Change, now: float) -> None:
        why = change.label
        for pod in pods:
            if pod.gate and not any(event.concerns(change) for event in pod.gate_events):
                continue
            worth = self._hints.worth(pod, change)
            if worth is not Worth.SKIP:
                self._parked.pop(pod.key)  # if a plugin keeps it out, it is parked anew, and counted as such
                self._requeue(pod, worth, why, now)
        self._flying.note(change)

    def activate(self, queries: Iterable[PodQuery], now: float) -> None:
        """Try these pods at once; those in flight, when they come back. Source: D044."""
        for query in queries:
            if not self._activate(query, now) and query.uid in self._flying:
                self._flying.note(Change(Resource.ANY, Action.ALL, new=query.pod, name=ACTIVATED))

    def _activate(self, query: PodQuery, now: float) -> bool:
        """Have the pod tried at once if it backs off or is parked; whether it did or was."""
        early = query.key in self._backoff
        pod = self._backoff.remove(query.key) or self._parked.get(query.key)
        if pod is not None:
            self._to_active(pod, ACTIVATED, now, gated_before=early)
        return pod is not None

    def flush_backoff(self, now: float) -> None:
        """Backoffs that have passed end; to be called every second. Source: D025."""
        for pod in self._backoff.pop_completed(now):
            self._to_active(pod, BACKOFF_COMPLETE, now, gated_before=True)

    def flush_parked(self, now: float) -> None:
        """Pods that were parked too long are tried again; to be called every 30 seconds. Source: D027, D028."""
        late = [pod for pod in self._parked.values() if now - pod.since > self._settings.max_parked]
        for pod in late:
            pod.flushed = True
        if late:
            self._move(late, Change(Resource.ANY, Action.ALL, name=TIMED_OUT), now)

    # -- places

    def _requeue(self, pod: QueuedPod, worth: Worth, why: str, now: float) -> bool:
        """Put *pod* where *worth* says; whether it left the parked pods, or never came to them. Source: D020."""
        if worth is Worth.SKIP:
            self._park(pod, why)
            return False
        if worth is Worth.AFTER_BACKOFF and self._backoff.backs_off(pod, now):
            if self._settings.pop_early and not self._passes(pod, why):
                return False
            self._parked.pop(pod.key, None)
            self._backoff.put(pod, held=self._in_group(pod))
            self._told("backoff", why)
            return True
        return self._to_active(pod, why, now)

    def _to_active(self, pod: QueuedPod, why: str, now: float, *, gated_before: bool = False) -> bool:
        """Put *pod* into the active queue unless a plugin keeps it out.

        *gated_before*: that was asked on entering backoff.
        """
        if not (gated_before and self._settings.pop_early) and not self._passes(pod, why):
            return False
        self._parked.pop(pod.key, None)
        self._backoff.remove(pod.key)
        if pod.first_active is None:
            pod.first_active = now
        self._active.put(pod)
        self._told("active", why)
        return True

    def _passes(self, pod: QueuedPod, why: str) -> bool:
        status = self._gate(pod.query, pod.gate)
        if status is None:
            pod.gate, pod.gate_events = "", ()
            return True
        pod.gate = status.plugin
        pod.gate_events = self._hints.of(pod.query.spec.scheduler_name, status.plugin)
        pod.rejectors |= {status.plugin}
        self._park(pod, why)
        return False

    def _park(self, pod: QueuedPod, why: str) -> None:
        if pod.key not in self._parked:
            self._parked[pod.key] = pod
            self._told("unschedulable", why)

    def _told(self, queue: str, why: str) -> None:
        if self._on_move:
            self._on_move(queue, why)
