"""Store the failed attempts to place pods, and reuse them for alike pods until the cluster changes."""

from collections.abc import Hashable, Mapping

from extender.analysis.alike_pods import AlikePods
from extender.api.kinds.pod import Pod
from extender.cache.cache import Cache
from extender.cycle.decision import ScheduleFailure
from extender.framework.profiles import Profile


class FailedAttempts:
    """The failed scheduling cycles since the last write to a cache, by kind of pod.

    A cycle whose PostFilter plugin made a plan is not stored, because the plan may be selected by chance.
    """

    __slots__ = ("_alike_pods", "_cache", "_failures", "_write_count")

    def __init__(self, cache: Cache, profiles: Mapping[str, Profile]) -> None:
        self._cache, self._alike_pods = cache, AlikePods(profiles)
        self._failures: dict[Hashable, ScheduleFailure] = {}
        self._write_count = cache.write_count

    def make_key(self, pod: Pod) -> Hashable | None:
        """Return the key under which the failure of *pod* is stored, or None if it must not be stored."""
        return self._alike_pods.make_key(self._cache.make_pod_info(pod))

    def find(self, key: Hashable) -> ScheduleFailure | None:
        """Return the failure under *key*, or None."""
        if self._write_count != self._cache.write_count:
            self._failures.clear()
            self._write_count = self._cache.write_count
        return self._failures.get(key)

    def add(self, key: Hashable, failure: ScheduleFailure) -> bool:
        """Store *failure* under *key* if it does not depend on chance, and return whether it is stored.

        The cache has not changed since `find`.
        """
        if any(plan is not None for plan in failure.post_filter_plans.values()):
            return False
        self._failures[key] = failure
        return True
