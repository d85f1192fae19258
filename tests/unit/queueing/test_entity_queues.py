"""The settings of the queue, pods that a QueueSort plugin cannot sort, and how an event requeues a pod group."""

from dataclasses import dataclass, replace
from typing import Any, cast

import pytest

from extender.cache.group_hierarchy import make_group_key
from extender.cache.pod_info import PodInfo
from extender.config.feature_gates import FeatureGates
from extender.framework.events import ClusterEvent, QueueingHint
from extender.framework.plugin_errors import check_sort_key
from extender.framework.status import Code, Status
from extender.queueing.entity_queues import QueueSettings
from extender.queueing.pod_group_queue import make_scheduling_queue
from extender.queueing.queued_entities import QueuedPodGroupInfo, QueuedPodInfo
from extender.queueing.queueing_hints import QueueingStrategy
from tests.build import make_cluster, make_pod
from tests.pod_group_builders import make_group_member
from tests.unit.cycle.fakes import make_profile
from tests.unit.queueing.builders import NODE_ADD, NodeAddPlugin, QueueHarness, make_pod_info


def test_the_defaults_are_those_of_kube_scheduler() -> None:
    """Source: pkg/scheduler/backend/queue/scheduling_queue.go, DefaultPodMaxInUnschedulablePodsDuration (1.36)."""
    settings = QueueSettings()

    assert (settings.initial_backoff, settings.max_backoff) == (1.0, 10.0)
    assert settings.max_in_unschedulable_pods_duration == 300.0
    assert "SchedulerPopFromBackoffQ" in FeatureGates()
    assert "GenericWorkload" not in FeatureGates()


class ByRank:
    """Sorts by the label rank, which some pods lack."""

    name = "ByRank"

    @check_sort_key
    def sort_key(self, entry: Any) -> tuple[int]:
        return (int(entry.pod.pod.metadata.labels["rank"]),)


def test_pods_for_which_the_queue_sort_plugin_fails_are_sorted_last(caplog: pytest.LogCaptureFixture) -> None:
    profile = replace(make_profile(), queue_sort=cast("Any", ByRank()))
    queue = make_scheduling_queue({"default-scheduler": profile}, lambda _pod, _plugin: None, QueueSettings())
    for name, labels in (("a", {}), ("b", {"rank": "2"}), ("c", {}), ("d", {"rank": "1"})):
        queue.add(make_cluster().make_pod_info(make_pod(name, labels=labels)), 0.0)
    entities = [queue.pop() for _ in range(5)]
    assert [entity and entity.pods[0].key for entity in entities] == [
        "default/d",
        "default/b",
        "default/a",
        "default/c",
        None,
    ]
    assert caplog.messages == [
        "running QueueSort plugin \"ByRank\": KeyError: 'rank'; pods for which it fails, such as default/a, "
        "are sorted last"
    ]


def test_a_failure_of_pre_enqueue_is_logged_once_for_each_pod(caplog: pytest.LogCaptureFixture) -> None:
    error = Status(Code.ERROR, ("running PreEnqueue plugin \"Quota\": KeyError: 'team'",), "Quota")
    calls: list[str] = []

    def run_pre_enqueue(pod: PodInfo, _first_plugin: str) -> Status:
        calls.append(pod.pod.metadata.name)
        return error

    queue = make_scheduling_queue({"default-scheduler": make_profile()}, run_pre_enqueue, QueueSettings())
    for name in ("a", "b"):
        queue.add(make_cluster().make_pod_info(make_pod(name)), 0.0)
    queue.activate([make_pod("a")], 1.0)
    assert calls == ["a", "b", "a"]
    records = [(record.message, record.pod.key, record.plugin, record.err) for record in caplog.records]  # type: ignore[attr-defined]
    text = "Unexpected error running PreEnqueue plugin"
    assert records == [(text, f"default/{name}", "Quota", error.message) for name in ("a", "b")]


@dataclass(frozen=True)
class Member:
    """A member of a group: whether its plugin rejected it or waits for the event, and whether its hint is Queue."""

    waits: bool = False
    hint: bool = False


STRATEGIES: dict[str, tuple[list[Member], QueueingStrategy]] = {
    "the event helps no member": ([Member(), Member()], QueueingStrategy.SKIP),
    "it helps the first member": ([Member(hint=True), Member()], QueueingStrategy.AFTER_BACKOFF),
    "it helps the last member": ([Member(), Member(hint=True)], QueueingStrategy.AFTER_BACKOFF),
    "a plugin of the first member waits for it": (
        [Member(waits=True, hint=True), Member()], QueueingStrategy.IMMEDIATELY
    ),
    "a plugin of the last member waits for it": (
        [Member(hint=True), Member(waits=True, hint=True)], QueueingStrategy.IMMEDIATELY
    ),
    "a plugin of the last member waits for another event": (
        [Member(hint=True), Member(waits=True)], QueueingStrategy.AFTER_BACKOFF
    ),
    "all plugins wait for another event": ([Member(waits=True), Member(waits=True)], QueueingStrategy.SKIP),
}  # fmt: skip


@pytest.mark.parametrize(("members", "strategy"), STRATEGIES.values(), ids=STRATEGIES)
def test_a_group_is_requeued_by_the_strategy_of_its_most_urgent_member(
    members: list[Member], strategy: QueueingStrategy
) -> None:
    """Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.isEntityWorthRequeuing (1.37)."""

    def give_hint(pod: PodInfo, _event: ClusterEvent) -> QueueingHint:
        return QueueingHint.queue_if(members[int(pod.pod.metadata.name)].hint)

    plugin = NodeAddPlugin("NodeAdd")
    plugin.hint = give_hint
    harness = QueueHarness(node_add_plugin=plugin)
    group = QueuedPodGroupInfo(make_group_key("default/ring"), 0, timestamp=100)
    for number, member in enumerate(members):
        pod = QueuedPodInfo(make_pod_info(make_group_member(str(number))), timestamp=100)
        rejectors = frozenset({"NodeAdd"})
        pod.pending_plugins, pod.unschedulable_plugins = (
            (rejectors, frozenset()) if member.waits else (frozenset(), rejectors)
        )
        group.add(pod)

    assert harness.queue._queues.get_strategy(group, NODE_ADD) is strategy


def test_an_event_concerns_only_the_members_that_can_change_the_strategy() -> None:
    hinted_names: list[str] = []

    def give_hint(pod: PodInfo, _event: ClusterEvent) -> QueueingHint:
        hinted_names.append(pod.pod.metadata.name)
        return QueueingHint.queue_if(pod.pod.metadata.name != "2")

    plugin = NodeAddPlugin("NodeAdd")
    plugin.hint = give_hint
    harness = QueueHarness(node_add_plugin=plugin)
    group = QueuedPodGroupInfo(make_group_key("default/ring"), 0, timestamp=100)
    for number in range(5):
        pod = QueuedPodInfo(make_pod_info(make_group_member(str(number))), timestamp=100)
        pod.pending_plugins = frozenset({"NodeAdd"} if number == 2 else ())
        pod.unschedulable_plugins = frozenset(() if number == 2 else {"NodeAdd"})
        group.add(pod)

    assert harness.queue._queues.get_strategy(group, NODE_ADD) is QueueingStrategy.AFTER_BACKOFF
    assert hinted_names == ["0", "2"]
