"""The filter and the hints of NodeResourcesFit for pods on nodes whose in-place resize is deferred.

Source: pkg/scheduler/framework/plugins/noderesources/fit.go, adjustDeltasToAccomodateCacheDiscrepancy,
Fit.EventsToRegister (1.37).
"""

from typing import Any

import pytest

from extender.api.kinds.pod import Pod
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_37
from extender.framework.events import ActionType, ClusterEvent, EventResource
from extender.framework.plugin_args import PluginArgs
from extender.plugins.node_resources_fit.plugin import NodeResourcesFit, NodeResourcesFitArgs
from tests.build import make_cluster, make_node, make_pod

GPU = "example.com/gpu"
GATES = FeatureGates({"InPlacePodVerticalScalingSchedulerPreemption": True}, RELEASE_1_37)
DEFERRED = {"conditions": [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}]}
ALLOCATABLE = {"cpu": "4", "memory": "8Gi", "pods": "10", GPU: "2"}


def make_plugin() -> NodeResourcesFit:
    return NodeResourcesFit(PluginArgs(NodeResourcesFitArgs(), GATES))


def make_waiting_pod(requests: dict[str, str]) -> Pod:
    return make_pod("grows", node="own", requests=requests, status=DEFERRED)


CASES: dict[str, tuple[dict[str, str], dict[str, str], dict[str, str], dict[str, list[str]]]] = {
    "requests that count on the node already need no free amount": (
        {"cpu": "3"}, {"cpu": "3"}, {"cpu": "1"}, {"other": ["Insufficient cpu: Unschedulable"]},
    ),
    "a node whose pods request more than it has is rejected": (
        {"cpu": "3"}, {"cpu": "3"}, {"cpu": "2"},
        {"own": ["Insufficient cpu: Unschedulable"], "other": ["Insufficient cpu: Unschedulable"]},
    ),
    "only the increase over an old amount must be free": (
        {"cpu": "3"}, {"cpu": "2"}, {"cpu": "1"}, {"other": ["Insufficient cpu: Unschedulable"]},
    ),
    "an increase that is not free rejects the node": (
        {"cpu": "4"}, {"cpu": "2"}, {"cpu": "1"},
        {"own": ["Insufficient cpu: Unschedulable"], "other": ["Insufficient cpu: Unschedulable"]},
    ),
    "a request above the whole node is unresolvable although the increase is not": (
        {"cpu": "5"}, {"cpu": "2"}, {"cpu": "1"},
        {
            "own": ["Insufficient cpu: UnschedulableAndUnresolvable"],
            "other": ["Insufficient cpu: UnschedulableAndUnresolvable"],
        },
    ),
    "an old amount above the request leaves an increase of zero": (
        {"cpu": "1"}, {"cpu": "3"}, {"cpu": "1"}, {},
    ),
    "an extended resource without an increase is not checked": (
        {GPU: "2"}, {GPU: "2"}, {GPU: "1"}, {"other": [f"Insufficient {GPU}: Unschedulable"]},
    ),
    "an increase of an extended resource must be free": (
        {GPU: "2"}, {GPU: "1"}, {GPU: "1"},
        {"own": [f"Insufficient {GPU}: Unschedulable"], "other": [f"Insufficient {GPU}: Unschedulable"]},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("waiting", "counted", "used", "want"), CASES.values(), ids=CASES)
def test_filter(
    waiting: dict[str, str], counted: dict[str, str], used: dict[str, str], want: dict[str, list[str]]
) -> None:
    """Each node has another pod that uses *used*; the pod itself counts with *counted* on its node."""
    cluster = make_cluster(
        *(make_node(name, allocatable=ALLOCATABLE) for name in ("own", "other")),
        *(make_pod(f"peer-{name}", node=name, requests=used) for name in ("own", "other")),
        make_pod("peer-2", node="other", requests={"cpu": "1"}),
        make_waiting_pod(counted),
        gates=GATES,
    )
    snapshot, plugin = cluster.snapshot(), make_plugin()
    pod = snapshot.make_pod_info(make_waiting_pod(waiting))
    state = plugin.pre_filter(pod, snapshot).state
    found: dict[str, list[str]] = {}
    for mask, reason in plugin.filter(pod, snapshot.view(), state):
        for name, is_rejected in zip(snapshot.names, mask.tolist(), strict=True):
            if is_rejected:
                found.setdefault(name, []).append(f"{reason.text}: {reason.code.label}")
    assert found == want
    assert plugin.filter_cache_key(pod) is None


def change(before: Pod | None, after: Pod | None, resource: EventResource, action: ActionType) -> str | None:
    """Return the hint for a pod on the node `own`; None if the plugin does not register for the event."""
    pod = make_cluster(gates=GATES).snapshot().make_pod_info(make_waiting_pod({"cpu": "3"}))
    event = ClusterEvent(resource, action, before, after)
    hints = [entry.hint(pod, event).value for entry in make_plugin().events_to_register()
             if entry.matches(event) and entry.hint]  # fmt: skip
    return hints[0] if hints else None


def make_peer(node: str, cpu: str | None = "1") -> Any:
    return make_pod("peer", node=node, requests={"cpu": cpu}) if cpu is not None else None


def test_only_changes_of_pods_on_its_node_queue_the_pod() -> None:
    assigned = EventResource.ASSIGNED_POD
    results = {
        (name, node): change(make_peer(node, before), make_peer(node, after), assigned, action)
        for name, action, before, after in (
            ("deleted", ActionType.DELETE, "1", None),
            ("scaled down", ActionType.UPDATE_POD_SCALE_DOWN, "2", "1"),
            ("scaled up", ActionType.UPDATE_POD_SCALE_UP, "1", "2"),
        )
        for node in ("own", "other")
    }
    assert results == {
        ("deleted", "own"): "Queue",
        ("deleted", "other"): "QueueSkip",
        ("scaled down", "own"): "Queue",
        ("scaled down", "other"): "QueueSkip",
        ("scaled up", "own"): "Queue",
        ("scaled up", "other"): "QueueSkip",
    }


def test_only_its_node_queues_the_pod_when_it_grows() -> None:
    for name, want in (("own", "Queue"), ("other", "QueueSkip")):
        old, new = make_node(name), make_node(name, allocatable={"cpu": "8", "pods": "110"})
        assert change(old, new, EventResource.NODE, ActionType.UPDATE_NODE_ALLOCATABLE) == want  # type: ignore[arg-type]


def test_scale_ups_are_not_registered_without_the_gate() -> None:
    plugin = NodeResourcesFit(PluginArgs(NodeResourcesFitArgs(), FeatureGates(release=RELEASE_1_37)))
    event = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.UPDATE_POD_SCALE_UP)
    assert not any(entry.matches(event) for entry in plugin.events_to_register())
