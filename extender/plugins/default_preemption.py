"""DefaultPreemption makes room for a pod that fits nowhere, by evicting pods of lower priority from one node.

**Does** what follows when no node takes the pod, unless the pod has `preemptionPolicy: Never`, or pods that were
evicted for it are still on their way out of the node it is nominated for. Every node that evicting pods may help with
(none that is refused for good) is imagined without its pods of lower priority. If the pod fits then, as many as
possible are spared, one at a time: first those whose eviction would break a disruption budget, then the others, each
from the most to the least important (higher priority, then longer running). Of the nodes found, the best is the one
with the fewest broken budgets, then with the least important victims: lowest highest priority, lowest sum of
priorities, fewest, latest start of the most important. The pod is nominated for it. Extenders may have a say before.

With the feature gate `WorkloadAwarePreemption` (alpha) a member of a pod group does not preempt by itself. A group that
cannot be scheduled makes room as a whole, anywhere in the cluster: everything of lower priority is imagined gone, and
as much as possible is spared, as above. Groups whose `disruptionMode` is `PodGroup` go or stay as a whole.

**Refuses** to let a pod into the queue while its victims are being evicted.

**Scores** none.

**Undone by** the end of that eviction; no event wakes the pod up.

**Options** (DefaultPreemptionArgs) `minCandidateNodesPercentage` (10; 0 to 100) and `minCandidateNodesAbsolute` (100):
the search for nodes stops when the greater of both numbers is found, and one breaks no budget. Not both 0.

Source: B108, E001 to E022, E028 to E035, E051 to E053, G035.
"""

from collections.abc import Sequence
from typing import ClassVar

import msgspec

from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import Snapshot
from extender.config.faults import Fault
from extender.config.gates import FeatureGates
from extender.config.paths import child
from extender.config.strict import Int32
from extender.config.validate import invalid
from extender.decide.feasible import none_available
from extender.decide.rescue import Attempt
from extender.framework.changes import Action, Change, Hint, Registration, Resource
from extender.framework.group_points import WhatIf
from extender.framework.points import PostFiltered
from extender.framework.setup import Setup
from extender.framework.verdict import SUCCESS, Status, error, unresolvable, unschedulable
from extender.objects.groups import PodGroup
from extender.preemption.candidates import Enough, search
from extender.preemption.choose import choose
from extender.preemption.eligibility import objection
from extender.preemption.room import room_for

_PREFIX = "preemption: "
_NOT_HELPFUL = "Preemption is not helpful for scheduling"
_POD_WAITS = unresolvable("waiting for the preemption for this pod to be finished")
_GROUP_WAITS = unresolvable("waiting for the preemption for this pod group to be finished")
_NO_GROUP = unschedulable(f"{_PREFIX}pod group for pod not found")
_PLACED_GROUP = unschedulable(f"{_PREFIX}not eligible due to placement-based pod group scheduling limitation")
_GROUP_PREEMPTS = unschedulable(f"{_PREFIX}not eligible due to workload aware preemption enabled")


class DefaultPreemptionArgs(msgspec.Struct, frozen=True, rename="camel"):
    """The plugin's options. Source: G035."""

    min_candidate_nodes_percentage: Int32 = 10
    min_candidate_nodes_absolute: Int32 = 100

    def faults(self, path: str, _gates: FeatureGates) -> list[Fault]:
        """Numbers out of range, and two zeros."""
        percentage, absolute = self.min_candidate_nodes_percentage, self.min_candidate_nodes_absolute
        of_all, at_least = child(path, "minCandidateNodesPercentage"), child(path, "minCandidateNodesAbsolute")
        found: list[Fault] = []
        if not 0 <= percentage <= 100:
            found.append(invalid(of_all, percentage, "not in valid range [0, 100]"))
        if absolute < 0:
            found.append(invalid(at_least, absolute, "not in valid range [0, inf)"))
        if percentage == 0 and absolute == 0:
            both = "cannot be zero at the same time as"
            found.append(invalid(of_all, percentage, f"{both} minCandidateNodesAbsolute"))
            found.append(invalid(at_least, absolute, f"{both} minCandidateNodesPercentage"))
        return found


