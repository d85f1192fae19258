"""Cached scores are updated or recomputed with their column."""

from typing import Any

import numpy as np

from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.pre_filter import PreFilterRun
from extender.cycle.score import prioritize_nodes
from extender.framework.extension_points import DependsOn
from tests.build import make_cluster, make_node, make_pod
from tests.unit.cycle.fakes import FakeScore, make_profile

LABEL = "score"


class LabelScore(FakeScore):
    """Scores a node by its label, cached by node."""

    score_depends_on = DependsOn.NODE

    def __init__(self) -> None:
        super().__init__("LabelScore", {})
        self.scored: list[list[str]] = []

    def score_cache_key(self, _pod: Any) -> str:
        return "any"

    def score(self, _pod: Any, nodes: Any, _state: Any) -> Any:
        self.scored.append(list(nodes.names))
        return np.array([int(node.metadata.labels[LABEL]) for node in nodes.nodes], dtype=np.int64)


def test_only_changed_nodes_are_scored_again() -> None:
    names = [f"n{number}" for number in range(8)]
    cache = make_cluster(*(make_node(name, labels={LABEL: "1"}) for name in names))
    plugin, runtime = LabelScore(), PluginRuntime()
    profile = make_profile(plugin, weights={"LabelScore": 3})

    def total_scores() -> list[int]:
        snapshot = cache.snapshot()
        pod = snapshot.make_pod_info(make_pod())
        feasible = np.ones(len(names), dtype=np.bool_)
        return prioritize_nodes(pod, snapshot, profile, runtime, feasible, PreFilterRun()).totals.tolist()

    assert total_scores() == [3] * 8
    cache.add_or_update_node(make_node("n2", labels={LABEL: "7"}))
    assert total_scores() == [3, 3, 21, 3, 3, 3, 3, 3]
    assert plugin.scored == [names, ["n2"]]
    assert total_scores() == [3, 3, 21, 3, 3, 3, 3, 3]
    assert plugin.scored == [names, ["n2"]]
