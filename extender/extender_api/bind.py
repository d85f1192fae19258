"""The verb bind: bind a pod to a node for a scheduler, after checking the request against the current state.

The pod is read from the API server first; its name, uid, scheduler and state must match the request. The node is then
filtered by the profile of the pod's scheduler, on the newest snapshot. If the node fits, the pod is assumed on the
node. Then its volumes and claims are written, and last the Binding, which has the pod's uid as precondition. Every
failure forgets the assumed pod and is reported in the response. If the pod is already on the requested node, the
request succeeds. So repeated requests are safe.

Source: kube-scheduler/extender/v1/types.go, ExtenderBindingArgs; pkg/scheduler/schedule_one.go,
Scheduler.extendersBinding; kube-scheduler/framework/extender.go, Extender (1.36).
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from weakref import WeakValueDictionary

from prometheus_client import CollectorRegistry

from extender.api.codec import DecodeError, decode
from extender.api.extender_v1 import BindingArgs, BindingResult
from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod
from extender.basics.clock import Clock, SystemClock
from extender.cache.cache import Cache
from extender.cache.pod_info import PodInfo
from extender.client.connections import is_true_soon
from extender.client.errors import ApiError, NotFoundError
from extender.client.writer import Writer
from extender.cycle import binding_cycle
from extender.cycle.diagnosis import find_nodes_that_pass_filters
from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.pre_enqueue import run_pre_enqueue_plugins
from extender.extender_api.decision_log import DecisionLog
from extender.extender_api.extended_resource_claim import is_claim_allocated, use_claim
from extender.framework.profiles import Profile
from extender.framework.status import Code, Status
from extender.metrics.verb_metrics import VerbMetrics
from extender.scheduler.api_writer import ApiWriter, do_nothing
from extender.scheduler.binder import Binder, BindingError, make_unreserve_calls

log = logging.getLogger("extender.extender_api")

_GANG_SCHEDULING: Final = "GangScheduling"

_MAX_WAIT_SECONDS = 4.0
"""Seconds for which a request waits for an earlier one of the same pod. kube-scheduler waits five seconds by default.

