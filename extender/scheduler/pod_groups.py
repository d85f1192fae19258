"""Schedule pod groups: pop all pending members of a group, schedule them, then bind or requeue each member.

Source: pkg/scheduler/schedule_one.go, Scheduler.ScheduleOne; pkg/scheduler/schedule_one_podgroup.go,
Scheduler.podGroupInfoForPod, Scheduler.frameworkForPodGroup, Scheduler.podGroupSchedulingDefaultAlgorithm;
pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.determineSchedulingHintForInFlightPod (1.36).
"""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace

from extender.api.kinds.node import Node
from extender.api.kinds.pod_group import PodGroup
from extender.cache.pod_groups import get_pod_group_key
from extender.cache.snapshot import Snapshot
from extender.cycle.decision import AttemptFailure, Decision, ScheduleFailure, ScheduleResult
from extender.cycle.pod_group.hierarchy import validate_pod_group
from extender.cycle.pod_group_cycle import get_member_sort_key, make_group_attempt, run_pod_group_cycle
from extender.cycle.pod_group_members import GroupAttempt, GroupDecision, MemberResult, MemberStep
from extender.cycle.scheduling_cycle import CycleInputs, schedule_without_extenders
from extender.event_loop.cooperative_iteration import let_other_tasks_run
from extender.framework.pod_group_points import PodGroupInfo
from extender.framework.profiles import Profile
from extender.framework.status import SUCCESS, Code, Status, error_status
from extender.preemption.plan import GroupPreemptionPlan
from extender.queueing.pod_group_queue import PodGroupQueue
from extender.queueing.queued_entities import QueuedEntity, QueuedPodGroupInfo, QueuedPodInfo
from extender.scheduler import log_messages
from extender.scheduler.binder import make_unreserve_calls
from extender.scheduler.context import SchedulerContext, log, run_in_background, start_task
from extender.scheduler.evictions import Preemptor, evict_in_background, evict_now, execute_post_filter_plans
from extender.scheduler.extender_cycle import schedule_with_extenders
from extender.scheduler.failure_handler import handle_scheduling_failure, is_still_pending
from extender.scheduler.plugin_effects import apply_plugin_effects
from extender.scheduler.status_patches import apply_condition_patch, make_pod_group_scheduled_patch
from extender.scheduler.status_writer import write_status

_RETRY_SECONDS = 30.0
"""Seconds until the success of a group is written again after all tries failed."""

FindProfile = Callable[[QueuedPodInfo], Profile | None]
"""A function that returns the profile of a pod. If the pod needs no scheduling, it takes the pod out of the queue and
returns None.
"""

StartBinding = Callable[[QueuedPodInfo, ScheduleResult, float, Node | None], None]
"""A function that assumes a pod on its node and starts the binding cycle.

The float is the start of the attempt, and the node is that of the scheduling cycle.
"""


class PodGroupConditionWriter:
    """Writes the result of each attempt into the condition of its group, one write at a time for each group.

    kube-scheduler waits for the write before it pops the next group. Nothing in the next attempt depends on the write,
    so the scheduling loop does not wait here.

    Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.updatePodGroupCondition (1.36).
    """

    def __init__(self, context: SchedulerContext) -> None:
        self._context = context
        self._unwritten: dict[str, dict[str, Status]] = {}
        """The status to write next by uid, for each group key with a write in progress."""

    def write(self, group: PodGroup, status: Status) -> None:
        """Write the result of an attempt for *group*. The call never waits.

        If an earlier result of the group is not sent yet, the new one replaces it. A success is not replaced, because
        the condition of a scheduled group stays true.
        """
        key, uid = f"{group.metadata.namespace}/{group.metadata.name}", group.metadata.uid
        is_running = key in self._unwritten
        unwritten = self._unwritten.setdefault(key, {})
        if uid not in unwritten or not unwritten[uid].is_success:
            unwritten[uid] = status
        if not is_running:
            run_in_background(self._context, self._write_all(key))

    async def _write_all(self, key: str) -> None:
        try:
            while unwritten := self._unwritten[key]:
                uid = next(iter(unwritten))
                status = unwritten.pop(uid)
                if not await self._write_one(key, uid, status) and status.is_success:
                    start_task(self._context.status_retries, self._write_later(key, uid, status))
        finally:
            del self._unwritten[key]

    async def _write_later(self, key: str, uid: str, status: Status) -> None:
        """Write a success again, because a scheduled group has no later attempt. kube-scheduler does not do this."""
        await self._context.sleep(_RETRY_SECONDS)
        group = self._context.cache.get_object(PodGroup, key)
        if group is not None and group.metadata.uid == uid:
            self.write(group, status)

    async def _write_one(self, key: str, uid: str, status: Status) -> bool:
        """Write *status*. Return False if that failed."""
        context = self._context
        condition_type = context.gates.release.pod_group_condition
        group = context.cache.get_object(PodGroup, key)
        if group is None or group.metadata.uid != uid:
            return True
        api_call = make_pod_group_scheduled_patch(group, status, condition_type, context.clock.now())
        if api_call is None:
            return True
        is_only_in_cache = context.gates.coscheduling
        if not is_only_in_cache and not await write_status(context, api_call):
            return False
        if context.cache.get_object(PodGroup, key) is group:
            # The watch has not delivered the new status yet.
            context.cache.add_or_update_object(apply_condition_patch(group, api_call))
        return True


