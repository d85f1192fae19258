"""Plugin calls when pods are removed in a dry run, and the handling of plugin errors."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from extender.framework.extension_points import PreFilterResult
from extender.framework.status import Reason, Rejection
from tests.build import make_cluster
from tests.unit.cycle.fakes import RejectingFilter, make_profile
from tests.unit.preemption.builders import (
    FailingFilter,
    make_preemptor,
    make_small_node,
    make_victim,
    search_candidates,
    victim_names,
)


@dataclass
class AtMost:
    """Allows a number of pods per node, counted in PreFilter state that AddPod and RemovePod must update."""

    most: int
    name: str = "AtMost"
    broken: str = ""
    moves: list[str] = field(default_factory=list)

    def pre_filter(self, _pod: Any, snapshot: Any) -> PreFilterResult:
        return PreFilterResult(state={row: len(snapshot.pods_on(name)) for row, name in enumerate(snapshot.names)})

    def clone(self, state: dict[int, int]) -> dict[int, int]:
        return dict(state)

    def add_pod(self, _pod: Any, pod_to_add: Any, row: int, _snapshot: Any, state: dict[int, int]) -> None:
        self._move(pod_to_add, row, state, 1)

    def remove_pod(self, _pod: Any, pod_to_remove: Any, row: int, _snapshot: Any, state: dict[int, int]) -> None:
        self._move(pod_to_remove, row, state, -1)

    def _move(self, other: Any, row: int, state: dict[int, int], by: int) -> None:
        self.moves.append(f"{'+' if by > 0 else '-'}{other.pod.metadata.name}")
        if other.pod.metadata.name == self.broken and by < 0:
            raise ValueError(f"lost {self.broken}")
        state[row] += by

    def filter(self, _pod: Any, nodes: Any, state: dict[int, int]) -> Sequence[Rejection]:
        rows = range(len(nodes)) if nodes.rows is None else nodes.rows.tolist()
        full = np.array([state[row] >= self.most for row in rows], dtype=np.bool_)
        return (Rejection(full, Reason("too many")),)


def _three_each() -> Any:
    state = make_cluster(make_small_node("m"), make_small_node("n"))
    for node in "mn":
        for priority in (3, 2, 1):
            state.add_or_update_pod(make_victim(f"{node}{priority}", node, priority=priority))
    return state


def test_plugin_state_follows_pods_node_by_node() -> None:
    plugin = AtMost(2)

    found = search_candidates(_three_each(), make_preemptor(), profile=make_profile(plugin))

    assert victim_names(found) == {"m": ["m2", "m1"], "n": ["n2", "n1"]}


def test_plugin_state_is_updated_for_every_move() -> None:
    state, plugin = (
        make_cluster(make_small_node("n"), make_victim("a", "n", priority=2), make_victim("b", "n", priority=1)),
        AtMost(1),
    )

    search_candidates(state, make_preemptor(), profile=make_profile(plugin))

    assert plugin.moves == ["-a", "-b", "+a", "-a", "+b", "-b"]


def test_nominated_pods_are_added_for_the_first_filter_run_only() -> None:
    state, plugin = make_cluster(make_small_node("n"), make_victim("a", "n")), AtMost(1)
    state.nominate(make_preemptor("first"), "n")

    found = search_candidates(state, make_preemptor(), profile=make_profile(plugin))

    assert victim_names(found) == {}
    assert found.reason_counts == {"too many": 1}
    assert "+first" in plugin.moves
    assert "-first" not in plugin.moves


def test_an_error_in_add_pod_or_remove_pod_affects_that_node_only() -> None:
    found = search_candidates(_three_each(), make_preemptor(), profile=make_profile(AtMost(2, broken="m2")))

    assert victim_names(found) == {"n": ["n2", "n1"]}
    assert found.errors == ('running RemovePod plugin "AtMost": ValueError: lost m2',)


def test_an_error_in_filter_affects_that_node_only() -> None:
    found = search_candidates(_three_each(), make_preemptor(), profile=make_profile(FailingFilter("m")))

    assert victim_names(found) == {"n": ["n3", "n2", "n1"]}
    assert found.errors == ('running "FailsOn" filter plugin: no idea',)
    assert found.failed_count == 1


def test_the_first_plugin_to_reject_an_emptied_node_gives_its_reason() -> None:
    first, second = RejectingFilter("First", "m", text="not m"), RejectingFilter("Second", "m", "n", text="not here")

    found = search_candidates(_three_each(), make_preemptor(), profile=make_profile(first, second))

    assert found.reason_counts == {"not m": 1, "not here": 1}


def test_a_node_that_needs_no_eviction_is_an_error() -> None:
    """A plugin rejects a node on the first call and accepts it on the second, whatever pods are there."""

    class Moody:
        name = "Moody"
        is_rejecting = 0

        def filter(self, _pod: Any, nodes: Any, _notes: Any) -> Sequence[Rejection]:
            self.is_rejecting += 1
            return (Rejection(np.full(len(nodes), self.is_rejecting == 1, dtype=np.bool_), Reason("not today")),)

    found = search_candidates(
        make_cluster(make_small_node("n"), make_victim("a", "n")), make_preemptor(), profile=make_profile(Moody())
    )

    assert found.candidates == ()
    assert found.errors == ('expected at least one victim pod on node "n"',)
