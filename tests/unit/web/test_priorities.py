"""Lists of names and the answers about them: looked up once, and written as an encoder of structs would."""

import json

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from extender.cluster.state import ClusterState
from extender.objects.extender_v1 import HostPriority
from extender.web.listed import Listed
from extender.web.priorities import Priorities
from tests.build import a_node

NAMES = st.one_of(st.text(max_size=6), st.text(alphabet='",\\\n\u00e9\U0001f600a', max_size=6))


@given(st.lists(NAMES))
def test_names_are_quoted_as_in_any_json(names: list[str]) -> None:
    assert [json.loads(quoted) for quoted in Listed(names).quoted] == names


@given(st.lists(st.tuples(NAMES, st.integers(0, 10) | st.integers(0, 2**62))))
def test_priorities_are_written_as_a_list_of_structs_is(given_scores: list[tuple[str, int]]) -> None:
    best_first = sorted(given_scores, key=lambda each: -each[1])
    names = [name for name, _ in best_first]
    order = np.arange(len(names), dtype=np.int64)[::-1]  # the last one listed is the best
    answer = Priorities(Listed(names[::-1]), order, np.array([score for _, score in best_first], dtype=np.int64))
    structs = [HostPriority(name, score) for name, score in best_first]
    assert answer.written() == msgspec.json.encode(structs)
    assert list(answer) == structs


def test_nodes_are_written_best_first() -> None:
    answer = Priorities(Listed(["n1", "n2", "n3"]), np.array([2, 0, 1]), np.array([10, 4, 4]))
    assert answer.written() == b'[{"Host":"n3","Score":10},{"Host":"n1","Score":4},{"Host":"n2","Score":4}]'


def test_names_are_looked_up_again_when_nodes_have_come_or_gone() -> None:
    state, listed = ClusterState(), Listed(["n1", "n2", "n3"])
    for name in ("n1", "n2"):
        state.put_node(a_node(name))
    first = listed.places(state.snapshot())
    assert (first.rows.tolist(), first.known.tolist(), first.unknown) == ([0, 1, -1], [True, True, False], 1)
    state.put_node(a_node("n1", labels={"a": "b"}))
    assert listed.places(state.snapshot()) is first
    state.drop_node("n1")  # the last row moves into its place
    assert listed.places(state.snapshot()).rows.tolist() == [-1, 0, -1]
    state.put_node(a_node("n3"))
    assert listed.places(state.snapshot()).rows.tolist() == [-1, 0, 1]


def test_another_cluster_has_other_places() -> None:
    listed = Listed(["n1"])
    for wanted in (0, 1):
        state = ClusterState()
        for name in ("other", "n1")[1 - wanted :]:
            state.put_node(a_node(name))
        assert listed.places(state.snapshot()).rows.tolist() == [wanted]
