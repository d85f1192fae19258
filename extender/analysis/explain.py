"""Explain pending pods, each alone on the recorded cluster."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from extender.analysis.explain_json import make_explanation_values
from extender.analysis.explain_text import format_explanation
from extender.analysis.pending_pods import find_pods, list_pending_pods, nominate_pending_pods
from extender.analysis.pod_group_outcome import PodGroupOutcome, PodGroupSimulator
from extender.analysis.recorded_cluster import Recording, load_cache
from extender.api.kinds.pod import Pod
from extender.cache.cache import Cache
from extender.cache.snapshot import Snapshot
from extender.config.feature_gates import FeatureGates
from extender.cycle.explain_pod import PodExplanation, explain_pod
from extender.cycle.plugin_runtime import PluginRuntime
from extender.framework.profiles import Profile


@dataclass(frozen=True, slots=True)
class PodReport:
    """The explanation of one pod, its snapshot, and the outcome of its pod group.

    Attributes:
        explanation: the result of every plugin on every node.
        snapshot: the snapshot of the cluster.
        pod_group: the outcome for the pod's group; None without a group.
    """

    explanation: PodExplanation
    snapshot: Snapshot
    pod_group: PodGroupOutcome | None = None

    def to_values(self) -> dict[str, Any]:
        """Return the report as plain values, always with the same keys."""
        return {
            **make_explanation_values(self.explanation),
            "podGroup": self.pod_group.to_values() if self.pod_group else None,
        }

    def to_text(self) -> str:
        """Return the report as text."""
        lines = self.pod_group.format_lines() if self.pod_group else []
        return format_explanation(self.explanation, self.snapshot) + "".join(f"{line}\n" for line in lines)


def report_pod(
    pod: Pod, cache: Cache, profile: Profile, runtime: PluginRuntime, pod_groups: PodGroupSimulator
) -> PodReport:
    """Explain a pending pod and the outcome for its pod group, with the cache's current state."""
    snapshot = cache.snapshot()
    explanation = explain_pod(snapshot.make_pod_info(pod), snapshot, profile, runtime)
    pod_group = pod_groups.get_outcome(pod) if explanation.pre_enqueue_status is None else None
    return PodReport(explanation, snapshot, pod_group)


def explain_pods(
    recording: Recording,
    names: Sequence[str],
    profiles: Mapping[str, Profile],
    schedulers: Collection[str],
    runtime: PluginRuntime,
    gates: FeatureGates | None = None,
) -> list[PodReport]:
    """Explain the named pods, or all pending pods if *names* is empty. Each pod uses its scheduler's profile.

    Pending pods with a nominated node use resources of that node. No pod is assumed, bound or evicted. If pod groups
    are enabled, the report of a member includes the outcome for its group.

    Args:
        recording: the recorded cluster.
        names: the names of pods, as for `find_pods`.
        profiles: the profiles by scheduler name.
        schedulers: the schedulers whose pending pods are explained if *names* is empty.
        runtime: the plugin runtime.
        gates: the feature gates; None: the default gates.

    Raises:
        InputError: a pod is unknown, or is not pending for one of these schedulers.
    """
    cache = load_cache(recording, gates)
    pods = find_pods(names, recording, list(profiles)) if names else list_pending_pods(cache, schedulers)
    pod_groups = PodGroupSimulator(cache, profiles, runtime)
    for scheduler in dict.fromkeys((*schedulers, *(pod.spec.scheduler_name for pod in pods))):
        nominate_pending_pods(cache, profiles[scheduler], runtime)
    return [report_pod(pod, cache, profiles[pod.spec.scheduler_name], runtime, pod_groups) for pod in pods]
