"""Execute the PreBind and Bind plans of one pod.

`cycle.binding_cycle` returns the plans; this module makes their API calls, for the scheduler and for the bind verb.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from extender.api.kinds.node import Node
from extender.basics.clock import Clock
from extender.cache.cache import Cache
from extender.cache.pod_info import PodInfo
from extender.client.errors import ApiError, NotFoundError, PodOnOtherNodeError, UnreachableError
from extender.cycle import binding_cycle
from extender.cycle.binding_cycle import recheck_node
from extender.cycle.plugin_runtime import PluginRuntime
from extender.framework.api_plan import ApiCall, ApiPlan
from extender.framework.binding_points import PreBind
from extender.framework.extension_points import NamedPlugin
from extender.framework.plugin_errors import describe_value, plugin_exceptions
from extender.framework.plugin_runner import PluginError
from extender.framework.profiles import Profile
from extender.framework.status import Code, Status, error_status
from extender.scheduler.api_writer import ApiWriter, do_nothing

_BIND_CONFIRM_SECONDS = 60.0
"""Seconds to wait for the watch to confirm a binding of unknown outcome. The timeout of the API server is shorter."""

_POLL_SECONDS = 1.0
"""Seconds between checks of a plan's wait condition, and between checks whether a binding is confirmed.

