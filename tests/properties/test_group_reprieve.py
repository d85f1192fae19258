"""Victims that no filter reads are not restored, local filters are tried first, and the victims stay the same."""

from collections.abc import Callable, Sequence

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from extender.api.kinds.pod import Pod
from extender.cache.hypothesis import Hypothesis
from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.pre_filter import run_pre_filter_plugins
from extender.preemption.assignment_dry_run import Assignment, AssignmentDryRun
from extender.preemption.disruption_budgets import Budgets, count_violations, list_budgets
from extender.preemption.preemption_units import PreemptionUnit
from tests.properties.test_preemption_dry_run import (
    KINDS,
    PROFILE,
    GeneratedCluster,
    cluster_cases,
    make_random_pod,
)

PLAIN_KINDS = KINDS.map(lambda kind: ("plain", *kind[1:]))
MEMBERS = st.one_of(
    *(st.lists(st.tuples(kinds, st.integers(0, 3)), min_size=1, max_size=3) for kinds in (KINDS, PLAIN_KINDS))
)
Reprieve = Callable[
    [AssignmentDryRun, Sequence[PreemptionUnit], Budgets],
    tuple[list[PreemptionUnit], int],
]
UNIT_SIZES = st.lists(st.integers(1, 3), min_size=12, max_size=12)


def reprieve_one_by_one(
    dry_run: AssignmentDryRun, units: Sequence[PreemptionUnit], budgets: Budgets
) -> tuple[list[PreemptionUnit], int]:
    """Restore each unit, and run all filters for all pods."""
    violation_counts = count_violations(budgets, [unit.pods for unit in units])
    victim_indices: list[int] = []
    for index in sorted(range(len(units)), key=lambda index: violation_counts[index] == 0):
        dry_run.restore_pods(units[index].pods)
        if dry_run.find_rejection() is not None:
            dry_run.remove_pods(units[index].pods)
            victim_indices.append(index)
    victim_indices.sort()
    return [units[index] for index in victim_indices], sum(violation_counts[index] for index in victim_indices)


def select_victims(
    case: GeneratedCluster, members: Sequence[tuple[Pod, str]], unit_sizes: Sequence[int], reprieve: Reprieve
) -> tuple[list[list[str]], int]:
    """Return the names of the victims of each unit that is not reprieved, and the number of budget violations."""
    snapshot = case.without().snapshot()
    pods, units = list(snapshot.assigned_pods()), list[PreemptionUnit]()
    for size in unit_sizes:
        if pods:
            units.append(PreemptionUnit(10, pods[:size]))
            del pods[:size]
    hypothesis = Hypothesis(snapshot)
    for unit in units:
        for pod in unit.pods:
            hypothesis.evict_pod(pod)
    runtime = PluginRuntime()
    assignments = []
    for member, node_name in members:
        pod_info = snapshot.make_pod_info(member)
        run = run_pre_filter_plugins(pod_info, hypothesis.snapshot(), PROFILE, runtime)
        assignments.append(Assignment(pod_info, node_name, run.cycle_state, run.skipped_plugins))
    dry_run = AssignmentDryRun(hypothesis.snapshot(), assignments, PROFILE, runtime)
    victims, violation_count = reprieve(dry_run, units, list_budgets(snapshot, PROFILE.release))
    return [[pod.pod.metadata.name for pod in unit.pods] for unit in victims], violation_count


@settings(max_examples=300, suppress_health_check=list(HealthCheck))
@given(case=cluster_cases(terminating=False), members=MEMBERS, unit_sizes=UNIT_SIZES)
def test_the_victims_of_a_group_are_those_of_all_filters_after_each_restored_unit(
    case: GeneratedCluster, members: list[tuple[tuple[str, str, int, bool], int]], unit_sizes: list[int]
) -> None:
    group = [
        (make_random_pod(f"member-{number}", *kind, priority=100), f"node-{node % len(case.nodes)}")
        for number, (kind, node) in enumerate(members)
    ]
    expected = select_victims(case, group, unit_sizes, reprieve_one_by_one)
    assert select_victims(case, group, unit_sizes, AssignmentDryRun.reprieve_units) == expected
