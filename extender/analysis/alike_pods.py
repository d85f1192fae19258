"""Group pending pods that have the same explanation, because scheduling reads no difference between them."""

from collections.abc import Hashable, Iterable, Mapping

from extender.api.kinds.pod import Pod
from extender.cache.pod_groups import get_pod_group_key
from extender.cache.snapshot import Snapshot
from extender.framework.profiles import Profile
from extender.plugins.registry import BUILT_IN_PLUGINS


def group_alike_pods(pods: Iterable[Pod], snapshot: Snapshot, profiles: Mapping[str, Profile]) -> list[list[Pod]]:
    """Return groups of pods with the same explanation. Groups and their pods are in the order of *pods*.

    The pods of a group have the same namespace, labels, owners and spec. A pod forms its own group if it is a member of
    a pod group, if it is nominated, or if it has objects of its own: ephemeral volumes or resource claims. If a plugin
    of the profile may read annotations, as those of third parties do, the annotations must be equal too.
    """
    read_annotations = {name: _reads_annotations(profile) for name, profile in profiles.items()}
    groups: dict[Hashable, list[Pod]] = {}
    for pod in pods:
        key: Hashable = pod.key
        if not _needs_own_group(pod):
            annotations = pod.metadata.annotations if read_annotations[pod.spec.scheduler_name] else {}
            key = (snapshot.make_pod_info(pod).signature, tuple(sorted(annotations.items())))
        groups.setdefault(key, []).append(pod)
    return list(groups.values())


def _needs_own_group(pod: Pod) -> bool:
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
