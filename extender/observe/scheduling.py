"""What a standalone scheduler tells of itself: attempts, queue, preemption, election, requests to the API server.

Nothing here reads a clock or the cluster: whoever knows something says so, in seconds; figures that are states rather
than events are asked for when the page is (see `Figures`). Source: H.1.
"""

from collections.abc import Callable, Collection, Container, Mapping
from dataclasses import dataclass
from typing import Final

from prometheus_client import CollectorRegistry

from extender.framework.verdict import Code
from extender.observe.calls import CallMetrics
from extender.observe.families import Families
from extender.observe.metrics import PluginMetrics, exposition
from extender.observe.process_families import PROCESS_FAMILIES
from extender.observe.scheduler_families import GATED, PLUGIN_FAMILIES, SCHEDULER_FAMILIES

MOST_ATTEMPTS: Final = 15
"""From here on attempts are not told apart. Source: H007."""

ELECTION: Final = "kube-scheduler"
"""The name under which the election is told. Source: H040."""

_VOLUME_STAGES: Final = {"Filter": "predicate", "Reserve": "assume", "PreBind": "bind"}
"""What the parts of volume binding are called."""


@dataclass(frozen=True, slots=True)
class Figures:
    """States that are asked for when the page is written.

    Attributes:
        pending: waiting pods by queue. Source: H006.
        cached: `nodes`, `pods` and `assumed_pods`. Source: H017.
        rejected: waiting pods by (plugin, profile). Source: H018.
        in_flight: events kept, by label, and `PodPopped`. Source: H021.
        running: tasks by operation. Source: H019.
        sessions: with the API server.
    """

    pending: Callable[[], Mapping[str, int]]
    cached: Callable[[], Mapping[str, int]]
    rejected: Callable[[], Mapping[tuple[str, str], int]]
    in_flight: Callable[[], Mapping[str, int]]
    running: Callable[[], Mapping[str, int]]
    sessions: int = 1


@dataclass(frozen=True, slots=True)
class Build:
    """What this is, for `kubernetes_build_info` and `version_info`.

    Attributes:
        version: of Kubernetes, such as `1.36.3`.
        compiler: the Python implementation.
        runtime: its version.
        platform: such as `linux/amd64`.
        features: gates as (name, stage) and whether they are on; the stage is empty for general availability.
    """

    version: str
    compiler: str
    runtime: str
    platform: str
    features: Mapping[tuple[str, str], bool]


