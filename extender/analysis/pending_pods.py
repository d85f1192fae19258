"""Select the pods to explain or simulate, and add the pending pods that have a nominated node to the nominator."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from extender.analysis.input.input_errors import InputError, InputErrorLine, SourceLocation
from extender.analysis.pod_selection import PodFinder, parse_workload_name, strip_pod_alias
from extender.analysis.recorded_cluster import Recording
from extender.analysis.text_table import join_first
from extender.api.kinds.pod import Pod
from extender.api.kinds.workload import ReplicaSet
from extender.cache.cache import Cache
from extender.cache.snapshot import Snapshot
from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.pre_enqueue import run_pre_enqueue_plugins
from extender.framework.extension_points import QueueSortEntry
from extender.framework.profiles import Profile

_FINISHED_PHASES: Final = ("Succeeded", "Failed")


def list_pending_pods(cache: Cache, scheduler_names: Iterable[str]) -> list[Pod]:
    """Return the pending pods of the named schedulers, in the order of the input files."""
    scheduler_name_set = frozenset(scheduler_names)
    return [
        pod
        for pod in cache.pending_pods.values()
        if pod.metadata.deletion_timestamp is None and pod.spec.scheduler_name in scheduler_name_set
    ]


def sort_by_queue_order(pods: Iterable[Pod], cache: Cache, profiles: Mapping[str, Profile]) -> list[Pod]:
    """Return *pods*, whose scheduler names have profiles, in the order of the QueueSort plugins. The sort is stable."""

    def make_sort_key(pod: Pod) -> tuple[float, ...]:
        queue_sort = profiles[pod.spec.scheduler_name].queue_sort
        return queue_sort.sort_key(QueueSortEntry(cache.make_pod_info(pod), 0.0, pod.spec.priority or 0))

    return sorted(pods, key=make_sort_key)


def list_pods_of_other_schedulers(recording: Recording, scheduler_names: Iterable[str]) -> list[Pod]:
    """Return the pending pods of schedulers that are not named, in the order of the input files."""
    scheduler_name_set = frozenset(scheduler_names)
    pods = {obj.key: obj for obj in recording.objects if isinstance(obj, Pod)}
    return [
        pod
        for pod in pods.values()
        if not pod.spec.node_name
        and not _find_reason_finished(pod)
        and pod.spec.scheduler_name not in scheduler_name_set
    ]


def find_pods(
    names: Sequence[str], recording: Recording, scheduler_names: Sequence[str], namespace: str = ""
) -> list[Pod]:
    """Return the named pods and the pods of the named workloads, each once, in the given order.

    Args:
        names: `namespace/name`, `name`, `pod/name`, `deployment/name` or `deployment/namespace/name`.
        recording: the recorded cluster.
        scheduler_names: the names of the configured schedulers.
        namespace: the namespace of names without one. Empty: a name means the pod in the default namespace, or else
            the only pod with this name.

    Raises:
        InputError: a pod is unknown, has finished, or is not a pod of one of these schedulers.
    """
    finder = PodFinder(
        (obj for obj in recording.objects if isinstance(obj, Pod)),
        (obj for obj in recording.objects if isinstance(obj, ReplicaSet)),
        recording.workload_pods,
    )
    location = SourceLocation(join_first(recording.sources))
    selected_pods: dict[str, Pod] = {}
    errors: list[InputErrorLine] = []
    for name in names:
        pods, message = finder.find(name, namespace)
        if message:
            errors.append(InputErrorLine(location, message, _format_object_name(name, namespace)))
        for pod in pods:
            reason = _find_reason_not_handled_by(pod, scheduler_names)
            selected_pods[pod.key] = pod
            if reason:
                errors.append(InputErrorLine(location, reason, f"Pod {pod.key}"))
    if errors:
        raise InputError(errors)
    return list(selected_pods.values())


def _format_object_name(text: str, namespace: str) -> str:
    workload = parse_workload_name(text, namespace)
    if workload is None:
        return f"Pod {strip_pod_alias(text)}"
    return f"{workload.kind} {f'{workload.namespace}/' if workload.namespace else ''}{workload.name}"


def _find_reason_finished(pod: Pod) -> str:
    """Return the reason why a pod is not scheduled any more; empty if it is pending or running."""
    if pod.status.phase in _FINISHED_PHASES:
        return f"has finished; its phase is {pod.status.phase}"
    if pod.metadata.deletion_timestamp is not None:
        return "is being deleted"
    return ""


def _find_reason_not_handled_by(pod: Pod, scheduler_names: Sequence[str]) -> str:
    """Return the reason why none of the schedulers handles the pod; empty if one of them does."""
    reason = _find_reason_finished(pod)
    if reason:
        return reason
    if pod.spec.scheduler_name not in scheduler_names:
        scheduler_name = pod.spec.scheduler_name
        problem = (
            f'waits for scheduler "{scheduler_name}"; the current configuration is for {", ".join(scheduler_names)}'
        )
        return f'{problem}; pass one for "{scheduler_name}" with --config'
    return ""


def nominate_pending_pods(cache: Cache, profile: Profile, runtime: PluginRuntime) -> None:
    """Add the profile's pending pods with a nominated node to the nominator.

    In release 1.36, only pods that pass PreEnqueue are added.

    Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.addPod (1.37).
    """
    with cache.read() as snapshot:
        nominated_pods = [
            pod
            for pod in list_pending_pods(cache, (profile.scheduler_name,))
            if pod.status.nominated_node_name
            and (profile.release.nominates_gated_pods or not _is_gated(pod, snapshot, profile, runtime))
        ]
    for pod in nominated_pods:
        cache.nominate(pod, pod.status.nominated_node_name)


def _is_gated(pod: Pod, snapshot: Snapshot, profile: Profile, runtime: PluginRuntime) -> bool:
    """Return whether a PreEnqueue plugin keeps *pod* out of the queue."""
    return run_pre_enqueue_plugins(snapshot.make_pod_info(pod), snapshot, profile, runtime) is not None
