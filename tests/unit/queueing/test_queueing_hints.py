"""The queueing strategy that the hints of a pod's plugins select."""

import sys
from dataclasses import replace
from typing import Any

import pytest

from extender.app import wiring
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_36, RELEASE_1_37, Release
from extender.framework.events import ActionType, ClusterEvent, EventResource, QueueingHint
from extender.queueing.queued_entities import QueuedPodInfo
from extender.queueing.queueing_hints import (
    EXTENDER_NAME,
    QueueingHints,
    QueueingStrategy,
    build_queueing_hint_map,
    make_default_events,
)
from tests.build import make_node, make_pod
from tests.unit.cycle.fakes import RejectingFilter, make_profile
from tests.unit.queueing.builders import NODE_ADD, POD_DELETE, NodeAddPlugin, make_pod_info

PROFILE = make_profile(NodeAddPlugin("NodeAdd"), RejectingFilter("AnyEvent"))
WEB = make_pod("web")
ACTIVATE_WEB = ClusterEvent(EventResource.ANY, ActionType.ALL, new=WEB, label_override="ForceActivate")
TIMEOUT = ClusterEvent(EventResource.ANY, ActionType.ALL, label_override="UnschedulableTimeout")
SKIP, AFTER_BACKOFF, IMMEDIATELY = QueueingStrategy


def make_queued_pod(*plugins: str, pending: tuple[str, ...] = (), name: str = "web") -> QueuedPodInfo:
    pod_info = make_pod_info(make_pod(name))
    return QueuedPodInfo(
        pod_info, timestamp=0, unschedulable_plugins=frozenset(plugins), pending_plugins=frozenset(pending)
    )


def test_plugins_without_registered_events_and_extenders_get_the_default_events() -> None:
    default_events = make_default_events(FeatureGates())
    hint_map = build_queueing_hint_map(PROFILE, default_events)
    assert [(event.resource, event.action) for event in hint_map["NodeAdd"]] == [(EventResource.NODE, ActionType.ADD)]
    assert hint_map["AnyEvent"] == hint_map[EXTENDER_NAME] == default_events


@pytest.mark.parametrize("release", [RELEASE_1_36, RELEASE_1_37])
@pytest.mark.parametrize("plugin", ["AnyEvent", EXTENDER_NAME])
def test_most_events_requeue_pods_of_plugins_without_registered_events(plugin: str, release: Release) -> None:
    """The resources without an event here are those that requeued no pod in a run of kube-scheduler.

    Source: pkg/scheduler/framework/types.go, UnrollWildCardResource (1.36).
    """
    profile = replace(PROFILE, gates=FeatureGates({"GenericWorkload": True}, release))
    hints, pod = QueueingHints({"default-scheduler": profile}), make_queued_pod(plugin)
    strategies = {
        resource.value: hints.is_pod_worth_requeuing(pod, ClusterEvent(resource, ActionType.UPDATE))
        for resource in EventResource
    }
    assert [resource for resource, strategy in strategies.items() if strategy is SKIP] == [
        "storage.k8s.io/VolumeAttachment",
        "resource.k8s.io/ResourceSlice",
        "scheduling.k8s.io/CompositePodGroup",
        "*",
    ]


@pytest.mark.parametrize(
    ("release", "name", "is_requeued"),
    [
        (RELEASE_1_36, "NodeResourcesFit", True),
        (RELEASE_1_36, "VolumeBinding", True),
        (RELEASE_1_36, "SchedulingGates", False),
        (RELEASE_1_36, "TaintToleration", False),
        (RELEASE_1_37, "NodeResourcesFit", False),
    ],
    ids=["new nodes", "new nodes and more", "no nodes", "a hint for taints", "1.37"],
)
def test_in_1_36_a_taint_update_requeues_pods_of_plugins_that_registered_for_new_nodes(
    release: Release, name: str, *, is_requeued: bool
) -> None:
    """TaintToleration registers for this update itself, and its hint sees that the pod does not tolerate the taint.

    Source: pkg/scheduler/scheduler.go, buildQueueingHintMap (1.36).
    """
    profile = wiring.build_setup(gates=FeatureGates(release=release)).first_profile
    old, new = make_node("n"), make_node("n", taints=[{"key": "k", "effect": "NoSchedule"}])
    event = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_TAINT, old, new)
    strategy = QueueingHints({"default-scheduler": profile}).is_pod_worth_requeuing(make_queued_pod(name), event)
    assert strategy is (AFTER_BACKOFF if is_requeued else SKIP)


