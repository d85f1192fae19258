"""A scheduling queue with plugins, for tests."""

from dataclasses import dataclass, field, replace
from typing import Any

from extender.api.kinds.pod import Pod
from extender.cache.pod_info import PodInfo
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_36, Release
from extender.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, EventResource
from extender.framework.status import Status, unresolvable_status
from extender.queueing.entity_queues import QueueSettings
from extender.queueing.pod_group_queue import make_scheduling_queue
from extender.queueing.queued_entities import QueuedPodInfo
from tests.build import make_cluster, make_node, make_pod
from tests.unit.cycle.fakes import RejectingFilter, make_profile

SNAPSHOT = make_cluster().snapshot()
NODE_ADD = ClusterEvent(EventResource.NODE, ActionType.ADD, new=make_node("new"))
POD_DELETE = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE, old=make_pod("deleted", node="n"))


class NodeAddPlugin(RejectingFilter):
    """A filter that registers for new nodes, with an optional queueing hint."""

    hint: Any = None

    def events_to_register(self) -> tuple[ClusterEventWithHint, ...]:
        return (ClusterEventWithHint(EventResource.NODE, ActionType.ADD, self.hint),)


@dataclass
class QueueHarness:
    """A queue with the plugins NodeAdd (registers for new nodes) and AnyEvent (registers for nothing).

    Attributes:
        gated: names of the pods that PreEnqueue of NodeAdd gates.
        node_add_plugin: the plugin NodeAdd.
        moves: the observed moves: queue and event label.
        counted_entities: the moves that count as incoming entities: queue, event label and type.
        settings: of the queue.
        gates: the gates that are not as by default.
        release: of the profile.
        pre_enqueue_count: the number of runs of the PreEnqueue plugins.
    """

    gated: set[str] = field(default_factory=set)
    node_add_plugin: NodeAddPlugin = field(default_factory=lambda: NodeAddPlugin("NodeAdd"))
    moves: list[tuple[str, str]] = field(default_factory=list)
    counted_entities: list[tuple[str, str, str]] = field(default_factory=list)
    settings: QueueSettings = field(default_factory=QueueSettings)
    gates: dict[str, bool] = field(default_factory=dict)
    release: Release = RELEASE_1_36
    pre_enqueue_count: int = 0

    def __post_init__(self) -> None:
        profile = make_profile(self.node_add_plugin, RejectingFilter("AnyEvent"))
        profile = replace(profile, gates=FeatureGates(self.gates, self.release))
        self.queue = make_scheduling_queue(
            {"default-scheduler": profile},
            self.run_pre_enqueue,
            self.settings,
            on_move=self.observe_move,
        )

    def run_pre_enqueue(self, pod_info: PodInfo, _gating_plugin: str) -> Status | None:
        self.pre_enqueue_count += 1
        gated = pod_info.pod.metadata.name in self.gated
        return unresolvable_status("closed").with_plugin("NodeAdd") if gated else None

    def observe_move(self, queue: str, event: str, _pod_count: int, entity_type: str) -> None:
        self.moves.append((queue, event))
        if entity_type:
            self.counted_entities.append((queue, event, entity_type))

    def queue_of(self, pod: Pod) -> str:
        queues = {queue: count for queue, count in self.queue.count_pending_pods().items() if count}
        return ",".join(queues) or ("in flight" if pod.metadata.uid in self.queue.in_flight_events else "none")

    def add_and_pop(self, pod: Pod, now: float = 100) -> QueuedPodInfo:
        self.queue.add(make_pod_info(pod), now)
        queued_pod = self.queue.pop()
        assert isinstance(queued_pod, QueuedPodInfo)
        return queued_pod

    def add_and_reject(
        self, pod: Pod, *plugins: str, now: float = 100, pending: frozenset[str] = frozenset()
    ) -> QueuedPodInfo:
        queued_pod = self.add_and_pop(pod, now)
        queued_pod.unschedulable_plugins, queued_pod.pending_plugins = frozenset(plugins), pending
        self.queue.add_unschedulable_if_not_present(queued_pod, now)
        return queued_pod


def make_pod_info(pod: Pod) -> PodInfo:
    return SNAPSHOT.make_pod_info(pod)
