"""Write the conditions of pod groups in the background, one write at a time for each group.

kube-scheduler waits for the write before it pops the next group. Nothing in the next attempt depends on the write, so
the scheduling loop does not wait here.

Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.updatePodGroupCondition (1.36).
"""

from extender.api.kinds.pod_group import PodGroup
from extender.framework.status import Status
from extender.scheduler.context import SchedulerContext
from extender.scheduler.failure_handler import run_in_background, write_status
from extender.scheduler.status_patches import apply_condition_patch, make_pod_group_scheduled_patch


class PodGroupConditionWriter:
    """Writes the result of each attempt into the condition of its group."""

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
                await self._write_one(key, uid, unwritten.pop(uid))
        finally:
            del self._unwritten[key]

    async def _write_one(self, key: str, uid: str, status: Status) -> None:
        context = self._context
        condition_type = next(iter(context.profiles.values())).release.pod_group_condition
        group = context.cache.get_object(PodGroup, key)
        if group is None or group.metadata.uid != uid:
            return
        api_call = make_pod_group_scheduled_patch(group, status, condition_type, context.clock.now())
        if api_call is None:
            return
        is_only_in_cache = next(iter(context.profiles.values())).get_pod_group_settings().coscheduling
        if not is_only_in_cache and not await write_status(context, api_call):
            return
        if context.cache.get_object(PodGroup, key) is group:
            # The watch has not delivered the new status yet.
            context.cache.add_or_update_object(apply_condition_patch(group, api_call))
