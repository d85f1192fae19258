"""The last decisions about each pod, per node and plugin, for `GET /explain/{namespace}/{pod}`.

The log is bounded by memory. A decision keeps its results; its details are built only when they are read.
"""

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np

from extender.api.kinds.pod import Pod
from extender.cycle.score import Ranking
from extender.extender_api.best_node.choice import NodeChoice
from extender.extender_api.failed_nodes import FEASIBLE, NodeReasons
from extender.extender_api.host_priorities import HostPriorities
from extender.extender_api.requested_nodes import RequestedNodes

DetailsBuilder = Callable[[], Mapping[str, Any]]

_DECISION_OVERHEAD: Final = 2048
"""Estimated bytes of a decision without its names and scores. A decision of filter was measured with 1,850."""

_RANKING_OVERHEAD: Final = 576
"""Estimated bytes of the arrays of one plugin's scores, without the scores."""

_SCORE_OVERHEAD: Final = 160
"""Estimated bytes of one plugin's score of one node."""

_VICTIM_OVERHEAD: Final = 64
"""Estimated bytes of a victim without its uid."""


@dataclass(frozen=True, slots=True)
class _Decision:
    timestamp: float
    verb: str
    memory_bytes: int
    build_details: DetailsBuilder


@dataclass(slots=True)
class DecisionLog:
    """Decisions by pod, newest last.

    Attributes:
        max_bytes: the limit of the estimated memory of all decisions. Beyond it, the pod without a decision for the
            longest time is evicted first. If only one pod is left, its oldest decisions are evicted.
        now: a function that returns the time in seconds since 1970.
    """

    max_bytes: int = 64 << 20
    max_per_pod: int = 8
    now: Callable[[], float] = time.time
    _decisions_by_pod: OrderedDict[str, deque[_Decision]] = field(init=False, default_factory=OrderedDict)
    _memory_bytes: int = field(init=False, default=0)

    def add(self, key: str, verb: str, build_details: DetailsBuilder, memory_bytes: int = 0) -> None:
        """Add a decision of *verb* about the pod *key* (`namespace/name`); *build_details* returns its details."""
        decisions = self._decisions_by_pod.setdefault(key, deque())
        self._decisions_by_pod.move_to_end(key)
        memory_bytes += 4 * len(key) + _DECISION_OVERHEAD
        decisions.append(_Decision(self.now(), verb, memory_bytes, build_details))
        self._memory_bytes += memory_bytes
        if len(decisions) > self.max_per_pod:
            self._memory_bytes -= decisions.popleft().memory_bytes
        while self._memory_bytes > self.max_bytes and len(self._decisions_by_pod) > 1:
            _, evicted_decisions = self._decisions_by_pod.popitem(last=False)
            self._memory_bytes -= sum(decision.memory_bytes for decision in evicted_decisions)
        while self._memory_bytes > self.max_bytes:
            self._memory_bytes -= decisions.popleft().memory_bytes

    def get_decisions(self, key: str) -> list[dict[str, Any]]:
        """Return the decisions about the pod *key*, oldest first."""
        return [
            {"time": _format_time(decision.timestamp), "verb": decision.verb, **decision.build_details()}
            for decision in self._decisions_by_pod.get(key, ())
        ]

    # -- the verbs' results

    def add_filter(self, pod: Pod, profile: str, requested_nodes: RequestedNodes, reasons: NodeReasons) -> None:
        """Add a result of filter."""
        names = requested_nodes.names

        def build_details() -> dict[str, Any]:
            accepted_nodes: list[str] = []
            groups = []
            for reason, positions in reasons.group_positions():
                nodes = [names[position] for position in positions]
                if reason is FEASIBLE:
                    accepted_nodes = nodes
                else:
                    group = {"plugin": reason.plugin or None, "reason": reason.text, "final": reason.unresolvable}
                    groups.append({**group, "nodes": nodes})
            return {"profile": profile, "nodes": len(names), "accepted": accepted_nodes, "refused": groups}

        reason_bytes = sum(len(reason.text) for reason in reasons.reasons)
        memory_bytes = requested_nodes.node_names.memory_bytes + 8 * len(names) + 4 * reason_bytes
        self.add(pod.key, "filter", build_details, memory_bytes)

    def add_choice(self, pod: Pod, profile: str, requested_count: int, choice: NodeChoice) -> None:
        """Add a result of filter that is one node among *requested_count* nodes."""
        node_name, total, scores_by_plugin = choice.node_name, choice.total, choice.scores_by_plugin
        counts = {"nodes": requested_count, "feasible": choice.feasible_count, "best": choice.best_count}

        def build_details() -> dict[str, Any]:
            scores = {
                name: {"raw": score.raw, "normalized": score.normalized, "weight": score.weight}
                for name, score in scores_by_plugin.items()
            }
            return {"profile": profile, **counts, "chosen": {"node": node_name, "total": total, "plugins": scores}}

        self.add(pod.key, "filter", build_details, len(node_name) + _SCORE_OVERHEAD * len(scores_by_plugin))

    def add_prioritize(
        self, pod: Pod, profile: str, requested_nodes: RequestedNodes, ranking: Ranking, priorities: HostPriorities
    ) -> None:
        """Add a result of prioritize; *ranking* has the scores of the feasible nodes among the requested ones."""
        names, requested_rows, rows, totals = (
            requested_nodes.names,
            requested_nodes.rows,
            ranking.rows,
            np.array(ranking.totals),
        )
        plugins = ranking.scores_by_plugin

        def build_details() -> dict[str, Any]:
            scores, scored_nodes = {entry.host: entry.score for entry in priorities}, []
            names_by_row = dict(zip(requested_rows.tolist(), names, strict=True))
            for index, name in enumerate(map(names_by_row.__getitem__, rows.tolist())):
                plugin_scores = {
                    plugin: {
                        "raw": int(entry.raw[index]),
                        "normalized": int(entry.normalized[index]),
                        "weight": entry.weight,
                    }
                    for plugin, entry in plugins.items()
                }
                score, total = scores.get(name, 0), int(totals[index])
                scored_nodes.append({"node": name, "score": score, "total": total, "plugins": plugin_scores})
            return {"profile": profile, "scores": sorted(scored_nodes, key=lambda entry: -entry["total"])}

        self.add(
            pod.key,
            "prioritize",
            build_details,
            requested_nodes.node_names.memory_bytes
            + 16 * (len(plugins) + 2) * len(names)
            + _RANKING_OVERHEAD * len(plugins),
        )

    def add_preempt(
        self, pod: Pod, profile: str, offered_victims: Mapping[str, Any], accepted_victims: Mapping[str, Any]
    ) -> None:
        """Add a result of preempt: *offered_victims* of the request and *accepted_victims*, by node."""

        def build_details() -> dict[str, Any]:
            nodes = {
                node: {
                    "offered": [victim.uid for victim in victims.pods],
                    "evict": [victim.uid for victim in accepted_victims[node].pods]
                    if node in accepted_victims
                    else None,
                }
                for node, victims in offered_victims.items()
            }
            return {"profile": profile, "nodes": nodes}

        uids = [
            victim.uid for victims in (*offered_victims.values(), *accepted_victims.values()) for victim in victims.pods
        ]
        self.add(
            pod.key, "preempt", build_details, _estimate_bytes([*offered_victims, *uids]) + _VICTIM_OVERHEAD * len(uids)
        )

    def add_failure(self, pod: Pod, verb: str, error: str) -> None:
        """Add an error of *verb*."""
        self.add(pod.key, verb, lambda: {"error": error}, len(error))


def _estimate_bytes(names: Collection[str]) -> int:
    """Return the memory of a list of ASCII *names* in bytes."""
    return len("".join(names)) + 64 * len(names)


def _format_time(timestamp: float) -> str:
    return datetime.fromtimestamp(timestamp, UTC).isoformat(timespec="milliseconds")
