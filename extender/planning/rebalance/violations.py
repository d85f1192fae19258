"""Find the pods whose node violates their hard rules by now: taints, node affinity, pod affinity, topology spread."""

from collections.abc import Iterable
from typing import Final

from extender.answers.reason_codes import get_reason_code
from extender.answers.rebalance import RuleViolation
from extender.api.kinds.pod import Pod
from extender.cache.pod_info import AssignedPodInfo
from extender.cycle.diagnosis import Diagnosis
from extender.planning.rebalance.movable_pods import stays_with_node
from extender.planning.rebalance.move_simulator import MoveSimulator

RULES: Final = {
    "TaintToleration": "taint",
    "NodeAffinity": "node affinity",
    "InterPodAffinity": "pod affinity",
    "PodTopologySpread": "topology spread",
}
"""The rules by the plugin that checks them. The API server and kubelet do not check them again for a running pod."""


def find_violations(simulator: MoveSimulator, pods: Iterable[AssignedPodInfo]) -> list[RuleViolation]:
    """Return the violations of *pods*, without pods that never leave their node. Nothing changes."""
    found = (find_violation(simulator, pod) for pod in pods if not stays_with_node(pod))
    return [violation for violation in found if violation is not None]


def list_checked_pods(simulator: MoveSimulator, *, moved: bool = False) -> list[AssignedPodInfo]:
    """Return the pods on nodes that may have a violation, by namespace and name.

    If *moved* is set, only those rules matter that the move of another pod may violate.
    """
    tainted_nodes = {node.metadata.name for node in simulator.cache.nodes if node.spec.taints and not moved}
    pods = list(simulator.cache.assigned_pods.values())
    checks_all = not moved and any(_has_required_anti_affinity(pod.pod) for pod in pods)
    return sorted(
        (pod for pod in pods if checks_all or pod.node_name in tainted_nodes or _has_rules(pod.pod, moved=moved)),
        key=lambda pod: pod.key,
    )


def _has_rules(pod: Pod, *, moved: bool) -> bool:
    spec = pod.spec
    return bool(spec.topology_spread_constraints or spec.affinity or (spec.node_selector and not moved))


def _has_required_anti_affinity(pod: Pod) -> bool:
    affinity = pod.spec.affinity
    rules = affinity.pod_anti_affinity if affinity is not None else None
    return rules is not None and bool(rules.required_during_scheduling_ignored_during_execution)


def find_violation(simulator: MoveSimulator, pod: AssignedPodInfo) -> RuleViolation | None:
    """Return the first rule that the node of *pod* violates if the pod was scheduled now, or None."""
    if not simulator.has_profile(pod):
        return None
    mark = simulator.mark()
    replacement = simulator.take_away(pod)
    diagnosis = simulator.check_node(replacement, pod.node_name)
    row = simulator.cache.row(pod.node_name)
    simulator.undo_to(mark)
    rejection = None if row is None else _find_rejection(diagnosis, row)
    if rejection is None:
        return None
    plugin, reason = rejection
    return RuleViolation(pod.key, pod.node_name, plugin, reason, get_reason_code(reason).value)


def _find_rejection(diagnosis: Diagnosis, row: int) -> tuple[str, str] | None:
    """Return the plugin and its reason if one of the rules rejects the node."""
    run = diagnosis.pre_filter_run
    if run.status is not None:
        return (run.status.plugin, run.status.message) if run.status.plugin in RULES else None
    for rejection in diagnosis.rejections:
        if rejection.plugin in RULES and rejection.nodes[row]:
            return rejection.plugin, rejection.reason.text
    # PreFilter of NodeAffinity may exclude the node.
    excluded = run.node_names is not None and not diagnosis.has_feasible_node and not diagnosis.rejections
    plugins = [plugin for plugin in run.restricting_plugins if plugin in RULES]
    return (plugins[0], run.excluded_reason) if excluded and plugins else None
