"""Random operations on the scheduling queue: no pod is lost, in two places, or never popped again."""

from collections import Counter
from functools import partial
from random import Random
from typing import Any

import pytest

from extender.config.releases import RELEASE_1_36, RELEASE_1_37, Release
from extender.framework.events import ActionType, ClusterEvent, EventResource
from extender.framework.status import SUCCESS, error_status, unschedulable_status
from extender.queueing.pod_group_queue import PodGroupQueue
from extender.queueing.queued_entities import QueuedEntity, QueuedPodGroupInfo, QueuedPodInfo
from tests.build import make_pod
from tests.pod_group_builders import make_group_member, make_pod_group
from tests.unit.queueing.builders import NODE_ADD, QueueHarness, make_pod_info

NAMES = [f"pod-{number}" for number in range(12)]
GROUPS = {name: make_pod_group(name) for name in ("ring", "web")}
EVENTS = (NODE_ADD, ClusterEvent(EventResource.ANY, ActionType.ALL))
STATUSES = (SUCCESS, unschedulable_status("no"), error_status("no"))


class RandomCluster:
    """A queue, its pods, and the attempt that runs; each operation is a method."""

    def __init__(self, seed: int, release: Release) -> None:
        self.random, self.now = Random(seed), 100.0
        gates = {"GenericWorkload": release is RELEASE_1_37, "SchedulerPopFromBackoffQ": seed % 2 == 0}
        self.harness = QueueHarness(gates=gates, release=release)
        self.queue = self.harness.queue
        self.pods: dict[str, Any] = {}
        self.groups: set[str] = set()
        self.attempt: QueuedEntity | None = None
        self.attempted: list[QueuedPodInfo] = []
        self.bindings: list[QueuedPodInfo] = []

    def add(self) -> None:
        name = self.random.choice(NAMES)
        if name not in self.pods:
            group, metadata = ["", *GROUPS][NAMES.index(name) % 3], {"uid": str(self.random.random())}
            make = partial(make_group_member, group=group) if group else make_pod
            self.pods[name] = make(name, metadata=metadata)
            self.queue.add(make_pod_info(self.pods[name]), self.now)

    def delete(self) -> None:
        if self.pods:
            self.queue.delete(self.pods.pop(self.random.choice([*self.pods])), self.now)

    def update(self) -> None:
        if self.pods:
            self.queue.update(make_pod_info(self.random.choice([*self.pods.values()])), EVENTS, self.now)

    def pop(self) -> None:
        if self.attempt is None and self.queue.can_pop:
            self.attempt = self.queue.pop()
            self.attempted = [] if self.attempt is None else list(self.attempt.pods)

    def end_attempt(self) -> None:
        for pod in self.attempted:
            if self.random.random() < 0.5:
                self.fail(pod)
            else:
                self.bindings.append(pod)
        if isinstance(self.attempt, QueuedPodGroupInfo) and isinstance(self.queue, PodGroupQueue):
            self.queue.add_attempted_pod_group(self.attempt, self.random.choice(STATUSES), self.now)
        self.attempt, self.attempted = None, []

    def end_binding(self) -> None:
        if self.bindings:
            pod = self.bindings.pop(self.random.randrange(len(self.bindings)))
            if self.random.random() < 0.5:
                self.fail(pod)
                return
            self.queue.done(pod.uid)
            if self.is_current(pod):
                self.queue.delete(self.pods.pop(pod.pod_info.pod.metadata.name), self.now)

    def fail(self, pod: QueuedPodInfo) -> None:
        if not self.is_current(pod):
            self.queue.done(pod.uid)
            return
        pod.unschedulable_plugins = frozenset(self.random.choice([(), ("NodeAdd",)]))
        pod.pending_plugins = frozenset(self.random.choice([(), (), ("NodeAdd",)]))
        self.queue.add_unschedulable_if_not_present(pod, self.now)

    def is_current(self, pod: QueuedPodInfo) -> bool:
        current = self.pods.get(pod.pod_info.pod.metadata.name)
        return current is not None and current.metadata.uid == pod.uid

    def change_group(self) -> None:
        name = self.random.choice([*GROUPS])
        is_deleted = name in self.groups and self.random.random() < 0.3
        old, new = GROUPS[name] if name in self.groups else None, None if is_deleted else GROUPS[name]
        self.groups = self.groups - {name} if is_deleted else self.groups | {name}
        self.queue.update_pod_group(old, new, self.now)

    def gate(self) -> None:
        self.harness.gated ^= {self.random.choice(NAMES)}

    def move(self) -> None:
        self.queue.move_all_to_active_or_backoff_queue(self.random.choice(EVENTS), self.now)

    def activate(self) -> None:
        self.queue.activate([pod for pod in self.pods.values() if self.random.random() < 0.3], self.now)

    def flush(self) -> None:
        self.queue.flush_backoff_q_completed(self.now)
        self.queue.flush_unschedulable_pods_leftover(self.now)

    def check(self) -> None:
        """Check that each pod is in the queue once, or in flight."""
        queued = Counter(pod.uid for pod in self.queue)
        in_flight = {pod.uid for pod in (*self.attempted, *self.bindings)}
        assert set(queued.values()) <= {1}
        assert {pod.metadata.uid for pod in self.pods.values()} - in_flight == queued.keys()
        assert len(self.queue.in_flight_events) == len(in_flight)
        assert sum(self.queue.count_pending_pods().values()) == len(queued)

    def pop_all(self) -> set[str]:
        """End all attempts, allow all pods, and return the names of the pods that are popped within ten minutes."""
        self.end_attempt()
        while self.bindings:
            self.end_binding()
        for group in GROUPS.values():
            self.queue.update_pod_group(None, group, self.now)
        self.harness.gated.clear()
        self.queue.move_all_to_active_or_backoff_queue(NODE_ADD, self.now)  # in 1.36 only events allow gated pods
        for _ in range(2):
            self.now += 301
            self.flush()
        popped: set[str] = set()
        while (entity := self.queue.pop()) is not None:
            popped |= {pod.pod_info.pod.metadata.name for pod in entity.pods}
        return popped


OPERATIONS = {
    "add": 14, "delete": 1, "update": 1, "pop": 10, "end_attempt": 3, "end_binding": 4, "change_group": 1, "gate": 0.2,
    "move": 2, "activate": 1, "flush": 3,
}  # fmt: skip


@pytest.mark.parametrize("release", [RELEASE_1_36, RELEASE_1_37], ids=["1.36", "1.37"])
@pytest.mark.parametrize("seed", range(40))
def test_each_pod_is_in_one_place_and_is_popped_again(seed: int, release: Release) -> None:
    cluster = RandomCluster(seed, release)
    for operation in cluster.random.choices([*OPERATIONS], [*OPERATIONS.values()], k=300):
        cluster.now += cluster.random.choice([0.01, 0.5, 3])
        getattr(cluster, operation)()
        cluster.check()
    assert cluster.pop_all() == cluster.pods.keys()
