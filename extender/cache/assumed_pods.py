"""Pods that the scheduler assumed on a node and the API server has not confirmed yet.

    pending --assume--> assumed --confirm--> assigned
                           |
                           +-----forget----> pending

An assumed pod never expires: it stays assumed until it is confirmed or forgotten.

Source: pkg/scheduler/backend/cache/cache.go, cacheImpl.AssumePod, cacheImpl.ForgetPod (1.36).
"""

from extender.cache.pod_info import AssignedPodInfo


class AssumeError(Exception):
    """A pod cannot be assumed because it is already assumed or on a node: a bug in the caller."""


class AssumedPods:
    """Assumed pods by uid."""

    __slots__ = ("_pods_by_uid",)

    def __init__(self) -> None:
        self._pods_by_uid: dict[str, AssignedPodInfo] = {}

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

    def pop(self, uid: str) -> AssignedPodInfo | None:
        """Remove and return a pod that was confirmed or forgotten. Return None if no pod *uid* is assumed."""
        return self._pods_by_uid.pop(uid, None)
