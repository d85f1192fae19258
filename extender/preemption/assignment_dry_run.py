"""Run Filter plugins for preemptor pods with proposed nodes, while victims are hypothetically removed and added again.

`DryRun` tries one pod on many nodes independently. This dry run tries several pods together, each on one node, and the
victims may be on any node.

Source: pkg/scheduler/framework/preemption/podgrouppreemption.go, PodGroupEvaluator.selectVictimsOnDomain (1.37).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np

from extender.cache.hypothesis import Hypothesis
from extender.cache.pod_info import AssignedPodInfo, PodInfo
from extender.cache.snapshot import Snapshot
from extender.cycle.binding_cycle import make_assumed_pod, run_reserve_plugins, run_unreserve_plugins
from extender.cycle.dry_run import list_plugins_with_extensions, select_nominated_pods
from extender.cycle.filter import FilterResults
from extender.cycle.plugin_runtime import PluginRuntime
from extender.framework.extension_points import CacheableFilter, DependsOn
from extender.framework.plugin_runner import PluginError
from extender.framework.profiles import Profile
from extender.framework.result_cache import FilterColumn
from extender.framework.status import Status, error_status
from extender.preemption.disruption_budgets import Budgets, count_violations
from extender.preemption.preemption_units import PreemptionUnit


@dataclass(frozen=True, slots=True)
class Assignment:
    """The proposed node of a preemptor pod.

    Attributes:
        node_name: the proposed node.
        cycle_state: the PreFilter state by plugin, computed with all victims removed and the earlier pods assumed.
        skipped_plugins: the plugins whose Filter is skipped.
    """

    pod: PodInfo
    node_name: str
    cycle_state: dict[str, Any]
    skipped_plugins: frozenset[str]


class AssignmentDryRun:
    """A hypothesis for several assignments from which victims are removed and to which they are added again."""

    def __init__(
        self, snapshot: Snapshot, assignments: Iterable[Assignment], profile: Profile, runtime: PluginRuntime
    ) -> None:
        """Start with the pods of *snapshot*.

        *assignments* are in scheduling order. Their states may share arrays of *snapshot*, so it must not change.
        """
        self._hypothesis, self._profile, self._runtime = Hypothesis(snapshot), profile, runtime
        self._assignments = [self._copy(assignment) for assignment in assignments]
        self._cacheable_plugins = frozenset(
            plugin.name for plugin in profile.filter_plugins if isinstance(plugin, CacheableFilter)
        )
        self._changes: dict[str, tuple[AssignedPodInfo, bool]] = {}
        self._are_changes_reversible = all(
            getattr(plugin, "pod_changes_are_reversible", False)
            for assignment in self._assignments
            for plugin in list_plugins_with_extensions(profile, assignment.skipped_plugins)
        )

    def remove_pods(self, pods: Iterable[AssignedPodInfo]) -> None:
        """Remove *pods* from their nodes."""
        for pod in pods:
            self._hypothesis.evict_pod(pod)
            self._record_change(pod, adding=False)

    def restore_pods(self, pods: Iterable[AssignedPodInfo]) -> None:
        """Add the removed *pods* to their nodes again."""
        for pod in pods:
            self._hypothesis.restore_pod(pod)
            self._record_change(pod, adding=True)

    def _record_change(self, pod: AssignedPodInfo, *, adding: bool) -> None:
        """Record that *pod* was added or removed since the last call of `find_rejection`.

        Most restored victims are removed again after the local filters. Their changes never reach the states, except
        those of plugins such as PodTopologySpread: its minimum of matching pods depends on all changes, as upstream's.
        """
        key = pod.uid if self._are_changes_reversible else str(len(self._changes))
        if self._changes.pop(key, None) is None:
            self._changes[key] = pod, adding

    def reprieve_units(self, units: Sequence[PreemptionUnit], budgets: Budgets) -> tuple[list[PreemptionUnit], int]:
        """Restore as many of the removed *units* as possible, and return the others with their budget violations.

        Units whose eviction violates a disruption budget are restored before the others. The most important of *units*
        is first.

        Raises:
            PluginError: a plugin failed to update its state.
        """
        violation_counts = count_violations(budgets, [unit.pods for unit in units])
        local_assignments = [self._make_local(assignment) for assignment in self._assignments]
        are_filters_local = all(map(self._has_only_local_filters, self._assignments))
        is_local = are_filters_local and self.find_rejection() is None
        victim_indices: list[int] = []
        for index in sorted(range(len(units)), key=lambda index: violation_counts[index] == 0):
            node_names = {pod.node_name for pod in units[index].pods}
            changed_assignments = [local for local in local_assignments if local.node_name in node_names]
            if is_local and not changed_assignments:
                continue  # no filter reads these pods
            self.restore_pods(units[index].pods)
            rejection = self._find_local_rejection(changed_assignments)
            if rejection is not None or (not is_local and self.find_rejection() is not None):
                self.remove_pods(units[index].pods)
                victim_indices.append(index)
        victim_indices.sort()
        return [units[index] for index in victim_indices], sum(violation_counts[index] for index in victim_indices)

    def find_rejection(self) -> Status | None:
        """Return the first rejection of a pod by the filters on its node; None if all pods fit.

        Each pod is filtered with the earlier pods assumed on their nodes.

        Raises:
            PluginError: a plugin failed to update its state.
        """
        for pod, adding in self._changes.values():
            for assignment in self._assignments:
                self._update_states(assignment, pod, adding=adding)
        self._changes.clear()
        assumed_pods: list[tuple[Assignment, AssignedPodInfo]] = []
        try:
            for assignment in self._assignments:
                rejection = self._filter(assignment)
                if rejection is not None:
                    return rejection
                assumed_pods.append((assignment, self._assume(assignment)))
                run_reserve_plugins(
                    assignment.pod, assignment.node_name, self._hypothesis.snapshot(), self._profile, self._runtime,
                    assignment.cycle_state,
                )  # fmt: skip
            return None
        finally:
            for assignment, assumed_pod in reversed(assumed_pods):
                run_unreserve_plugins(
                    assignment.pod, assignment.node_name, self._profile, self._runtime, assignment.cycle_state
                )
                self._hypothesis.remove_pod(assumed_pod)

    def _make_local(self, assignment: Assignment) -> Assignment:
        """Return *assignment* with the filters that read the pods on its node, and no pods of other nodes.

        The states are those of *assignment*. Those of the remaining filters do not depend on pods.
        """
        other_plugins = {
            plugin.name
            for plugin in self._list_filters(assignment)
            if not self._is_local(plugin, assignment.pod) or plugin.filter_depends_on is DependsOn.NODE
        }
        return replace(assignment, skipped_plugins=assignment.skipped_plugins | other_plugins)

    def _has_only_local_filters(self, assignment: Assignment) -> bool:
        return all(self._is_local(plugin, assignment.pod) for plugin in self._list_filters(assignment))

    def _list_filters(self, assignment: Assignment) -> Iterable[Any]:
        return (plugin for plugin in self._profile.filter_plugins if plugin.name not in assignment.skipped_plugins)

    def _is_local(self, plugin: Any, pod: PodInfo) -> bool:
        if not self._runtime.result_cache.enabled or plugin.name not in self._cacheable_plugins:
            return False
        try:
            key = self._runtime.runner.get_cache_key(plugin, "Filter", plugin.filter_cache_key, pod)
        except PluginError:
            return False
        return key is not None

    def _find_local_rejection(self, assignments: Iterable[Assignment]) -> Status | None:
        """Return the first rejection of *assignments*, which are all local assignments of some nodes.

        If there is one, `find_rejection` finds one too, because assignments to other nodes do not change the result.
        """
        assumed_pods: list[AssignedPodInfo] = []
        try:
            for assignment in assignments:
                rejection = self._filter(assignment)
                if rejection is not None:
                    return rejection
                assumed_pods.append(self._assume(assignment))
            return None
        finally:
            for pod in assumed_pods:
                self._hypothesis.remove_pod(pod)

    def _assume(self, assignment: Assignment) -> AssignedPodInfo:
        pod, node_name = assignment.pod.pod, assignment.node_name
        assumed_pod = make_assumed_pod(pod, node_name, self._profile, assignment.cycle_state)
        return self._hypothesis.assume_pod(self._hypothesis.snapshot().make_pod_info(assumed_pod), node_name)

    def _filter(self, assignment: Assignment) -> Status | None:
        """Return the first rejection of the pod, with and without the pods nominated for its node; None if it fits.

        Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunFilterPluginsWithNominatedPods (1.37).
        """
        pods_of_node = self._hypothesis.snapshot().nominated_pods(assignment.node_name)
        nominated_pods = select_nominated_pods(pods_of_node, assignment.pod)
        rejection = self._filter_with_nominated(assignment, nominated_pods) if nominated_pods else None
        return rejection or self._run_filter_plugins(assignment)

    def _filter_with_nominated(self, assignment: Assignment, nominated_pods: Sequence[PodInfo]) -> Status | None:
        assignment = self._copy(assignment)
        added_pods: list[AssignedPodInfo] = []
        try:
            for pod_info in nominated_pods:
                # As in kube-scheduler, a nominated pod counts twice if it is also assumed on the node.
                added_pods.append(self._hypothesis.assume_pod(_copy_with_other_uid(pod_info), assignment.node_name))
                self._update_states(assignment, added_pods[-1], adding=True)
            return self._run_filter_plugins(assignment)
        finally:
            for pod in added_pods:
                self._hypothesis.remove_pod(pod)

    def _run_filter_plugins(self, assignment: Assignment) -> Status | None:
        """Return the status of the first plugin that rejects the proposed node; None if the node fits."""
        snapshot = self._hypothesis.snapshot()
        row = snapshot.row(assignment.node_name)
        if row is None:
            return error_status(f'nodeinfo not found for node name "{assignment.node_name}"')
        view = snapshot.view(np.array([row], dtype=np.int64))
        for plugin in self._list_filters(assignment):
            state = assignment.cycle_state.get(plugin.name)
            try:
                rejections = self._runtime.runner.filter(plugin, assignment.pod, view, state)
            except PluginError as error:
                rejections = error.reject_all(1)
            if not any(nodes[0] for nodes, _ in rejections):
                continue
            column = FilterColumn(np.zeros(1, dtype=np.bool_))
            column.write(slice(None), rejections)
            return FilterResults(np.ones(1, dtype=np.bool_), {plugin.name: column}).get_first_rejection_status(0)
        return None

    def _copy(self, assignment: Assignment) -> Assignment:
        """Return *assignment* with copies of the states that `_update_states` changes."""
        states = dict(assignment.cycle_state)
        for plugin in list_plugins_with_extensions(self._profile, assignment.skipped_plugins):
            states[plugin.name] = plugin.clone(states.get(plugin.name))
        return Assignment(assignment.pod, assignment.node_name, states, assignment.skipped_plugins)

    def _update_states(self, assignment: Assignment, pod: AssignedPodInfo, *, adding: bool) -> None:
        snapshot = self._hypothesis.snapshot()
        row = snapshot.row(pod.node_name)
        if row is None:
            return
        for plugin in list_plugins_with_extensions(self._profile, assignment.skipped_plugins):
            method, point = (plugin.add_pod, "AddPod") if adding else (plugin.remove_pod, "RemovePod")
            state = assignment.cycle_state.get(plugin.name)
            self._runtime.runner.call(plugin, point, method, assignment.pod, pod, row, snapshot, state)


def _copy_with_other_uid(pod_info: PodInfo) -> PodInfo:
    metadata = msgspec.structs.replace(pod_info.pod.metadata, uid=f"{pod_info.uid}-nominated")
    return PodInfo(msgspec.structs.replace(pod_info.pod, metadata=metadata), pod_info.signature)
