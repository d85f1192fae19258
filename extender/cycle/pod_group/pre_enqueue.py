"""PreEnqueue for the members of a pod group: since 1.37, one rejected member holds all pending members.

Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.runPreEnqueuePlugins (1.37).
"""

from extender.cache.pod_groups import get_pod_group_key
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import Snapshot
from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.pre_enqueue import run_pre_enqueue_plugins
from extender.framework.profiles import Profile
from extender.framework.status import Status


def run_pre_enqueue_plugins_for_entity(
    pod: PodInfo, snapshot: Snapshot, profile: Profile, runtime: PluginRuntime, first_plugin: str = ""
) -> Status | None:
    """Return the rejection of *pod* or, since 1.37, of another pending member of its group; None if there is none.

    The arguments are those of `run_pre_enqueue_plugins`.
    """
    rejection = run_pre_enqueue_plugins(pod, snapshot, profile, runtime, first_plugin)
    key = get_pod_group_key(pod.pod)
    if rejection is not None or key is None or not holds_group_members(profile):
        return rejection
    for member in snapshot.pod_group(key).pending.values():
        if member.key != pod.key and member.spec.scheduler_name == profile.scheduler_name:
            rejection = run_pre_enqueue_plugins(
                snapshot.make_pod_info(member), snapshot, profile, runtime, first_plugin
            )
            if rejection is not None:
                return rejection
    return None


def holds_group_members(profile: Profile) -> bool:
    """Return whether one rejected member of a pod group holds the others."""
    return profile.release.uses_placement_feasible and profile.pod_group_settings is not None
