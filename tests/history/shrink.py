"""Reduction of a failing input: remove parts while it still fails, with a limited number of tries."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from tests.history.checker import Violation, find_violations
from tests.history.cluster_state import Change, History

T = TypeVar("T")


def shrink(items: Sequence[T], still_fails: Callable[[list[T]], bool], max_tries: int) -> list[T]:
    """Return a part of *items* that still fails, in the same order.

    First half of the items is removed, then smaller parts (delta debugging). The first items are removed last,
    because the later ones often depend on them.

    Args:
        items: an input that fails.
        still_fails: takes a part of the items.
        max_tries: the maximum number of calls of *still_fails*.
    """
    remaining, size, tries = list(items), max(len(items) // 2, 1), 0
    while remaining:
        is_reduced, end = False, len(remaining)
        while end > 0 and tries < max_tries:
            candidate = remaining[: max(end - size, 0)] + remaining[end:]
            tries += 1
            if still_fails(candidate):
                remaining, is_reduced = candidate, True
            end -= size
        if tries >= max_tries or (size == 1 and not is_reduced):
            break
        size = max(size // 2, 1)
    return remaining


def shrink_history(history: History, violation: Violation, max_tries: int = 300) -> History:
    """Return the history of the fewest objects that still has a violation of the same rule by the same pod."""
    objects = list(dict.fromkeys((change.kind, change.key) for change in history.changes))

    def select(names: Sequence[tuple[str, str]]) -> History:
        wanted = set(names)
        return replace(history, changes=[c for c in history.changes if (c.kind, c.key) in wanted])

    def still_fails(candidate: list[tuple[str, str]]) -> bool:
        found = find_violations(select(candidate))
        return any((each.rule, each.pod) == (violation.rule, violation.pod) for each in found)

    return select(shrink(objects, still_fails, max_tries))


def describe_change(change: Change, start: float) -> str:
    """Return one line about a change: revision, seconds since *start*, object, and the fields that rules read."""
    line = f"{change.revision:>7} {change.time - start:8.3f} s {change.kind} {change.key}"
    if change.object is None:
        return f"{line} deleted"
    spec, status = change.object.get("spec") or {}, change.object.get("status") or {}
    fields = {
        "deleting": change.object["metadata"].get("deletionTimestamp"),
        **{name: spec.get(name) for name in ("nodeName", "unschedulable", "taints", "volumeName", "holderIdentity")},
        **{name: spec.get(name) for name in ("claimRef", "nodeSelector", "priority", "schedulingGates")},
        **{name: status.get(name) for name in ("phase", "nominatedNodeName", "allocatable", "reservedFor")},
        "devices": ((status.get("allocation") or {}).get("devices") or {}).get("results"),
        "requests": [c.get("resources", {}).get("requests") for c in spec.get("containers", ())],
        "conditions": [
            f"{each['type']}={each['status']} {each.get('reason', '')}"
            for each in status.get("conditions") or ()
            if each["type"] in {"PodScheduled", "DisruptionTarget"}
        ],
    }
    return f"{line} " + " ".join(f"{name}={value}" for name, value in fields.items() if value)


def describe_history(history: History, max_lines: int = 60) -> str:
    """Return one line per change, the last *max_lines* of them."""
    start = history.changes[0].time if history.changes else 0.0
    lines = [describe_change(change, start) for change in history.changes]
    return "\n".join([*(["        ..."] if len(lines) > max_lines else []), *lines[-max_lines:]])
