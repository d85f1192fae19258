"""Plugins that say what a test tells them to, and profiles made of them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from extender.cluster.arrays import IntArray
from extender.framework.points import PostFiltered, PreFiltered, PreScored
from extender.framework.profiles import Profile, WeightedScore
from extender.framework.verdict import Code, Reason, Rejection, Status
from extender.plugins.priority_sort import PrioritySort


class Refusing:
    """A filter that refuses the nodes of these names."""

    def __init__(self, name: str, *nodes: str, text: str = "", code: Code = Code.UNSCHEDULABLE) -> None:
        self.name = name
        self.nodes = set(nodes)
        self.reason = Reason(text or f"refused by {name}", code)
        self.asked: list[list[str]] = []

    def filter(self, _pod: Any, nodes: Any, _notes: Any) -> Sequence[Rejection]:
        self.asked.append(nodes.names)
        return (Rejection(np.array([name in self.nodes for name in nodes.names], dtype=np.bool_), self.reason),)


class Before:
    """A PreFilter that gives this answer, with a Filter that refuses nobody and notes that it was asked."""

    def __init__(self, name: str, answer: PreFiltered) -> None:
        self.name, self.answer, self.asked = name, answer, 0

    def pre_filter(self, _pod: Any, _cluster: Any) -> PreFiltered:
        return self.answer

    def filter(self, _pod: Any, _nodes: Any, _notes: Any) -> Sequence[Rejection]:
        self.asked += 1
        return ()


class Broken:
    """Raises wherever it is asked."""

    name = "Broken"

    def pre_filter(self, *_: Any) -> PreFiltered:
        raise ValueError("out of order")

    filter = score = pre_score = pre_enqueue = post_filter = pre_filter


class Rating:
    """Scores by node name; with *reverse* normalises, the greatest to 0."""

    def __init__(self, name: str, scores: Mapping[str, int], answer: PreScored | None = None) -> None:
        self.name, self.scores, self.answer = name, scores, answer or PreScored()

    def pre_score(self, _pod: Any, _nodes: Any) -> PreScored:
        return self.answer

    def score(self, _pod: Any, nodes: Any, _notes: Any) -> IntArray:
        return np.array([self.scores[name] for name in nodes.names], dtype=np.int64)


class Helping:
    """A PostFilter that gives this answer."""

    def __init__(self, name: str, code: Code, *reasons: str, nominated: str | None = None) -> None:
        self.name, self.answer, self.asked = name, PostFiltered(Status(code, reasons), nominated), 0

    def post_filter(self, _pod: Any, _cluster: Any, _attempt: Any) -> PostFiltered:
        self.asked += 1
        return self.answer


def a_profile(*plugins: Any, weights: Mapping[str, int] | None = None, percentage: int | None = None) -> Profile:
    """A profile in which each of *plugins* stands wherever it has a method."""

    def having(method: str) -> tuple[Any, ...]:
        return tuple(plugin for plugin in plugins if isinstance(getattr(plugin, method, None), Callable))  # type: ignore[arg-type]

    return Profile(
        scheduler_name="default-scheduler",
        queue_sort=PrioritySort(),
        percentage_of_nodes_to_score=percentage,
        pre_enqueues=having("pre_enqueue"),
        pre_filters=having("pre_filter"),
        filters=having("filter"),
        post_filters=having("post_filter"),
        pre_scores=having("pre_score"),
        scores=tuple(WeightedScore(plugin, (weights or {}).get(plugin.name, 1)) for plugin in having("score")),
        reserves=having("reserve"),
        permits=having("permit"),
        pre_binds=having("pre_bind"),
        binds=having("bind"),
        post_binds=having("post_bind"),
    )