class SchedulerMetrics(CallMetrics):
    """Implements `loop.outside.Tally` and everything else a standalone scheduler can be asked to tell."""

    def __init__(
        self,
        registry: CollectorRegistry,
        plugins: PluginMetrics,
        hidden: Collection[str] = (),
        gates: Container[str] = GATED,
    ) -> None:
        """Register all families but those *hidden* and those of feature gates that are off.

        Args:
            registry: has the families of *plugins* already.
            plugins: told what they do.
            hidden: names of families.
            gates: those that are on; by default all that matter.
        """
        self._registry, self._plugins = registry, plugins
        absent = {name for gate, names in GATED.items() if gate not in gates for name in names}
        super().__init__(Families(registry, (*SCHEDULER_FAMILIES, *PROCESS_FAMILIES), absent.union(hidden)))
        self._families.count("disabled_metrics_total", by=len(hidden))
        self._figures: Figures | None = None
        self._build: Build | None = None

    # -- loop.outside.Tally

    def attempted(self, profile: str, result: str, seconds: float) -> None:
        """An attempt ended: scheduled, unschedulable or error. Source: H001, H002."""
        self._families.count("scheduler_schedule_attempts_total", result, profile)
        self._families.observe("scheduler_scheduling_attempt_duration_seconds", result, profile, value=seconds)

    def decided(self, seconds: float) -> None:
        """A scheduling cycle came to a decision. Source: H003."""
        self._families.observe("scheduler_scheduling_algorithm_duration_seconds", value=seconds)

    def bound(self, attempts: int, since_first_active: float) -> None:
        """A pod is bound, after so many attempts and so long since it first entered the active queue.

        Source: H007, H008.
        """
        self._families.observe("scheduler_pod_scheduling_attempts", value=attempts)
        told = str(attempts) if attempts < MOST_ATTEMPTS else f"{MOST_ATTEMPTS}+"
        self._families.observe("scheduler_pod_scheduling_sli_duration_seconds", told, value=since_first_active)

    def bound_after_flush(self) -> None:
        """A bound pod had been tried again only because it was parked too long. Source: H009."""
        self._families.count("scheduler_pod_scheduled_after_flush_total")

    def group_attempted(self, profile: str, result: str, seconds: float) -> None:
        """An attempt for a pod group ended: scheduled, unschedulable, waiting_on_preemption or error. Source: H034."""
        self._families.count("scheduler_podgroup_schedule_attempts_total", result, profile)
        self._families.observe("scheduler_podgroup_scheduling_attempt_duration_seconds", result, profile, value=seconds)

    def group_decided(self, seconds: float) -> None:
        """The members of a pod group were decided. Source: H036."""
        self._families.observe("scheduler_podgroup_scheduling_algorithm_duration_seconds", value=seconds)

    def waited(self, result: str, seconds: float) -> None:
        """A pod waited on Permit. Source: H016."""
        self._families.observe("scheduler_permit_wait_duration_seconds", result, value=seconds)

    def preempted(self, victims: int) -> None:
        """Pods are evicted for another. Source: H004."""
        self._families.observe("scheduler_preemption_victims", value=victims)

    def evicted(self, result: str, seconds: float) -> None:
        """The evictions of one preemption are done: success or error. Source: H026, H027."""
        self._families.observe("scheduler_preemption_goroutines_duration_seconds", result, value=seconds)
        self._families.count("scheduler_preemption_goroutines_execution_total", result)

    # -- the queue and the feed

    def moved(self, queue: str, event: str) -> None:
        """A pod was put into a queue. Source: H015."""
        self._families.count("scheduler_queue_incoming_pods_total", queue, event)

    def hinted(self, plugin: str, event: str, hint: str, seconds: float) -> None:
        """A queueing hint was asked for. Source: H014."""
        name = "scheduler_queueing_hint_execution_duration_seconds"
        self._families.observe(name, plugin, event, hint, value=seconds)

    def handled(self, event: str, seconds: float) -> None:
        """An event was taken in. Source: H020."""
        self._families.observe("scheduler_event_handling_duration_seconds", event, value=seconds)

    # -- plugins

    def observer(self, profile: str) -> "ProfileObserver":
        """Hears of the plugin calls of one profile (a `framework.observer.Observer`)."""
        return ProfileObserver(profile, self._plugins, self._families)

    def created_claim(self, *, well: bool) -> None:
        """A resource claim was created for a pod, or could not be. Source: H031."""
        self._families.count("scheduler_resourceclaim_creates_total", "success" if well else "failure")

    def attached(self, profile: str, driver: str, status: str, seconds: float, *, counts: bool) -> None:
        """The wait for devices is over, for one of them. Source: H032, H033."""
        told = (profile, driver, status)
        self._families.observe("scheduler_dra_bindingconditions_wait_duration_seconds", *told, value=seconds)
        if counts:
            self._families.count("scheduler_dra_bindingconditions_allocations_total", *told)

    # -- the election

    def leads(self, *, leading: bool) -> None:
        """Whether this process leads."""
        self._families.put("leader_election_master_status", ELECTION, value=float(leading))

    # -- the page

    def tells(self, build: Build, figures: Figures) -> None:
        """From now on the page tells *build*, and asks for *figures*."""
        self._build, self._figures = build, figures
        self._families.count("rest_client_transport_create_calls_total", "miss", by=figures.sessions)

    def page(self) -> bytes:
        """The page as it is now."""
        self._put_figures()
        self._put_build()
        return exposition(self._registry)

    def reset(self) -> None:
        """Forget what was counted by label. Source: H046."""
        self._families.reset()
        self._plugins.reset()

    def _put_figures(self) -> None:
        figures = self._figures
        if figures is None:
            return
        put_all = self._families.put_all
        for name, values in (
            ("scheduler_pending_pods", figures.pending()),
            ("scheduler_cache_size", figures.cached()),
            ("scheduler_inflight_events", figures.in_flight()),
            ("scheduler_goroutines", figures.running()),
        ):
            put_all(name, {(label,): value for label, value in values.items()})
        put_all("scheduler_unschedulable_pods", {(*key,): count for key, count in figures.rejected().items()})
        self._families.put("rest_client_transport_cache_entries", value=figures.sessions)
        self._families.put("rest_client_exec_plugin_ttl_seconds", value=float("inf"))

    def _put_build(self) -> None:
        build = self._build
        if build is None:
            return
        major, minor = build.version.split(".")[:2]
        self._families.put_all(
            "kubernetes_build_info",
            {(major, minor, f"v{build.version}", "", "", "", build.runtime, build.compiler, build.platform): 1},
        )
        compatible = f"{major}.{int(minor) - 1}"
        self._families.put_all("version_info", {("kube", build.version, f"{major}.{minor}", compatible): 1})
        self._families.put_all("kubernetes_feature_enabled", {key: float(on) for key, on in build.features.items()})
        for stability, count in _by_stability().items():
            counter = self._families.child("registered_metrics_total", stability, "")
            counter.reset()
            counter.inc(count)


class ProfileObserver:
    """Hears of the plugin calls of one profile."""

    __slots__ = ("_families", "_plugins", "_profile")

    def __init__(self, profile: str, plugins: PluginMetrics, families: Families) -> None:
        self._profile, self._plugins, self._families = profile, plugins, families

    def called(self, plugin: str, point: str, code: Code, seconds: float) -> None:
        """A plugin was called; some calls count elsewhere too. Source: H005, B102."""
        if point == "PostFilter" and plugin == "DefaultPreemption":
            self._families.count("scheduler_preemption_attempts_total")
        if plugin == "VolumeBinding" and code is Code.ERROR and point in _VOLUME_STAGES:
            self._families.count("scheduler_volume_scheduling_stage_error_total", _VOLUME_STAGES[point])
        self._plugins.called_for(self._profile, plugin, point, code, seconds)

    def passed(self, profile: str, point: str, code: Code, seconds: float) -> None:
        """All plugins of an extension point were run for one pod."""
        self._plugins.passed(profile, point, code, seconds)


def _by_stability() -> dict[str, int]:
    found: dict[str, int] = {}
    for family in (*PLUGIN_FAMILIES, *SCHEDULER_FAMILIES, *PROCESS_FAMILIES):
        found[family.stability.value] = found.get(family.stability.value, 0) + 1
    return found
