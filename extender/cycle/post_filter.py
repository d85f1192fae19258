"""Run the PostFilter plugins for a pod that fits no node. They may make the pod schedulable.

Source: pkg/scheduler/schedule_one.go, Scheduler.schedulingAlgorithm (1.36).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import Snapshot
from extender.cycle.diagnosis import Diagnosis
from extender.cycle.extender_steps import ExtenderSteps, PreemptStep, run_without_extenders
from extender.cycle.plugin_runtime import PluginRuntime
from extender.framework.extension_points import PostFilter, PostFilterResult
from extender.framework.plugin_runner import PluginError
from extender.framework.profiles import Profile
from extender.framework.status import Code, Status
from extender.framework.waiting_pods import WaitingPodSignal, make_rejections


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """A run of the Filter plugins that found no feasible node, with the inputs of dry runs by PostFilter plugins.

    Attributes:
        diagnosis: the rejections.
        profile: the profile with the plugins.
        runtime: the runtime that calls the plugins.
        rng: the random generator that selects the first node of a search and breaks ties. With None, a search starts
            at the first row, and the first of equal nodes is selected.
        all_nodes: whether a search for candidates covers all nodes. Otherwise it stops when it has enough candidates.
    """

    diagnosis: Diagnosis
    profile: Profile
    runtime: PluginRuntime
    rng: Random | None = None
    all_nodes: bool = False


@dataclass(frozen=True, slots=True)
class PostFilterRun:
    """The outcome of all PostFilter plugins.

    Attributes:
        status: SUCCESS if a plugin can make the pod schedulable, else a rejection or an error.
        nominated_node: as in `PostFilterResult`.
        results: the results of the plugins that ran, by plugin.
        rejections: the pods that wait on Permit and that plugins reject.
    """

    status: Status
    nominated_node: str | None = None
    results: Mapping[str, PostFilterResult] = field(default_factory=dict)
    rejections: tuple[WaitingPodSignal, ...] = ()

    @property
    def plans(self) -> dict[str, Any]:
        """`PostFilterResult.plan` by plugin, for each plugin that returned a plan."""
        return {name: result.plan for name, result in self.results.items() if result.plan is not None}


def run_post_filter_plugins(pod: PodInfo, snapshot: Snapshot, attempt: FailedAttempt) -> PostFilterRun:
    """Run the PostFilter plugins in order, without extenders."""
    return run_without_extenders(make_post_filter_steps(pod, snapshot, attempt, has_extenders=False))


def make_post_filter_steps(
    pod: PodInfo, snapshot: Snapshot, attempt: FailedAttempt, *, has_extenders: bool
) -> ExtenderSteps[PostFilterRun]:
    """Run the PostFilter plugins in order. A success, an error or the code UNRESOLVABLE ends the run.

    Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunPostFilterPlugins (1.36).
    """
    runner = attempt.runtime.runner
    start_time = runner.start_timer()
    results: dict[str, PostFilterResult] = {}
    reasons: list[str] = []
    rejections: list[WaitingPodSignal] = []
    nominated_node: str | None = None
    outcome: PostFilterRun | None = None
    for plugin in attempt.profile.post_filter_plugins:
        result = _run_post_filter_plugin(plugin, pod, snapshot, attempt)
        rejections += make_rejections(plugin.name, result.uids_to_reject)
        if has_extenders and result.plan is not None:
            result = yield PreemptStep(result)
        results[plugin.name] = result
        status = result.status
        if status.code is Code.UNRESOLVABLE or not status.is_rejected:
            has_nomination = status.is_success or status.is_rejected
            outcome = PostFilterRun(
                status.with_plugin(plugin.name), result.nominated_node_name if has_nomination else None, results
            )
            break
        reasons.extend(status.reasons)
        if result.nominated_node_name is not None:
            nominated_node = result.nominated_node_name
    if outcome is None:
        first_plugin = next(iter(results), "")
        outcome = PostFilterRun(Status(Code.UNSCHEDULABLE, tuple(reasons), first_plugin), nominated_node, results)
    runner.observe_extension_point(attempt.profile.scheduler_name, "PostFilter", outcome.status, start_time)
    return replace(outcome, rejections=tuple(rejections)) if rejections else outcome


def _run_post_filter_plugin(
    plugin: PostFilter[FailedAttempt], pod: PodInfo, snapshot: Snapshot, attempt: FailedAttempt
) -> PostFilterResult:
    """Run one plugin. If it raises or returns an invalid result, return an ERROR result."""
    runner = attempt.runtime.runner
    try:
        return runner.call_typed(plugin, "PostFilter", PostFilterResult, plugin.post_filter, pod, snapshot, attempt)
    except PluginError as error:
        return PostFilterResult(error.status)
