"""What plugins are asked when pods are imagined gone, and what becomes of their mistakes."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from extender.framework.points import PreFiltered
from extender.framework.verdict import Reason, Rejection
from tests.build import a_cluster
from tests.unit.decide.stand_ins import Refusing, a_profile
from tests.unit.preemption.worlds import FailsOn, a_small_node, high, low, searched, victims


@dataclass
class AtMost:
    """Lets a node have that many pods; counts them in notes that must follow when pods are imagined to move."""

    most: int
    name: str = "AtMost"
    broken: str = ""
    moves: list[str] = field(default_factory=list)

    def pre_filter(self, _pod: Any, cluster: Any) -> PreFiltered:
        return PreFiltered(notes={row: len(cluster.pods_on(name)) for row, name in enumerate(cluster.names)})

    def clone(self, notes: dict[int, int]) -> dict[int, int]:
        return dict(notes)

    def add_pod(self, _pod: Any, other: Any, row: int, _cluster: Any, notes: dict[int, int]) -> None:
        self._move(other, row, notes, 1)

    def remove_pod(self, _pod: Any, other: Any, row: int, _cluster: Any, notes: dict[int, int]) -> None:
        self._move(other, row, notes, -1)

    def _move(self, other: Any, row: int, notes: dict[int, int], by: int) -> None:
        self.moves.append(f"{'+' if by > 0 else '-'}{other.pod.metadata.name}")
        if other.pod.metadata.name == self.broken and by < 0:
            raise ValueError(f"lost {self.broken}")
        notes[row] += by

    def filter(self, _pod: Any, nodes: Any, notes: dict[int, int]) -> Sequence[Rejection]:
        rows = range(len(nodes)) if nodes.rows is None else nodes.rows.tolist()
        full = np.array([notes[row] >= self.most for row in rows], dtype=np.bool_)
        return (Rejection(full, Reason("too many")),)


def _three_each() -> Any:
    state = a_cluster(a_small_node("m"), a_small_node("n"))
    for node in "mn":
        for priority in (3, 2, 1):
            state.put_pod(low(f"{node}{priority}", node, priority=priority))
    return state


def test_notes_follow_pods_node_by_node() -> None:
    plugin = AtMost(2)

    found = searched(_three_each(), high(), profile=a_profile(plugin))

    assert victims(found) == {"m": ["m2", "m1"], "n": ["n2", "n1"]}


def test_notes_are_told_of_every_move() -> None:
    state, plugin = a_cluster(a_small_node("n"), low("a", "n", priority=2), low("b", "n", priority=1)), AtMost(1)

    searched(state, high(), profile=a_profile(plugin))

    assert plugin.moves == ["-a", "-b", "+a", "-a", "+b", "-b"]


def test_nominated_pods_are_added_for_the_first_question_only() -> None:
    state, plugin = a_cluster(a_small_node("n"), low("a", "n")), AtMost(1)
    state.nominate(high("first"), "n")

    found = searched(state, high(), profile=a_profile(plugin))

    assert victims(found) == {}
    assert found.reasons == {"too many": 1}
    assert "+first" in plugin.moves
    assert "-first" not in plugin.moves


def test_a_plugin_that_loses_track_of_a_pod_spoils_that_node_only() -> None:
    found = searched(_three_each(), high(), profile=a_profile(AtMost(2, broken="m2")))

    assert victims(found) == {"n": ["n2", "n1"]}
    assert found.errors == ('running RemovePod plugin "AtMost": ValueError: lost m2',)


def test_a_filter_that_cannot_answer_spoils_that_node_only() -> None:
    found = searched(_three_each(), high(), profile=a_profile(FailsOn("m")))

    assert victims(found) == {"n": ["n3", "n2", "n1"]}
    assert found.errors == ('running "FailsOn" filter plugin: no idea',)
    assert found.failed == 1


def test_the_first_plugin_to_refuse_an_emptied_node_explains_it() -> None:
    first, second = Refusing("First", "m", text="not m"), Refusing("Second", "m", "n", text="not here")

    found = searched(_three_each(), high(), profile=a_profile(first, second))

    assert found.reasons == {"not m": 1, "not here": 1}


def test_where_evicting_would_not_have_been_needed_something_is_wrong() -> None:
    """A plugin refuses a node at first and takes it back once asked again, whoever is there."""

    class Moody:
        name = "Moody"
        asked = 0

        def filter(self, _pod: Any, nodes: Any, _notes: Any) -> Sequence[Rejection]:
            self.asked += 1
            return (Rejection(np.full(len(nodes), self.asked == 1, dtype=np.bool_), Reason("not today")),)

    found = searched(a_cluster(a_small_node("n"), low("a", "n")), high(), profile=a_profile(Moody()))

    assert found.candidates == ()
    assert found.errors == ('expected at least one victim pod on node "n"',)
