"""Who is refused and why, for the nodes that were asked about: groups of nodes about which the same is said."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from extender.cluster.arrays import BoolArray, IntArray
from extender.decide.feasible import Feasibility
from extender.framework.verdict import Code, Status
from extender.web.asked import Asked

UNKNOWN = "node is not known to the extender (yet)"
"""Said of a name that is not in our cluster: a new node reaches kube-scheduler and us at different times."""


@dataclass(frozen=True, slots=True)
class Saying:
    """What is said about some nodes.

    Attributes:
        text: why they are refused, as kube-scheduler words a Status (H068); empty if they are accepted.
        final: evicting pods cannot help.
        plugin: who refuses first; empty: nobody in particular.
    """

    text: str = ""
    final: bool = False
    plugin: str = ""


ACCEPTED = Saying()
"""Said of accepted nodes."""


@dataclass(slots=True)
class Refused:
    """What is said about each node asked about.

    Attributes:
        said: the number in `sayings` of what is said about each node, int64, in the order of the request.
        sayings: the different things said, `ACCEPTED` first.
        counted: how many nodes each plugin was the first to refuse with which words; unknown nodes are left out.
    """

    said: IntArray
    sayings: list[Saying] = field(default_factory=lambda: [ACCEPTED])
    counted: dict[tuple[str, str], int] = field(default_factory=dict)

    def groups(self) -> Iterator[tuple[Saying, Sequence[int]]]:
        """Each thing said, with the places in the request of the nodes it is said about."""
        if len(self.sayings) == 1:
            yield ACCEPTED, range(len(self.said))
            return
        order = np.argsort(self.said, kind="stable")
        ends = np.cumsum(np.bincount(self.said, minlength=len(self.sayings))).tolist()
        places = order.tolist()
        for saying, start, end in zip(self.sayings, [0, *ends], ends, strict=False):
            if start < end:
                yield saying, places[start:end]

    def say(self, nodes: BoolArray, saying: Saying) -> None:
        """Say something about *nodes* (bool), about which nothing was said before."""
        count = self._say(nodes, saying)
        if count and saying.plugin:
            key = saying.plugin, saying.text
            self.counted[key] = self.counted.get(key, 0) + count

    def _say(self, nodes: BoolArray, saying: Saying) -> int:
        count = int(nodes.sum())
        if count:
            self.said[nodes] = len(self.sayings)
            self.sayings.append(saying)
        return count

    def add(self, nodes: BoolArray, saying: Saying) -> None:
        """Say something more about *nodes* (bool): behind what was said, and for good if either is."""
        for number in np.unique(self.said[nodes]).tolist():
            before = self.sayings[number]
            self._say(
                nodes & (self.said == number),
                Saying(f"{before.text}, {saying.text}", before.final or saying.final, before.plugin),
            )


def _nothing_said(asked: Asked) -> Refused:
    refused = Refused(np.zeros(len(asked.rows), dtype=np.int64))
    refused.say(~asked.known, Saying(UNKNOWN))
    return refused


def by_status(status: Status, asked: Asked) -> Refused:
    """Every known node refused with the status that the pod as a whole got. Source: A057."""
    refused = _nothing_said(asked)
    final = status.code is Code.UNRESOLVABLE
    refused.say(asked.known, Saying(status.message, final, status.plugin or "PreFilter"))
    return refused


def by_node(found: Feasibility, asked: Asked) -> Refused:
    """Every node with what the plugin that refuses it first has against it, reasons in the plugin's order.

    Source: F030.

    Args:
        found: with reasons.
        asked: the nodes asked about.
    """
    refused = _nothing_said(asked)
    left = asked.known & ~asked.of(found.feasible)
    for refusal in found.refusals:
        mine = asked.of(refusal.nodes)
        saying = Saying(refusal.reason.text, refusal.reason.code is Code.UNRESOLVABLE, refusal.plugin)
        refused.add(mine & ~left, saying)
        refused.say(mine & left, saying)
        left &= ~mine
    refused.say(left, Saying(found.before.absent, True, ",".join(found.before.restrictors)))
    return refused
