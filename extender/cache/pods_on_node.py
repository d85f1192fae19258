"""The pods on one node, in the order in which kube-scheduler's NodeInfo has them.

The order decides between equally important victims of preemption.
"""

from extender.cache.pod_info import AssignedPodInfo

PodsByUid = dict[str, AssignedPodInfo]
"""The pods on a node by uid, in the order of NodeInfo."""


def remove_pod_from_node(pods: PodsByUid, uid: str) -> None:
    """Remove a pod; the last pod takes its place. The time grows with the number of pods, as upstream.

    Raises:
        KeyError: the pod is not on the node.

    Source: pkg/scheduler/framework/types.go, NodeInfo.RemovePod, removeFromSlice (1.36).
    """
    if uid not in pods:
        raise KeyError(uid)
    last_uid, last_pod = pods.popitem()
    if last_uid == uid:
        return
    others = [(last_uid, last_pod) if other_uid == uid else (other_uid, pod) for other_uid, pod in pods.items()]
    pods.clear()
    pods.update(others)


def replace_pod_on_node(pods: PodsByUid, new_pod: AssignedPodInfo) -> None:
    """Replace the pod with the uid of *new_pod*, which becomes the last one.

    Raises:
        KeyError: the pod is not on the node.

    Source: pkg/scheduler/backend/cache/cache.go, cacheImpl.updatePod (1.36).
    """
    remove_pod_from_node(pods, new_pod.uid)
    pods[new_pod.uid] = new_pod
