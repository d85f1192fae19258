"""The plugin calls of the binding cycle: Reserve, Permit, PreBindPreFlight, PreBind, Bind and PostBind.

The module writes nothing to an API server: PreBind and Bind return plans, which the caller executes. It also checks,
just before binding, that the pod still fits the node.

Source: pkg/scheduler/schedule_one.go, Scheduler.assumeAndReserve, Scheduler.bindingCycle;
pkg/scheduler/framework/runtime/framework.go, frameworkImpl.WaitOnPermit;
pkg/scheduler/framework/runtime/pods_in_prebind_map.go, podInPreBind.MarkPrebound;
pkg/scheduler/framework/runtime/waiting_pods_map.go, newWaitingPod (1.36).
"""

from dataclasses import dataclass, field, replace
from typing import Any, Final

from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod
from extender.cache.cache import Cache
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import Snapshot
from extender.cycle.diagnosis import find_nodes_that_pass_filters
from extender.cycle.plugin_runtime import PluginRuntime
from extender.framework.api_plan import ApiCall, ApiPlan
from extender.framework.binding_points import (
    Bind,
    PermitResult,
    PostBindResult,
    PreBind,
    PreBindPreFlightResult,
    UnreserveResult,
)
from extender.framework.extension_points import DependsOn
from extender.framework.plugin_runner import OPTIONAL_STATUS, PluginError
from extender.framework.profiles import Profile
from extender.framework.status import Code, Status, error_status
from extender.framework.waiting_pods import MAX_TIMEOUT, WaitingPodSignal, make_rejections

CycleState = dict[str, Any]

_UNRESERVE_RESULT: Final[Any] = UnreserveResult | tuple | list | None
_POST_BIND_RESULT: Final[Any] = PostBindResult | None


def run_reserve_plugins(
    pod: PodInfo, node_name: str, snapshot: Snapshot, profile: Profile, runtime: PluginRuntime, cycle_state: CycleState
) -> Status | None:
    """Run the Reserve plugins; return the status of the first failure, or None on success.

    After a failure, the caller runs Unreserve.

    Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunReservePluginsReserve (1.36).
    """
    start_time = runtime.runner.start_timer()
    status = _run_reserve_until_failure(pod, node_name, snapshot, profile, runtime, cycle_state)
    runtime.runner.observe_extension_point(profile.scheduler_name, "Reserve", status, start_time)
    return status


def _run_reserve_until_failure(
    pod: PodInfo, node_name: str, snapshot: Snapshot, profile: Profile, runtime: PluginRuntime, cycle_state: CycleState
) -> Status | None:
    """Run Reserve plugins until one fails; return its status, or None if all succeed."""
    for plugin in profile.reserve_plugins:
        try:
            state = cycle_state.get(plugin.name)
            status = runtime.runner.call_typed(
                plugin, "Reserve", OPTIONAL_STATUS, plugin.reserve, pod, node_name, snapshot, state
            )
        except PluginError as error:
            return error.status
        if status is None or status.is_success:
            continue
        if status.is_rejected or status.plugin:
            return status.with_plugin(plugin.name)
        return PluginError(plugin.name, "Reserve", status.message).status
    return None


@dataclass(frozen=True, slots=True)
class UnreserveOutcome:
    """The outcome of all Unreserve plugins.

    Attributes:
        api_calls: the API calls to make, in order. If a call fails, the next one is made nevertheless.
        errors: the errors of plugins that raised. The other plugins ran nevertheless.
        rejections: the waiting pods that plugins reject.
        pods_to_activate: queued pods to move to activeQ.
    """

    api_calls: tuple[ApiCall, ...] = ()
    errors: tuple[PluginError, ...] = ()
    rejections: tuple[WaitingPodSignal, ...] = ()
    pods_to_activate: tuple[Pod, ...] = ()


