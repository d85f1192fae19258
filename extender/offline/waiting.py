"""Which pods of a recorded cluster are asked about: those named, or all that wait; and who is nominated meanwhile."""

from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Final

from extender.cluster.snapshot import Snapshot
from extender.cluster.state import ClusterState
from extender.decide.admission import held_back
from extender.decide.engine import Engine
from extender.framework.profiles import Profile
from extender.objects.defaults import DEFAULT_NAMESPACE
from extender.objects.pod import Pod
from extender.offline.capture import Capture
from extender.offline.faults import InputError, InputFault, Place

_FINISHED: Final = ("Succeeded", "Failed")
_SUGGESTED: Final = 3


def waiting(state: ClusterState, scheduler_names: Iterable[str]) -> list[Pod]:
    """The pods that wait for one of these schedulers, in file order."""
    names = frozenset(scheduler_names)
    return [
        pod
        for pod in state.waiting.values()
        if pod.metadata.deletion_timestamp is None and pod.spec.scheduler_name in names
    ]


def elsewhere(capture: Capture, scheduler_names: Iterable[str]) -> Counter[str]:
    """How many pods wait for schedulers other than these, by scheduler."""
    names = frozenset(scheduler_names)
    pods = {thing.key: thing for thing in capture.objects if isinstance(thing, Pod)}
    waits = (pod.spec.scheduler_name for pod in pods.values() if not _past(pod))
    return Counter(name for name in waits if name not in names)


def named(names: Sequence[str], capture: Capture, scheduler_names: Sequence[str]) -> list[Pod]:
    """The pods of these names, each once, in the order asked for.

    Args:
        names: `namespace/name`, or `name`: of the default namespace, else of the only namespace that has such a pod.
        capture: where to look.
        scheduler_names: the schedulers that are there to decide.

    Raises:
        InputError: a pod is unknown, or does not wait for one of these schedulers.
    """
    pods = {thing.key: thing for thing in capture.objects if isinstance(thing, Pod)}
    where = Place(", ".join(capture.sources))
    found: dict[str, Pod] = {}
    faults: list[InputFault] = []
    for name in names:
        pod, message = _find(name, pods)
        if pod is not None:
            message = _not_waiting(pod, scheduler_names)
            found[pod.key] = pod
        if message:
            faults.append(InputFault(where, message, f"Pod {pod.key if pod else name}"))
    if faults:
        raise InputError(faults)
    return list(found.values())


def _find(name: str, pods: dict[str, Pod]) -> tuple[Pod | None, str]:
    if "/" in name:
        pod = pods.get(name)
        return pod, "" if pod else _unknown(name, {key: key for key in pods})
    pod = pods.get(f"{DEFAULT_NAMESPACE}/{name}")
    if pod is not None:
        return pod, ""
    same = [key for key in pods if key.partition("/")[2] == name]
    if len(same) == 1:
        return pods[same[0]], ""
    if same:
        return None, f"several pods have this name; want one of {', '.join(sorted(same))}"
    return None, _unknown(name, {key.partition("/")[2]: key for key in pods})


def _unknown(name: str, known: dict[str, str]) -> str:
    """That there is no such pod, and the keys of those of that name elsewhere, or with the nearest names."""
    elsewhere = [key for key in known if key.partition("/")[2] == name.partition("/")[2] != ""]
    near = get_close_matches(name, known, n=_SUGGESTED)
    close = ", ".join(known[match] for match in elsewhere[:_SUGGESTED] or near)
    return f"there is no such pod; did you mean {close}?" if close else "there is no such pod"


def _past(pod: Pod) -> str:
    """Why a pod waits for no scheduler; empty if it does wait."""
    if pod.spec.node_name:
        return f"is on node {pod.spec.node_name} already; only pods without a node can be explained"
    if pod.status.phase in _FINISHED:
        return f"is over, its phase is {pod.status.phase}"
    if pod.metadata.deletion_timestamp is not None:
        return "is being deleted"
    return ""


def _not_waiting(pod: Pod, scheduler_names: Sequence[str]) -> str:
    """Why a pod waits for no decision of these schedulers; empty if it does wait."""
    past = _past(pod)
    if past:
        return past
    if pod.spec.scheduler_name not in scheduler_names:
        known = ", ".join(scheduler_names)
        force = f"the configuration in force is for {known}; give its own with --config"
        return f'waits for scheduler "{pod.spec.scheduler_name}"; {force}'
    return ""


def nominate_waiting(state: ClusterState, profile: Profile, engine: Engine) -> None:
    """Nominates the pods that wait for the profile's scheduler, have a nominated node and are not held back."""
    snapshot: Snapshot | None = state.snapshot()
    chosen: list[Pod] = []
    for pod in waiting(state, (profile.scheduler_name,)):
        if pod.status.nominated_node_name and snapshot is not None:
            query = snapshot.query(pod)
            if held_back(query, snapshot, profile, engine) is None:
                chosen.append(pod)
    snapshot = None  # so that the tables need not be copied
    for pod in chosen:
        state.nominate(pod, pod.status.nominated_node_name)
