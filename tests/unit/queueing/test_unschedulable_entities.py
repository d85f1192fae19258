"""Unschedulable entities, and the events that look at them."""

from collections.abc import Callable, Sequence

import pytest
from msgspec.structs import replace

from extender.api.kinds.pod import Pod
from extender.cache.group_hierarchy import make_group_key
from extender.cache.pod_info import PodInfo
from extender.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, EventResource, QueueingHint
from extender.queueing.entity_queues import QueueSettings
from extender.queueing.pod_group_queue import make_scheduling_queue
from extender.queueing.queued_entities import QueuedPodGroupInfo, QueuedPodInfo
from extender.queueing.queueing_hints import QueueingHints
from extender.queueing.scheduling_queue import SchedulingQueue
from extender.queueing.unschedulable_entities import PodRejection, UnschedulableEntities
from tests.build import make_cluster, make_pod
from tests.unit.cycle.fakes import RejectingFilter, make_profile
from tests.unit.queueing.builders import NODE_ADD, POD_DELETE, NodeAddPlugin, QueueHarness, make_pod_info

ALL = ClusterEvent(EventResource.ANY, ActionType.ALL)


def make_entity(name: str, *plugins: str, gate: str = "") -> QueuedPodInfo:
    return QueuedPodInfo(
        make_pod_info(make_pod(name)), timestamp=1, unschedulable_plugins=frozenset(plugins), gating_plugin=gate
    )


def list_names(
    entities: UnschedulableEntities, may_concern: Callable[[PodRejection], bool] = lambda _: True
) -> list[str]:
    return [entity.key.rpartition("/")[2] for entity in entities.list_entities(may_concern, lambda *_: True)]


def make_entities() -> UnschedulableEntities:
    entities = UnschedulableEntities()
    entities.add_or_update(make_entity("a", "Fit"))
    entities.add_or_update(make_entity("b", "Gates", gate="Gates"))
    entities.add_or_update(make_entity("c", "Fit"))
    entities.add_or_update(QueuedPodGroupInfo(make_group_key("default/gang"), 0, timestamp=1))
    return entities


def test_all_entities_are_listed_in_the_order_in_which_they_were_added() -> None:
    entities = make_entities()
    assert list_names(entities) == ["a", "b", "c", "gang"]
    assert [entity.key.rpartition("/")[2] for entity in entities] == ["a", "b", "c", "gang"]


def test_only_concerned_rejections_and_pod_groups_are_listed() -> None:
    concerned = {PodRejection("default-scheduler", frozenset({"Fit"}), "")}
    assert list_names(make_entities(), concerned.__contains__) == ["a", "c", "gang"]


def test_an_entity_that_another_plugin_gates_has_another_rejection() -> None:
    entities = make_entities()
    entity = entities.get("default/a")
    assert isinstance(entity, QueuedPodInfo)
    entity.gating_plugin = "Gates"
    entities.add_or_update(entity)
    assert list_names(entities, lambda rejection: rejection.gating_plugin == "") == ["c", "gang"]
    assert list_names(entities, lambda rejection: rejection.gating_plugin == "Gates") == ["b", "gang", "a"]


def test_a_removed_entity_is_not_listed() -> None:
    entities = make_entities()
    assert entities.remove("default/b") is not None
    assert entities.remove("default/b") is None
    assert ("default/b" in entities, entities.get("default/b")) == (False, None)
    assert list_names(entities) == ["a", "c", "gang"]


class PodDeletePlugin(RejectingFilter):
    """A filter that registers for deleted pods."""

    def events_to_register(self) -> tuple[ClusterEventWithHint, ...]:
        return (ClusterEventWithHint(EventResource.ASSIGNED_POD, ActionType.DELETE),)


@pytest.mark.parametrize(
    ("event", "scheduler", "plugins", "gate", "expected"),
    [
        pytest.param(NODE_ADD, "default", {"NodeAdd"}, "", True, id="a registered event"),
        pytest.param(POD_DELETE, "default", {"NodeAdd"}, "", False, id="an event without registration"),
        pytest.param(POD_DELETE, "default", {"NodeAdd", "PodDelete"}, "", True, id="one of two plugins registered"),
        pytest.param(NODE_ADD, "default", {"NodeAdd", "PodDelete"}, "PodDelete", False, id="not that of the gate"),
        pytest.param(POD_DELETE, "default", {"NodeAdd", "PodDelete"}, "PodDelete", True, id="that of the gate"),
        pytest.param(POD_DELETE, "default", {"Wildcard"}, "", True, id="a plugin that registers for all events"),
        pytest.param(POD_DELETE, "default", set(), "", True, id="a pod that failed with an error"),
        pytest.param(POD_DELETE, "other", {"NodeAdd"}, "", True, id="a pod without profile"),
        pytest.param(ALL, "default", {"NodeAdd"}, "NodeAdd", True, id="the event that concerns all pods"),
    ],
)
def test_events_that_may_concern_a_rejection(
    event: ClusterEvent, scheduler: str, plugins: set[str], gate: str, expected: bool
) -> None:
    profile = make_profile(NodeAddPlugin("NodeAdd"), PodDeletePlugin("PodDelete"), RejectingFilter("Wildcard"))
    hints = QueueingHints({"default": profile})
    assert hints.may_concern(event, PodRejection(scheduler, frozenset(plugins), gate)) is expected