class DefaultPreemption:
    """Plans evictions; whoever carries them out keeps `preempting` and `preempting_groups` true.

    Attributes:
        preempting: uids of pods whose victims are being evicted. Source: E043.
        preempting_groups: uids of pod groups whose victims are being evicted.
    """

    name: ClassVar[str] = "DefaultPreemption"
    options = DefaultPreemptionArgs

    def __init__(self, setup: Setup[DefaultPreemptionArgs]) -> None:
        options, gates = setup.options, setup.gates
        self._enough = Enough(options.min_candidate_nodes_percentage, options.min_candidate_nodes_absolute)
        self._async = "SchedulerAsyncPreemption" in gates
        self._by_topology = "TopologyAwareWorkloadScheduling" in gates
        self._by_group = "WorkloadAwarePreemption" in gates
        self.preempting: set[str] = set()
        self.preempting_groups: set[str] = set()

    def pre_enqueue(self, pod: PodQuery, cluster: Snapshot) -> Status | None:
        """Source: B108."""
        if not self._async:
            return None
        if pod.spec.scheduling_group is not None and self._by_group:
            group = _group(pod, cluster)
            return _GROUP_WAITS if group is not None and group.metadata.uid in self.preempting_groups else None
        return _POD_WAITS if pod.uid in self.preempting else None

    def post_filter(self, pod: PodQuery, cluster: Snapshot, attempt: Attempt) -> PostFiltered:
        """The node to make room on, with a `preemption.plan.PreemptionPlan`, or why there is none. Source: E001."""
        refused = self._group_refuses(pod, cluster)
        if refused is not None:
            return PostFiltered(refused)
        wrong = objection(pod, cluster, attempt.feasibility)
        if wrong:
            return PostFiltered(unschedulable(f"{_PREFIX}{wrong}"))
        found = search(pod, cluster, attempt, self._enough)
        if found.candidates:
            plan = choose(found.candidates, attempt.chance)
            return PostFiltered(SUCCESS, plan.chosen.node, plan)
        if found.errors:
            return PostFiltered(error(f"{_PREFIX}{_joined(found.errors)}"))
        size, counts = len(cluster), dict(found.reasons)
        if found.failed < size:
            counts[_NOT_HELPFUL] = size - found.failed
        return PostFiltered(unschedulable(f"{_PREFIX}{none_available(size, counts)}"), nominated="")

    def pod_group_post_filter(self, group: PodGroup, pods: Sequence[PodQuery], cluster: Snapshot) -> WhatIf:
        """A `preemption.plan.GroupPreemptionPlan`, or why no room can be made for *group*. Source: E051 to E053."""
        answer = yield from room_for(group, pods, cluster)
        return PostFiltered(answer) if isinstance(answer, Status) else PostFiltered(SUCCESS, detail=answer)

    def _group_refuses(self, pod: PodQuery, cluster: Snapshot) -> Status | None:
        """Why a member of a pod group does not preempt by itself. Source: E002."""
        if pod.spec.scheduling_group is None:
            return None
        if self._by_topology:
            group = _group(pod, cluster)
            if group is None:
                return _NO_GROUP
            if group.spec.scheduling_constraints is not None:
                return _PLACED_GROUP
        return _GROUP_PREEMPTS if self._by_group else None

    def events(self) -> Sequence[Registration]:
        """Known to the queue, but no event wakes the pod: the end of the eviction does. Source: B108."""
        return (Registration(Resource.POD, Action.DELETE, _never),) if self._async else ()


def _group(pod: PodQuery, cluster: Snapshot) -> PodGroup | None:
    membership = pod.spec.scheduling_group
    name = membership.pod_group_name if membership is not None else None
    return cluster.find(PodGroup, f"{pod.namespace}/{name}") if name else None


def _never(_pod: PodQuery, _change: Change) -> Hint:
    return Hint.SKIP


def _joined(errors: Sequence[str]) -> str:
    """As upstream writes several errors: each once, in brackets."""
    distinct = list(dict.fromkeys(errors))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"
