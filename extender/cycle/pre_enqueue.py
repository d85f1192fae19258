"""Run the PreEnqueue plugins, which decide whether a pod may enter activeQ.

Source: kube-scheduler/framework/interface.go, PreEnqueuePlugin (1.36).
"""

from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import Snapshot
from extender.cycle.plugin_runtime import PluginRuntime
from extender.framework.plugin_runner import PluginError
from extender.framework.profiles import Profile
from extender.framework.status import Status


def run_pre_enqueue_plugins(
    pod: PodInfo, snapshot: Snapshot, profile: Profile, runtime: PluginRuntime, first_plugin: str = ""
) -> Status | None:
    """Return the rejection of the first plugin that rejects *pod*, or None.

    The plugin named *first_plugin* runs before the others. A plugin that raises rejects the pod with an ERROR.

    Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.runPreEnqueuePlugins (1.36).
    """
    start_time = runtime.runner.start_timer()
    rejection = None
    for plugin in sorted(profile.pre_enqueue_plugins, key=lambda plugin: plugin.name != first_plugin):
        try:
            status = runtime.runner.pre_enqueue(plugin, pod, snapshot)
        except PluginError as error:
            rejection = error.status
        else:
            rejection = status.with_plugin(plugin.name) if status is not None and not status.is_success else None
        if rejection is not None:
            break
    # As in kube-scheduler, the metric counts every run as a success.
    runtime.runner.observe_extension_point(profile.scheduler_name, "PreEnqueue", None, start_time)
    return rejection
