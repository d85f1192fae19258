"""The cluster events of the changes in a scenario, and what the queueing hints of extender say about pending pods."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from extender.analysis.recorded_cluster import parse_recording
from extender.api.kinds.devices import DeviceClass
from extender.api.kinds.pod import Pod
from extender.api.kinds.pod_group import CompositePodGroup, PodGroup
from extender.cache.cache import Cache
from extender.cache.default_selector import determine_default_selector
from extender.cache.device_classes import map_resources_to_device_classes
from extender.config.feature_gates import FeatureGates
from extender.framework.events import ActionType, ClusterEvent, EventResource, make_pod_event
from extender.framework.profiles import Profile
from extender.queueing.pod_group_queue import WorkloadForest
from extender.queueing.queueing_hints import EXTENDER_NAME, build_queueing_hint_map
from extender.scheduler.event_handlers import find_node_events, find_pod_events

_PODS: Final = (EventResource.ASSIGNED_POD, EventResource.TARGET_POD)


def ask_hints(
    changes: Sequence[dict[str, Any]], cache: Cache, profile: Profile, gates: FeatureGates, pods: Sequence[Pod]
) -> list[dict[str, Any]]:
    """Return for each change the labels of its events, and the hints by label, plugin and pod."""
    registered = {name: events for name, events in build_queueing_hint_map(profile).items() if name != EXTENDER_NAME}
    snapshot = cache.snapshot()
    forest = _make_forest(cache, gates)
    device_resources = frozenset(map_resources_to_device_classes(snapshot.objects(DeviceClass).values()))
    answers: list[dict[str, Any]] = []
    for change in changes:
        events = _find_events(change, gates, device_resources)
        if forest.composite_groups:
            events = [replace(event, hierarchy=forest.find_hierarchy(event)) for event in events]
        hints: dict[str, dict[str, dict[str, str]]] = {}
        for event in events:
            for pod in _select_pods(change, event, pods):
                pod_info = snapshot.make_pod_info(pod)
                determine_default_selector(pod_info, snapshot)  # as in the attempt that rejected the pod
                for plugin, registrations in registered.items():
                    for registration in registrations:
                        if registration.matches(event):
                            hint = "Queue" if registration.hint is None else registration.hint(pod_info, event).value
                            by_pod = hints.setdefault(event.label, {}).setdefault(plugin, {})
                            by_pod[pod.key] = f"{by_pod.get(pod.key, '')}{hint};"
        answers.append({"labels": [event.label for event in events], "hints": hints})
    return answers


def _make_forest(cache: Cache, gates: FeatureGates) -> WorkloadForest:
    """Return the trees of pod groups of the queue, which knows the groups of the cache."""
    forest = WorkloadForest(composite_groups="CompositePodGroup" in gates)
    snapshot = cache.snapshot()
    groups: list[PodGroup | CompositePodGroup] = [*snapshot.objects(PodGroup).values()]
    for group in [*groups, *snapshot.objects(CompositePodGroup).values()]:
        forest.put(group)
    return forest


def _select_pods(change: dict[str, Any], event: ClusterEvent, pods: Sequence[Pod]) -> Sequence[Pod]:
    """Return the pods whose hints are asked; for an update of a pending pod only that pod, as it is now."""
    if not change.get("target"):
        return pods
    return [event.new for pod in pods if pod.metadata.uid == event.new.metadata.uid]


def _find_events(change: dict[str, Any], gates: FeatureGates, device_resources: frozenset[str]) -> list[ClusterEvent]:
    """Return the events of a change as the event handlers make them."""
    old, new = (_decode(change.get(side)) for side in ("old", "new"))
    name = change["resource"].replace("UnschedulablePod", "UnscheduledPod")  # its name in 1.36
    resource, action = EventResource(name), ActionType[change["action"].upper()]
    events = [ClusterEvent(resource, action, old, new)]
    if resource is EventResource.UNSCHEDULED_POD:
        events = [make_pod_event(gates.release, resource, action, old, new)]
    if action is ActionType.UPDATE and resource is EventResource.NODE:
        events = find_node_events(old, new, gates)
    elif action is ActionType.UPDATE and resource in _PODS:
        events = find_pod_events(old, new, gates)
    if resource is EventResource.NODE:
        return [replace(event, device_resources=device_resources) for event in events]
    return events


def _decode(raw: dict[str, Any] | None) -> Any:
    if raw is None:
        return None
    document = {"apiVersion": "v1", "kind": "List", "items": [raw]}
    (decoded,) = parse_recording(json.dumps(document).encode(), "event").objects
    return decoded
