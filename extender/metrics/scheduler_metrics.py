"""Metrics of a standalone scheduler: attempts, queue, preemption, leader election, requests to the API server.

Callers pass durations in seconds. Gauges are read when the page is rendered (see `ReadGauges`).

Source: pkg/scheduler/metrics/metrics.go, InitMetrics (1.36).
"""

from collections import Counter
from collections.abc import Callable, Collection, Container, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final

from prometheus_client import CollectorRegistry

from extender.config.releases import DEFAULT_RELEASE, Release
from extender.framework.observer import ObservedEvent, PluginObserver
from extender.framework.profiles import Profile
from extender.framework.status import Code
from extender.metrics.client_metrics import ClientMetrics
from extender.metrics.exposition import make_registry, render_metrics
from extender.metrics.families import MetricFamilies, select_families
from extender.metrics.plugin_metrics import PluginMetrics
from extender.metrics.process_families import PROCESS_FAMILIES
from extender.metrics.scheduler_families import FAMILIES_BY_GATE, PLUGIN_FAMILIES, SCHEDULER_FAMILIES

_VOLUME_STAGES: Final = {"Filter": "predicate", "Reserve": "assume", "PreBind": "bind"}
"""Stages of volume binding by extension point."""

_EVENT_HANDLING: Final = "scheduler_event_handling_duration_seconds"

_EVENT_FAMILIES: Final[Mapping[ObservedEvent, tuple[str, str]]] = {
    ObservedEvent.PREEMPTION_EVALUATION: ("", "scheduler_preemption_evaluation_duration_seconds"),
    ObservedEvent.POD_GROUP_PREEMPTION: ("scheduler_workload_preemption_attempts_total", ""),
    ObservedEvent.PLACEMENTS_GENERATED: ("scheduler_generated_placements_total", ""),
    ObservedEvent.PLACEMENT_EVALUATION: (
        "scheduler_placement_evaluations_total",
        "scheduler_placement_evaluation_duration_seconds",
    ),
}
"""The counter and the histogram of an event; empty if there is none."""

_CLAIM_CREATES: Final = "dynamic_resource_allocation_resourceclaim_creates_total"
_INCOMING_ENTITIES: Final = "scheduler_queue_incoming_entities_total"

_WORKLOAD_VICTIMS: Final = "scheduler_workload_preemption_victims"
_EXECUTION_DURATION: Final = "scheduler_preemption_execution_duration_seconds"

MAX_ATTEMPTS_LABEL: Final = 15
"""The label value `15+` stands for this number of attempts and all higher numbers.

Source: pkg/scheduler/metrics/metrics.go, PodSchedulingSLIDuration (1.36).
"""

ELECTION_NAME: Final = "kube-scheduler"
"""The label value of the leader election.

Source: component-base/metrics/legacyregistry/registry.go, init (1.36).
"""


ReadGauges = Callable[[], Mapping[str, Mapping[str, int] | Mapping[tuple[str, str], int]]]
"""Returns the values of gauges by family and label; values by two labels are by pairs of them."""


class ProfileObserver(PluginObserver):
    """The plugin observer of a profile."""

    def __init__(self, profile: str, plugin_metrics: PluginMetrics, families: MetricFamilies) -> None:
        self._profile, self._plugins, self._families = profile, plugin_metrics, families

    def observe_plugin_call(self, plugin: str, point: str, code: Code, seconds: float) -> None:
        """Observe a plugin call; preemption attempts and volume binding errors count in other metrics too.

        Source: pkg/scheduler/metrics/metrics.go, PreemptionAttempts;
        pkg/scheduler/framework/plugins/volumebinding/metrics/metrics.go, VolumeSchedulingStageFailed (1.36).
        """
        if point == "PostFilter" and plugin == "DefaultPreemption":
            self._families.increment("scheduler_preemption_attempts_total")
        if plugin == "VolumeBinding" and code is Code.ERROR and point in _VOLUME_STAGES:
            self._families.increment("scheduler_volume_scheduling_stage_error_total", _VOLUME_STAGES[point])
        self._plugins.observe_profile_plugin_call(self._profile, plugin, point, code, seconds)

    def observe_extension_point(self, profile: str, point: str, code: Code, seconds: float) -> None:
        """Observe a run of all plugins of an extension point for one pod."""
        self._plugins.observe_extension_point(profile, point, code, seconds)

    def observe_event(self, event: ObservedEvent, labels: tuple[str, ...], value: float) -> None:
        """Observe a preemption or a placement, if the release has its families."""
        counter, histogram = _EVENT_FAMILIES[event]
        if counter in self._families:
            self._families.increment(counter, *labels, by=1.0 if histogram else value)
        if histogram in self._families:
            self._families.observe(histogram, *labels, value=value)


