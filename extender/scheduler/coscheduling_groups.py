"""Pod groups of the coscheduling plugin in a cluster that is watched: as pod groups with the priority of their pods."""

from msgspec.structs import replace

from extender.api.coscheduling import make_pod_group
from extender.api.kinds.pod import Pod
from extender.api.kinds.pod_group import CoschedulingPodGroup, PodGroup
from extender.cache.cache import Cache
from extender.cache.pod_groups import get_pod_group_key


def make_watched_pod_group(group: CoschedulingPodGroup, cache: Cache) -> PodGroup:
    """Return *group* with the priority of its first member in *cache*, and with the status that it has in *cache*.

    The status has the condition of the last attempt, which is not written to the API server.
    """
    key = f"{group.metadata.namespace}/{group.metadata.name}"
    known_group = cache.get_object(PodGroup, key)
    with cache.read() as snapshot:
        members = snapshot.pod_group(key)
        pods = (*members.pending.values(), *(pod.pod for pod in members.assigned.values()))
    pod_group = make_pod_group(group, pods[0].spec.priority if pods else None)
    if known_group is None or known_group.metadata.uid != group.metadata.uid:
        return pod_group
    return replace(pod_group, status=known_group.status)


def find_group_with_new_priority(pod: Pod, cache: Cache) -> PodGroup | None:
    """Return the group of *pod* with the priority of *pod*, which will be its first member; None: no change."""
    key = get_pod_group_key(pod)
    if key is None:
        return None
    group = cache.get_object(PodGroup, key)
    with cache.read() as snapshot:
        has_members = bool(snapshot.pod_group(key).count)
    if group is None or has_members or group.spec.priority == pod.spec.priority:
        return None
    return replace(group, spec=replace(group.spec, priority=pod.spec.priority))
