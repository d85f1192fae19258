"""Pods that the scheduler assumed on a node and the API server has not confirmed yet.

    pending --assume--> assumed --confirm--> assigned
                           |
                           +-----forget----> pending

An assumed pod never expires: it stays assumed until it is confirmed or forgotten.

Source: pkg/scheduler/backend/cache/cache.go, cacheImpl.AssumePod, cacheImpl.ForgetPod (1.36).
"""

from extender.api.kinds.pod import Pod
from extender.cache.pod_info import AssignedPodInfo


class AssumeError(Exception):
    """A pod cannot be assumed because it is already assumed or on a node: a bug in the caller."""


class AssumedPods:
    """Assumed pods by uid, and their newest objects without a node from the API server, if they changed meanwhile."""

    __slots__ = ("_newest_pods", "_pods_by_uid")

    def __init__(self) -> None:
        self._pods_by_uid: dict[str, AssignedPodInfo] = {}
        self._newest_pods: dict[str, Pod] = {}

    def __len__(self) -> int:
        return len(self._pods_by_uid)

    def __contains__(self, uid: object) -> bool:
        return uid in self._pods_by_uid

    def add(self, pod: AssignedPodInfo) -> None:
        """Add an assumed pod.

        Raises:
            AssumeError: the pod is already assumed.
        """
        if pod.uid in self._pods_by_uid:
            raise AssumeError(
                f"pod {pod.key} (uid {pod.uid}) is assumed on {self._pods_by_uid[pod.uid].node_name} already"
            )
        self._pods_by_uid[pod.uid] = pod

    def update(self, pod: Pod) -> None:
        """Store the changed object of a pod that is assumed and has no node on the API server."""
        self._newest_pods[pod.metadata.uid or pod.key] = pod

    def pop(self, uid: str) -> tuple[AssignedPodInfo | None, Pod | None]:
        """Remove a pod that was confirmed or forgotten; return it, and the object of its last update or None.

        Both are None if no pod *uid* is assumed.
        """
        return self._pods_by_uid.pop(uid, None), self._newest_pods.pop(uid, None)
