"""Pods that are assumed on the node that filter chose for them.

    chosen --assume--> assumed --the watch shows the pod on the node--> confirmed
                          |
                          +--a new request about the pod, or the pod is on another node--> superseded
                          +--the condition PodScheduled turns False--> unscheduled
                          +--the pod is deleted--> deleted
                          +--none of these before the timeout--> expired

A scheduler that gets one node from filter binds the pod some time later. Until the watch shows the binding, the pod is
assumed in the cache, so that the next choice counts it. The cache cannot forget a pod whose binding failed elsewhere,
so each assumption ends after a timeout at the latest. While the watch fails, no assumption expires, because the events
of the bindings are missing too.

A scheduler may ask about a pod a moment after the watch has shown its deletion here. No event would end that assumption
before the timeout, and the node would look full for a minute, so such a pod is not assumed.

Plugins of the extension point Reserve are not called. The scheduler that binds the pod chooses the devices and volumes
in its Reserve plugins. A second choice here would count devices and volumes that are not taken. The Filter plugins of
that scheduler know what it has reserved, and run before it calls filter.

Source: pkg/scheduler/backend/cache/cache.go, cacheImpl.AssumePod, cacheImpl.ForgetPod (1.36).
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from extender.api.kinds.meta import Condition, find_condition
from extender.api.kinds.pod import Pod
from extender.cache.cache import Cache

log = logging.getLogger("extender.extender_api")

DEFAULT_TIMEOUT_SECONDS: Final = 60.0
"""Time after which an assumption expires unless another event ends it. A binding usually takes less than a second."""

MAX_ASSUMPTIONS: Final = 20_000
"""Maximum number of assumptions: those of about a minute at 300 decisions per second. Beyond it, the oldest expires."""

MAX_DELETED_PODS: Final = 10_000
"""Number of the last deleted pods that are not assumed: those of ten seconds at 1,000 deletions per second."""

EVENTS: Final = ("chosen", "assumed", "confirmed", "superseded", "unscheduled", "deleted", "expired")
"""The events of an assumption, which are the values of the metric's label `event`."""


_RETRY_SECONDS: Final = 1.0
"""Seconds after which overdue assumptions are looked at again if the watch failed."""


@dataclass(slots=True)
class _Assumption:
    """One assumed pod.

    Attributes:
        deadline: the time of the event loop at which the assumption expires, in seconds.
        pod: the newest version of the pod.
        scheduled_condition: the condition PodScheduled in the request; None if the pod had none.
        nominated_node: the node for which the pod is nominated; empty if there is none.
    """

    uid: str
    node_name: str
    deadline: float
    pod: Pod
    scheduled_condition: Condition | None
    nominated_node: str


