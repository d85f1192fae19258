"""A queueing hint that is registered with `per_signature` is the same for all waiting pods with equal signatures.

So is `find_concerned`; the hint is SKIP for the pods that it leaves out.
"""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod
from extender.app import wiring
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_36, RELEASE_1_37
from extender.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, EventResource, QueueingHint
from extender.queueing.queueing_hints import build_queueing_hint_map
from tests.build import make_cluster, make_node, make_pod

REGISTRATIONS = {
    f"{name} {plugin} {event.resource.value}": event
    for name, release in (("1.36", RELEASE_1_36), ("1.37", RELEASE_1_37))
    for plugin, events in build_queueing_hint_map(
        wiring.build_setup(gates=FeatureGates({}, release)).first_profile
    ).items()
    for event in events
    if event.per_signature
}
KEYS, VALUES = st.sampled_from(["zone", "color", "disk"]), st.sampled_from(["a", "b"])
LABELS = st.dictionaries(KEYS, VALUES)
TAINTS = st.lists(st.fixed_dictionaries({"key": KEYS, "effect": st.sampled_from(["NoSchedule", "NoExecute"])}))
SELECTORS = st.builds(lambda labels: {"matchLabels": labels}, LABELS)
NAMESPACES = st.sampled_from(["default", "other"])
TERMS = st.lists(
    st.fixed_dictionaries(
        {"labelSelector": SELECTORS, "topologyKey": KEYS},
        optional={"namespaces": st.lists(NAMESPACES, max_size=1), "namespaceSelector": SELECTORS},
    ),
    max_size=2,
)
REQUIRED, DO_NOT_SCHEDULE = "requiredDuringSchedulingIgnoredDuringExecution", "DoNotSchedule"
CONSTRAINTS = st.lists(
    st.builds(
        lambda key, selector: {
            "maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": DO_NOT_SCHEDULE, "labelSelector": selector
        },
        KEYS, SELECTORS,
    ),
    max_size=1,
)  # fmt: skip


@st.composite
def equal_pods(draw: st.DrawFn) -> tuple[Pod, Pod]:
    """Make two pods that differ in what signatures leave out."""
    affinity = {"podAffinity": {REQUIRED: draw(TERMS)}, "podAntiAffinity": {REQUIRED: draw(TERMS)}}
    spec: dict[str, Any] = {
        "affinity": affinity,
        "nodeSelector": draw(LABELS),
        "tolerations": draw(st.lists(st.fixed_dictionaries({"key": KEYS, "operator": st.just("Exists")}))),
        "topologySpreadConstraints": draw(CONSTRAINTS),
    }
    requests = {"cpu": draw(st.sampled_from(["1", "3"]))}
    pod = make_pod("first", labels=draw(LABELS), requests=requests, spec=spec)
    other = replace(pod.metadata, name="second", uid="second", creation_timestamp="2026-01-02T03:04:05Z")
    return pod, replace(pod, metadata=other)


@st.composite
def nodes(draw: st.DrawFn) -> Node:
    allocatable = {"cpu": draw(st.sampled_from(["2", "4"])), "pods": "9"}
    return make_node(
        "n", labels=draw(LABELS), taints=draw(TAINTS), unschedulable=draw(st.booleans()), allocatable=allocatable
    )


def assigned_pods(namespace: str) -> st.SearchStrategy[Pod]:
    def make_assigned_pod(labels: dict[str, str], terms: list[dict[str, Any]]) -> Pod:
        spec = {"affinity": {"podAntiAffinity": {REQUIRED: terms}}}
        return make_pod("assigned", namespace=namespace, labels=labels, node="n", spec=spec)

    return st.builds(make_assigned_pod, LABELS, TERMS)


def draw_event(data: st.DataObject, registered: ClusterEventWithHint) -> ClusterEvent:
    is_node = registered.resource is EventResource.NODE
    objects = nodes() if is_node else assigned_pods(data.draw(NAMESPACES))
    resource = EventResource.NODE if is_node else EventResource.ASSIGNED_POD
    actions = [action for action in ActionType.__members__.values() if action & registered.action == action]
    action = data.draw(st.sampled_from([action for action in actions if action.value.bit_count() == 1]))
    old = None if action is ActionType.ADD else data.draw(objects)
    return ClusterEvent(resource, action, old, None if action is ActionType.DELETE else data.draw(objects))


@pytest.mark.parametrize("registered", REGISTRATIONS.values(), ids=REGISTRATIONS)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(pods=equal_pods(), data=st.data())
def test_hints_of_equal_pods_are_equal(
    registered: ClusterEventWithHint, pods: tuple[Pod, Pod], data: st.DataObject
) -> None:
    snapshot = make_cluster().snapshot()
    first, second = map(snapshot.make_pod_info, pods)
    assert first.signature is second.signature
    event = draw_event(data, registered)
    assert registered.hint is not None
    hint = registered.hint(first, event)
    assert registered.hint(second, event) is hint
    concerns = registered.find_concerned(event) if registered.find_concerned is not None else None
    if concerns is not None:
        assert concerns(first) is concerns(second)
        assert concerns(first) or hint is QueueingHint.SKIP


def test_the_plugins_of_most_waiting_pods_register_with_per_signature() -> None:
    plugins = {name.split()[1] for name in REGISTRATIONS}
    assert plugins == {
        "InterPodAffinity", "NodeAffinity", "NodeResourcesFit", "NodeUnschedulable", "PodTopologySpread",
        "TaintToleration",
    }  # fmt: skip