class PodGroupScheduler:
    """Runs the scheduling attempts of pod groups."""

    def __init__(self, context: SchedulerContext, find_profile: FindProfile, start_binding: StartBinding) -> None:
        self._context, self._find_profile, self._start_binding = context, find_profile, start_binding
        self._condition_writer = PodGroupConditionWriter(context)
        self._durations_by_uid: dict[str, float] = {}
        self._nodes_by_name: dict[str, Node] = {}
        self._attempted: QueuedPodGroupInfo | None = None

    async def attempt(self, entity: QueuedEntity) -> None:
        """Schedule a pod group: *entity*, or in 1.36 the group of the member *entity*; it was popped from the queue."""
        if isinstance(entity, QueuedPodGroupInfo):
            self._attempted, members = entity, list(entity.members)
        else:
            self._attempted, members = None, self._pop_members(entity)
        try:
            await self._attempt(members)
        except Exception as exception:  # noqa: BLE001  logged with its traceback; one group's error must not end the loop
            log.exception("scheduling the pod group of %s failed", members[0].key)
            status = error_status(f"{type(exception).__name__}: {exception}")
            assigned_pods, in_flight = self._context.cache.assigned_pods, self._context.queue.in_flight_events
            members_in_flight = [
                member for member in members if member.uid in in_flight and member.uid not in assigned_pods
            ]
            self._fail_all(members_in_flight, status)
            self._end_attempt(status)

    def _end_attempt(self, status: Status) -> None:
        """Queue the members that remain as their group. Members that arrive from now on are queued with them."""
        attempted, self._attempted = self._attempted, None
        if attempted is not None and isinstance(self._context.queue, PodGroupQueue):
            self._context.queue.add_attempted_pod_group(attempted, status, self._context.clock.monotonic())
            self._context.wake()

    def _pop_members(self, first_member: QueuedPodInfo) -> list[QueuedPodInfo]:
        """Pop all pending members that PreEnqueue allows, in scheduling order.

        Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.podGroupInfoForPod (1.36).
        """
        cache, now = self._context.cache, self._context.clock.monotonic()
        with cache.read() as snapshot:
            pending_pods = snapshot.pod_group(get_pod_group_key(first_member.pod_info.pod) or "").pending.values()
        popped_members = (
            self._context.queue.pop_specific_pod(cache.make_pod_info(pod), now)
            for pod in pending_pods
            if pod.key != first_member.key
        )
        members = (first_member, *filter(None, popped_members))

        def get_sort_key(member: QueuedPodInfo) -> tuple[int, float, str]:
            return *get_member_sort_key(member.pod_info.pod, member.initial_attempt_timestamp or 0.0), member.key

        return sorted(members, key=get_sort_key)

    def _fail_all(self, members: Sequence[QueuedPodInfo], status: Status) -> None:
        for member in members:
            failure = AttemptFailure(status)
            handle_scheduling_failure(self._context, member, failure, self._context.clock.monotonic())

    async def _attempt(self, members: list[QueuedPodInfo]) -> None:
        context = self._context
        if not self._validate(members):
            return
        profiles = {member.uid: profile for member in members if (profile := self._find_profile(member)) is not None}
        members = [member for member in members if member.uid in profiles]
        if not members:
            self._end_attempt(SUCCESS)
            return
        start_time = context.clock.monotonic()
        profile = profiles[members[0].uid]
        runtime = context.runtimes[profile.scheduler_name]
        pods = [member.pod_info for member in members]
        with context.cache.read() as snapshot:
            attempt = make_group_attempt(pods, snapshot, profile, runtime, context.rng)
            log_messages.log_group_attempt(attempt.group)
            self._durations_by_uid = {}
            decision = await self._schedule_group(attempt, snapshot, start_time)
            decision = await self._preempt_in_cycle(attempt, snapshot, decision)
            self._nodes_by_name = {
                member.node_name: snapshot.nodes[row]
                for member in decision.members
                if (row := snapshot.row(member.node_name)) is not None
            }
        position_by_uid = {pod.uid: position for position, pod in enumerate(attempt.pods)}
        members.sort(key=lambda member: position_by_uid[member.uid])
        await self._make_unreserve_calls(members, decision)
        self._submit(attempt, members, decision)
        context.metrics.observe_pod_group_attempt(
            profile.scheduler_name, _get_result_label(decision), context.clock.monotonic() - start_time
        )
        member_counts = Counter(
            (get_pod_group_key(member.pod_info.pod), decision.get_member_failure(index) is None)
            for index, member in enumerate(members)
        )
        for group in attempt.group.iterate_pod_groups():
            status = decision.pod_group_statuses.get(group.key, decision.status)
            counts = member_counts[group.key, True], member_counts[group.key, False]
            log_messages.log_group_outcome(group, status, *counts, waits=decision.waits_for_preemption)
            self._write_condition(group, status)

    def _validate(self, members: Sequence[QueuedPodInfo]) -> bool:
        """Return whether the members can be scheduled together. If not, they fail, and the group since 1.37 too."""
        context, pods = self._context, [member.pod_info for member in members]
        profile = context.profiles.get(pods[0].spec.scheduler_name)
        if profile is None:
            return True
        with context.cache.read() as snapshot:
            error = validate_pod_group(pods, snapshot, profile)
        if error is None:
            return True
        self._fail_all(members, error)
        self._end_attempt(error)
        if profile.release.checks_member_priorities:
            runtime = context.runtimes[profile.scheduler_name]
            with context.cache.read() as snapshot:
                attempt = make_group_attempt(pods, snapshot, profile, runtime, context.rng)
            for group in attempt.group.iterate_pod_groups():
                self._write_condition(group, error)
        return False

    # -- scheduling

    async def _schedule_group(self, attempt: GroupAttempt, snapshot: Snapshot, start_time: float) -> GroupDecision:
        clock = self._context.clock
        end_time = start_time
        with closing(run_pod_group_cycle(attempt, snapshot)) as steps:
            try:
                step = next(steps)
                while True:
                    decision = await self._schedule_member(step, attempt)
                    if not step.is_dry_run:
                        end_time = clock.monotonic()
                    step = steps.send(decision)
            except StopIteration as stop:
                self._context.metrics.observe_pod_group_algorithm(end_time - start_time)
                group_decision: GroupDecision = stop.value
                return group_decision

    async def _schedule_member(self, step: MemberStep, attempt: GroupAttempt) -> Decision:
        """Schedule one member, with the extenders that are interested in it."""
        await let_other_tasks_run(1)
        context, only_nodes = self._context, step.placement.node_names
        start_time = context.clock.monotonic()
        extenders = [extender for extender in context.extenders if extender.is_interested(step.pod.pod)]
        if extenders or "SchedulerAsyncPreemption" not in context.gates:
            decision = await schedule_with_extenders(
                context, step.pod, step.profile, extenders, step.snapshot, only_nodes
            )
        else:
            decision = schedule_without_extenders(
                CycleInputs(
                    step.pod,
                    step.snapshot,
                    step.profile,
                    attempt.runtime,
                    context.rng,
                    context.node_sampler,
                    only_nodes,
                )
            )
        self._durations_by_uid[step.pod.uid] = context.clock.monotonic() - start_time
        context.metrics.observe_scheduling_algorithm(self._durations_by_uid[step.pod.uid])
        return decision

    async def _preempt_in_cycle(
        self, attempt: GroupAttempt, snapshot: Snapshot, decision: GroupDecision
    ) -> GroupDecision:
        """Without the gate SchedulerAsyncPreemption, evict the victims now. If that fails, the group fails.

        Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunPodGroupPostFilterPlugins (1.37).
        """
        plan, group = decision.preemption_plan, snapshot.get_group(attempt.group.group_key)
        is_in_background = "SchedulerAsyncPreemption" in self._context.gates
        if is_in_background or not isinstance(plan, GroupPreemptionPlan) or group is None:
            return decision
        error = await evict_now(self._context, Preemptor(group, tuple(pod.pod for pod in attempt.pods)), plan)
        decision = replace(decision, preemption_plan=None)
        if not error:
            return decision
        if attempt.profile.release.has_pod_group_post_filter:
            error = f'error in "DefaultPreemption" PodGroupPostFilter plugins: pod group preemption: {error}'
        return replace(
            decision,
            status=error_status(error),
            queue_status=decision.status,
            waits_for_preemption=False,
            member_failures=(),
            pod_group_statuses={},
        )

    # -- handling the result

    async def _make_unreserve_calls(self, members: Sequence[QueuedPodInfo], decision: GroupDecision) -> None:
        """Make the API calls of Unreserve for members that are not bound, before they are retried.

        Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.Unreserve
        (1.36).
        """
        api_calls = [
            replace(api_call, is_resent=False)  # the scheduling loop waits for the calls
            for outcome in decision.list_unreserve_outcomes([member.uid for member in members])
            for api_call in outcome.api_calls
        ]
        if api_calls and self._context.may_act():
            await make_unreserve_calls(self._context.api, api_calls, log.warning)

    def _submit(self, attempt: GroupAttempt, members: Sequence[QueuedPodInfo], decision: GroupDecision) -> None:
        """Start evictions, then bind or requeue each member.

        Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.submitPodGroupAlgorithmResult,
        Scheduler.updatePodGroupCondition (1.36), Scheduler.podGroupCycle (1.37).
        """
        context = self._context
        with context.cache.read() as snapshot:
            group = snapshot.get_group(attempt.group.group_key)
        results = {result.pod.uid: result for result in decision.members}
        for result in decision.members:
            _preempt(context, result)
        execute_post_filter_plans(context, attempt.pods[0].pod, decision.api_plans)
        uids = [member.uid for member in members]
        for outcome in decision.list_unreserve_outcomes(uids):
            apply_plugin_effects(context, (), outcome.pods_to_activate)
        apply_plugin_effects(context, decision.list_rejections(uids))
        if isinstance(decision.preemption_plan, GroupPreemptionPlan) and group is not None:
            preemptor = Preemptor(group, tuple(pod.pod for pod in attempt.pods))
            evict_in_background(context, preemptor, decision.preemption_plan)
        for index, member in enumerate(members):
            start_time = context.clock.monotonic() - self._durations_by_uid.get(member.uid, 0.0)
            failure = decision.get_member_failure(index)
            if failure is not None:
                handle_scheduling_failure(context, member, failure, start_time)
            elif is_still_pending(context, member):
                self._bind_member(member, results[member.uid], start_time)
            else:
                context.queue.done(member.uid)
        self._end_attempt(decision.queue_status or decision.status)

    def _write_condition(self, group_info: PodGroupInfo, status: Status) -> None:
        group = self._context.cache.get_object(PodGroup, group_info.key)
        if group is not None:
            self._condition_writer.write(group, status)

    def _bind_member(self, member: QueuedPodInfo, result: MemberResult, start_time: float) -> None:
        if self._context.cache.row(result.node_name) is None:  # deleted while other members were scheduled
            status = error_status(f'nodeinfo not found for node name "{result.node_name}"')
            handle_scheduling_failure(self._context, member, AttemptFailure(status), start_time)
        elif isinstance(result.decision, ScheduleResult):
            node = self._nodes_by_name.get(result.node_name)
            self._start_binding(member, result.decision, start_time, node)


def _preempt(context: SchedulerContext, result: MemberResult) -> None:
    """Start the evictions for one member. The evictions continue even if the group is not scheduled.

    Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.podGroupSchedulingDefaultAlgorithm (1.36).
    """
    if isinstance(result.decision, ScheduleFailure):
        execute_post_filter_plans(context, result.pod.pod, result.decision.post_filter_plans.values())


def _get_result_label(decision: GroupDecision) -> str:
    """Return the metric label of the result.

    Source: pkg/scheduler/metrics/metrics.go, podGroupScheduleAttempts (1.36).
    """
    if decision.waits_for_preemption:
        return "waiting_on_preemption"
    if decision.status.is_success:
        return "scheduled"
    return "error" if decision.status.code is Code.ERROR else "unschedulable"
