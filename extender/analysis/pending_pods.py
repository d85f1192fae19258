"""Select the pods to explain or simulate, and nominate the pending pods that have a nominated node."""

from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Final

from extender.analysis.input_errors import InputError, InputErrorLine, SourceLocation
from extender.analysis.recorded_cluster import Recording
from extender.api.defaults import DEFAULT_NAMESPACE
from extender.api.kinds.pod import Pod
from extender.cache.cache import Cache
from extender.cache.snapshot import Snapshot
from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.pre_enqueue import run_pre_enqueue_plugins
from extender.framework.profiles import Profile

_FINISHED_PHASES: Final = ("Succeeded", "Failed")
_MAX_SUGGESTIONS: Final = 3


def list_pending_pods(cache: Cache, scheduler_names: Iterable[str]) -> list[Pod]:
    """Return the pending pods of the named schedulers, in file order."""
    scheduler_name_set = frozenset(scheduler_names)
    return [
        pod
        for pod in cache.pending_pods.values()
        if pod.metadata.deletion_timestamp is None and pod.spec.scheduler_name in scheduler_name_set
    ]


def count_pods_of_other_schedulers(recording: Recording, scheduler_names: Iterable[str]) -> Counter[str]:
    """Count the pending pods of other schedulers, by scheduler name."""
    scheduler_name_set = frozenset(scheduler_names)
    pods = {obj.key: obj for obj in recording.objects if isinstance(obj, Pod)}
    pending_scheduler_names = (pod.spec.scheduler_name for pod in pods.values() if not _find_reason_not_pending(pod))
    return Counter(name for name in pending_scheduler_names if name not in scheduler_name_set)


def find_pods(names: Sequence[str], recording: Recording, scheduler_names: Sequence[str]) -> list[Pod]:
    """Return the named pods, each once, in the given order.

    Args:
        names: `namespace/name`, or `name` in the default namespace or in the only namespace with such a pod.
        recording: the recorded cluster.
        scheduler_names: the names of the configured schedulers.

    Raises:
        InputError: a pod is unknown, or is not pending for one of these schedulers.
    """
    pods = {obj.key: obj for obj in recording.objects if isinstance(obj, Pod)}
    location = SourceLocation(", ".join(recording.sources))
    selected_pods: dict[str, Pod] = {}
    errors: list[InputErrorLine] = []
    for name in names:
        pod, message = _find_pod(name, pods)
        if pod is not None:
            message = _find_reason_not_schedulable(pod, scheduler_names)
            selected_pods[pod.key] = pod
        if message:
            errors.append(InputErrorLine(location, message, f"Pod {pod.key if pod else name}"))
    if errors:
        raise InputError(errors)
    return list(selected_pods.values())


def _find_pod(name: str, pods: dict[str, Pod]) -> tuple[Pod | None, str]:
    if "/" in name:
        pod = pods.get(name)
        return pod, "" if pod else _make_unknown_pod_message(name, {key: key for key in pods})
    pod = pods.get(f"{DEFAULT_NAMESPACE}/{name}")
    if pod is not None:
        return pod, ""
    keys = [key for key in pods if key.partition("/")[2] == name]
    if len(keys) == 1:
        return pods[keys[0]], ""
    if keys:
        return None, f"several pods have this name; want one of {', '.join(sorted(keys))}"
    return None, _make_unknown_pod_message(name, {key.partition("/")[2]: key for key in pods})


def _make_unknown_pod_message(name: str, keys_by_name: dict[str, str]) -> str:
    """Return the error for an unknown pod; suggest pods with an equal or similar name."""
    keys_in_other_namespaces = [key for key in keys_by_name if key.partition("/")[2] == name.partition("/")[2] != ""]
    similar_names = get_close_matches(name, keys_by_name, n=_MAX_SUGGESTIONS)
    suggestions = ", ".join(
        keys_by_name[match] for match in keys_in_other_namespaces[:_MAX_SUGGESTIONS] or similar_names
    )
    return f"there is no such pod; did you mean {suggestions}?" if suggestions else "there is no such pod"


def _find_reason_not_pending(pod: Pod) -> str:
    """Return the reason why a pod is not pending; empty if it is pending."""
    if pod.spec.node_name:
        return f"is on node {pod.spec.node_name} already; only pods without a node can be explained"
    if pod.status.phase in _FINISHED_PHASES:
        return f"is over, its phase is {pod.status.phase}"
    if pod.metadata.deletion_timestamp is not None:
        return "is being deleted"
    return ""


def _find_reason_not_schedulable(pod: Pod, scheduler_names: Sequence[str]) -> str:
    """Return the reason why no configured scheduler schedules the pod; empty if one does."""
    reason = _find_reason_not_pending(pod)
    if reason:
        return reason
    if pod.spec.scheduler_name not in scheduler_names:
        configured_schedulers = ", ".join(scheduler_names)
        advice = f"the configuration in force is for {configured_schedulers}; give its own with --config"
        return f'waits for scheduler "{pod.spec.scheduler_name}"; {advice}'
    return ""


def nominate_pending_pods(cache: Cache, profile: Profile, runtime: PluginRuntime) -> None:
    """Nominate the pending pods of the profile that have a nominated node and pass PreEnqueue."""
    snapshot: Snapshot | None = cache.snapshot()
    nominated_pods: list[Pod] = []
    for pod in list_pending_pods(cache, (profile.scheduler_name,)):
        if pod.status.nominated_node_name and snapshot is not None:
            pod_info = snapshot.make_pod_info(pod)
            if run_pre_enqueue_plugins(pod_info, snapshot, profile, runtime) is None:
                nominated_pods.append(pod)
    snapshot = None  # release the snapshot: otherwise the next write copies the tables
    for pod in nominated_pods:
        cache.nominate(pod, pod.status.nominated_node_name)