Source: pkg/scheduler/framework/plugins/volumebinding/binder.go, volumeBinder.BindPodVolumes (1.36).
"""


_ERROR_STATUS = Status(Code.ERROR)


class BindingError(Exception):
    """The binding failed.

    Attributes:
        status: the reason.
        is_on_other_node: whether another scheduler bound the pod.
    """

    def __init__(self, status: Status, *, is_on_other_node: bool = False) -> None:
        super().__init__(status.message)
        self.status = status
        self.is_on_other_node = is_on_other_node


async def skip_freshness_check(_: str) -> str:
    """Return "": the cached node counts as up to date."""
    return ""


async def make_unreserve_calls(
    api: ApiWriter, api_calls: Sequence[ApiCall], log_warning: Callable[[str], None]
) -> None:
    """Make the API calls of Unreserve. If a call fails, log a warning and make the calls for other objects.

    An object to delete that is gone already is no failure.

    Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.Unreserve (1.36);
    pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go, DynamicResources.deleteClaim (1.37).
    """
    failed_objects: set[tuple[str, str, str]] = set()
    for api_call in api_calls:
        obj = api_call.kind, api_call.namespace, api_call.name
        if obj in failed_objects:
            continue
        try:
            await api.call(api_call)
        except Exception as error:  # noqa: BLE001  after an invalid call of a plugin, too, the pod must be forgotten
            if isinstance(error, NotFoundError) and api_call.verb == "delete":
                continue
            failed_objects.add(obj)
            log_warning(f"Unreserve could not update {api_call.kind} {api_call.namespace}/{api_call.name}: {error}")


@dataclass(frozen=True, slots=True)
class Binder:
    """Executes the plans of one assumed pod.

    Attributes:
        pod: the pod to bind.
        node_name: the name of the node on which the pod is assumed.
        node_at_decision: the node object in the scheduling cycle; None if the node may have changed since then.
        profile: the profile with the plugins.
        runtime: the runtime that calls the plugins.
        cycle_state: the PreFilter state by plugin name.
        cache: the cache with the assumed pod.
        api: the caller of the API server.
        clock: the source of the current time.
        sleep: the function that waits for a number of seconds.
        ensure_still_valid: the function that is called before each API call. It raises `BindingError` to stop the
            binding.
        on_pre_bind_call: the function that is called after each API call of PreBind with the call and its success.
        record_event: the function that records an event about the pod with a reason and a note.
        on_wait_end: the function that is called when the wait of a plan ends. Its arguments are the allocated
            devices of the plan, the result of the wait and its duration in seconds.
        get_stop_reason: the function that returns why the wait of a plan must end; empty if it may go on.
        get_cancel_reason: the function that returns why the binding is cancelled; empty if it is not. Until PreBind
            ends, the error names the plugin that was running.
        check_node_freshness: the function that returns why the cached node may be out of date; empty if it is current.
    """

    pod: PodInfo
    node_name: str
    node_at_decision: Node | None
    profile: Profile
    runtime: PluginRuntime
    cycle_state: dict[str, Any]
    cache: Cache
    api: ApiWriter
    clock: Clock
    sleep: Callable[[float], Awaitable[None]]
    ensure_still_valid: Callable[[], None]
    on_pre_bind_call: Callable[[ApiCall, bool], None] = do_nothing
    record_event: Callable[[str, str], None] = do_nothing
    on_wait_end: Callable[[Sequence[tuple[str, bool]], Status, float], None] = do_nothing
    get_stop_reason: Callable[[], str] = lambda: ""
    get_cancel_reason: Callable[[], str] = lambda: ""
    check_node_freshness: Callable[[str], Awaitable[str]] = skip_freshness_check

    @contextmanager
    def _observe(self, point: str, plugin: NamedPlugin | None = None) -> Iterator[None]:
        """Observe the status and duration of the `with` block, for *plugin* at the extension point *point*.

        Without *plugin*, the observation is for the extension point as a whole.

        Source: pkg/scheduler/metrics/metrics.go, FrameworkExtensionPointDuration, PluginExecutionDuration (1.36).
        """
        runner = self.runtime.runner
        start_time = runner.start_timer()

        def observe(status: Status | None) -> None:
            if plugin is None:
                runner.observe_extension_point(self.profile.scheduler_name, point, status, start_time)
            else:
                runner.observe_plan(plugin, point, status, start_time)

        try:
            yield
        except BindingError as error:
            observe(error.status)
            raise
        except Exception:
            observe(_ERROR_STATUS)
            raise
        observe(None)

    async def run_pre_bind_plugins(self, plugin_groups: Sequence[Sequence[PreBind]]) -> None:
        """Run the PreBind plugins and execute their plans. The plugins of a group run concurrently.

        If one fails, the others of its group make no more API calls. Their current calls end before this method does,
        because Unreserve must not undo a call that may still be executed.

        Raises:
            BindingError: a plugin, an API call or a wait failed.

        Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.getPreBindPluginGroups,
        frameworkImpl.RunPreBindPlugins (1.36).
        """
        with self._observe("PreBind"):
            for group in plugin_groups:
                errors: list[Exception] = []
                await asyncio.gather(*(self._run_in_group(plugin, errors) for plugin in group))
                if errors:
                    try:
                        raise errors[0]
                    finally:
                        errors.clear()  # a frame that has its own error is freed only by a full garbage collection

    async def _run_in_group(self, plugin: PreBind, errors: list[Exception]) -> None:
        """Run one plugin of a group. *errors* are those of the group; an error of this plugin is added."""

        def ensure_still_valid() -> None:
            if errors:
                raise BindingError(error_status("some other PreBind operation failed"))
            if reason := self.get_cancel_reason():
                raise BindingError(PluginError(plugin.name, "PreBind", reason).status)
            self.ensure_still_valid()

        try:
            await self._run_pre_bind_plugin(plugin, ensure_still_valid)
        except Exception as error:  # noqa: BLE001  raised again when the other plugins have ended
            errors.append(error)

    async def _run_pre_bind_plugin(self, plugin: PreBind, ensure_still_valid: Callable[[], None]) -> None:
        with self.cache.read() as snapshot:
            result = binding_cycle.run_pre_bind_plugin(
                plugin, self.pod, self.node_name, snapshot, self.runtime, self.cycle_state
            )
        if isinstance(result, Status):
            if result.is_success:
                return
            raise BindingError(result)
        with self._observe("PreBind", plugin):
            for api_call in result.calls:
                ensure_still_valid()
                await self._call_api(plugin, api_call)
            await self._wait_for_condition(plugin, result, ensure_still_valid)

    async def _call_api(self, plugin: PreBind, api_call: ApiCall) -> None:
        try:
            await self.api.call(api_call)
        except ApiError as error:
            self.on_pre_bind_call(api_call, False)
            message = f'running PreBind plugin "{plugin.name}": {error}'
            raise BindingError(Status(Code.ERROR, (message,), plugin.name)) from error
        except Exception as error:  # an invalid call of a plugin
            self.on_pre_bind_call(api_call, False)
            raise BindingError(self.runtime.runner.make_error(plugin, "PreBind", error).status) from error
        self.on_pre_bind_call(api_call, True)

    async def _wait_for_condition(self, plugin: PreBind, plan: ApiPlan, ensure_still_valid: Callable[[], None]) -> None:
        """Poll the wait condition of *plan* until it returns a status or the timeout expires."""
        if plan.wait_condition is None:
            return
        if plan.event is not None:
            self.record_event(*plan.event)
        start_time = self.clock.monotonic()
        deadline = start_time + plan.timeout
        while True:
            try:
                with self.cache.read() as snapshot:
                    result = plan.wait_condition(snapshot)
                if result is not None and not isinstance(result, Status):
                    raise ValueError(f"the wait condition returned {describe_value(result)}, want a Status or None")
            except plugin_exceptions() as error:
                raise BindingError(self.runtime.runner.make_error(plugin, "PreBind", error).status) from error
            if result is None:
                try:
                    ensure_still_valid()
                except BindingError as error:
                    self.on_wait_end(plan.allocated_devices, error.status, self.clock.monotonic() - start_time)
                    raise
                if reason := self.get_stop_reason():
                    raise BindingError(error_status(f'running PreBind plugin "{plugin.name}": {reason}'))
                result = plan.timeout_status if self.clock.monotonic() >= deadline else None
            if result is not None:
                self.on_wait_end(plan.allocated_devices, result, self.clock.monotonic() - start_time)
                if result.is_success:
                    return
                if result.is_rejected:
                    raise BindingError(result.with_plugin(plugin.name))
                raise BindingError(PluginError(plugin.name, "PreBind", result.message).status)
            await self.sleep(_POLL_SECONDS)

    def ensure_node_still_fits(self) -> None:
        """Recheck the node. This is called just before the binding is sent.

        Raises:
            BindingError: the node was deleted, or the pod no longer fits it.
        """
        status = recheck_node(self.pod, self.node_name, self.node_at_decision, self.cache, self.profile, self.runtime)
        if status is not None:
            raise BindingError(status)

    async def bind(self) -> None:
        """Bind the pod with the first Bind plugin that does not return SKIP.

        Raises:
            BindingError: the binding failed, or was not confirmed within `_BIND_CONFIRM_SECONDS`.

        Source: pkg/scheduler/schedule_one.go, Scheduler.bind; pkg/scheduler/framework/runtime/framework.go,
        frameworkImpl.RunBindPlugins (1.36).
        """
        with self._observe("Bind"):
            result = binding_cycle.run_bind_plugins(self.pod, self.node_name, self.profile, self.runtime)
            if isinstance(result, Status):
                raise BindingError(result)
            plugin, plan = result
            with self._observe("Bind", plugin):
                await self._execute_bind_plan(plugin, plan)

    async def _execute_bind_plan(self, plugin: NamedPlugin, plan: ApiPlan) -> None:
        """Make the API calls. If their outcome is unknown, wait until the watch shows the pod on a node.

        Source: pkg/scheduler/schedule_one.go, Scheduler.handleSchedulingFailure (1.36).
        """
        is_sent = False

        def check_before_send() -> None:
            nonlocal is_sent
            if not is_sent:  # a retry must not be stopped, because the pod may be bound already
                self.ensure_still_valid()
                self.ensure_node_still_fits()
                is_sent = True

        try:
            for api_call in plan.calls:
                await self.api.call(api_call, check_before_send, self._may_resend)
        except ApiError as error:
            if isinstance(error, UnreachableError) and error.maybe_sent and await self._wait_until_bound():
                return
            status = error_status(f'running Bind plugin "{plugin.name}": {error}')
            raise BindingError(status, is_on_other_node=isinstance(error, PodOnOtherNodeError)) from error
        except BindingError:
            raise
        except Exception as error:  # an invalid call of a plugin
            raise BindingError(self.runtime.runner.make_error(plugin, "Bind", error).status) from error

    async def _may_resend(self) -> bool:
        """Return whether the binding is still valid, and the pod still fits a cached node that is up to date."""
        if await self.check_node_freshness(self.node_name):
            return False
        try:
            self.ensure_still_valid()
            self.ensure_node_still_fits()
        except BindingError:
            return False
        return True

    async def _wait_until_bound(self) -> bool:
        """Wait until the watch shows the pod on a node, and return whether this is the selected node.

        Return False too if the pod is deleted, or after a timeout.
        """
        deadline = self.clock.monotonic() + _BIND_CONFIRM_SECONDS
        while True:
            if not self.cache.is_assumed(self.pod.uid):
                return self.cache.find_bound_node(self.pod.uid) == self.node_name
            if self.clock.monotonic() >= deadline:
                return False
            await self.sleep(_POLL_SECONDS)
