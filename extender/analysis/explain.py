"""Explain pods: each pod is scheduled alone on the recorded cluster."""

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec.structs import replace

from extender.analysis.alike_pods import group_alike_pods
from extender.analysis.explanation.assigned_pod import AssignedNode, describe_assigned_node
from extender.analysis.explanation.explain_json import (
    get_preemption_plan,
    list_best_node_names,
    make_explanation_values,
)
from extender.analysis.explanation.explain_text import format_explanation
from extender.analysis.explanation.node_text import format_node_lines
from extender.analysis.pending_pods import find_pods, list_pending_pods, nominate_pending_pods
from extender.analysis.pod_group_outcome import PodGroupOutcome, PodGroupSimulator
from extender.analysis.pod_selection import PodSelection, parse_workload_name
from extender.analysis.recorded_cluster import Recording, load_cache
from extender.analysis.required_kinds import GROUP_KINDS, format_missing_kinds, get_plural, list_missing_kinds
from extender.analysis.text_table import join_first
from extender.api.kinds.pod import Pod
from extender.cache.cache import Cache
from extender.cache.hypothesis import Hypothesis
from extender.cache.pod_info import AssignedPodInfo
from extender.cache.snapshot import Snapshot
from extender.cycle.explain_pod import PodExplanation, explain_pod
from extender.cycle.plugin_runtime import PluginRuntime
from extender.framework.profiles import Profile

_PRE_ENQUEUE_KINDS: Final = {"DynamicResources": ("ResourceClaim",), "GangScheduling": GROUP_KINDS}
"""The kinds that a plugin reads at PreEnqueue."""


@dataclass(frozen=True, slots=True)
class PodReport:
    """The explanation of one pod, its snapshot, and the outcome of its pod group.

    Attributes:
        explanation: the results of every plugin for every node.
        pod_group_outcome: the outcome for the pod as a member of its group; None if it is not scheduled in a group.
        assigned_node: the node of a pod that is placed, compared with the explanation; None for a pending pod.
        alike_pods: the keys of other pending pods with the same explanation.
        missing_kinds: the kinds that are not in the recording although the explanation depends on them.
        unreadable_kinds: the kinds that could not be read when the cluster was recorded, with the reason.
    """

    explanation: PodExplanation
    snapshot: Snapshot
    pod_group_outcome: PodGroupOutcome | None = None
    assigned_node: AssignedNode | None = None
    alike_pods: tuple[str, ...] = ()
    missing_kinds: tuple[str, ...] = ()
    unreadable_kinds: Mapping[str, str] = field(default_factory=dict)

    @property
    def fits(self) -> bool:
        """Whether the pod has a node, or a node fits it now."""
        if self.assigned_node is not None:
            return True
        if self.pod_group_outcome is not None:
            return not self.pod_group_outcome.message
        diagnosis = self.explanation.diagnosis
        return diagnosis is not None and diagnosis.has_feasible_node and self.explanation.message is None

    @property
    def has_error(self) -> bool:
        """Whether a plugin error ended the attempt."""
        diagnosis, ranking = self.explanation.diagnosis, self.explanation.ranking
        return (diagnosis is not None and diagnosis.error is not None) or (
            ranking is not None and ranking.error is not None and not self.fits
        )

    @property
    def warnings(self) -> list[str]:
        """A line for the kinds that are not recorded, and for each kind that could not be read."""
        return format_missing_kinds(self.missing_kinds, self.unreadable_kinds)

    def to_values(self, node_names: Sequence[str] = ()) -> dict[str, Any]:
        """Return the report as plain values, always with the same keys.

        The values contain the results and scores of *node_names*; None: of all nodes.
        """
        values = make_explanation_values(self.explanation)
        if node_names:
            for field_name in ("nodes", "scores"):
                results = values[field_name]
                values[field_name] = {name: results[name] for name in sorted(node_names) if name in results}
        return {
            **values,
            "podGroup": self.pod_group_outcome.to_values() if self.pod_group_outcome else None,
            "assigned": self.assigned_node.to_values() if self.assigned_node else None,
            "notRecorded": [get_plural(kind) for kind in self.missing_kinds],
            "warnings": self.warnings,
        }

    def to_line(self) -> str:
        """Return the first sentence of the report, with the pod in front, as one line."""
        first, second = self.to_text().splitlines()[:2]
        group, best_nodes, note = self.pod_group_outcome, list_best_node_names(self.explanation), ""
        if group is not None:
            note = "; its pod group waits" if group.message else f"; goes to {group.node} with its pod group"
        elif best_nodes and self.fits and self.assigned_node is None:
            note = f", best on {join_first(best_nodes)}"
        if self.missing_kinds:
            note += f" (not recorded: {', '.join(map(get_plural, self.missing_kinds))})"
        return f"{first.removeprefix('Pod ')}: {second.strip()}{note}\n"

    def to_text(self, node_names: Sequence[str] = ()) -> str:
        """Return the report as text.

        The results of *node_names* are shown instead of summaries of all nodes; None: the summaries.
        """
        lines = self.pod_group_outcome.format_lines() if self.pod_group_outcome else []
        text = format_explanation(
            self.explanation, self.snapshot, self.assigned_node, alike_pods=self.alike_pods, warnings=self.warnings
        )
        if node_names:
            text = text.partition("\n\n")[0].rstrip("\n") + "\n"  # sections begin with an empty line
            for name in node_names:
                lines += ["", *format_node_lines(self.explanation, self.snapshot, name)]
        return text + "".join(f"{line}\n" for line in lines)


