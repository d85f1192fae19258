"""Find the pods whose node violates their hard rules by now, and the moves that end the violations.

One move may end the violations of several pods, for example of those that do not tolerate a neighbor. So each step
moves the pod whose move leaves the fewest violations.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from extender.answers.reason_codes import get_reason_code
from extender.answers.rebalance import PodPlacement, RuleViolation
from extender.api.kinds.pod import Pod
from extender.cache.pod_info import AssignedPodInfo
from extender.cycle.diagnosis import Diagnosis
from extender.planning.rebalance.move_simulator import Move, MoveSimulator, stays_with_node
from extender.planning.rebalance.plan import Action, Change, Proof, SearchLimits, SearchProgress

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


_MAX_COMPARED: Final = 30
"""The number of violating pods up to which all moves of a step are compared."""


@dataclass(frozen=True, slots=True)
class FixPlan:
    """The violations of a cluster, and the steps that end them.

    Attributes:
        violations: the violations before the first step.
        remaining: the violations after the last step, each with the reason why the pod cannot move.
        is_complete: whether the search ended before its limits.
        placed_before: the waiting pods that find a node without any step.
    """

    violations: tuple[RuleViolation, ...]
    remaining: tuple[tuple[RuleViolation, str], ...]
    proof: Proof
    is_complete: bool = True
    placed_before: tuple[PodPlacement, ...] = ()


def fix_violations(
    simulator: MoveSimulator, limits: SearchLimits | None = None, progress: SearchProgress | None = None
) -> FixPlan:
    """Return the violations, and the steps that end them. The steps' changes stay made on the cache."""
    search = _FixSearch(simulator, limits or SearchLimits())
    placed_before = tuple(simulator.settle())
    start = simulator.mark()
    violations = find_violations(simulator, list_checked_pods(simulator))
    remaining = violations
    while remaining and search.may_continue():
        remaining_after_move = search.move_best(remaining)
        if remaining_after_move is None:
            break
        remaining = remaining_after_move
        if progress is not None:
            progress(len(violations) - len(remaining), len(violations))
    is_complete = not remaining or search.may_continue()
    proof = search.prove(start)
    remaining = find_violations(simulator, list_checked_pods(simulator))
    return FixPlan(
        tuple(violations),
        tuple((entry, search.explain(entry)) for entry in remaining),
        proof,
        is_complete,
        placed_before,
    )


@dataclass(slots=True)
class _FixSearch:
    simulator: MoveSimulator
    limits: SearchLimits
    moved_pods: list[str] = field(default_factory=list)  # in the order of their moves
    attempt_limit: int = 0  # the value of `simulator.attempts` at which the search stops

    def __post_init__(self) -> None:
        self.attempt_limit = self.simulator.attempts + self.limits.max_attempts

    def may_continue(self) -> bool:
        return len(self.moved_pods) < self.limits.max_moves and self.simulator.attempts < self.attempt_limit

    def move_best(self, violations: Sequence[RuleViolation]) -> list[RuleViolation] | None:
        """Move the pod whose move leaves the fewest violations; return these, or None if no move leaves fewer."""
        best_key, best_remaining = "", list(violations)
        for violation in violations:
            mark = self.simulator.mark()
            remaining = self._move(violation.pod, violations)
            self.simulator.undo_to(mark)
            if remaining is None or len(remaining) >= len(best_remaining):
                continue
            best_key, best_remaining = violation.pod, remaining
            if len(violations) > _MAX_COMPARED:
                break
        if not best_key:
            return None
        self._move(best_key, violations)
        self.moved_pods.append(best_key)
        return best_remaining

    def find_after_move(self, violations: Sequence[RuleViolation]) -> list[RuleViolation]:
        """Return the violations after a move, if *violations* are those before it."""
        old_keys = {violation.pod for violation in violations}
        assigned = self.simulator.cache.assigned_pods.values()
        old_pods = [pod for pod in assigned if pod.key in old_keys]
        other_pods = [pod for pod in list_checked_pods(self.simulator, moved=True) if pod.key not in old_keys]
        return find_violations(self.simulator, sorted([*old_pods, *other_pods], key=lambda pod: pod.key))

    def _move(self, key: str, violations: Sequence[RuleViolation]) -> list[RuleViolation] | None:
        """Evict a pod; return the violations afterwards, or None if it cannot be moved."""
        simulator = self.simulator
        pod = simulator.find_assigned_pod(key)
        if pod is None or not self.may_continue() or not isinstance(simulator.evict(pod), Move):
            return None
        return self.find_after_move(violations)

    def prove(self, start: int) -> Proof:
        """Prove the steps from the start. The steps after one that waiting pods prevent are left out."""
        self.simulator.undo_to(start)
        proof = self.simulator.prove([Change(Action.EVICT, key) for key in self.moved_pods])
        return Proof(proof.steps)

    def explain(self, violation: RuleViolation) -> str:
        """Return the reason why the pod of *violation* cannot be moved."""
        simulator = self.simulator
        pod = simulator.find_assigned_pod(violation.pod)
        mark = simulator.mark()
        outcome = simulator.evict(pod) if pod is not None else "is on no node"
        simulator.undo_to(mark)
        if isinstance(outcome, str):
            return outcome
        return "its move leaves as many violations" if self.may_continue() else "the search reached its limit"
