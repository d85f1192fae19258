"""Who is refused and why, spelled out for the nodes that were asked about."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from extender.cluster.arrays import BoolArray
from extender.decide.feasible import Feasibility
from extender.framework.verdict import Code, Status
from extender.web.asked import Asked

UNKNOWN = "node is not known to the extender (yet)"
"""Said of a name that is not in our cluster: a new node reaches kube-scheduler and us at different times."""


@dataclass(frozen=True, slots=True)
class Refused:
    """What is said about each node asked about.

    Attributes:
        accepted: can it take the pod; bool.
        final: is it refused for good, so that evicting pods cannot help; bool.
        texts: why it is refused, as kube-scheduler words a Status; empty for accepted nodes.
        by_plugin: how many nodes each plugin was the first to refuse; unknown nodes left out.
    """

    accepted: BoolArray
    final: BoolArray
    texts: list[str]
    by_plugin: dict[str, int]


def by_status(status: Status, asked: Asked) -> Refused:
    """Every known node refused with the status that the pod as a whole got. Source: A057."""
    known = asked.known
    final = known if status.code is Code.UNRESOLVABLE else np.zeros(len(known), dtype=np.bool_)
    texts = [status.message if each else UNKNOWN for each in known.tolist()]
    return Refused(np.zeros(len(known), dtype=np.bool_), final, texts, {status.plugin or "PreFilter": int(known.sum())})


def by_node(found: Feasibility, asked: Asked) -> Refused:
    """Every node with what the plugin that refuses it first has against it, reasons in the plugin's order.

    Source: F030, H068.

    Args:
        found: with reasons.
        asked: the nodes asked about.
    """
    accepted = asked.of(found.feasible)
    open_ = asked.known & ~accepted
    texts: NDArray[np.object_] = np.full(len(accepted), UNKNOWN, dtype=np.object_)
    texts[accepted] = ""
    if not open_.any():
        return Refused(accepted, open_, texts.tolist(), {})
    explained = np.zeros(len(accepted), dtype=np.bool_)
    final = np.zeros(len(accepted), dtype=np.bool_)
    counts: dict[str, int] = {}
    for refusal in found.refusals:
        mine = asked.of(refusal.nodes)
        again = mine & explained
        new = mine & ~explained
        texts[new] = refusal.reason.text
        if again.any():
            _append(texts, again, refusal.reason.text)
        explained |= mine
        counts[refusal.plugin] = counts.get(refusal.plugin, 0) + int(new.sum())
        if refusal.reason.code is Code.UNRESOLVABLE:
            final |= mine
    left_out = open_ & ~explained
    if left_out.any():
        texts[left_out] = found.before.absent
        final |= left_out
        plugins = ",".join(found.before.restrictors)
        counts[plugins] = counts.get(plugins, 0) + int(left_out.sum())
    return Refused(accepted, final, texts.tolist(), counts)


def _append(texts: NDArray[np.object_], rows: BoolArray, text: str) -> None:
    """Put *text* behind what is said of *rows*; nodes with equal texts go on sharing one string."""
    longer: dict[str, str] = {}
    for row in np.flatnonzero(rows).tolist():
        before = texts[row]
        after = longer.get(before)
        if after is None:
            after = longer[before] = f"{before}, {text}"
        texts[row] = after
