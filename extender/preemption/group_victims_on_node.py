"""Select victims on a node with members of pod groups, as releases since 1.37 do.

A group that is disrupted as a whole is one victim with its pods on all nodes.

Source: pkg/scheduler/framework/preemption/preemption.go, Evaluator.GetVictimsOnNode (1.37).
"""

from extender.cache.snapshot import Snapshot
from extender.cycle.dry_run import DryRunInputs
from extender.framework.plugin_runner import PluginError
from extender.framework.profiles import Profile
from extender.framework.status import Status, error_status, unresolvable_status
from extender.preemption.assignment_dry_run import Assignment, AssignmentDryRun
from extender.preemption.disruption_budgets import Budgets
from extender.preemption.plan import Candidate
from extender.preemption.preemption_units import MissingNodeError, list_units_on_node, select_potential_victims
from extender.preemption.victims import NO_VICTIMS


def has_group_victims(profile: Profile) -> bool:
    """Return whether victims of preemption are pods or pod groups."""
    return profile.release.has_group_victims and "GenericWorkload" in profile.gates


def find_rows_with_group_members(snapshot: Snapshot, profile: Profile) -> frozenset[int]:
    """Return the rows of the nodes with members of pod groups, if these are victims of their own."""
    if not has_group_victims(profile):
        return frozenset()
    rows = (snapshot.row(pod.node_name) for pod in snapshot.assigned_group_members())
    return frozenset(row for row in rows if row is not None)


def select_victims_on_node(inputs: DryRunInputs, node_name: str, budgets: Budgets) -> Candidate | Status:
    """Return the candidate for *node_name*, or the status of the failure.

    Source: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go,
    DefaultPreemption.SelectVictimsOnNode (1.37).
    """
    try:
        return _select_victims(inputs, node_name, budgets)
    except (MissingNodeError, PluginError) as error:
        return error_status(str(error))


def _select_victims(inputs: DryRunInputs, node_name: str, budgets: Budgets) -> Candidate | Status:
    """Remove all potential victims, then reprieve as many as possible, the most important first.

    Raises:
        MissingNodeError: a group that is evicted as a whole has a member on a node that does not exist.
        PluginError: a plugin failed to update its state.
    """
    release = inputs.profile.release
    units_on_node = list_units_on_node(node_name, inputs.snapshot, release)
    units = select_potential_victims(units_on_node, inputs.pod.priority, release)
    if not units:
        return unresolvable_status(NO_VICTIMS)
    pre_filter_run = inputs.pre_filter_run
    assignment = Assignment(inputs.pod, node_name, pre_filter_run.cycle_state, pre_filter_run.skipped_plugins)
    dry_run = AssignmentDryRun(inputs.snapshot, [assignment], inputs.profile, inputs.runtime)
    for unit in units:
        dry_run.remove_pods(unit.pods)
    rejection = dry_run.find_rejection()
    if rejection is not None:
        return rejection
    victim_units, violation_count = dry_run.reprieve_units(units, budgets)
    if not victim_units:
        return error_status(f'expected at least one victim pod on node "{node_name}"')
    return Candidate(node_name, tuple(pod for unit in victim_units for pod in unit.pods), violation_count)