Source: pkg/scheduler/extender.go, DefaultExtenderTimeout (1.36).
"""

_FINISHED = ("Succeeded", "Failed")


class PodReadError(Exception):
    """The pod could not be read from the API server; the message is one line."""


@dataclass(slots=True)
class BindApi(ApiWriter):
    """The API calls of the verb bind.

    Attributes:
        reader: the client for reads; may be the same as `writer`.
    """

    reader: Writer = field(kw_only=True)

    async def pod(self, namespace: str, name: str) -> Pod | None:
        """Return the current pod of that name, or None if it does not exist.

        Raises:
            PodReadError: the pod cannot be read.
        """
        try:
            return decode(await self.reader.get("Pod", namespace, name), Pod)
        except NotFoundError:
            return None
        except (ApiError, DecodeError) as error:
            raise PodReadError(f"pod {namespace}/{name} cannot be read: {error}") from error


class BindRejectedError(Exception):
    """The bind request is rejected before anything is written; the message is the reason."""


@dataclass(slots=True)
class BindVerb:
    """Binds pods of one cluster. All calls must come from one event loop.

    Attributes:
        cache: the watched cluster; bound pods are assumed in it until the watch confirms them.
        default_profile: the profile for pods of `extra_scheduler_names`.
        runtime: the runtime that runs the plugins, shared with the other verbs.
        api: the API server.
        extra_scheduler_names: the names of further schedulers; their pods are bound too.
        get_not_ready_reason: a function that returns the reason why no request can be served now; empty if requests can
            be served.
        on_forget: a function that is called with an assumed pod whose binding failed.
        is_stopping: a function that returns whether the process is stopping. Waits for volumes and devices then end.
        end_assumption: a function that ends filter's assumption of the pod with the given uid, because bind assumes the
            pod itself.
    """

    cache: Cache
    profiles: Mapping[str, Profile]
    default_profile: Profile
    runtime: PluginRuntime
    api: BindApi
    metrics: VerbMetrics = field(default_factory=lambda: VerbMetrics(CollectorRegistry()))
    extra_scheduler_names: Collection[str] = ()
    get_not_ready_reason: Callable[[], str] = lambda: ""
    decision_log: DecisionLog = field(default_factory=DecisionLog)
    on_forget: Callable[[Pod], None] = do_nothing
    clock: Clock = field(default_factory=SystemClock)
    is_stopping: Callable[[], bool] = lambda: False
    end_assumption: Callable[[str], None] = do_nothing
    _pod_locks: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    async def bind(self, args: BindingArgs) -> BindingResult:
        """Bind the pod to the node. If that fails, forget the assumed pod and return the reason in `error`."""
        if reason := self.get_not_ready_reason():
            return self._record_result(args, "refused", reason)
        try:
            async with self._lock_pod(args):  # a repeated request waits for the first one's result
                return self._record_result(args, await self._bind(args))
        except BindRejectedError as error:
            return self._record_result(args, "refused", str(error))
        except BindingError as error:
            return self._record_result(args, "refused" if error.status.is_rejected else "failed", str(error))
        except PodReadError as error:
            return self._record_result(args, "failed", str(error))

    @asynccontextmanager
    async def _lock_pod(self, args: BindingArgs) -> AsyncIterator[None]:
        """Serve one request for a pod at a time.

        The first one may wait for a volume for minutes. The caller gives up and repeats the request, so that requests
        without a limited wait would fill the limit of concurrent requests.

        Raises:
            BindRejectedError: an earlier request is still running.
        """
        lock = self._pod_locks.setdefault(args.pod_uid, asyncio.Lock())
        try:
            async with asyncio.timeout(_MAX_WAIT_SECONDS):
                await lock.acquire()
        except TimeoutError as error:
            raise BindRejectedError(f"another request to bind pod {args.key} is still running") from error
        try:
            yield
        finally:
            lock.release()

    def _record_result(self, args: BindingArgs, outcome: str, error: str = "") -> BindingResult:
        self.metrics.count_bind_result(outcome)
        details = {"node": args.node, "uid": args.pod_uid, "result": outcome, "error": error}
        self.decision_log.add(args.key, "bind", lambda: details, sum(map(len, details.values())))
        return BindingResult(error)

    async def _bind(self, args: BindingArgs) -> str:
        pod = await self.api.pod(args.pod_namespace, args.pod_name)
        if pod is not None and (pod.metadata.uid, pod.spec.node_name) == (args.pod_uid, args.node):
            return "already"
        has_claim = pod is not None and await self._wait_for_extended_resource_claim(pod)
        self.end_assumption(args.pod_uid)
        pending_pod = self._check_pod(pod, args)
        # No other task runs between the check and the assume, so no other request can use the node's resources.
        pod_info, cycle_state = self._check_node(use_claim(pending_pod) if has_claim else pending_pod, args.node)
        node_at_decision = self.cache.get_node(args.node)
        nominated_node = self.cache.find_nominated_node(args.pod_uid)
        profile = self._get_profile(pending_pod)
        self.cache.assume(binding_cycle.make_assumed_pod(pending_pod, args.node, profile, cycle_state), args.node)
        try:
            await self._run_binding_cycle(pod_info, args.node, node_at_decision, profile, cycle_state)
        except Exception as failure:  # a process that ends cancels the task; the pod may be bound
            unreserve_outcome = binding_cycle.run_unreserve_plugins(
                pod_info, args.node, profile, self.runtime, cycle_state
            )
            for error in unreserve_outcome.errors:
                log.warning("%s", error)
            # A scheduler that bound the pod elsewhere may have written the same. kube-scheduler undoes that.
            is_on_other_node = isinstance(failure, BindingError) and failure.is_on_other_node
            if not is_on_other_node and not self.cache.find_bound_node(args.pod_uid):
                await make_unreserve_calls(self.api, unreserve_outcome.api_calls, log.warning)
            if self.cache.is_assumed(args.pod_uid):
                self.cache.forget(pending_pod)
                newest_pod = self.cache.pending_pods.get(args.pod_uid)
                if newest_pod is not None:
                    if newest_pod.status.nominated_node_name != pending_pod.status.nominated_node_name:
                        nominated_node = newest_pod.status.nominated_node_name
                    self.cache.nominate(newest_pod, nominated_node)
                    self.on_forget(newest_pod)
            raise
        post_bind = binding_cycle.run_post_bind_plugins(pod_info, args.node, profile, self.runtime, cycle_state)
        for error in post_bind.errors:
            log.warning("%s", error)
        return "bound"

    async def _wait_for_extended_resource_claim(self, pod: Pod) -> bool:
        """Return whether the scheduler has allocated a claim for extended resources of *pod*.

        If the status of the pod names a claim that is not in the cache, wait up to a second for it.
        """
        if pod.status.extended_resource_claim_status is None:
            return False
        return is_claim_allocated(pod, self.cache) or await is_true_soon(lambda: is_claim_allocated(pod, self.cache))

    async def _run_binding_cycle(
        self, pod: PodInfo, node: str, node_at_decision: Node | None, profile: Profile, cycle_state: dict[str, Any]
    ) -> None:
        """Run Reserve, Permit, PreBind and Bind for *node*, with a last check of the node before Bind.

        Raises:
            BindingError: an extension point failed or rejected the pod.

        Source: pkg/scheduler/schedule_one.go, Scheduler.prepareForBindingCycle, Scheduler.bindingCycle,
        Scheduler.bind; pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunPreBindPreFlights,
        frameworkImpl.WaitOnPermit, frameworkImpl.getPreBindPluginGroups;
        pkg/scheduler/framework/runtime/pods_in_prebind_map.go, podInPreBind.MarkPrebound (1.36).
        """
        runtime = self.runtime
        with self.cache.read() as snapshot:
            status = binding_cycle.run_reserve_plugins(pod, node, snapshot, profile, runtime, cycle_state)
            _raise_unless_ok(status)
            outcome = binding_cycle.run_permit_plugins(pod, node, snapshot, profile, runtime, cycle_state)
            _raise_unless_permitted(outcome)
        pre_flights = binding_cycle.run_pre_bind_pre_flights(pod, node, profile, runtime, cycle_state)
        if pre_flights.status is not None and pre_flights.status.code is not Code.SKIP:
            raise BindingError(pre_flights.status)

        def ensure_assumed() -> None:
            if not self.cache.is_assumed(pod.uid):
                raise BindingError(Status(Code.ERROR, ("pod does not exist any more",)))

        binder = Binder(
            pod,
            node,
            node_at_decision,
            profile,
            runtime,
            cycle_state,
            self.cache,
            self.api,
            self.clock,
            asyncio.sleep,
            ensure_assumed,
            get_stop_reason=lambda: "the extender is stopping" if self.is_stopping() else "",
        )
        if pre_flights.status is None:
            await binder.run_pre_bind_plugins(pre_flights.groups)
        ensure_assumed()
        await binder.bind()

    def _get_profile(self, pod: Pod) -> Profile:
        return self.profiles.get(pod.spec.scheduler_name, self.default_profile)

    def _check_pod(self, pod: Pod | None, args: BindingArgs) -> Pod:
        """Return *pod* if it matches the request and is pending."""
        key = f"{args.pod_namespace}/{args.pod_name}"
        if pod is None:
            raise BindRejectedError(f"pod {key} not found")
        if (pod.metadata.namespace, pod.metadata.name) != (args.pod_namespace, args.pod_name):
            raise BindRejectedError(f"requested pod {key}, but the API server returned {pod.key}")
        uid = pod.metadata.uid
        if uid != args.pod_uid:
            raise BindRejectedError(f"pod {key} has the uid {uid}, not {args.pod_uid}: it was deleted and recreated")
        if pod.spec.scheduler_name not in self.profiles and pod.spec.scheduler_name not in self.extra_scheduler_names:
            raise BindRejectedError(
                f'pod {key} is for the scheduler "{pod.spec.scheduler_name}", which is not served here'
            )
        if pod.spec.node_name:
            raise BindRejectedError(f"pod {key} is on node {pod.spec.node_name} already")
        if pod.metadata.deletion_timestamp is not None:
            raise BindRejectedError(f"pod {key} is being deleted")
        if pod.status.phase in _FINISHED:
            raise BindRejectedError(f"pod {key} has finished")
        assigned_pod_info = self.cache.assigned_pods.get(uid)
        if assigned_pod_info is not None:
            raise BindRejectedError(f"pod {key} is already assumed or bound on node {assigned_pod_info.node_name}")
        return pod

    def _check_node(self, pod: Pod, node: str) -> tuple[PodInfo, dict[str, Any]]:
        """Run PreEnqueue, PreFilter and Filter for *node*; return the pod's PodInfo and its CycleState."""
        row = self.cache.row(node)
        if row is None:
            raise BindRejectedError(f"node {node} is not known to the extender (yet)")
        pod_info, profile = self.cache.make_pod_info(pod), self._get_profile(pod)
        with self.cache.read() as snapshot:
            pre_enqueue_status = run_pre_enqueue_plugins(pod_info, snapshot, profile, self.runtime)
            if pre_enqueue_status is not None:
                raise BindRejectedError(f"pod {pod.key}: {pre_enqueue_status.message}")
            diagnosis = find_nodes_that_pass_filters(pod_info, snapshot, profile, self.runtime, with_rejections=True)
        if diagnosis.error is not None:
            raise BindRejectedError(diagnosis.error.message)
        if diagnosis.pre_filter_run.status is not None:
            raise BindRejectedError(
                f"pod {pod.key} does not fit node {node}: {diagnosis.pre_filter_run.status.message}"
            )
        if not diagnosis.feasible[row]:
            reasons = ", ".join(rejection.reason.text for rejection in diagnosis.rejections if rejection.nodes[row])
            raise BindRejectedError(
                f"pod {pod.key} does not fit node {node}: {reasons or diagnosis.pre_filter_run.excluded_reason}"
            )
        return pod_info, dict(diagnosis.pre_filter_run.cycle_state)


def _raise_unless_ok(status: Status | None) -> None:
    """Raise `BindingError` unless *status* is a success."""
    if status is not None and not status.is_success:
        raise BindingError(status)


def _raise_unless_permitted(outcome: binding_cycle.PermitOutcome) -> None:
    """Raise `BindingError` unless the Permit plugins approve the pod; one that waits rejects it.

    GangScheduling may wait: kube-scheduler has run it before it calls bind, and binds the members one after another.
    """
    if outcome.timeouts.keys() != {_GANG_SCHEDULING}:
        _raise_unless_ok(outcome.status)