def run_unreserve_plugins(
    pod: PodInfo, node_name: str, profile: Profile, runtime: PluginRuntime, cycle_state: CycleState
) -> UnreserveOutcome:
    """Run the Unreserve plugins in reverse order.

    Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunReservePluginsUnreserve (1.36).
    """
    api_calls: list[ApiCall] = []
    rejections: list[WaitingPodSignal] = []
    pods_to_activate: list[Pod] = []
    errors, start_time = [], runtime.runner.start_timer()
    for plugin in reversed(profile.reserve_plugins):
        try:
            result = runtime.runner.call_typed(
                plugin, "Unreserve", _UNRESERVE_RESULT, plugin.unreserve, pod, node_name, cycle_state.get(plugin.name)
            )
        except PluginError as error:
            errors.append(error)
            continue
        if not isinstance(result, UnreserveResult):
            api_calls += result or ()
            continue
        api_calls += result.api_calls
        rejections += make_rejections(plugin.name, result.uids_to_reject)
        pods_to_activate += result.pods_to_activate
    runtime.runner.observe_extension_point(profile.scheduler_name, "Unreserve", None, start_time)
    return UnreserveOutcome(tuple(api_calls), tuple(errors), tuple(rejections), tuple(pods_to_activate))


def make_assumed_pod(pod: Pod, node_name: str, profile: Profile, cycle_state: CycleState) -> Pod:
    """Return the pod to assume on *node_name*: *pod* with the modifications of the plugins.

    Source: pkg/scheduler/schedule_one.go, Scheduler.assume (1.36).
    """
    for plugin in profile.assume_extensions:
        pod = plugin.make_assumed_pod(pod, node_name, cycle_state.get(plugin.name))
    return pod


@dataclass(frozen=True, slots=True)
class PermitOutcome:
    """The outcome of all Permit plugins.

    Attributes:
        status: None approves the pod; WAIT makes it wait for the plugins in `timeouts`; any other code rejects it.
        timeouts: the timeouts in seconds, by plugin name.
        signals: the waiting pods that plugins reject or allow, in the order of the plugins. The rejections of a plugin
            come before the pods that it allows.
        pods_to_activate: queued pods to move to activeQ.
    """

    status: Status | None = None
    timeouts: dict[str, float] = field(default_factory=dict)
    signals: tuple[WaitingPodSignal, ...] = ()
    pods_to_activate: tuple[Pod, ...] = ()


def run_permit_plugins(
    pod: PodInfo, node_name: str, snapshot: Snapshot, profile: Profile, runtime: PluginRuntime, cycle_state: CycleState
) -> PermitOutcome:
    """Run the Permit plugins. In *snapshot* the pod is assumed on its node.

    Source: pkg/scheduler/schedule_one.go, Scheduler.prepareForBindingCycle;
    pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunPermitPlugins (1.36).
    """
    start_time = runtime.runner.start_timer()
    outcome = _run_permits(pod, node_name, snapshot, profile, runtime, cycle_state)
    runtime.runner.observe_extension_point(profile.scheduler_name, "Permit", outcome.status, start_time)
    return outcome


def _run_permits(
    pod: PodInfo, node_name: str, snapshot: Snapshot, profile: Profile, runtime: PluginRuntime, cycle_state: CycleState
) -> PermitOutcome:
    timeouts: dict[str, float] = {}
    reasons: tuple[str, ...] = ()
    failure: Status | None = None
    signals: list[WaitingPodSignal] = []
    pods_to_activate: tuple[Pod, ...] = ()
    for plugin in profile.permit_plugins:
        try:
            result = runtime.runner.call_typed(
                plugin, "Permit", PermitResult, plugin.permit, pod, node_name, snapshot, cycle_state.get(plugin.name)
            )
        except PluginError as error:
            failure = error.status
            break
        status = result.status
        signals += make_rejections(plugin.name, result.uids_to_reject)
        signals += (WaitingPodSignal(plugin.name, uid) for uid in result.uids_to_allow)
        pods_to_activate += result.pods_to_activate
        if status is None or status.is_success:
            continue
        if status.is_rejected:
            failure = status.with_plugin(plugin.name)
            break
        if status.code is not Code.WAIT:
            failure = PluginError(plugin.name, "Permit", status.message).status
            break
        timeouts[plugin.name] = min(result.timeout, MAX_TIMEOUT)
        reasons = status.reasons
    affected_pods = tuple(signals), pods_to_activate  # also if a later plugin rejects the pod
    if failure is not None or not timeouts:
        return PermitOutcome(failure, {}, *affected_pods)
    reasons_with_wait = (*reasons, "one or more plugins asked to wait and no plugin rejected pod")
    return PermitOutcome(Status(Code.WAIT, reasons_with_wait), timeouts, *affected_pods)


