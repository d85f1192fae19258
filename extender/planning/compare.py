"""Place the same pods with two configurations, and compare where they go."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter

from extender.analysis.pending_pods import list_pending_pods
from extender.analysis.pod_placer import PodPlacer
from extender.analysis.simulate import (
    DEFAULT_OPTIONS,
    PodPlacement,
    ProgressCallback,
    Simulation,
    SimulationOptions,
    simulate,
)
from extender.cache.cache import Cache
from extender.cycle.plugin_runtime import PluginRuntime
from extender.framework.profiles import Profile
from extender.planning.cache_edits import CacheEdits
from extender.planning.claim_release import release_claims
from extender.planning.departures import Departure, classify_departure, make_replacement


@dataclass(frozen=True, slots=True)
class ConfiguredCluster:
    """One of the two configurations, with its own copy of the cluster.

    Attributes:
        cache: the cluster; it is modified.
    """

    cache: Cache
    profiles: Mapping[str, Profile]
    runtime: PluginRuntime


@dataclass(frozen=True, slots=True)
class Outcome:
    """The placements of one configuration.

    Attributes:
        simulation: the placements and the use of the cluster.
        pod_milliseconds: the time of each pod in milliseconds, sorted; all members of a pod group count for the first.
    """

    simulation: Simulation
    pod_milliseconds: tuple[float, ...]

    def get_milliseconds(self, fraction: float) -> float:
        """Return the time of the pod at *fraction* of the sorted times, such as 0.5 for the median; 0 without pods."""
        times = self.pod_milliseconds
        return times[min(int(fraction * len(times)), len(times) - 1)] if times else 0.0


@dataclass(frozen=True, slots=True)
class Difference:
    """A pod that the configurations treat differently."""

    first: PodPlacement
    second: PodPlacement


@dataclass(frozen=True, slots=True)
class Comparison:
    """The outcomes of two configurations for the same pods.

    Attributes:
        differences: the pods on different nodes, in the queue order of the first configuration. A pod that waits in one
            outcome only is among them.
    """

    first: Outcome
    second: Outcome
    differences: tuple[Difference, ...]
    pod_count: int


def return_pods_to_queue(cache: Cache) -> None:
    """Take all pods with a controller off their nodes. They become pending, as the pods that replace them would be.

    DaemonSet and mirror pods, pods that are being deleted, and pods without a controller stay on their nodes.
    """
    edits = CacheEdits(cache)
    for pod in sorted(cache.assigned_pods.values(), key=lambda pod: pod.key):
        if classify_departure(pod.pod) is Departure.REPLACED:
            replacement = make_replacement(pod.pod)
            edits.remove_pod(pod)
            release_claims(pod.pod, replacement.metadata.uid, cache, edits)
            edits.add_pod(replacement)


def compare(
    first: ConfiguredCluster,
    second: ConfiguredCluster,
    options: SimulationOptions = DEFAULT_OPTIONS,
    progress: ProgressCallback | None = None,
) -> Comparison:
    """Place the pending pods of the cluster with each of two configurations.

    Args:
        first: the first configuration.
        second: the second configuration; its cache has the same pods.
        options: the seed, and whether pods are evicted, for both.
        progress: the callback after each pod with the number of placed pods and the number of all pods. The pods of
            both configurations count.
    """
    # The first cycle of a process takes longer, whatever the configuration.
    for configured_cluster in (first, second):
        for pod in list_pending_pods(configured_cluster.cache, configured_cluster.profiles)[:1]:
            PodPlacer(configured_cluster.cache, configured_cluster.profiles, configured_cluster.runtime).find_node(pod)
    first_outcome = _place_pods(first, options, lambda done, total: progress and progress(done, 2 * total))
    second_outcome = _place_pods(second, options, lambda done, total: progress and progress(total + done, 2 * total))
    differences, pod_count = _list_differences(first_outcome.simulation, second_outcome.simulation)
    return Comparison(first_outcome, second_outcome, differences, pod_count)


def _place_pods(
    configured_cluster: ConfiguredCluster, options: SimulationOptions, progress: Callable[[int, int], object]
) -> Outcome:
    start_times: list[float] = []
    times: list[float] = []

    def record_time(done: int, total: int) -> None:
        times.append((perf_counter() - start_times[-1]) * 1000)
        progress(done, total)
        start_times.append(perf_counter())

    start_times.append(perf_counter())
    simulation = simulate(
        configured_cluster.cache, configured_cluster.profiles, configured_cluster.runtime, options, progress=record_time
    )
    return Outcome(simulation, tuple(sorted(times)))


def _list_differences(first: Simulation, second: Simulation) -> tuple[tuple[Difference, ...], int]:
    """Return the differences and the number of pods. A pod that only one configuration schedules waits in the other."""
    first_by_pod = {placement.pod: placement for placement in first.placements}
    second_by_pod = {placement.pod: placement for placement in second.placements}
    pods = dict.fromkeys((*first_by_pod, *second_by_pod))
    differences = []
    for pod in pods:
        unscheduled = PodPlacement(pod, reasons=("no profile has the pod's scheduler name",))
        placements = first_by_pod.get(pod, unscheduled), second_by_pod.get(pod, unscheduled)
        if placements[0].node != placements[1].node:
            differences.append(Difference(*placements))
    return tuple(differences), len(pods)
