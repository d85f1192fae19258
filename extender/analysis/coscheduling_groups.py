"""Pod groups of the coscheduling plugin in a recorded cluster: as pod groups with the priority of their pods."""

import dataclasses
from collections.abc import Iterable

from extender.analysis.recorded_cluster import Recording
from extender.api.coscheduling import make_pod_group, set_scheduling_group
from extender.api.kinds.meta import KubernetesObject
from extender.api.kinds.pod import Pod
from extender.api.kinds.pod_group import CoschedulingPodGroup, PodGroup
from extender.cache.pod_groups import get_pod_group_key
from extender.config.feature_gates import FeatureGates, get_scheduling_defaults


def convert_coscheduling_groups(recording: Recording, gates: FeatureGates) -> Recording:
    """Return *recording* with its groups of the coscheduling plugin as pod groups, if *gates* schedule these.

    The labels of the pods replace `spec.schedulingGroup`, and other pod groups are left out. A pod group has the
    priority of its first pod.
    """
    if not gates.coscheduling:
        return recording
    objects = [set_scheduling_group(obj) if isinstance(obj, Pod) else obj for obj in recording.objects]
    priorities: dict[str, int | None] = {}
    for pod in objects:
        if isinstance(pod, Pod) and (key := get_pod_group_key(pod)) is not None:
            priorities.setdefault(key, pod.spec.priority)

    def convert(obj: KubernetesObject) -> KubernetesObject:
        if not isinstance(obj, CoschedulingPodGroup):
            return obj
        return make_pod_group(obj, priorities.get(f"{obj.metadata.namespace}/{obj.metadata.name}"))

    converted_objects = tuple(convert(obj) for obj in objects if not isinstance(obj, PodGroup))
    return dataclasses.replace(recording, objects=converted_objects)


def describe_unused_groups(recording: Recording, gates: FeatureGates) -> str:
    """Return a sentence about groups of the coscheduling plugin that have no effect; empty if there are none."""
    count = sum(isinstance(obj, CoschedulingPodGroup) for obj in recording.objects)
    if not count or gates.coscheduling:
        return ""
    groups = "1 PodGroup" if count == 1 else f"{count} PodGroups"
    return (
        f"{groups} of scheduling.x-k8s.io without effect; enable the plugin Coscheduling in a configuration and pass it"
        " with --config"
    )


def describe_ungated_members(pods: Iterable[Pod], gates: FeatureGates) -> str:
    """Return a sentence about pods that are scheduled without their pod groups; empty if there are none."""
    if "GenericWorkload" in gates:
        return ""
    count = sum(pod.spec.scheduling_group is not None for pod in pods)
    members = "1 pod is a member" if count == 1 else f"{count} pods are members"
    known_gates = get_scheduling_defaults(gates.release)
    flag = ",".join(f"{gate}=true" for gate in ("GenericWorkload", "GangScheduling") if gate in known_gates)
    advice = f"pass --feature-gates {flag} if their scheduler has it"
    return f"{members} of pod groups, which have no effect here; {advice}" if count else ""