@pytest.mark.parametrize(
    ("queued_pod", "event", "strategy"),
    [
        pytest.param(make_queued_pod(), POD_DELETE, AFTER_BACKOFF, id="no plugin rejected it: an error"),
        pytest.param(make_queued_pod("NodeAdd"), NODE_ADD, AFTER_BACKOFF, id="a registered event"),
        pytest.param(make_queued_pod("NodeAdd"), POD_DELETE, SKIP, id="another event"),
        pytest.param(make_queued_pod("NodeAdd", "AnyEvent"), POD_DELETE, AFTER_BACKOFF, id="one of two plugins"),
        pytest.param(make_queued_pod(pending=("NodeAdd",)), NODE_ADD, IMMEDIATELY, id="a pending plugin"),
        pytest.param(
            make_queued_pod("AnyEvent", pending=("NodeAdd",)), POD_DELETE, AFTER_BACKOFF, id="not the pending"
        ),
        pytest.param(
            make_queued_pod("AnyEvent", pending=("NodeAdd",)), NODE_ADD, IMMEDIATELY, id="a pending and another"
        ),
        pytest.param(
            make_queued_pod("NodeAdd", pending=("AnyEvent",)), NODE_ADD, IMMEDIATELY, id="another and a pending"
        ),
        pytest.param(make_queued_pod("NodeAdd"), TIMEOUT, AFTER_BACKOFF, id="the wildcard event for all pods"),
        pytest.param(make_queued_pod("NodeAdd"), ACTIVATE_WEB, AFTER_BACKOFF, id="the wildcard event for this pod"),
        pytest.param(make_queued_pod("NodeAdd", name="db"), ACTIVATE_WEB, SKIP, id="the one for another pod"),
    ],
)
def test_the_rejecting_plugins_select_the_strategy(
    queued_pod: QueuedPodInfo, event: ClusterEvent, strategy: QueueingStrategy
) -> None:
    """Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.isPodWorthRequeuing (1.36)."""
    hints = QueueingHints({"default-scheduler": PROFILE})
    assert hints.is_pod_worth_requeuing(queued_pod, event) is strategy


def test_any_event_requeues_a_pod_without_a_profile() -> None:
    hints = QueueingHints({"other-scheduler": PROFILE})
    assert hints.is_pod_worth_requeuing(make_queued_pod("NodeAdd"), POD_DELETE) is AFTER_BACKOFF


@pytest.mark.parametrize(
    ("queued_pod", "events", "strategy"),
    [
        pytest.param(make_queued_pod("NodeAdd"), [], SKIP, id="no event"),
        pytest.param(make_queued_pod("NodeAdd"), [POD_DELETE, POD_DELETE], SKIP, id="useless events"),
        pytest.param(make_queued_pod("NodeAdd"), [POD_DELETE, NODE_ADD], AFTER_BACKOFF, id="the last event helps"),
        pytest.param(make_queued_pod("NodeAdd"), [NODE_ADD, POD_DELETE], AFTER_BACKOFF, id="the first event helps"),
        pytest.param(
            make_queued_pod("AnyEvent", pending=("NodeAdd",)), [POD_DELETE, NODE_ADD], IMMEDIATELY, id="more and more"
        ),
        pytest.param(
            make_queued_pod("AnyEvent", pending=("NodeAdd",)), [NODE_ADD, POD_DELETE], IMMEDIATELY, id="less and less"
        ),
    ],
)
def test_several_events_select_the_maximum_strategy(
    queued_pod: QueuedPodInfo, events: list[ClusterEvent], strategy: QueueingStrategy
) -> None:
    hints = QueueingHints({"default-scheduler": PROFILE})
    assert hints.get_strategy_for_events(queued_pod, events) is strategy


