"""Run the PostFilter plugins, which may make a pod schedulable that fits no node.

Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunPostFilterPlugins;
pkg/scheduler/schedule_one.go, Scheduler.schedulingAlgorithm (1.36).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import Snapshot
from extender.cycle.diagnosis import Diagnosis
from extender.cycle.plugin_runtime import PluginRuntime
from extender.framework.extension_points import PostFilter, PostFilterResult
from extender.framework.plugin_runner import PluginError
from extender.framework.profiles import Profile
from extender.framework.status import Code, Status


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """A failed filter run, with the inputs of dry runs by PostFilter plugins.

    Attributes:
        diagnosis: the rejections.
        profile: the profile with the plugins.
        runtime: the runtime that calls the plugins.
        rng: the random generator that selects the start of a search and breaks ties. None starts at the first
            node, and selects the first of equal nodes.
        all_nodes: whether the search continues when there are enough candidates.
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
        status: SUCCESS if a plugin can make the pod schedulable.
        nominated_node: as in `PostFilterResult`.
        results: the results of the plugins that ran, by plugin.
    """

    status: Status
    nominated_node: str | None = None
    results: Mapping[str, PostFilterResult] = field(default_factory=dict)

    @property
    def details(self) -> dict[str, Any]:
        """`PostFilterResult.detail` by plugin, for each plugin that returned a detail."""
        return {name: result.detail for name, result in self.results.items() if result.detail is not None}


@dataclass(slots=True)
class PostFilterCollector:
    """Collects the results of PostFilter plugins. The first result other than UNSCHEDULABLE ends the run."""

    _results_by_plugin: dict[str, PostFilterResult] = field(default_factory=dict)
    _reasons: list[str] = field(default_factory=list)
    _nominated_node: str | None = None
    _first_plugin: str = ""

    def add(self, plugin: str, result: PostFilterResult) -> PostFilterRun | None:
        """Add the next result; return the outcome if the run ends, else None."""
        self._results_by_plugin[plugin] = result
        status = result.status
        if status.code is Code.UNRESOLVABLE or not status.is_rejected:
            nominated_node = result.nominated_node_name if status.is_success or status.is_rejected else None
            return PostFilterRun(status.with_plugin(plugin), nominated_node, self._results_by_plugin)
        if result.nominated_node_name is not None:
            self._nominated_node = result.nominated_node_name
        self._first_plugin = self._first_plugin or plugin
        self._reasons.extend(status.reasons)
        return None

    def finish(self) -> PostFilterRun:
        """Return the outcome if every plugin returned UNSCHEDULABLE."""
        return PostFilterRun(
            Status(Code.UNSCHEDULABLE, tuple(self._reasons), self._first_plugin),
            self._nominated_node,
            self._results_by_plugin,
        )


def run_post_filter_plugin(
    plugin: PostFilter[FailedAttempt], pod: PodInfo, snapshot: Snapshot, attempt: FailedAttempt
) -> PostFilterResult:
    """Run one plugin. If it raises, return an ERROR result."""
    try:
        return attempt.runtime.runner.call_typed(
            plugin, "PostFilter", PostFilterResult, plugin.post_filter, pod, snapshot, attempt
        )
    except PluginError as error:
        return PostFilterResult(error.status)


def run_post_filter_plugins(pod: PodInfo, snapshot: Snapshot, attempt: FailedAttempt) -> PostFilterRun:
    """Run the PostFilter plugins in order."""
    start_time = attempt.runtime.runner.start_timer()
    collector = PostFilterCollector()
    outcome: PostFilterRun | None = None
    for plugin in attempt.profile.post_filter_plugins:
        outcome = collector.add(plugin.name, run_post_filter_plugin(plugin, pod, snapshot, attempt))
        if outcome is not None:
            break
    outcome = outcome or collector.finish()
    attempt.runtime.runner.observe_extension_point(
        attempt.profile.scheduler_name, "PostFilter", outcome.status, start_time
    )
    return outcome
