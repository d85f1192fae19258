"""Place the same pods with two configurations, compare where they go, and format the differences."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import pstdev
from time import perf_counter
from typing import Any, Final

import msgspec

from extender.analysis.pending_pods import list_pending_pods
from extender.analysis.pod_placer import PodPlacer
from extender.analysis.simulate import (
    DEFAULT_OPTIONS,
    ProgressCallback,
    Simulation,
    SimulationOptions,
    make_placement,
    simulate,
)
from extender.analysis.text_table import format_amount, format_count, format_percent, format_table
from extender.analysis.utilization import PODS_RESOURCE, ClusterUsage
from extender.answers.simulation import (
    ConfigurationOutcome,
    DecisionTimes,
    Placement,
    PlacementDifference,
    PlacementInOneConfiguration,
    SpreadResourceUse,
)
from extender.cache.cache import Cache
from extender.cycle.plugin_runtime import PluginRuntime
from extender.framework.profiles import Profile
from extender.planning.cache_edits import CacheEdits
from extender.planning.departures import Departure, classify_departure, make_replacement, release_claims


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
class Comparison:
    """The outcomes of two configurations for the same pods.

    Attributes:
        differences: the pods on different nodes, in the queue order of the first configuration. A pod that waits in one
            outcome only is among them.
    """

    first: ConfigurationOutcome
    second: ConfigurationOutcome
    differences: list[PlacementDifference]
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
    first_simulation, first_times = _place_pods(
        first, options, lambda done, total: progress and progress(done, 2 * total)
    )
    second_simulation, second_times = _place_pods(
        second, options, lambda done, total: progress and progress(total + done, 2 * total)
    )
    differences, pod_count = _list_differences(first_simulation, second_simulation)
    first_outcome = _make_outcome(first_simulation, first_times)
    return Comparison(first_outcome, _make_outcome(second_simulation, second_times), differences, pod_count)


def _place_pods(
    configured_cluster: ConfiguredCluster, options: SimulationOptions, progress: Callable[[int, int], object]
) -> tuple[Simulation, DecisionTimes]:
    """Return the outcome of a simulation, and the time of a pod. All members of a pod group count for the first."""
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
    return simulation, DecisionTimes(get_percentile(times, 0.5), get_percentile(times, 0.99))


def get_percentile(times: list[float], fraction: float) -> float:
    """Return the time at *fraction* of the sorted *times*, such as 0.5 for the median; 0 without times."""
    return round(sorted(times)[min(int(fraction * len(times)), len(times) - 1)], 3) if times else 0.0


def _make_outcome(simulation: Simulation, times: DecisionTimes) -> ConfigurationOutcome:
    usage = simulation.usage_after
    pods_of_nodes = (node.resources.get(PODS_RESOURCE) for node in usage.nodes)
    return ConfigurationOutcome(
        simulation.placed_count,
        len(simulation.placements) - simulation.placed_count,
        list(simulation.evicted_pods),
        sum(pods is not None and pods.requested > 0 for pods in pods_of_nodes),
        {
            name: SpreadResourceUse(total.requested, total.allocatable, round(_calculate_deviation(usage, name), 4))
            for name, total in usage.total.items()
        },
        times,
    )


def _calculate_deviation(usage: ClusterUsage, resource: str) -> float:
    """Return the standard deviation of the used fraction over the nodes that have *resource*."""
    fractions = [node.resources[resource].fraction for node in usage.nodes if resource in node.resources]
    return pstdev(fractions) if fractions else 0.0


def _list_differences(first: Simulation, second: Simulation) -> tuple[list[PlacementDifference], int]:
    """Return the differences and the number of pods. A pod that only one configuration schedules waits in the other."""
    first_by_pod = {placement.pod: placement for placement in first.placements}
    second_by_pod = {placement.pod: placement for placement in second.placements}
    pods = dict.fromkeys((*first_by_pod, *second_by_pod))
    differences = []
    for pod in pods:
        unscheduled = make_placement(pod, reasons=("no profile has the pod's scheduler name",))
        placements = first_by_pod.get(pod, unscheduled), second_by_pod.get(pod, unscheduled)
        if placements[0].node != placements[1].node:
            differences.append(PlacementDifference(pod, *map(_leave_out_pod, placements)))
    return differences, len(pods)


def _leave_out_pod(placement: Placement) -> PlacementInOneConfiguration:
    return PlacementInOneConfiguration(placement.node, placement.message, placement.reasons, placement.reason_codes)


_MAX_LINES: Final = 20


def make_comparison_values(comparison: Comparison, seed: int) -> dict[str, Any]:
    """Return the complete comparison as plain values. A `node` of None means that the pod waits."""
    return {
        "seed": seed,
        "pods": comparison.pod_count,
        "different": msgspec.to_builtins(comparison.differences),
        "first": msgspec.to_builtins(comparison.first),
        "second": msgspec.to_builtins(comparison.second),
    }


def format_comparison(comparison: Comparison, names: tuple[str, str]) -> str:
    """Return the report. *names* are the column titles of the two configurations."""
    count = len(comparison.differences)
    pods = format_count(comparison.pod_count, "pod")
    lines = [f"{count} of {pods} {'goes' if count == 1 else 'go'} elsewhere." if count else f"{pods}, no difference."]
    if count:
        rows = [("POD", *names)]
        rows += [
            (difference.pod, _format_node(difference.first), _format_node(difference.second))
            for difference in comparison.differences[:_MAX_LINES]
        ]
        lines += ["", *format_table(rows)]
    if count > _MAX_LINES:
        lines.append(f"  and {count - _MAX_LINES} more; -o json has all")
    lines += _format_totals(comparison, names)
    return "\n".join(lines) + "\n"


def _format_node(placement: PlacementInOneConfiguration) -> str:
    return placement.node or f"waits: {', '.join(placement.reasons)}"


def _format_totals(comparison: Comparison, names: tuple[str, str]) -> list[str]:
    outcomes = (comparison.first, comparison.second)
    rows: list[tuple[str, ...]] = [
        ("", *names),
        ("placed pods", *(str(outcome.placed) for outcome in outcomes)),
        ("waiting pods", *(str(outcome.waiting) for outcome in outcomes)),
        ("evicted pods", *(str(len(outcome.evicted)) for outcome in outcomes)),
        ("nodes with pods", *(str(outcome.used_nodes) for outcome in outcomes)),
    ]
    for name in comparison.first.resources:
        uses = [outcome.resources[name] for outcome in outcomes]
        cells = [
            f"{format_amount(name, use.requested)}, {format_percent(use.requested, use.allocatable)}, "
            f"sd {100 * use.deviation:.1f}%"
            for use in uses
        ]
        rows.append((name, *cells))
    times = [outcome.milliseconds for outcome in outcomes]
    rows.append(("time per pod, median", *(f"{each.p50:.2f} ms" for each in times)))
    rows.append(("time per pod, p99", *(f"{each.p99:.2f} ms" for each in times)))
    note = "  sd is the standard deviation of the used part over the nodes: the lower, the more even."
    return ["", "Totals", *format_table(rows, right_aligned=[1, 2]), "", note]
