"""The decision for each group of a tree: the members of a group wait if a group above it cannot be scheduled.

Source: pkg/scheduler/schedule_one_podgroup.go, completeCompositePodGroupAlgorithmResultMap (1.37).
"""

from collections.abc import Iterator
from dataclasses import dataclass

from extender.cache.group_hierarchy import GroupKey
from extender.cycle.pod_group_members import GroupDecision
from extender.framework.pod_group_points import PodGroupInfo


@dataclass(frozen=True, slots=True)
class CompletedDecision:
    """The decision for one group of a tree.

    Attributes:
        group: the group.
        decision: its decision. A group that was not tried, or that could be scheduled if the group above could, has the
            status of the group above and no results of members.
        status_owner: the group whose status it is. kube-scheduler appends the messages of PodGroupPostFilter plugins
            once for each group with the same status.
    """

    group: PodGroupInfo
    decision: GroupDecision
    status_owner: GroupKey


def complete_group_decisions(group: PodGroupInfo, decision: GroupDecision) -> list[CompletedDecision]:
    """Return the decisions of all groups of the tree *group*, of which *decision* is the outcome; the root is first."""
    root = CompletedDecision(group, decision, group.group_key)
    return [root, *_complete_children(root)]


def _complete_children(parent: CompletedDecision) -> Iterator[CompletedDecision]:
    for child in parent.group.children:
        decision = parent.decision.children.get(child.group_key)
        completed = CompletedDecision(child, decision or GroupDecision(parent.decision.status), child.group_key)
        if decision is None or (decision.status.is_success and not parent.decision.status.is_success):
            inherited = GroupDecision(parent.decision.status, children={} if decision is None else decision.children)
            completed = CompletedDecision(child, inherited, parent.status_owner)
        yield completed
        yield from _complete_children(completed)
