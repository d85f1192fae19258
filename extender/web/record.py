"""The last decisions about each pod, per node and plugin: what `GET /explain/{namespace}/{pod}` tells of the verbs.

Bounded by weight. What has to be remembered is handed over as it is; it is spelled out only when somebody asks.
"""

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np

from extender.decide.rank import Ranking
from extender.objects.pod import Pod
from extender.web.asked import Asked
from extender.web.priorities import Priorities
from extender.web.refusing import ACCEPTED, Refused

Told = Callable[[], Mapping[str, Any]]

_OVERHEAD: Final = 512
"""Bytes that a decision weighs beside what it names."""


@dataclass(frozen=True, slots=True)
class _Decision:
    at: float
    verb: str
    weight: int
    told: Told


@dataclass(slots=True)
class Record:
    """Decisions by pod, newest last.

    Attributes:
        most: bytes that all of them may weigh, as far as that can be told; the pod asked about longest ago goes first.
        each: decisions kept of one pod.
        now: seconds since 1970.
    """

    most: int = 64 << 20
    each: int = 8
    now: Callable[[], float] = time.time
    _pods: OrderedDict[str, deque[_Decision]] = field(init=False, default_factory=OrderedDict)
    _weight: int = field(init=False, default=0)

    def note(self, key: str, verb: str, told: Told, weight: int = 0) -> None:
        """Remember what *verb* came to for the pod *key* (`namespace/name`); *told* spells it out, in builtins."""
        kept = self._pods.setdefault(key, deque())
        self._pods.move_to_end(key)
        weight += 4 * len(key) + _OVERHEAD
        kept.append(_Decision(self.now(), verb, weight, told))
        self._weight += weight
        if len(kept) > self.each:
            self._weight -= kept.popleft().weight
        while self._weight > self.most and len(self._pods) > 1:
            _, oldest = self._pods.popitem(last=False)
            self._weight -= sum(decision.weight for decision in oldest)

    def about(self, key: str) -> list[dict[str, Any]]:
        """The decisions about the pod *key*, oldest first; empty if none is remembered."""
        return [
            {"time": _stamp(decision.at), "verb": decision.verb, **decision.told()}
            for decision in self._pods.get(key, ())
        ]

    # -- what the verbs came to

    def filtered(self, pod: Pod, profile: str, asked: Asked, refused: Refused) -> None:
        """Filter let some nodes through and refused the others."""
        names = asked.names

        def told() -> dict[str, Any]:
            accepted: list[str] = []
            groups = []
            for saying, places in refused.groups():
                nodes = [names[place] for place in places]
                if saying is ACCEPTED:
                    accepted = nodes
                else:
                    said = {"plugin": saying.plugin or None, "reason": saying.text, "final": saying.final}
                    groups.append({**said, "nodes": nodes})
            return {"profile": profile, "nodes": len(names), "accepted": accepted, "refused": groups}

        self.note(pod.key, "filter", told, asked.listed.weight)

    def prioritized(self, pod: Pod, profile: str, asked: Asked, ranking: Ranking, answer: Priorities) -> None:
        """Prioritize came to *answer* about the nodes *asked* about, of which *ranking* has those that can take it."""
        names, rows_asked, rows, totals = asked.names, asked.rows, ranking.rows, np.array(ranking.totals)
        plugins = {
            name: (np.array(each.raw), np.array(each.normalized), each.weight) for name, each in ranking.plugins.items()
        }

        def told() -> dict[str, Any]:
            scores, rated = {each.host: each.score for each in answer}, []
            name_of = dict(zip(rows_asked.tolist(), names, strict=True))
            for place, name in enumerate(map(name_of.__getitem__, rows.tolist())):
                by_plugin = {
                    plugin: {"raw": int(raw[place]), "normalized": int(normalized[place]), "weight": weight}
                    for plugin, (raw, normalized, weight) in plugins.items()
                }
                rated.append({"node": name, "score": scores[name], "total": int(totals[place]), "plugins": by_plugin})
            return {"profile": profile, "scores": sorted(rated, key=lambda each: -each["total"])}

        self.note(pod.key, "prioritize", told, asked.listed.weight + 16 * (len(plugins) + 2) * len(names))

    def preempted(self, pod: Pod, profile: str, offered: Mapping[str, Any], answered: Mapping[str, Any]) -> None:
        """Preempt was offered victims, and answered with others; both by node."""

        def told() -> dict[str, Any]:
            nodes = {
                node: {
                    "offered": [victim.uid for victim in victims.pods],
                    "evict": [victim.uid for victim in answered[node].pods] if node in answered else None,
                }
                for node, victims in offered.items()
            }
            return {"profile": profile, "nodes": nodes}

        uids = [victim.uid for victims in (*offered.values(), *answered.values()) for victim in victims.pods]
        self.note(pod.key, "preempt", told, _weight([*offered, *uids]))

    def failed(self, pod: Pod, verb: str, error: str) -> None:
        """Something went wrong while *verb* was decided."""
        self.note(pod.key, verb, lambda: {"error": error}, len(error))


def _weight(names: Collection[str]) -> int:
    """Bytes that a list of *names* weighs, characters being ASCII as nearly always."""
    return len("".join(names)) + 64 * len(names)


def _stamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