@dataclass(frozen=True, slots=True)
class BuildInfo:
    """Values of `kubernetes_build_info` and `version_info`.

    Attributes:
        version: the Kubernetes version, such as `1.36.3`.
        compiler: the Python implementation.
        runtime: the Python version.
        platform: the operating system and the architecture, such as `linux/amd64`.
        features: true for enabled feature gates, by (name, stage); the stage of general availability is empty.
    """

    version: str
    compiler: str
    runtime: str
    platform: str
    features: Mapping[tuple[str, str], bool]


class SchedulerMetrics(ClientMetrics):
    """All metrics of a standalone scheduler."""

    def __init__(
        self,
        registry: CollectorRegistry,
        plugin_metrics: PluginMetrics,
        disabled_families: Collection[str] = (),
        gates: Container[str] = FAMILIES_BY_GATE,
        release: Release = DEFAULT_RELEASE,
        *,
        shows_hidden: bool = False,
    ) -> None:
        """Register all families except the *disabled_families*, those of disabled feature gates, and hidden ones.

        *registry* already contains the families of *plugin_metrics*, which are of the same *release*. By default, all
        *gates* of `FAMILIES_BY_GATE` are enabled.
        """
        self.registry, self.plugin_metrics = registry, plugin_metrics
        families_of_disabled_gates = {
            name for gate, names in FAMILIES_BY_GATE.items() if gate not in gates for name in names
        }
        families = select_families((*SCHEDULER_FAMILIES, *PROCESS_FAMILIES), release)
        offered_families = [
            family
            for family in (*families, *select_families(PLUGIN_FAMILIES, release))
            if family.name not in families_of_disabled_gates
        ]
        hidden = {
            family.name
            for family in offered_families
            if family.name in disabled_families or (family.is_hidden and not shows_hidden)
        }
        super().__init__(MetricFamilies(registry, families, families_of_disabled_gates | hidden))
        self._registered = Counter(
            (family.stability.value, family.deprecated_version)
            for family in offered_families
            if family.name not in hidden
        )
        self._families.increment("disabled_metrics_total", by=len(disabled_families))
        self._families.increment("hidden_metrics_total", by=len(hidden))
        self._read_gauges: ReadGauges | None = None
        self._session_count = 1
        self._build_info: BuildInfo | None = None

    # -- attempts, preemption and pod groups

    def observe_attempt(self, profile: str, result: str, seconds: float) -> None:
        """Observe a scheduling attempt; *result* is scheduled, unschedulable or error.

        Source: pkg/scheduler/metrics/metrics.go, scheduleAttempts, schedulingLatency (1.36).
        """
        self._families.increment("scheduler_schedule_attempts_total", result, profile)
        self._families.observe("scheduler_scheduling_attempt_duration_seconds", result, profile, value=seconds)

    def observe_scheduling_algorithm(self, seconds: float) -> None:
        """Observe the duration of a scheduling algorithm run.

        Source: pkg/scheduler/metrics/metrics.go, SchedulingAlgorithmLatency (1.36).
        """
        self._families.observe("scheduler_scheduling_algorithm_duration_seconds", value=seconds)

    def observe_bound_pod(self, attempts: int, since_first_active: float) -> None:
        """Observe a bound pod: its attempts, and the time since it first entered activeQ.

        Source: pkg/scheduler/metrics/metrics.go, PodSchedulingSLIDuration, PodSchedulingAttempts (1.36).
        """
        self._families.observe("scheduler_pod_scheduling_attempts", value=attempts)
        label = str(attempts) if attempts < MAX_ATTEMPTS_LABEL else f"{MAX_ATTEMPTS_LABEL}+"
        self._families.observe("scheduler_pod_scheduling_sli_duration_seconds", label, value=since_first_active)

    def count_bound_after_flush(self) -> None:
        """Count a bound pod whose last attempt followed a flush of unschedulable pods.

        Source: pkg/scheduler/metrics/metrics.go, PodScheduledAfterFlush (1.36).
        """
        self._families.increment("scheduler_pod_scheduled_after_flush_total")

    def observe_pod_group_attempt(self, profile: str, result: str, seconds: float) -> None:
        """Observe an attempt of a pod group; *result* is scheduled, unschedulable, waiting_on_preemption or error.

        Source: pkg/scheduler/metrics/metrics.go, podGroupScheduleAttempts (1.36).
        """
        self._families.increment("scheduler_podgroup_schedule_attempts_total", result, profile)
        self._families.observe("scheduler_podgroup_scheduling_attempt_duration_seconds", result, profile, value=seconds)

    def observe_pod_group_algorithm(self, seconds: float) -> None:
        """Observe the duration of a pod group's scheduling algorithm run.

        Source: pkg/scheduler/metrics/metrics.go, PodGroupSchedulingAlgorithmLatency (1.36).
        """
        self._families.observe("scheduler_podgroup_scheduling_algorithm_duration_seconds", value=seconds)

    def observe_permit_wait(self, result: str, seconds: float) -> None:
        """Observe a wait on Permit. Source: pkg/scheduler/metrics/metrics.go, PermitWaitDuration (1.36)."""
        self._families.observe("scheduler_permit_wait_duration_seconds", result, value=seconds)

    def observe_preemption(self, preemptor: str, victim_count: int, group_count: int, pdb_violations: int) -> None:
        """Observe the victims of a preemption.

        Args:
            preemptor: pod, podgroup or compositepodgroup.
            victim_count: the number of victims.
            group_count: the `num_group_disruptions` of a `GroupPreemptionPlan`; 0 if the preemptor is a pod.
            pdb_violations: the number of violated disruption budgets.

        Source: pkg/scheduler/metrics/metrics.go, PreemptionVictims (1.36);
        pkg/scheduler/framework/preemption/executor.go, observeVictims (1.37).
        """
        has_own_family = preemptor != "pod" and _WORKLOAD_VICTIMS in self._families
        self._families.observe(
            _WORKLOAD_VICTIMS if has_own_family else "scheduler_preemption_victims", value=victim_count
        )
        if _WORKLOAD_VICTIMS in self._families:
            if group_count:
                self._families.observe("scheduler_preemption_workload_disruptions", preemptor, value=group_count)
            if pdb_violations:
                self._families.increment("scheduler_preemption_pdb_violations_total", preemptor, by=pdb_violations)

    def observe_evictions(self, preemptor: str, result: str, seconds: float) -> None:
        """Observe the evictions for a pod or a group, as in `observe_preemption`; *result* is success or error.

        Source: pkg/scheduler/metrics/metrics.go, PreemptionGoroutinesDuration, PreemptionGoroutinesExecutionTotal
        (1.36), PreemptionExecutionDuration (1.37).
        """
        self._families.observe("scheduler_preemption_goroutines_duration_seconds", result, value=seconds)
        self._families.increment("scheduler_preemption_goroutines_execution_total", result)
        if _EXECUTION_DURATION in self._families:
            self._families.observe(_EXECUTION_DURATION, preemptor, result, value=seconds)

    # -- queue and event handlers

    def count_queue_move(self, queue: str, event: str, pod_count: int, entity_type: str) -> None:
        """Count the pods of an entity that was added to a queue, and the entity if it has a type.

        Source: pkg/scheduler/metrics/metrics.go, SchedulerQueueIncomingPods (1.36), SchedulerQueueIncomingEntities
        (1.37).
        """
        self._families.increment("scheduler_queue_incoming_pods_total", queue, event, by=pod_count)
        if entity_type and _INCOMING_ENTITIES in self._families:
            self._families.increment(_INCOMING_ENTITIES, queue, event, entity_type)

    def observe_queueing_hint(self, plugin: str, event: str, hint: str, seconds: float) -> None:
        """Observe a queueing hint call.

        Source: pkg/scheduler/metrics/metrics.go, queueingHintExecutionDuration (1.36).
        """
        family = "scheduler_queueing_hint_execution_duration_seconds"
        self._families.observe(family, plugin, event, hint, value=seconds)

    def count_pre_queueing_hint(self, plugin: str, result: str) -> None:
        """Count a pre-queueing hint; *result* is all_pods or narrowed.

        Source: pkg/scheduler/metrics/metrics.go, PreQueueingHintEvaluations (1.37).
        """
        self._families.increment("scheduler_pre_queueing_hint_evaluations_total", plugin, result)

    def time_event_handling(self, event: str) -> AbstractContextManager[object]:
        """Return a context that measures the handling of an event.

        Source: pkg/scheduler/metrics/metrics.go, EventHandlingLatency (1.36).
        """
        timer: AbstractContextManager[object] = self._families.get_child(_EVENT_HANDLING, event).time()
        return timer

    # -- plugins

    def make_profile_observer(self, profile: str) -> ProfileObserver:
        """Return the plugin observer of a profile."""
        return ProfileObserver(profile, self.plugin_metrics, self._families)

    def count_claim_creation(self, *, succeeded: bool) -> None:
        """Count a creation of a resource claim for the extended resources of a pod.

        Source: pkg/scheduler/metrics/metrics.go, ResourceClaimCreatesTotal (1.36);
        pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go, createClaimInAPI (1.37).
        """
        status = "success" if succeeded else "failure"
        if _CLAIM_CREATES in self._families:
            self._families.increment(_CLAIM_CREATES, status, "false", "", "Pod")
        else:
            self._families.increment("scheduler_resourceclaim_creates_total", status)

    def observe_device_binding(
        self, profile: str, driver: str, status: str, seconds: float, *, count_binding: bool
    ) -> None:
        """Observe the wait for the binding conditions of a device.

        Source: pkg/scheduler/metrics/metrics.go, DRABindingConditionsAllocationsTotal,
        DRABindingConditionsPreBindDuration (1.36).
        """
        labels = (profile, driver, status)
        self._families.observe("scheduler_dra_bindingconditions_wait_duration_seconds", *labels, value=seconds)
        if count_binding:
            self._families.increment("scheduler_dra_bindingconditions_allocations_total", *labels)

    # -- leader election

    def set_leading(self, *, leading: bool) -> None:
        """Set the gauge of leadership to 1 or 0."""
        self._families.set_gauge("leader_election_master_status", ELECTION_NAME, value=float(leading))

    # -- the page

    def set_sources(self, build_info: BuildInfo, read_gauges: ReadGauges, session_count: int = 1) -> None:
        """Set the build info, the source of gauges, and the number of sessions with the API server."""
        self._build_info, self._read_gauges, self._session_count = build_info, read_gauges, session_count
        self._families.increment("rest_client_transport_create_calls_total", "miss", by=session_count)

    def render(self) -> Iterator[bytes]:
        """Yield the parts of the current page."""
        self._set_gauges()
        self._set_build_info()
        yield from render_metrics(self.registry)

    def reset(self) -> None:
        """Reset all labelled counts. Source: cmd/kube-scheduler/app/server.go, installMetricHandler (1.36)."""
        self._families.reset()
        self.plugin_metrics.reset()

    def _set_gauges(self) -> None:
        if self._read_gauges is None:
            return
        for name, values in self._read_gauges().items():
            if name in self._families:
                values_by_labels: dict[tuple[str, ...], float] = {
                    (key,) if isinstance(key, str) else key: value for key, value in values.items()
                }
                self._families.set_gauges(name, values_by_labels)
        self._families.set_gauge("rest_client_transport_cache_entries", value=self._session_count)
        self._families.set_gauge("rest_client_exec_plugin_ttl_seconds", value=float("inf"))

    def _set_build_info(self) -> None:
        build_info = self._build_info
        if build_info is None:
            return
        major, minor = build_info.version.split(".")[:2]
        self._families.set_gauges(
            "kubernetes_build_info",
            {
                (
                    major,
                    minor,
                    f"v{build_info.version}",
                    "",
                    "",
                    "",
                    build_info.runtime,
                    build_info.compiler,
                    build_info.platform,
                ): 1
            },
        )
        min_compatible = f"{major}.{int(minor) - 1}"
        self._families.set_gauges("version_info", {("kube", build_info.version, f"{major}.{minor}", min_compatible): 1})
        self._families.set_gauges(
            "kubernetes_feature_enabled", {key: float(enabled) for key, enabled in build_info.features.items()}
        )
        for (stability, deprecated_version), count in self._registered.items():
            counter = self._families.get_child("registered_metrics_total", stability, deprecated_version)
            counter.reset()
            counter.inc(count)


def make_scheduler_metrics(
    profiles: Mapping[str, Profile],
    disabled_families: Collection[str] = (),
    gates: Container[str] = FAMILIES_BY_GATE,
    *,
    shows_hidden: bool = False,
) -> SchedulerMetrics:
    """Return the metrics of a scheduler in a new registry; see `SchedulerMetrics` for the arguments."""
    registry = make_registry()
    release = next(iter(profiles.values())).release
    plugin_metrics = PluginMetrics(registry, list(profiles), disabled_families=disabled_families, release=release)
    for profile in profiles.values():
        plugin_metrics.register_profile(profile)
    return SchedulerMetrics(registry, plugin_metrics, disabled_families, gates, release, shows_hidden=shows_hidden)
