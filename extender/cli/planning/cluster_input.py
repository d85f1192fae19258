"""The pods of the planning commands: those in the files of flags, and the waiting pods that `rebalance --for` names.

The other objects in the files are added to the cluster.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from extender.analysis.coscheduling_groups import convert_coscheduling_groups
from extender.analysis.input.input_errors import InputError, InputErrorLine, SourceLocation
from extender.analysis.pending_pods import find_pods
from extender.analysis.pod_selection import PodSelection
from extender.analysis.priority_classes import find_unknown_priority_classes
from extender.analysis.recorded_cluster import Recording, read_recording
from extender.analysis.required_kinds import describe_missing_budgets, describe_missing_kinds
from extender.analysis.text_table import join_first
from extender.answers.planning import ScenarioOutcome
from extender.api.defaulting import set_priority
from extender.api.kinds.disruption import PriorityClass
from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod
from extender.cache.cache import Cache
from extender.cache.pod_groups import get_pod_group_key
from extender.cli.recording_options import Cluster
from extender.cli.terminal import write_error
from extender.config.did_you_mean import did_you_mean
from extender.framework.profiles import Profile


@dataclass(frozen=True, slots=True)
class ReplicatedPod:
    """A pod of a file, and the number of pods that its workload has.

    Attributes:
        pod: the first pod of the workload, or the pod itself.
        replicas: the number of pods of the workload; 1 for a pod without a workload.
    """

    pod: Pod
    replicas: int = 1


def warn_about_missing_budgets(cluster: Cluster, *, drains_nodes: bool) -> None:
    """Print a warning if the answer to a drain rests on disruption budgets that were not read."""
    note = describe_missing_budgets(cluster.recording.recorded_kinds, cluster.recording.unreadable_kinds)
    if drains_nodes and note:
        write_error(note)


def describe_kinds_of_outcome(
    recording: Recording, profiles: Mapping[str, Profile], outcome: ScenarioOutcome, *, drains_nodes: bool
) -> list[str]:
    """Return a line for each kind that was not read although the nodes of pods in *outcome* depend on it."""
    keys = {moved_pod.pod for moved_pod in outcome.moved} | {waiting_pod.pod for waiting_pod in outcome.waiting}
    pods = (item for item in recording.objects if isinstance(item, Pod) and item.key in keys)
    preempts = bool(outcome.evicted) and not drains_nodes
    return describe_missing_kinds(
        pods, profiles, recording.recorded_kinds, recording.unreadable_kinds, preempts=preempts
    )


def read_replicated_pods(files: Iterable[str], cluster: Cluster) -> list[ReplicatedPod]:
    """Read pods, with the priorities of the cluster's PriorityClasses. Pods of one controller become one entry.

    Raises:
        InputError: a file is invalid, contains no pod, or has a pod of a scheduler without a profile.
    """
    return group_replicated_pods(read_pods(files, cluster))


def group_replicated_pods(pods: Iterable[Pod]) -> list[ReplicatedPod]:
    """Return one entry for the pods of each controller, and one for each other pod."""
    replicated_pods: dict[tuple[str, str], ReplicatedPod] = {}
    for number, pod in enumerate(pods):
        owner = pod.metadata.controller
        key = (owner.kind, f"{pod.metadata.namespace}/{owner.name}") if owner else ("", str(number))
        first = replicated_pods.get(key)
        replicated_pods[key] = ReplicatedPod(pod) if first is None else ReplicatedPod(first.pod, first.replicas + 1)
    return list(replicated_pods.values())


def read_pods(files: Iterable[str], cluster: Cluster) -> list[Pod]:
    """Read the pods of all *files*; see `read_replicated_pods`.

    Other objects in the files, such as the claims of the pods, are added to the cluster if it does not have them.
    """
    return select_pods((read_recording([file]) for file in files), cluster)


def select_pods(recordings: Iterable[Recording], cluster: Cluster) -> list[Pod]:
    """Return the pods of all *recordings*; see `read_pods`.

    Raises:
        InputError: a recording contains no pod, or has a pod of a scheduler without a profile.
    """
    pods: list[Pod] = []
    errors: list[InputErrorLine] = []
    recordings = list(recordings)
    priority_classes = _get_priority_classes([*recordings, cluster.recording]) if recordings else {}
    for file_recording in recordings:
        objects = tuple(set_priority(obj, priority_classes) for obj in file_recording.objects)
        recording = convert_coscheduling_groups(replace(file_recording, objects=objects), cluster.setup.gates)
        location = SourceLocation(join_first(recording.sources))
        errors += find_unknown_priority_classes(recording, cluster.recording)
        recorded_pods = [obj for obj in recording.objects if isinstance(obj, Pod)]
        if not recorded_pods:
            kinds = ", ".join(recording.skipped_kinds or {type(obj).__name__: 1 for obj in recording.objects})
            others = f", only {kinds}" if kinds else ""  # a daemon set has no pod without nodes
            errors.append(InputErrorLine(location, f"holds no pod{others}; name a file with a pod"))
        profiles = cluster.setup.profiles
        pods_without_profile = (pod for pod in recorded_pods if pod.spec.scheduler_name not in profiles)
        errors += [_make_scheduler_error(pod, location, profiles) for pod in pods_without_profile]
        pods += recorded_pods
        _add_other_objects(recording, cluster.cache)
    if errors:
        raise InputError(errors)
    return pods


def _add_other_objects(recording: Recording, cache: Cache) -> None:
    for obj in recording.objects:
        if not isinstance(obj, Pod | Node) and cache.get_object(type(obj), obj.metadata.key) is None:
            cache.add_or_update_object(obj)


def _get_priority_classes(recordings: Iterable[Recording]) -> dict[str, PriorityClass]:
    objects = (obj for recording in recordings for obj in recording.objects)
    return {obj.metadata.name: obj for obj in objects if isinstance(obj, PriorityClass)}


def _make_scheduler_error(pod: Pod, location: SourceLocation, profiles: Mapping[str, object]) -> InputErrorLine:
    names = ", ".join(profiles)
    message = f'"{pod.spec.scheduler_name}" has no profile; want {names}, or pass its configuration with --config'
    return InputErrorLine(location, message, f"Pod {pod.key}", "spec.schedulerName")


_GROUP_ALIASES: Final = ("podgroup", "podgroups")


def find_target_pods(selection: PodSelection, cluster: Cluster) -> list[Pod]:
    """Return the waiting pods that the names of *selection* mean, each once.

    Raises:
        InputError: a pod, a workload or a group is unknown, or has no waiting pod.
    """
    profiles = cluster.setup.profiles
    group_names = [name for name in selection.names if name.partition("/")[0].lower() in _GROUP_ALIASES]
    other_names = [name for name in selection.names if name not in group_names]
    pods = find_pods(other_names, cluster.recording, list(profiles), selection.namespace)
    errors = [
        InputErrorLine(SourceLocation("--for"), f"is on node {pod.spec.node_name} already", f"Pod {pod.key}")
        for pod in pods
        if pod.spec.node_name
    ]
    for name in group_names:
        members = _find_group(name.partition("/")[2], selection.namespace, cluster)
        pods += members
        if not members:
            errors.append(InputErrorLine(SourceLocation("--for"), _make_group_message(name, cluster)))
    if errors:
        raise InputError(errors)
    return list({pod.key: pod for pod in pods}.values())


def _find_group(name: str, namespace: str, cluster: Cluster) -> list[Pod]:
    """Return the waiting members of the group `name` or `namespace/name`."""
    return [
        pod
        for pod in cluster.cache.pending_pods.values()
        if pod.spec.scheduler_name in cluster.setup.profiles
        and (key := get_pod_group_key(pod)) is not None
        and (name == key or (name == key.partition("/")[2] and namespace in {"", pod.metadata.namespace}))
    ]


def _make_group_message(name: str, cluster: Cluster) -> str:
    keys = [get_pod_group_key(pod) for pod in cluster.cache.pending_pods.values()]
    names = sorted({f"podgroup/{key.partition('/')[2]}" for key in keys if key is not None})
    return f"{name}: no waiting pod is in this group{did_you_mean(name, names)}"