@dataclass(frozen=True, slots=True)
class PreFlightOutcome:
    """The PreBind plugins to run.

    Attributes:
        status: None if at least one plugin runs, SKIP if none runs, ERROR if the binding fails.
        groups: the groups of plugins. Groups run one after another, and the plugins of a group run concurrently.

    Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.getPreBindPluginGroups (1.36).
    """

    status: Status | None
    groups: tuple[tuple[PreBind, ...], ...] = ()


def run_pre_bind_pre_flights(
    pod: PodInfo, node_name: str, profile: Profile, runtime: PluginRuntime, cycle_state: CycleState
) -> PreFlightOutcome:
    """Run PreBindPreFlight and return the PreBind plugins to run.

    A PreBind plugin without PreBindPreFlight always runs, in a group of its own.

    Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunPreBindPreFlights (1.36).
    """
    start_time = runtime.runner.start_timer()
    outcome = _run_pre_flights(pod, node_name, profile, runtime, cycle_state)
    runtime.runner.observe_extension_point(profile.scheduler_name, "PreBindPreFlight", outcome.status, start_time)
    return outcome


def _run_pre_flights(
    pod: PodInfo, node_name: str, profile: Profile, runtime: PluginRuntime, cycle_state: CycleState
) -> PreFlightOutcome:
    groups: list[list[PreBind]] = []
    can_join_group = False
    for plugin in profile.pre_bind_plugins:
        result: PreBindPreFlightResult | Status = PreBindPreFlightResult()
        if hasattr(plugin, "pre_bind_pre_flight"):  # cheaper than isinstance with a protocol
            method, state = plugin.pre_bind_pre_flight, cycle_state.get(plugin.name)
            try:
                result = runtime.runner.call_typed(
                    plugin, "PreBindPreFlight", PreBindPreFlightResult | Status, method, pod, node_name, state
                )
            except PluginError as error:
                return PreFlightOutcome(error.status)
        if isinstance(result, Status):
            if result.code is not Code.SKIP:
                return PreFlightOutcome(_make_unexpected_status_error(plugin.name, result))
            result = PreBindPreFlightResult(skip=True)
        if not result.skip:
            if can_join_group and result.allow_parallel:
                groups[-1].append(plugin)
            else:
                groups.append([plugin])
        # A plugin that must run alone ends the group even if it is skipped.
        can_join_group = result.allow_parallel and (can_join_group or not result.skip)
    if not groups:
        return PreFlightOutcome(Status(Code.SKIP))
    return PreFlightOutcome(None, tuple(map(tuple, groups)))


def _make_unexpected_status_error(plugin: str, result: Status) -> Status:
    if result.code is Code.ERROR:
        return PluginError(plugin, "PreBindPreFlight", result.message).status
    message = f'PreBindPreFlight {plugin} returned "{result.code.label}", which is unsupported.'
    return Status(Code.ERROR, (f"{message} It is supposed to return Success, Skip, or Error status",), plugin)


def run_pre_bind_plugin(
    plugin: PreBind, pod: PodInfo, node_name: str, snapshot: Snapshot, runtime: PluginRuntime, cycle_state: CycleState
) -> ApiPlan | Status:
    """Return the PreBind plan of *plugin*, or the status that ends the binding.

    Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunPreBindPlugins (1.36).
    """
    try:
        result = runtime.runner.call_typed(
            plugin, "PreBind", ApiPlan | Status, plugin.pre_bind, pod, node_name, snapshot, cycle_state.get(plugin.name)
        )
    except PluginError as error:
        return error.status
    if isinstance(result, ApiPlan):
        return result
    if result.is_rejected:
        return result.with_plugin(plugin.name)
    return PluginError(plugin.name, "PreBind", _describe_status(result)).status