def test_an_event_without_registration_does_not_look_at_gated_pods() -> None:
    harness = QueueHarness(gated={"first", "second"})
    for name in ("first", "second"):
        harness.queue.add(make_pod_info(make_pod(name)), 100)
    checked: list[str] = []
    for event in (POD_DELETE, NODE_ADD):
        harness.queue.move_all_to_active_or_backoff_queue(
            event, 101, lambda pod: checked.append(pod.pod_info.pod.metadata.name) is None
        )
        if event is POD_DELETE:
            assert checked == []
    assert checked == ["first", "second"]


class NodeHintPlugin(RejectingFilter):
    """A filter whose hint of node events is SKIP; it records the pods for which the hint is called."""

    def __init__(self, name: str, *, per_signature: bool) -> None:
        super().__init__(name)
        self._per_signature = per_signature
        self.called_for: list[str] = []

    def events_to_register(self) -> tuple[ClusterEventWithHint, ...]:
        return (
            ClusterEventWithHint(EventResource.NODE, ActionType.ADD, self._hint, per_signature=self._per_signature),
        )

    def _hint(self, pod: PodInfo, _event: ClusterEvent) -> QueueingHint:
        self.called_for.append(pod.pod.metadata.name)
        return QueueingHint.queue_if(pod.pod.metadata.labels.get("color") == "blue")


def reject_pods(plugin: RejectingFilter, pods: Sequence[Pod]) -> SchedulingQueue:
    """Return a queue whose *pods* were rejected by *plugin*."""
    queue = make_scheduling_queue({"default-scheduler": make_profile(plugin)}, lambda *_: None, QueueSettings())
    snapshot = make_cluster().snapshot()
    for pod in pods:
        queue.add(snapshot.make_pod_info(pod), 100)
        queued_pod = queue.pop()
        assert isinstance(queued_pod, QueuedPodInfo)
        queued_pod.unschedulable_plugins = frozenset({plugin.name})
        queue.add_unschedulable_if_not_present(queued_pod, 100)
    return queue


@pytest.mark.parametrize(
    ("per_signature", "color", "expected"),
    [
        pytest.param(True, "red", ["a", "other"], id="SKIP counts for all equal pods"),
        pytest.param(True, "blue", ["a", "other"], id="QUEUE counts for all equal pods"),
        pytest.param(False, "red", ["a", "b", "c", "other"], id="a hint that may depend on more is called for each"),
    ],
)
def test_the_pods_for_which_a_hint_is_called(per_signature: bool, color: str, expected: list[str]) -> None:
    plugin = NodeHintPlugin("Hints", per_signature=per_signature)
    pods = [*(make_pod(name, labels={"color": color}) for name in "abc"), make_pod("other", labels={"color": "green"})]
    queue = reject_pods(plugin, pods)
    queue.move_all_to_active_or_backoff_queue(NODE_ADD, 120)
    assert plugin.called_for == expected
    assert queue.count_pending_pods()["unschedulable"] == (1 if color == "blue" else 4)


def test_a_hint_is_called_for_each_pod_with_a_deferred_resize() -> None:
    plugin = NodeHintPlugin("Hints", per_signature=True)
    queue = reject_pods(plugin, [make_pod("waiting"), *(make_pod(name, node="n") for name in "ab")])
    queue.move_all_to_active_or_backoff_queue(NODE_ADD, 120)
    assert plugin.called_for == ["waiting", "a", "b"]


def test_a_waiting_pod_that_changes_is_no_longer_equal() -> None:
    plugin = NodeHintPlugin("Hints", per_signature=True)
    pods = [make_pod(name, labels={"color": "red"}) for name in "abc"]
    queue = reject_pods(plugin, pods)
    changed_pod = replace(pods[1], metadata=replace(pods[1].metadata, labels={"color": "blue"}))
    queue.update(make_pod_info(changed_pod), (), 110)
    queue.move_all_to_active_or_backoff_queue(NODE_ADD, 120)
    assert plugin.called_for == ["a", "b"]
    assert queue.count_pending_pods()["unschedulable"] == 2
