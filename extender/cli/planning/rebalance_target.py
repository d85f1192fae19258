"""Find the waiting pods that `extender rebalance --for` names: pods, workloads and pod groups."""

from typing import Final

from extender.analysis.input.input_errors import InputError, InputErrorLine, SourceLocation
from extender.analysis.pending_pods import find_pods
from extender.analysis.pod_selection import PodSelection
from extender.api.kinds.pod import Pod
from extender.cache.pod_groups import get_pod_group_key
from extender.cli.recording_options import Cluster
from extender.config.did_you_mean import did_you_mean

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
