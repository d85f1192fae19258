"""Pre-queueing hints: only the pods that an event may concern are considered (gate SchedulerPreQueueingHints).

Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.runPreQueueingHintPlugins;
pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.preQueueingHint (1.37).
"""

import sys
from dataclasses import replace
from typing import Any

import pytest

from extender.app import wiring
from extender.cache.pod_info import PodInfo
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_36, RELEASE_1_37
from extender.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, EventResource, QueueingHint
from extender.queueing.entity_queues import QueueSettings
from extender.queueing.pod_group_queue import make_scheduling_queue
from extender.queueing.queueing_hints import QueueingHints
from extender.queueing.unschedulable_entities import PodRejection
from tests.build import make_pod
from tests.unit.cycle.fakes import RejectingFilter, make_profile
from tests.unit.dra.builders import make_allocated_claim, make_claim
from tests.unit.queueing.builders import make_pod_info

GATE = "SchedulerPreQueueingHints"


def make_waiting_pod(name: str, claim: str) -> PodInfo:
    return make_pod_info(make_pod(name, spec={"resourceClaims": [{"name": "c", "resourceClaimName": claim}]}))


FREE, ALLOCATED = make_claim("one", {"r": {}}), make_allocated_claim("one", ["d0"])
EVENTS: dict[str, tuple[ActionType, Any, Any, str, list[str]]] = {
    "a new claim concerns the pods that use it": (ActionType.ADD, None, FREE, "narrowed", ["uses"]),
    "an allocated claim concerns the pods that use it": (ActionType.UPDATE, FREE, ALLOCATED, "narrowed", ["uses"]),
    "a deleted claim without allocation concerns them too": (ActionType.DELETE, FREE, None, "narrowed", []),
    "a claim that lost its allocation concerns all pods": (
        ActionType.UPDATE, ALLOCATED, FREE, "all_pods", ["other", "uses"]
    ),
    "a deleted claim with an allocation concerns all pods": (
        ActionType.DELETE, ALLOCATED, None, "all_pods", ["other", "uses"]
    ),
}  # fmt: skip


def find_moved_pods(event: ClusterEvent, *, gate: bool) -> tuple[list[str], list[tuple[str, str]], list[str]]:
    """Return the pods that *event* moves, the pre-queueing hints, and the plugins whose hints ran."""
    gates = FeatureGates({GATE: gate}, RELEASE_1_37)
    pre_hints: list[tuple[str, str]] = []
    hints: list[str] = []
    queue = make_scheduling_queue(
        wiring.build_setup(gates=gates).profiles,
        lambda *_: None,
        QueueSettings(),
        on_hint=lambda plugin, *_: hints.append(plugin),
        on_pre_hint=lambda *result: pre_hints.append(result),
    )
    for name, claim in (("uses", "one"), ("other", "two")):
        queue.add(make_waiting_pod(name, claim), 100)
        (pod,) = queue.pop().pods  # type: ignore[union-attr]
        pod.unschedulable_plugins = frozenset({"DynamicResources"})
        queue.add_unschedulable_if_not_present(pod, 100)
    before = {entity.key for entity in queue._queues.unschedulable_entities}
    queue.move_all_to_active_or_backoff_queue(event, 101)
    moved = before - {entity.key for entity in queue._queues.unschedulable_entities}
    return sorted(key.rpartition("/")[2] for key in moved), pre_hints, hints


@pytest.mark.parametrize(("action", "old", "new", "result", "moved"), EVENTS.values(), ids=EVENTS)
def test_the_pods_of_a_claim_event(action: ActionType, old: Any, new: Any, result: str, moved: list[str]) -> None:
    event = ClusterEvent(EventResource.RESOURCE_CLAIM, action, old, new)
    with_gate, without_gate = (find_moved_pods(event, gate=gate) for gate in (True, False))
    assert with_gate[:2] == (moved, [("DynamicResources", result)])
    assert without_gate[:2] == (moved, [])
    assert len(with_gate[2]) == len(without_gate[2]) == (1 if result == "narrowed" else 2)


WAITING_PODS = {
    "uses": make_waiting_pod("uses", "one"),
    "other": make_waiting_pod("other", "two"),
    **{
        name: make_pod_info(
            make_pod(
                name,
                namespace=namespace,
                spec={"resourceClaims": [{"name": "c", "resourceClaimTemplateName": "t"}]},
                status={"resourceClaimStatuses": statuses},
            )
        )
        for name, namespace, statuses in (
            ("generated", "default", [{"name": "c", "resourceClaimName": "one"}]),
            ("of another name", "default", [{"name": "d", "resourceClaimName": "one"}]),
            ("not generated", "default", []),
            ("in another namespace", "other", [{"name": "c", "resourceClaimName": "one"}]),
        )
    },
}


