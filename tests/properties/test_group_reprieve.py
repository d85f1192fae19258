"""Local filters are tried first for the pods on the nodes of a victim, and the victims of a group stay the same."""

from collections.abc import Sequence

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from extender.api.kinds.pod import Pod
from extender.cache.hypothesis import Hypothesis
from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.pre_filter import run_pre_filter_plugins
from extender.framework.result_cache import ResultCache
from extender.preemption.assignment_dry_run import Assignment, AssignmentDryRun
from extender.preemption.disruption_budgets import list_budgets
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
UNIT_SIZES = st.lists(st.integers(1, 3), min_size=12, max_size=12)


def reprieve(
    case: GeneratedCluster, members: Sequence[tuple[Pod, str]], unit_sizes: Sequence[int], *, tries_local_first: bool
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
    runtime = PluginRuntime(result_cache=ResultCache(enabled=tries_local_first))
    assignments = []
    for member, node_name in members:
        pod_info = snapshot.make_pod_info(member)
        run = run_pre_filter_plugins(pod_info, hypothesis.snapshot(), PROFILE, runtime)
        assignments.append(Assignment(pod_info, node_name, run.cycle_state, run.skipped_plugins))
    dry_run = AssignmentDryRun(hypothesis.snapshot(), assignments, PROFILE, runtime)
    victims, violation_count = dry_run.reprieve_units(units, list_budgets(snapshot, PROFILE.release))
    return [[pod.pod.metadata.name for pod in unit.pods] for unit in victims], violation_count


@settings(max_examples=300, suppress_health_check=list(HealthCheck))
@given(case=cluster_cases(terminating=False), members=MEMBERS, unit_sizes=UNIT_SIZES)
def test_the_victims_of_a_group_do_not_depend_on_which_filters_are_tried_first(
    case: GeneratedCluster, members: list[tuple[tuple[str, str, int, bool], int]], unit_sizes: list[int]
) -> None:
    group = [
        (make_random_pod(f"member-{number}", *kind, priority=100), f"node-{node % len(case.nodes)}")
        for number, (kind, node) in enumerate(members)
    ]
    expected = reprieve(case, group, unit_sizes, tries_local_first=False)
    assert reprieve(case, group, unit_sizes, tries_local_first=True) == expected