class Assumptions:
    """The assumed pods of one cache. Not thread-safe: all calls must come from one event loop.

    Assumptions that another part of the process makes in the same cache are not changed.
    """

    def __init__(
        self,
        cache: Cache,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
        count_event: Callable[[str], None] = lambda _: None,
        may_miss_bindings: Callable[[], bool] = lambda: False,
    ) -> None:
        """Create an empty set of assumptions.

        Args:
            cache: the cache in which pods are assumed.
            timeout_seconds: the time after which an assumption expires, more than 0.
            count_event: a function that counts one of `EVENTS`.
            may_miss_bindings: a function that returns whether the watch of pods fails. No assumption expires then.
        """
        self._cache, self._timeout_seconds, self._count_event = cache, timeout_seconds, count_event
        self._may_miss_bindings = may_miss_bindings
        self._assumptions: OrderedDict[str, _Assumption] = OrderedDict()  # oldest first
        self._deleted_uids: OrderedDict[str, None] = OrderedDict()  # oldest first
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._assumptions)

    def assume(self, pod: Pod, assumed_pod: Pod, node_name: str) -> bool:
        """Assume a pod on the chosen node.

        Return False if the watch showed the pod on a node already, or its deletion.

        Release all snapshots of the cache before the call, or the cache copies its tables.

        *assumed_pod* counts on the node (see `binding_cycle.make_assumed_pod`).
        """
        uid = pod.uid_or_key
        self._count_event("chosen")
        self.supersede(uid)
        pending_pod = self._cache.pending_pods.get(uid)
        if uid in self._cache.assigned_pods or uid in self._deleted_uids:
            return False
        if pending_pod is not None and pending_pod.metadata.deletion_timestamp is not None:
            return False
        if len(self._assumptions) >= MAX_ASSUMPTIONS:
            self._end(next(iter(self._assumptions.values())), "expired")
        loop = asyncio.get_running_loop()
        assumption = _Assumption(
            uid,
            node_name,
            loop.time() + self._timeout_seconds,
            pending_pod or pod,
            find_condition(pod.status.conditions, "PodScheduled"),
            self._cache.find_nominated_node(uid),
        )
        self._cache.assume(assumed_pod, node_name)
        self._assumptions[uid] = assumption
        self._count_event("assumed")
        if self._timer is None:
            self._timer = loop.call_at(assumption.deadline, self._on_timer)
        return True

    def supersede(self, uid: str) -> None:
        """End the assumption of the pod *uid*, if there is one, because there is a new request about the pod."""
        assumption = self._assumptions.get(uid)
        if assumption is not None:
            self._end(assumption, "superseded")

    def on_request(self, pod: Pod) -> None:
        """Expire overdue assumptions, and end that of *pod*, about which there is a new request."""
        if self._assumptions:
            self._expire(asyncio.get_running_loop().time())
            self.supersede(pod.uid_or_key)

    def on_pod_change(self, pod: Pod) -> None:
        """Update or end the assumption of *pod* after the watch showed a change and the cache was updated."""
        assumption = self._assumptions.get(pod.uid_or_key)
        if assumption is None:
            return
        if not self._cache.is_assumed(assumption.uid):
            assigned_pod = self._cache.assigned_pods.get(assumption.uid)
            if assigned_pod is None:
                self._end(assumption, "deleted")
            else:
                self._end(assumption, "confirmed" if assigned_pod.node_name == assumption.node_name else "superseded")
            return
        if pod.status.nominated_node_name != assumption.pod.status.nominated_node_name:
            assumption.nominated_node = pod.status.nominated_node_name
        assumption.pod = pod
        condition = find_condition(pod.status.conditions, "PodScheduled")
        if pod.metadata.deletion_timestamp is not None:
            self._end(assumption, "deleted")
        elif condition is not None and condition.status == "False" and condition != assumption.scheduled_condition:
            self._end(assumption, "unscheduled")

    def on_pod_delete(self, pod: Pod) -> None:
        """End the assumption of *pod* after the watch showed its deletion and the cache was updated."""
        self.on_pod_change(pod)
        if not pod.spec.node_name:  # no scheduler asks about a pod on a node
            self._deleted_uids[pod.uid_or_key] = None
            if len(self._deleted_uids) > MAX_DELETED_PODS:
                self._deleted_uids.popitem(last=False)

    def _end(self, assumption: _Assumption, event: str) -> None:
        """End *assumption*; forget the pod if it is still assumed."""
        del self._assumptions[assumption.uid]
        self._count_event(event)
        if not self._cache.is_assumed(assumption.uid):
            return
        self._cache.forget(assumption.pod)
        if assumption.nominated_node and assumption.uid in self._cache.pending_pods:
            self._cache.nominate(assumption.pod, assumption.nominated_node)

    def _expire(self, now: float) -> None:
        """End the assumptions whose deadline is at most *now*, unless the watch fails."""
        while self._assumptions:
            oldest = next(iter(self._assumptions.values()))
            if oldest.deadline > now or self._may_miss_bindings():
                return
            log.info(
                "A pod was not bound in time; it is no longer assumed on its node",
                extra={"pod": oldest.pod.key, "node": oldest.node_name, "seconds": self._timeout_seconds},
            )
            self._end(oldest, "expired")

    def _on_timer(self) -> None:
        """Expire overdue assumptions, and set the timer for the next one."""
        self._timer = None
        loop = asyncio.get_running_loop()
        self._expire(loop.time())
        if self._assumptions:
            now, deadline = loop.time(), next(iter(self._assumptions.values())).deadline
            self._timer = loop.call_at(deadline if deadline > now else now + _RETRY_SECONDS, self._on_timer)