def report_pod(
    pod: Pod, cache: Cache, profile: Profile, runtime: PluginRuntime, pod_group_simulator: PodGroupSimulator
) -> PodReport:
    """Explain a pending pod on the current state of *cache*, and schedule its pod group if it has one."""
    snapshot = cache.snapshot()
    explanation = explain_pod(snapshot.make_pod_info(pod), snapshot, profile, runtime)
    held_status = explanation.pre_enqueue_status
    pod_group_outcome = (
        pod_group_simulator.explain_outcome(pod)
        if held_status is None
        else pod_group_simulator.get_held_outcome(pod, held_status)
    )
    return PodReport(explanation, snapshot, pod_group_outcome)


def report_assigned_pod(
    assigned_pod: AssignedPodInfo, snapshot: Snapshot, profile: Profile, runtime: PluginRuntime
) -> PodReport:
    """Explain a pod that has a node as if it were pending: on the state of *snapshot* without this pod."""
    hypothesis = Hypothesis(snapshot)
    hypothesis.remove_pod(assigned_pod)
    snapshot_without_pod = hypothesis.snapshot()
    pod = assigned_pod.pod
    pending_pod = replace(pod, spec=replace(pod.spec, node_name=""), status=replace(pod.status, nominated_node_name=""))
    explanation = explain_pod(snapshot_without_pod.make_pod_info(pending_pod), snapshot_without_pod, profile, runtime)
    assigned_node = describe_assigned_node(explanation, assigned_pod.node_name)
    return PodReport(explanation, snapshot_without_pod, assigned_node=assigned_node)


def add_missing_kinds(
    report: PodReport, pod: Pod, profile: Profile, recorded_kinds: Collection[str], unreadable_kinds: Mapping[str, str]
) -> PodReport:
    """Return *report* with the kinds that are not recorded although it depends on them."""
    explanation = report.explanation
    missing_kinds = list_missing_kinds(
        pod,
        profile,
        recorded_kinds,
        unreadable_kinds,
        scored=explanation.ranking is not None and len(explanation.ranking.rows) > 1,
        preempts=get_preemption_plan(explanation.post_filter_run) is not None,
    )
    if explanation.pre_enqueue_status is not None:
        read_kinds = _PRE_ENQUEUE_KINDS.get(explanation.pre_enqueue_status.plugin, ())
        missing_kinds = [kind for kind in missing_kinds if kind in read_kinds]
    return dataclasses.replace(report, missing_kinds=tuple(missing_kinds), unreadable_kinds=unreadable_kinds)


class PodExplainer:
    """Explains pods of a recorded cluster one by one, so that each report can be written before the next is made.

    Attributes:
        groups: the pods to explain. The pods of a group have the same explanation.
    """

    def __init__(
        self,
        recording: Recording,
        selection: PodSelection,
        profiles: Mapping[str, Profile],
        scheduler_names: Collection[str],
        runtime: PluginRuntime,
    ) -> None:
        """Load the cluster and select the pods.

        Args:
            recording: the recorded cluster.
            selection: the pods to explain.
            profiles: the profiles by scheduler name.
            scheduler_names: the schedulers whose pending pods are explained if the selection names no pods.
            runtime: the plugin runtime.

        Raises:
            InputError: a pod is unknown, has finished, or is not a pod of a scheduler in *profiles*.
        """
        self._recording, self._profiles, self._runtime = recording, profiles, runtime
        self.selection = selection
        self.cache = load_cache(recording, next(iter(profiles.values())).gates, profiles)
        self.groups = self._select_groups(selection, scheduler_names)
        self._pod_group_simulator = PodGroupSimulator(self.cache, profiles, runtime)
        pods_to_explain = (pod for group in self.groups for pod in group)
        for scheduler_name in dict.fromkeys((*scheduler_names, *(pod.spec.scheduler_name for pod in pods_to_explain))):
            nominate_pending_pods(self.cache, profiles[scheduler_name], runtime)

    def _select_groups(self, selection: PodSelection, scheduler_names: Collection[str]) -> list[list[Pod]]:
        make_pod_info = self.cache.make_pod_info
        if not selection.names:
            pods = list_pending_pods(self.cache, scheduler_names)
            return group_alike_pods(filter(selection.matches, pods), make_pod_info, self._profiles)
        # Raise the errors of all names together.
        find_pods(selection.names, self._recording, list(self._profiles), selection.namespace)
        groups: list[list[Pod]] = []
        for name in dict.fromkeys(selection.names):
            pods = find_pods((name,), self._recording, list(self._profiles), selection.namespace)
            pods = [pod for pod in pods if not any(pod in group for group in groups)]
            if parse_workload_name(name, selection.namespace) is None or any(pod.spec.node_name for pod in pods):
                groups += [[pod] for pod in pods]
            else:
                groups += group_alike_pods(pods, make_pod_info, self._profiles)
        return groups

    def iterate_reports(self) -> Iterator[PodReport]:
        """Yield one report for each group."""
        for group in self.groups:
            yield self.report_group(group)

    def report_group(self, group: Sequence[Pod]) -> PodReport:
        """Explain the first pod of *group*. The other pods, which are alike, are only named."""
        pod = group[0]
        profile = self._profiles[pod.spec.scheduler_name]
        if pod.spec.node_name:
            assigned_pod = self.cache.assigned_pods[pod.uid_or_key]
            report = report_assigned_pod(assigned_pod, self.cache.snapshot(), profile, self._runtime)
        else:
            report = report_pod(pod, self.cache, profile, self._runtime, self._pod_group_simulator)
        report = dataclasses.replace(report, alike_pods=tuple(alike_pod.key for alike_pod in group[1:]))
        recording = self._recording
        return add_missing_kinds(report, pod, profile, recording.recorded_kinds, recording.unreadable_kinds)
