"""The life of a pod in the scheduling queue, in fake time."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from extender.cluster.pods import PodQuery
from extender.framework.changes import Action, Change, Hint, Registration, Resource
from extender.framework.verdict import Code, Status, unresolvable
from extender.objects.pod import Pod
from extender.queueing.queued import QueuedPod
from extender.queueing.waiting import QueueSettings, SchedulingQueue
from tests.build import a_cluster, a_node, a_pod
from tests.unit.decide.stand_ins import Refusing, a_profile

CLUSTER = a_cluster().snapshot()
NODE_ADDED = Change(Resource.NODE, Action.ADD, new=a_node("new"))
POD_GONE = Change(Resource.ASSIGNED_POD, Action.DELETE, old=a_pod("gone", node="n"))


class Picky(Refusing):
    """Is woken by new nodes only, and by those as *hint* says."""

    hint: Any = None

    def events(self) -> tuple[Registration, ...]:
        return (Registration(Resource.NODE, Action.ADD, self.hint),)


@dataclass
class World:
    """A queue with the plugins Picky (new nodes) and Open (no events of its own: woken by anything)."""

    gated: set[str] = field(default_factory=set)
    picky: Picky = field(default_factory=lambda: Picky("Picky"))
    moves: list[tuple[str, str]] = field(default_factory=list)
    settings: QueueSettings = field(default_factory=QueueSettings)

    def __post_init__(self) -> None:
        profile = a_profile(self.picky, Refusing("Open"))
        self.queue = SchedulingQueue(
            {"default-scheduler": profile}, self._gate, self.settings, on_move=lambda *move: self.moves.append(move)
        )

    def _gate(self, query: PodQuery, _first: str) -> Status | None:
        name = query.pod.metadata.name
        return unresolvable("closed").by("Picky") if name in self.gated else None

    def where(self, pod: Pod) -> str:
        counted = {place: n for place, n in self.queue.counts().items() if n}
        return ",".join(counted) or ("in flight" if pod.metadata.uid in self.queue.in_flight else "nowhere")


def query(pod: Pod) -> PodQuery:
    return CLUSTER.query(pod)


def popped(world: World, pod: Pod, now: float = 100) -> QueuedPod:
    """*pod* added and popped."""
    world.queue.add(query(pod), now)
    found = world.queue.pop()
    assert found is not None
    return found


def rejected(
    world: World, pod: Pod, *plugins: str, now: float = 100, pending: frozenset[str] = frozenset()
) -> QueuedPod:
    """*pod* added, popped, rejected and back."""
    found = popped(world, pod, now)
    found.rejectors, found.pending = frozenset(plugins), pending
    world.queue.came_back(found, now)
    return found


WEB = a_pod("web")


def test_pods_come_out_by_priority_then_by_age() -> None:
    world = World()
    for name, priority, now in (("old", 0, 1), ("young", 0, 2), ("urgent", 9, 3)):
        world.queue.add(query(a_pod(name, priority=priority)), now)

    names = [pod.query.pod.metadata.name for _ in range(3) if (pod := world.queue.pop())]

    assert names == ["urgent", "old", "young"]
    assert world.queue.pop() is None


def test_a_rejected_pod_waits_for_an_event_of_its_rejector() -> None:
    world = World()
    rejected(world, WEB, "Picky")
    assert world.where(WEB) == "unschedulable"

    world.queue.happened(POD_GONE, 101)
    assert world.where(WEB) == "unschedulable"

    world.queue.happened(NODE_ADDED, 101)
    assert world.where(WEB) == "backoff"


def test_after_its_backoff_an_event_makes_it_active_at_once() -> None:
    world = World()
    rejected(world, WEB, "Picky")

    world.queue.happened(NODE_ADDED, 102)

    assert world.where(WEB) == "active"


def test_a_plugin_without_events_is_woken_by_anything() -> None:
    world = World()
    rejected(world, WEB, "Open")

    world.queue.happened(POD_GONE, 102)

    assert world.where(WEB) == "active"


@pytest.mark.parametrize(
    ("hint", "where"),
    [
        (lambda pod, change: Hint.SKIP, "unschedulable"),
        (lambda pod, change: Hint.QUEUE, "active"),
        (lambda pod, change: 1 / 0, "active"),
    ],
    ids=["a hint may say that it does not help", "or that it does", "a hint that fails counts as help"],
)
def test_hints_are_asked(hint: Any, where: str) -> None:
    """Source: B006."""
    world = World()
    world.picky.hint = staticmethod(hint)
    world.queue = SchedulingQueue({"default-scheduler": a_profile(world.picky)}, world._gate, QueueSettings())
    rejected(world, WEB, "Picky")

    world.queue.happened(NODE_ADDED, 102)

    assert world.where(WEB) == where


def test_what_happens_while_a_pod_is_in_flight_counts_when_it_comes_back() -> None:
    """Source: D019."""
    world = World()
    pod = popped(world, WEB)
    world.queue.happened(NODE_ADDED, 100.5)
    pod.rejectors = frozenset({"Picky"})

    world.queue.came_back(pod, 101)

    assert world.where(WEB) == "backoff"
    assert len(world.queue.in_flight) == 0
    assert world.queue.in_flight.events == 0


def test_what_happened_before_it_was_popped_does_not_count() -> None:
    world = World()
    other = popped(world, a_pod("other"))
    world.queue.happened(NODE_ADDED, 100)
    pod = popped(world, WEB)
    pod.rejectors = frozenset({"Picky"})

    world.queue.came_back(pod, 101)

    assert world.where(WEB) == "unschedulable"
    world.queue.done(other.uid)
    assert world.queue.in_flight.events == 0


def test_an_error_backs_off_whatever_happens() -> None:
    world = World()
    pod = popped(world, WEB)

    world.queue.came_back(pod, 100)

    assert world.where(WEB) == "backoff"
    assert not world.queue.can_pop
    world.queue.flush_backoff(102)
    assert world.where(WEB) == "active"


def test_a_pending_plugin_spares_the_backoff() -> None:
    """Source: D031."""
    world = World()
    rejected(world, WEB, "Open", pending=frozenset({"Picky"}))

    world.queue.happened(NODE_ADDED, 100.1)

    assert world.where(WEB) == "active"


def test_backing_off_pods_are_popped_when_nothing_else_waits() -> None:
    """Source: D007."""
    world = World()
    rejected(world, WEB, "Picky")
    world.queue.happened(NODE_ADDED, 100.1)

    assert world.queue.can_pop
    pod = world.queue.pop()

    assert pod is not None
    assert pod.attempts == 2
    assert ("active", "PopFromBackoffQ") in world.moves


def test_a_gated_pod_is_parked_and_passes_when_its_gate_opens() -> None:
    world = World(gated={"web"})
    world.queue.add(query(WEB), 100)
    assert world.where(WEB) == "gated"
    world.queue.happened(POD_GONE, 101)
    assert world.where(WEB) == "gated"

    world.gated.clear()
    world.queue.happened(NODE_ADDED, 102)

    assert world.where(WEB) == "active"


def test_a_gated_pod_is_not_woken_by_time() -> None:
    """Its gating plugin waits for new nodes, not for the wildcard (D028)."""
    world = World(gated={"web"})
    world.queue.add(query(WEB), 100)
    world.gated.clear()

    world.queue.flush_parked(1000)

    assert world.where(WEB) == "gated"


def test_a_pod_that_was_parked_too_long_is_tried_again() -> None:
    """Source: D027."""
    world = World()
    pod = rejected(world, WEB, "Picky")

    world.queue.flush_parked(400)
    assert world.where(WEB) == "unschedulable"

    world.queue.flush_parked(400.1)
    assert world.where(WEB) == "active"
    assert pod.flushed


def test_an_activated_pod_is_tried_at_once() -> None:
    world = World()
    rejected(world, WEB, "Picky")

    world.queue.activate([query(WEB)], 100)

    assert world.where(WEB) == "active"


def test_a_pod_activated_in_flight_comes_back_to_backoff() -> None:
    """Source: D044."""
    world = World()
    pod, other = popped(world, WEB), popped(world, a_pod("other"))
    world.queue.activate([query(WEB)], 100)
    pod.rejectors = other.rejectors = frozenset({"Picky"})

    world.queue.came_back(pod, 100)
    world.queue.came_back(other, 100)

    assert world.queue.counts() == {"active": 0, "backoff": 1, "unschedulable": 1, "gated": 0}


def test_an_update_of_a_parked_pod_asks_its_rejectors() -> None:
    world = World()
    rejected(world, WEB, "Open")
    change = Change(Resource.UNSCHEDULED_POD, Action.UPDATE_POD_LABEL, old=WEB, new=WEB)

    world.queue.update(query(a_pod("web", labels={"a": "b"})), [change], 102)

    assert world.where(WEB) == "active"


def test_an_updated_priority_changes_its_place() -> None:
    world = World()
    for name in ("web", "db"):
        world.queue.add(query(a_pod(name)), 1)

    world.queue.update(query(a_pod("db", priority=5)), [], 2)

    first = world.queue.pop()
    assert first is not None
    assert first.key == "default/db"


def test_an_update_of_an_unknown_pod_adds_it() -> None:
    """Source: D015."""
    world = World()

    world.queue.update(query(WEB), [], 100)

    assert world.where(WEB) == "active"


def test_a_deleted_pod_is_nowhere() -> None:
    world = World()
    rejected(world, WEB, "Picky")

    world.queue.delete(WEB.key)
    world.queue.happened(NODE_ADDED, 102)

    assert world.where(WEB) == "nowhere"


def test_a_pod_in_flight_is_not_popped_twice() -> None:
    """Source: D009."""
    world = World()
    popped(world, WEB)
    world.queue.add(query(WEB), 101)

    assert world.queue.pop() is None


def test_rejections_and_errors_are_counted_apart() -> None:
    """A rejection resets the errors, an error leaves the rejections (D018, D026)."""
    world = World()
    pod = rejected(world, WEB, "Picky")
    assert (pod.rejections, pod.errors, pod.failures) == (1, 0, 1)

    world.queue.happened(NODE_ADDED, 110)
    assert world.queue.pop() is pod
    pod.rejectors = frozenset()
    world.queue.came_back(pod, 110)
    assert (pod.rejections, pod.errors, pod.failures) == (1, 1, 1)

    world.queue.flush_backoff(120)
    assert world.queue.pop() is pod
    pod.rejectors = frozenset({"Picky"})
    world.queue.came_back(pod, 120)
    assert (pod.rejections, pod.errors, pod.failures) == (2, 0, 2)


def test_an_event_nobody_registered_for_moves_nothing() -> None:
    world = World()
    world.queue = SchedulingQueue({"default-scheduler": a_profile(world.picky)}, world._gate, QueueSettings())
    rejected(world, WEB, "Picky")
    world.moves.clear()

    world.queue.happened(Change(Resource.STORAGE_CLASS, Action.ADD), 102)

    assert world.moves == []
    assert Code.UNRESOLVABLE.label == "UnschedulableAndUnresolvable"


@pytest.mark.parametrize(
    ("change", "label"),
    [
        (NODE_ADDED, "NodeAdd"),
        (POD_GONE, "AssignedPodDelete"),
        (Change(Resource.NODE, Action.UPDATE_NODE_LABEL), "NodeUpdateNodeLabel"),
        (Change(Resource.CSI_NODE, Action.UPDATE), "storage.k8s.io/CSINodeUpdate"),
        (Change(Resource.ANY, Action.ALL, name="ForceActivate"), "ForceActivate"),
    ],
)
def test_events_are_named_as_in_kube_scheduler(change: Change, label: str) -> None:
    """Source: D052."""
    assert change.label == label
