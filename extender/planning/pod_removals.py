"""The pods that leave their nodes in a scenario, with their replacements, and the pods that cannot leave."""

from collections.abc import Generator

from extender.analysis.evictions import count_disruption
from extender.answers.planning import BlockedPodResult, LostPodResult
from extender.api.kinds.disruption import PodDisruptionBudget
from extender.api.kinds.pod import Pod
from extender.cache.cache import Cache
from extender.cache.pod_info import AssignedPodInfo
from extender.cache.pod_signature import PodSignature
from extender.planning.cache_edits import CacheEdits
from extender.planning.departures import Departure, classify_departure, make_replacement, release_claims
from extender.planning.remaining_disruptions import RemainingDisruptions


class PodRemovals:
    """Removes pods from their nodes and makes their replacements.

    A drain respects disruption budgets: a budget allows another eviction after a replacement is placed. A lost node, a
    NoExecute taint and preemption do not respect them; the violated budgets are recorded.

    Attributes:
        lost: the pods without a controller that left.
        scaled_down: the keys of the surplus pods of scaled workloads.
        violations: the keys of the pods that violate a budget, by the budget's `namespace/name`.
    """

    def __init__(self, cache: Cache, edits: CacheEdits, remaining_disruptions: RemainingDisruptions) -> None:
        self._cache, self._edits, self._remaining_disruptions = cache, edits, remaining_disruptions
        self.lost: list[LostPodResult] = []
        self.scaled_down: list[str] = []
        self.violations: dict[str, list[str]] = {}
        self._drained: list[AssignedPodInfo] = []
        self._replacements: list[Pod] = []
        self._sources: dict[str, str] = {}  # the nodes that replacements left, by uid
        self._unplaced_uids: set[str] = set()  # of replacements and preempted new pods

    def get_source(self, uid: str) -> str | None:
        """Return the node that the replacement *uid* left; None for any other pod."""
        return self._sources.get(uid)

    @property
    def blocked(self) -> list[BlockedPodResult]:
        """The pods that could not be evicted from drained nodes."""
        return [
            BlockedPodResult(pod.key, pod.node_name, self._remaining_disruptions.find_blocking_budgets(pod))
            for pod in self._drained
        ]

    def list_pods_on(self, node: str) -> list[AssignedPodInfo]:
        """Return the pods on a node, sorted by namespace and name."""
        return sorted(self._cache.pods_on(node).values(), key=lambda pod: pod.key)

    def clear_node(self, node: str) -> None:
        """Remove all pods of a node that is lost."""
        for pod in self.list_pods_on(node):
            if classify_departure(pod.pod) is Departure.DAEMON_OR_MIRROR:
                self._edits.remove_pod(pod)
            else:
                self.remove_despite_budgets(pod)

    def remove_despite_budgets(self, pod: AssignedPodInfo) -> None:
        """Remove a pod from its node, even if this violates its budgets."""
        if not pod.terminating:
            self._record_violations(pod)
        self._remove(pod)

    def _record_violations(self, pod: AssignedPodInfo) -> list[str]:
        violated_budgets = self._remaining_disruptions.count_disruption(pod)
        for budget in violated_budgets:
            self.violations.setdefault(budget, []).append(pod.key)
        return violated_budgets

    def drain_node(self, node: str) -> None:
        """Add the pods of a cordoned node to those to evict. DaemonSet and mirror pods stay."""
        for pod in self.list_pods_on(node):
            if classify_departure(pod.pod) is not Departure.DAEMON_OR_MIRROR:
                self._drained.append(pod)

    def evict_drained_pods(self) -> Generator[None, None, list[Pod]]:
        """Evict the drained pods whose budgets allow it now, one in each step; return their replacements."""
        remaining: list[AssignedPodInfo] = []
        for pod in self._drained:
            if pod.uid not in self._cache.assigned_pods:
                continue  # evicted by preemption
            if not pod.terminating and self._remaining_disruptions.find_blocking_budgets(pod):
                remaining.append(pod)
                continue
            if not pod.terminating:
                self._remaining_disruptions.count_disruption(pod)
            self._remove(pod)
            yield
        self._drained = remaining
        return self.take_replacements()

    def evict_victim(self, pod: AssignedPodInfo) -> list[str]:
        """Remove a victim of preemption from its node; return the names of the budgets that this violates."""
        violated_budgets = self._disrupt_victim(pod) if not pod.terminating else []
        self._remove(pod)
        return violated_budgets

    def count_new_victim(self, pod: AssignedPodInfo) -> list[str]:
        """Count a victim of preemption that is itself a new pod of the scenario; return the violated budgets."""
        self._unplaced_uids.add(pod.uid)
        return self._disrupt_victim(pod)

    def _disrupt_victim(self, pod: AssignedPodInfo) -> list[str]:
        """Count a victim also in the budgets' objects, which later preemptions read."""
        for name in self._remaining_disruptions.list_budgets(pod):
            budget = self._cache.get_object(PodDisruptionBudget, name)
            if budget is not None:
                self._edits.put_object(count_disruption(budget), budget)
        return self._record_violations(pod)

    def _remove(self, pod: AssignedPodInfo) -> None:
        """Remove a pod from its node, and make its replacement if it has a controller."""
        self._edits.remove_pod(pod)
        replacement = make_replacement(pod.pod)
        release_claims(pod.pod, replacement.metadata.uid, self._cache, self._edits)
        match classify_departure(pod.pod):
            case Departure.REPLACED:
                self._sources[replacement.metadata.uid] = pod.node_name
                self._unplaced_uids.add(replacement.metadata.uid)
                self._replacements.append(replacement)
            case Departure.LOST:
                self.lost.append(LostPodResult(pod.key, pod.node_name))

    def take_replacements(self) -> list[Pod]:
        """Return the replacements that were made since the last call."""
        replacements, self._replacements = self._replacements, []
        return replacements

    def remove_surplus(self, pod: AssignedPodInfo) -> None:
        """Remove a surplus pod of a scaled workload."""
        self.scaled_down.append(pod.key)
        self._edits.remove_pod(pod)
        release_claims(pod.pod, "", self._cache, self._edits)

    def count_placed(self, uid: str, signature: PodSignature) -> None:
        """Count a placed pod; if it is a replacement, its budgets allow another disruption."""
        if uid in self._unplaced_uids:
            self._unplaced_uids.remove(uid)
            self._remaining_disruptions.count_replacement(signature)
