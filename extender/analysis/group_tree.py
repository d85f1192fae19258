"""Why a composite pod group waits: what each group of its tree needs, has, and how its attempt ended."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from extender.analysis.text_table import format_count
from extender.answers.explanation import GroupOfTreeResult
from extender.cache.snapshot import Snapshot
from extender.cycle.pod_group.post_filter import CompletedDecision, complete_group_decisions
from extender.cycle.pod_group_members import GroupDecision
from extender.framework.pod_group_points import PodGroupInfo
from extender.plugin_parts.group_quorum import get_min_count


@dataclass(frozen=True, slots=True)
class GroupTree:
    """A group of a tree of pod groups, and its child groups in scheduling order."""

    group: GroupOfTreeResult
    children: "tuple[GroupTree, ...]" = ()

    def format_lines(self) -> list[str]:
        """Return the tree as text."""
        return ["    the groups of the tree:", *self.iterate_lines("      ")]

    def iterate_lines(self, indent: str) -> Iterator[str]:
        """Yield the lines of the group and its child groups, which are indented further."""
        group = self.group
        kind, member = ("composite pod group", "child group") if group.composite else ("pod group", "pod")
        counts = f"needs {group.min_count} of {format_count(group.members, member)}"
        if not group.composite and group.scheduled:
            counts += f", {group.scheduled} placed"
        yield f"{indent}{kind} {group.name} {counts}: {'fits' if group.fits else group.message or ''}"
        for child in self.children:
            yield from child.iterate_lines(f"{indent}  ")

    def to_values(self) -> list[dict[str, Any]]:
        """Return the groups of the tree as plain values, the root first, always with the same keys."""
        values = [msgspec.to_builtins(self.group)]
        return [*values, *(child_values for child in self.children for child_values in child.to_values())]


def describe_tree(group: PodGroupInfo, snapshot: Snapshot, decision: GroupDecision) -> GroupTree:
    """Return the tree of the composite pod group *group* with the outcome *decision* of its attempt."""
    outcomes = {outcome.group: outcome for outcome in complete_group_decisions(group, decision)}

    def describe(info: PodGroupInfo, outcome: CompletedDecision, parent: str | None) -> GroupTree:
        obj, members = snapshot.get_group(info.group_key), snapshot.pod_group(info.key)
        children = tuple(describe(child, outcomes[child], info.key) for child in info.children)
        own_decision = decision if info is group else _find_own_decision(info, decision)
        fits = own_decision is not None and own_decision.status.is_success
        result = GroupOfTreeResult(
            info.key,
            parent,
            info.is_composite,
            1 if obj is None else get_min_count(obj),
            len(children) if info.is_composite else members.count,
            sum(child.group.fits for child in children) if info.is_composite else len(members.assigned),
            fits,
            None if fits else "not tried" if own_decision is None else outcome.decision.status.message or None,
        )
        return GroupTree(result, children)

    return describe(group, outcomes[group], None)


def _find_own_decision(info: PodGroupInfo, decision: GroupDecision) -> GroupDecision | None:
    """Return the decision for *info* before a group above it failed; None if the group was not tried."""
    for key, child in decision.children.items():
        found = child if key == info.group_key else _find_own_decision(info, child)
        if found is not None:
            return found
    return None