@pytest.mark.parametrize(("action", "old", "new", "result", "_moved"), EVENTS.values(), ids=EVENTS)
def test_the_hint_is_skip_for_pods_that_a_claim_does_not_concern(
    action: ActionType, old: Any, new: Any, result: str, _moved: list[str]
) -> None:
    event = ClusterEvent(EventResource.RESOURCE_CLAIM, action, old, new)
    hints = QueueingHints(wiring.build_setup(gates=FeatureGates({}, RELEASE_1_37)).profiles)
    rejection = PodRejection("default-scheduler", frozenset({"DynamicResources"}), "")
    concerns = hints.find_concerned(event, rejection)
    assert (concerns is not None) is (result == "narrowed")
    if concerns is not None:
        assert [name for name, pod in WAITING_PODS.items() if concerns(pod)] == ["uses", "generated"]
        registered_events = hints.get_registered_events("default-scheduler", "DynamicResources")
        (hint,) = [each.hint for each in registered_events if each.matches(event) and each.hint is not None]
        skipped = [pod for pod in WAITING_PODS.values() if not concerns(pod)]
        assert {hint(pod, event) for pod in skipped} == {QueueingHint.SKIP}
    also_rejected_by_fit = rejection._replace(rejector_plugins=frozenset({"DynamicResources", "NodeResourcesFit"}))
    assert (hints.find_concerned(event, also_rejected_by_fit) is not None) is (result == "narrowed")


@pytest.mark.parametrize(
    "pre_hint",
    [lambda event: 1 / event.new, lambda event: sys.exit(3)],
    ids=["raises", "exits"],
)
def test_a_pre_queueing_hint_that_fails_concerns_all_pods(pre_hint: Any, caplog: pytest.LogCaptureFixture) -> None:
    class Broken(RejectingFilter):
        def events_to_register(self) -> tuple[ClusterEventWithHint, ...]:
            return (ClusterEventWithHint(EventResource.NODE, ActionType.ADD, None, pre_hint, find_concerned=pre_hint),)

    profile = replace(make_profile(Broken("Broken")), gates=FeatureGates({GATE: True}, RELEASE_1_37))
    hints = QueueingHints({"default-scheduler": profile})
    event = ClusterEvent(EventResource.NODE, ActionType.ADD)
    assert hints.find_filters(event) == []
    assert hints.find_concerned(event, PodRejection("default-scheduler", frozenset({"Broken"}), "")) is None
    (message,) = caplog.messages
    assert message.startswith('running a queueing hint of plugin "Broken": ')


@pytest.mark.parametrize(
    ("gates", "moved"),
    [
        (FeatureGates({GATE: True}, RELEASE_1_37), ["of-narrow"]),
        (FeatureGates({}, RELEASE_1_37), ["of-narrow", "of-other"]),
        (FeatureGates({}, RELEASE_1_36), ["of-narrow", "of-other"]),
    ],
    ids=["with the gate", "without the gate", "before the gate"],
)
def test_a_pre_queueing_hint_of_any_plugin_runs_only_with_the_gate(gates: FeatureGates, moved: list[str]) -> None:
    class Narrow(RejectingFilter):
        def events_to_register(self) -> tuple[ClusterEventWithHint, ...]:
            def concerns(pod: PodInfo) -> bool:
                return pod.pod.metadata.name == "of-narrow"

            return (ClusterEventWithHint(EventResource.NODE, ActionType.ADD, pre_hint=lambda event: concerns),)

    class Other(RejectingFilter):
        def events_to_register(self) -> tuple[ClusterEventWithHint, ...]:
            return (ClusterEventWithHint(EventResource.NODE, ActionType.ADD),)

    profile = replace(make_profile(Narrow("Narrow"), Other("Other")), gates=gates)
    queue = make_scheduling_queue({"default-scheduler": profile}, lambda *_: None, QueueSettings())
    for name, plugin in (("of-narrow", "Narrow"), ("of-other", "Other")):
        queue.add(make_pod_info(make_pod(name)), 100)
        (pod,) = queue.pop().pods  # type: ignore[union-attr]
        pod.unschedulable_plugins = frozenset({plugin})
        queue.add_unschedulable_if_not_present(pod, 100)
    queue.move_all_to_active_or_backoff_queue(ClusterEvent(EventResource.NODE, ActionType.ADD), 101)
    waiting = {entity.key.rpartition("/")[2] for entity in queue._queues.unschedulable_entities}
    assert sorted({"of-narrow", "of-other"} - waiting) == moved