def _describe_status(status: Status) -> str:
    """Return the reasons of *status*, or that a plan was wanted in place of a status without a reason."""
    return status.message or f"returned the status {status.code.label} without a reason, want an ApiPlan"


def run_bind_plugins(
    pod: PodInfo, node_name: str, profile: Profile, runtime: PluginRuntime
) -> tuple[Bind, ApiPlan] | Status:
    """Return the first Bind plugin that does not return SKIP, with its plan; or the status that ends the binding.

    Source: pkg/scheduler/schedule_one.go, Scheduler.bind; pkg/scheduler/framework/runtime/framework.go,
    frameworkImpl.RunBindPlugins (1.36).
    """
    for plugin in profile.bind_plugins:
        try:
            result = runtime.runner.call_typed(plugin, "Bind", ApiPlan | Status, plugin.bind, pod, node_name)
        except PluginError as error:
            return error.status
        if isinstance(result, ApiPlan):
            return plugin, result
        if result.code is Code.SKIP:
            continue
        if result.is_rejected:
            return result.with_plugin(plugin.name)
        return PluginError(plugin.name, "Bind", _describe_status(result)).status
    return Status(Code.SKIP, ("every Bind plugin returned the status Skip, so none binds the pod",))


@dataclass(frozen=True, slots=True)
class PostBindOutcome:
    """The outcome of all PostBind plugins.

    Attributes:
        errors: the errors of plugins, which do not affect the pod.
        pods_to_activate: queued pods to move to activeQ.
    """

    errors: tuple[PluginError, ...] = ()
    pods_to_activate: tuple[Pod, ...] = ()


def run_post_bind_plugins(
    pod: PodInfo, node_name: str, profile: Profile, runtime: PluginRuntime, cycle_state: CycleState
) -> PostBindOutcome:
    """Run the PostBind plugins. After an error of a plugin, the next ones run nevertheless.

    Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunPostBindPlugins (1.36).
    """
    errors, start_time = [], runtime.runner.start_timer()
    pods_to_activate: list[Pod] = []
    for plugin in profile.post_bind_plugins:
        try:
            result = runtime.runner.call_typed(
                plugin, "PostBind", _POST_BIND_RESULT, plugin.post_bind, pod, node_name, cycle_state.get(plugin.name)
            )
        except PluginError as error:
            errors.append(error)
        else:
            pods_to_activate += result.pods_to_activate if result is not None else ()
    runtime.runner.observe_extension_point(profile.scheduler_name, "PostBind", None, start_time)
    return PostBindOutcome(tuple(errors), tuple(pods_to_activate))


def recheck_node(
    pod: PodInfo, name: str, node_at_decision: Node | None, cache: Cache, profile: Profile, runtime: PluginRuntime
) -> Status | None:
    """Return an error if the node named *name* no longer fits *pod*, else None.

    *node_at_decision* is the node object in the scheduling cycle. Only filters that depend on the node object alone are
    run. Other filters would count *pod* itself, which is already assumed on the node.
    """
    node = cache.get_node(name)
    if node is None:
        return error_status(f'node "{name}" was deleted before the pod was bound to it')
    if node is node_at_decision:
        return None
    node_filter_plugins = tuple(
        plugin for plugin in profile.filter_plugins if getattr(plugin, "filter_depends_on", None) is DependsOn.NODE
    )
    names = {plugin.name for plugin in node_filter_plugins}
    pre_filter_plugins = tuple(plugin for plugin in profile.pre_filter_plugins if plugin.name in names)
    node_profile = replace(profile, filter_plugins=node_filter_plugins, pre_filter_plugins=pre_filter_plugins)
    with cache.read() as snapshot, runtime.runner.unobserved():
        diagnosis = find_nodes_that_pass_filters(pod, snapshot, node_profile, runtime, only_nodes=frozenset({name}))
    if diagnosis.has_feasible_node:
        return None
    reasons = ", ".join(diagnosis.count_reasons()) or diagnosis.format_message()
    return error_status(f'node "{name}" changed before the pod was bound to it: {reasons}')
