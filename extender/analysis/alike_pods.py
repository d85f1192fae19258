"""Find pods that scheduling cannot tell apart: they have the same explanation, and fail for the same reasons."""

from collections.abc import Callable, Hashable, Iterable, Mapping

from extender.api.kinds.pod import Pod
from extender.cache.pod_groups import get_pod_group_key
from extender.cache.pod_info import PodInfo
from extender.framework.profiles import Profile
from extender.plugins.registry import BUILT_IN_PLUGINS


class AlikePodKeys:
    """Makes keys of pods. Pods with equal keys are alike: scheduling cannot tell them apart.

    Alike pods have the same namespace, labels, owners and spec. If a plugin of the profile may read annotations, as
    those of third parties do, the annotations are equal too. A pod is like no other pod if it is a member of a pod
    group, if it is nominated, or if it has objects of its own: ephemeral volumes or resource claims.
    """

    def __init__(self, profiles: Mapping[str, Profile]) -> None:
        self._reads_annotations = {name: _reads_annotations(profile) for name, profile in profiles.items()}

    def make_key(self, pod_info: PodInfo) -> Hashable | None:
        """Return a key that alike pods share; None: the pod is like no other. Its scheduler name has a profile."""
        pod = pod_info.pod
        if _has_no_alike(pod):
            return None
        annotations = pod.metadata.annotations if self._reads_annotations[pod.spec.scheduler_name] else {}
        return pod_info.signature, tuple(sorted(annotations.items()))


def group_alike_pods(
    pods: Iterable[Pod], make_pod_info: Callable[[Pod], PodInfo], profiles: Mapping[str, Profile]
) -> list[list[Pod]]:
    """Return groups of alike pods, which have the same explanation. Groups and their pods are in the order of *pods*.

    *make_pod_info* is that of the cache or of a snapshot.
    """
    keys = AlikePodKeys(profiles)
    groups: dict[Hashable, list[Pod]] = {}
    for pod in pods:
        key = keys.make_key(make_pod_info(pod))
        groups.setdefault(pod.key if key is None else key, []).append(pod)
    return list(groups.values())


def _has_no_alike(pod: Pod) -> bool:
    return (
        bool(pod.status.nominated_node_name or pod.spec.resource_claims)
        or get_pod_group_key(pod) is not None
        or any(volume.ephemeral is not None for volume in pod.spec.volumes)
    )


def _reads_annotations(profile: Profile) -> bool:
    return any(
        getattr(plugin, "reads_annotations", type(plugin) not in BUILT_IN_PLUGINS)
        for plugin in profile.plugins.values()
    )
