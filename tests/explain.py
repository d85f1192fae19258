"""Explain the pods of a recorded cluster in one call."""

from collections.abc import Collection, Mapping, Sequence

from extender.analysis.explain import PodExplainer, PodReport
from extender.analysis.pod_selection import PodSelection
from extender.analysis.recorded_cluster import Recording
from extender.cycle.plugin_runtime import PluginRuntime
from extender.framework.profiles import Profile


def explain_pods(
    recording: Recording,
    names: Sequence[str],
    profiles: Mapping[str, Profile],
    scheduler_names: Collection[str],
    runtime: PluginRuntime,
) -> list[PodReport]:
    """Explain the named pods, or all pending pods if *names* is empty. Each pod uses its scheduler's profile.

    Pending pods that have a nominated node use resources of that node. No pod is assumed, bound or evicted. If pod
    groups are enabled, the report of a member includes the outcome for its group. Pending pods with the same
    explanation have one report.

    Args:
        recording: the recorded cluster.
        names: the names of pods, as for `find_pods`.
        profiles: the profiles by scheduler name.
        scheduler_names: the schedulers whose pending pods are explained if *names* is empty.
        runtime: the plugin runtime.

    Raises:
        InputError: a pod is unknown, has finished, or is not a pod of a scheduler in *profiles*.
    """
    return list(
        PodExplainer(recording, PodSelection(tuple(names)), profiles, scheduler_names, runtime).iterate_reports()
    )
