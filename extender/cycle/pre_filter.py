"""Run the PreFilter plugins, which compute state and restrict the nodes to filter.

Source: kube-scheduler/framework/interface.go, PreFilterPlugin; pkg/scheduler/framework/runtime/framework.go,
frameworkImpl.RunPreFilterPlugins; pkg/scheduler/schedule_one.go, Scheduler.findNodesThatFitPod (1.36).
"""

from dataclasses import dataclass, field
from typing import Any

from extender.api.pod_limits import find_exceeded_limit
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import Snapshot
from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.pod_result_cache import get_pod_result_cache
from extender.framework.plugin_runner import PluginError
from extender.framework.profiles import Profile
from extender.framework.status import Code, Status, error_status, unresolvable_status


@dataclass(frozen=True, slots=True)
class PreFilterRun:
    """The outcome of all PreFilter plugins.

    Attributes:
        status: None if Filter runs next, else the rejection or error.
        node_names: the names of the nodes to filter; None means all. Some of the nodes may be missing from the cluster.
            Also None if the status of a plugin ended the run early.
        restricting_plugins: the plugins that returned node names, sorted.
        cycle_state: the state by plugin name.
        skipped_plugins: the names of the plugins whose Filter is skipped.
    """

    status: Status | None = None
    node_names: frozenset[str] | None = None
    restricting_plugins: tuple[str, ...] = ()
    cycle_state: dict[str, Any] = field(default_factory=dict)
    skipped_plugins: frozenset[str] = frozenset()

    @property
    def excluded_reason(self) -> str:
        """The rejection reason of the nodes that the plugins excluded.

        Source: pkg/scheduler/schedule_one.go, Scheduler.findNodesThatFitPod (1.36).
        """
        return f"node(s) didn't satisfy plugin(s) [{' '.join(self.restricting_plugins)}]"


def run_pre_filter_plugins(pod: PodInfo, snapshot: Snapshot, profile: Profile, runtime: PluginRuntime) -> PreFilterRun:
    """Run the PreFilter plugins of *profile*.

    A plugin that raises ends the run with an ERROR. No plugin runs for a pod that exceeds a limit of `pod_limits`.
    """
    size_error = find_size_error(pod)
    return PreFilterRun(size_error) if size_error is not None else _run_plugins(pod, snapshot, profile, runtime)


def _run_plugins(pod: PodInfo, snapshot: Snapshot, profile: Profile, runtime: PluginRuntime) -> PreFilterRun:
    runner, start_time = runtime.runner, runtime.runner.start_timer()
    plugins, ignoring_plugins = profile.select_pre_filter_plugins(pod)
    cache = get_pod_result_cache(pod, "PreFilter", plugins, enabled=runtime.result_cache.enabled)
    cycle_state, skipped_plugins = dict(cache.cycle_state), {*cache.skipped_plugins, *ignoring_plugins}
    restricting_plugins: set[str] = set()
    node_names: frozenset[str] | None = None
    rejection: Status | None = None

    def finish(status: Status | None, *, last_plugin: Any = None, discard_nodes: bool = False) -> PreFilterRun:
        # `cycle_state` has all cached states from the start. Remove those of plugins after the one that ended the run.
        for later_plugin in () if last_plugin is None else cache.get_plugins_after(last_plugin):
            cycle_state.pop(later_plugin.name, None)
            skipped_plugins.discard(later_plugin.name)
        runner.observe_extension_point(profile.scheduler_name, "PreFilter", status, start_time)
        return PreFilterRun(
            status,
            None if discard_nodes else node_names,
            () if discard_nodes else tuple(sorted(restricting_plugins)),
            cycle_state,
            frozenset(skipped_plugins),
        )

    for plugin in cache.plugins_to_run:
        try:
            result = runner.pre_filter(plugin, pod, snapshot)
            cache.record(runner, plugin, pod, "PreFilter", result)
        except PluginError as error:
            return finish(error.status, last_plugin=plugin, discard_nodes=True)
        cycle_state[plugin.name] = result.state
        if result.skip:
            skipped_plugins.add(plugin.name)
            continue
        if result.status is not None and not result.status.is_success:
            status = result.status.with_plugin(plugin.name)
            if status.code is Code.UNSCHEDULABLE:
                rejection = status  # the other plugins still run, because preemption needs their state
                continue
            if not status.is_rejected:
                status = PluginError(plugin.name, "PreFilter", status.message).status
            return finish(status, last_plugin=plugin, discard_nodes=True)
        if result.node_names is not None:
            restricting_plugins.add(plugin.name)
            node_names = result.node_names if node_names is None else node_names & result.node_names
            if not node_names:
                reason = _format_no_nodes_left(sorted(restricting_plugins))
                return finish(unresolvable_status(reason), last_plugin=plugin)
    cache.finish_run()
    return finish(rejection)


def find_size_error(pod: PodInfo) -> Status | None:
    """Return an error if *pod* exceeds a limit of `pod_limits`, or None."""
    problem = pod.signature.get_or_create("exceeded_limit", lambda: find_exceeded_limit(pod.pod))
    return error_status(f"the pod is too large to schedule: {problem}") if problem else None


def _format_no_nodes_left(restricting_plugins: list[str]) -> str:
    if len(restricting_plugins) == 1:
        return f"node(s) didn't satisfy plugin {restricting_plugins[0]}"
    return f"node(s) didn't satisfy plugin(s) [{' '.join(restricting_plugins)}] simultaneously"