@pytest.mark.parametrize("pending", [(), ("NodeAdd",)], ids=["rejected", "pending"])
def test_no_hint_is_called_after_the_strategy_is_decided(pending: tuple[str, ...]) -> None:
    """A pod in flight may miss thousands of events."""
    called_events: list[ClusterEvent] = []
    plugin = NodeAddPlugin("NodeAdd")
    plugin.hint = lambda _pod, event: called_events.append(event) or QueueingHint.QUEUE
    hints = QueueingHints({"default-scheduler": make_profile(plugin)})
    hints.get_strategy_for_events(make_queued_pod("NodeAdd", pending=pending), [NODE_ADD] * 3)
    assert called_events == [NODE_ADD]


def test_hints_are_observed_with_their_outcome() -> None:
    observed: list[tuple[str, str, str]] = []
    plugin = NodeAddPlugin("NodeAdd")
    plugin.hint = lambda pod, event: 1 / 0
    hints = QueueingHints(
        {"default-scheduler": make_profile(plugin)},
        lambda plugin, event, outcome, _: observed.append((plugin, event, outcome)),
    )
    hints.is_pod_worth_requeuing(make_queued_pod("NodeAdd"), NODE_ADD)
    assert observed == [("NodeAdd", "NodeAdd", "Error")]


def test_an_event_without_a_hint_is_observed() -> None:
    """Source: pkg/scheduler/scheduler.go, defaultQueueingHintFn (1.36)."""
    observed: list[tuple[str, str, str]] = []
    plugin = NodeAddPlugin("NodeAdd")
    plugin.hint = None
    hints = QueueingHints(
        {"default-scheduler": make_profile(plugin)},
        lambda plugin, event, outcome, _: observed.append((plugin, event, outcome)),
    )
    assert hints.is_pod_worth_requeuing(make_queued_pod("NodeAdd"), NODE_ADD) is AFTER_BACKOFF
    assert observed == [("NodeAdd", "NodeAdd", "Queue")]


def test_the_first_failure_of_the_hints_of_a_plugin_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    plugin = NodeAddPlugin("NodeAdd")
    plugin.hint = lambda pod, event: dict[str, Any]()["zone"]
    hints = QueueingHints({"default-scheduler": make_profile(plugin)})
    for _ in range(2):
        assert hints.is_pod_worth_requeuing(make_queued_pod("NodeAdd"), NODE_ADD) is AFTER_BACKOFF
    line = plugin.hint.__code__.co_firstlineno
    assert caplog.messages == [
        "running a queueing hint of plugin \"NodeAdd\": KeyError: 'zone' "
        f"(tests/unit/queueing/test_queueing_hints.py:{line}); a hint that fails requeues the pod"
    ]


@pytest.mark.parametrize("result", [True, None], ids=["a bool", "nothing"])
def test_a_result_that_is_no_hint_requeues_the_pod_and_is_described(
    result: object, caplog: pytest.LogCaptureFixture
) -> None:
    plugin = NodeAddPlugin("NodeAdd")
    plugin.hint = lambda pod, event: result
    hints = QueueingHints({"default-scheduler": make_profile(plugin)})
    assert hints.is_pod_worth_requeuing(make_queued_pod("NodeAdd"), NODE_ADD) is AFTER_BACKOFF
    described = "None" if result is None else "bool True"
    assert caplog.messages == [
        f'running a queueing hint of plugin "NodeAdd": returned {described}, '
        "want QueueingHint.QUEUE or QueueingHint.SKIP; a hint that fails requeues the pod"
    ]


def test_a_hint_that_exits_requeues_the_pod() -> None:
    plugin = NodeAddPlugin("NodeAdd")
    plugin.hint = lambda pod, event: sys.exit(3)
    hints = QueueingHints({"default-scheduler": make_profile(plugin)})
    assert hints.is_pod_worth_requeuing(make_queued_pod("NodeAdd"), NODE_ADD) is AFTER_BACKOFF


def test_an_event_is_of_interest_if_a_plugin_registered_for_it() -> None:
    hints = QueueingHints({"default-scheduler": make_profile(NodeAddPlugin("NodeAdd"))})
    assert hints.is_event_of_interest(NODE_ADD)  # extenders register for all events
    assert (
        hints.get_registered_events("default-scheduler", "Other")
        == hints.get_registered_events("other", "NodeAdd")
        == ()
    )
