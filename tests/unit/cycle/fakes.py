"""Fake plugins with given results, and profiles of them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from extender.cache.tables.arrays import IntArray
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_36
from extender.framework.extension_points import PostFilterResult, PreFilterResult, PreScoreResult
from extender.framework.profiles import Profile, WeightedScore
from extender.framework.status import Code, Reason, Rejection, Status
from extender.plugins.priority_sort import PrioritySort


class RejectingFilter:
    """A filter that rejects the nodes of these names and records its calls."""

    def __init__(self, name: str, *nodes: str, text: str = "", code: Code = Code.UNSCHEDULABLE) -> None:
        self.name = name
        self.nodes = set(nodes)
        self.reason = Reason(text or f"refused by {name}", code)
        self.calls: list[list[str]] = []

    def filter(self, _pod: Any, nodes: Any, _state: Any) -> Sequence[Rejection]:
        self.calls.append(nodes.names)
        return (Rejection(np.array([name in self.nodes for name in nodes.names], dtype=np.bool_), self.reason),)


class FakePreFilter:
    """A PreFilter with this result, and a Filter that rejects nothing and counts its calls."""

    def __init__(self, name: str, result: PreFilterResult) -> None:
        self.name, self.result, self.filter_calls = name, result, 0

    def pre_filter(self, _pod: Any, _snapshot: Any) -> PreFilterResult:
        return self.result

    def filter(self, _pod: Any, _nodes: Any, _state: Any) -> Sequence[Rejection]:
        self.filter_calls += 1
        return ()


class RaisingPlugin:
    """A plugin that raises at every extension point."""

    name = "Broken"

    def pre_filter(self, *_: Any) -> PreFilterResult:
        raise ValueError("out of order")

    filter = score = pre_score = pre_enqueue = post_filter = pre_filter


class FakeScore:
    """Scores by node name."""

    def __init__(self, name: str, scores: Mapping[str, int], result: PreScoreResult | None = None) -> None:
        self.name, self.scores, self.result = name, scores, result or PreScoreResult()

    def pre_score(self, _pod: Any, _nodes: Any) -> PreScoreResult:
        return self.result

    def score(self, _pod: Any, nodes: Any, _state: Any) -> IntArray:
        return np.array([self.scores[name] for name in nodes.names], dtype=np.int64)


class FakePostFilter:
    """A PostFilter with this result."""

    def __init__(self, name: str, code: Code, *reasons: str, nominated: str | None = None) -> None:
        self.name, self.result, self.calls = name, PostFilterResult(Status(code, reasons), nominated), 0

    def post_filter(self, _pod: Any, _snapshot: Any, _attempt: Any) -> PostFilterResult:
        self.calls += 1
        return self.result


def make_profile(*plugins: Any, weights: Mapping[str, int] | None = None, percentage: int | None = None) -> Profile:
    """Make a profile of 1.36 that has each of *plugins* at every extension point that it has a method for."""

    def with_method(method: str) -> tuple[Any, ...]:
        return tuple(plugin for plugin in plugins if isinstance(getattr(plugin, method, None), Callable))  # type: ignore[arg-type]

    return Profile(
        scheduler_name="default-scheduler",
        queue_sort=PrioritySort(),
        percentage_of_nodes_to_score=percentage,
        pre_enqueue_plugins=with_method("pre_enqueue"),
        pre_filter_plugins=with_method("pre_filter"),
        filter_plugins=with_method("filter"),
        post_filter_plugins=with_method("post_filter"),
        pre_score_plugins=with_method("pre_score"),
        score_plugins=tuple(
            WeightedScore(plugin, (weights or {}).get(plugin.name, 1)) for plugin in with_method("score")
        ),
        reserve_plugins=with_method("reserve"),
        permit_plugins=with_method("permit"),
        pre_bind_plugins=with_method("pre_bind"),
        bind_plugins=with_method("bind"),
        post_bind_plugins=with_method("post_bind"),
        gates=FeatureGates(release=RELEASE_1_36),
    )
