"""Scale a workload in a scenario: copies of its pods are added, or its surplus pods are removed."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Final

from extender.analysis.input.workload_pods import is_controlled_by, iterate_new_names
from extender.api.kinds.pod import Pod
from extender.api.kinds.workload import ReplicaSet
from extender.cache.cache import Cache
from extender.cache.pod_info import AssignedPodInfo
from extender.config.did_you_mean import did_you_mean
from extender.planning.departures import make_pending_pod
from extender.planning.scenario import Scale, ScenarioError

SCALABLE_KINDS: Final = {
    "deployment": "Deployment",
    "replicaset": "ReplicaSet",
    "statefulset": "StatefulSet",
    "replicationcontroller": "ReplicationController",
    "job": "Job",
}
"""The kinds that can be scaled, by their names in lower case."""


@dataclass(frozen=True, slots=True)
class PodChanges:
    """The pods to add to a workload, and those to remove from it."""

    added: tuple[Pod, ...] = ()
    surplus: tuple[AssignedPodInfo, ...] = ()
    surplus_pending: tuple[Pod, ...] = ()


def calculate_pod_changes(scale: Scale, cache: Cache) -> PodChanges:
    """Return the changes that give a workload its new number of pods. Terminating pods are not counted.

    Surplus pods are removed in the order of the controllers: pods without a node first, then pods on nodes with more
    pods of the workload, then newer pods. A StatefulSet removes the highest ordinals first.

    Raises:
        ScenarioError: the cluster has no pod of the workload.

    Source: pkg/controller/controller_utils.go, ActivePodsWithRanks.Less; pkg/controller/statefulset/
    stateful_set_control.go, defaultStatefulSetControl.updateStatefulSet (1.36).
    """
    with cache.read() as snapshot:
        replica_sets = dict(snapshot.objects(ReplicaSet))

    def is_active(pod: Pod) -> bool:
        is_controlled = is_controlled_by(pod, SCALABLE_KINDS[scale.kind], scale.namespace, scale.name, replica_sets)
        return is_controlled and pod.metadata.deletion_timestamp is None

    assigned = [pod for pod in cache.assigned_pods.values() if is_active(pod.pod)]
    pending = [pod for pod in cache.pending_pods.values() if is_active(pod)]
    if not assigned and not pending:
        raise ScenarioError([_describe_unknown_workload(scale, cache)])
    count = len(assigned) + len(pending)
    if scale.replicas >= count:
        template = pending[0] if pending else max(assigned, key=lambda pod: pod.key).pod
        names = {pod.metadata.name for pod in pending} | {pod.pod.metadata.name for pod in assigned}
        return PodChanges(added=tuple(_make_new_pods(scale, template, names, scale.replicas - count)))
    surplus_count = count - scale.replicas
    if scale.kind == "statefulset":
        assigned_in_order = sorted(assigned, key=lambda pod: _get_ordinal(pod.pod), reverse=True)
        pending_in_order = sorted(pending, key=_get_ordinal, reverse=True)
    else:
        assigned_in_order = _sort_surplus(assigned)
        pending_in_order = sorted(pending, key=lambda pod: pod.key, reverse=True)
    surplus_pending = pending_in_order[:surplus_count]
    return PodChanges((), tuple(assigned_in_order[: surplus_count - len(surplus_pending)]), tuple(surplus_pending))


def _sort_surplus(pods: Iterable[AssignedPodInfo]) -> list[AssignedPodInfo]:
    pods = list(pods)
    pods_per_node = Counter(pod.node_name for pod in pods)

    def make_key(pod: AssignedPodInfo) -> tuple[int, float, str]:
        creation_time = pod.pod.metadata.creation_timestamp
        return -pods_per_node[pod.node_name], -creation_time.timestamp() if creation_time else 0.0, pod.key

    return sorted(pods, key=make_key)


def _get_ordinal(pod: Pod) -> int:
    digits = pod.metadata.name.rpartition("-")[2]
    return int(digits) if digits.isdecimal() else -1


def _describe_unknown_workload(scale: Scale, cache: Cache) -> str:
    names: set[str] = set()
    namespaces: set[str] = set()
    for pod in [*cache.pending_pods.values(), *(info.pod for info in cache.assigned_pods.values())]:
        owner = pod.metadata.controller
        owner_names: set[str] = set()
        if owner is not None and owner.kind.lower() in SCALABLE_KINDS:
            owner_names.add(f"{owner.kind.lower()}/{owner.name}")
        if owner is not None and owner.kind == "ReplicaSet" and "-" in owner.name:
            owner_names.add(f"deployment/{owner.name.rpartition('-')[0]}")
        if pod.metadata.namespace == scale.namespace:
            names |= owner_names
        elif str(scale) in owner_names:
            namespaces.add(pod.metadata.namespace)
    problem = f"--scale {scale}: namespace {scale.namespace} has no pod of this workload"
    if namespaces:
        return f"{problem}; it is in namespace {' and '.join(sorted(namespaces))}, which -n selects"
    return problem + did_you_mean(str(scale), sorted(names))


def _make_new_pods(scale: Scale, template: Pod, used_names: set[str], count: int) -> list[Pod]:
    """Return *count* pending copies of *template* with new names."""
    prefix = scale.name if scale.kind == "statefulset" else f"{scale.name}-new"
    names = islice(iterate_new_names(f"{prefix}-", used_names, start=0), count)
    return [make_pending_pod(template, name, f"scaled/{scale.namespace}/{scale.kind}/{name}") for name in names]
