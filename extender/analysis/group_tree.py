"""Why a composite pod group waits: what each group of its tree needs, has, and how its attempt ended."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from extender.analysis.text_table import format_count
from extender.cache.snapshot import Snapshot
from extender.cycle.pod_group.post_filter import CompletedDecision, complete_group_decisions
from extender.cycle.pod_group_members import GroupDecision
from extender.framework.pod_group_points import PodGroupInfo
from extender.plugin_parts.group_quorum import get_min_count


@dataclass(frozen=True, slots=True)
class GroupTree:
    """A group of a tree of pod groups.

    Attributes:
        name: `namespace/name`.
        is_composite: whether it is a composite pod group.
        min_count: the number of pods, or of child groups, that must be scheduled at the same time.
        member_count: the number of its pods or child groups.
        scheduled_count: the number of its pods that have a node, or of its child groups that can be scheduled.
        fits: whether its pods can be scheduled, if the groups above it can be.
        message: why not; empty if they can.
        children: the child groups in scheduling order.
    """

    name: str
    is_composite: bool
    min_count: int
    member_count: int
    scheduled_count: int
    fits: bool
    message: str
    children: "tuple[GroupTree, ...]" = ()

    def format_lines(self) -> list[str]:
        """Return the tree as text."""
        return ["    the groups of the tree:", *self.iterate_lines("      ")]

    def iterate_lines(self, indent: str) -> Iterator[str]:
        """Yield the lines of the group and its child groups, which are indented further."""
        kind, member = ("composite pod group", "child group") if self.is_composite else ("pod group", "pod")
        state = "fits" if self.fits else self.message
        counts = f"needs {self.min_count} of {format_count(self.member_count, member)}"
        if not self.is_composite and self.scheduled_count:
            counts += f", {self.scheduled_count} placed"
        yield f"{indent}{kind} {self.name} {counts}: {state}"
        for child in self.children:
            yield from child.iterate_lines(f"{indent}  ")

    def to_values(self, parent: str = "") -> list[dict[str, Any]]:
        """Return the groups of the tree as plain values, the root first, always with the same keys.

        *parent* is the name of the composite pod group above this one.
        """
        values = {
            "name": self.name,
            "parent": parent or None,
            "composite": self.is_composite,
            "minCount": self.min_count,
            "members": self.member_count,
            "scheduled": self.scheduled_count,
            "fits": self.fits,
            "message": self.message or None,
        }
        return [values, *(child_values for child in self.children for child_values in child.to_values(self.name))]


def describe_tree(group: PodGroupInfo, snapshot: Snapshot, decision: GroupDecision) -> GroupTree:
    """Return the tree of the composite pod group *group* with the outcome *decision* of its attempt."""
    outcomes = {outcome.group: outcome for outcome in complete_group_decisions(group, decision)}

    def describe(info: PodGroupInfo, outcome: CompletedDecision) -> GroupTree:
        obj, children = (
            snapshot.get_group(info.group_key),
            tuple(describe(child, outcomes[child]) for child in info.children),
        )
        members = snapshot.pod_group(info.key)
        own_decision = decision if info is group else _find_own_decision(info, decision)
        fits = own_decision is not None and own_decision.status.is_success
        return GroupTree(
            info.key,
            info.is_composite,
            1 if obj is None else get_min_count(obj),
            len(children) if info.is_composite else members.count,
            sum(child.fits for child in children) if info.is_composite else len(members.assigned),
            fits,
            "" if fits else "not tried" if own_decision is None else outcome.decision.status.message,
            children,
        )

    return describe(group, outcomes[group])


def _find_own_decision(info: PodGroupInfo, decision: GroupDecision) -> GroupDecision | None:
    """Return the decision for *info* before a group above it failed; None if the group was not tried."""
    for key, child in decision.children.items():
        found = child if key == info.group_key else _find_own_decision(info, child)
        if found is not None:
            return found
    return None
