"""Lists of node names: JSON strings and snapshot rows."""

import json

from hypothesis import given
from hypothesis import strategies as st

from extender.cache.cache import Cache
from extender.extender_api.node_names import NodeNames, RecentNameLists
from tests.build import make_node

NAMES = st.one_of(st.text(max_size=6), st.text(alphabet='",\\\n\u00e9\U0001f600a', max_size=6))


@given(st.lists(NAMES))
def test_names_become_json_strings(names: list[str]) -> None:
    assert [json.loads(text) for text in NodeNames(names).json_strings] == names


def test_rows_are_looked_up_again_after_nodes_were_added_or_removed() -> None:
    cache, node_names = Cache(), NodeNames(["n1", "n2", "n3"])
    for name in ("n1", "n2"):
        cache.add_or_update_node(make_node(name))
    first = node_names.find_rows(cache.snapshot())
    assert (first.rows.tolist(), first.known_mask.tolist(), first.unknown_count) == ([0, 1, -1], [True, True, False], 1)
    cache.add_or_update_node(make_node("n1", labels={"a": "b"}))
    assert node_names.find_rows(cache.snapshot()) is first
    cache.remove_node("n1")  # the last row moves into its place
    assert node_names.find_rows(cache.snapshot()).rows.tolist() == [-1, 0, -1]
    cache.add_or_update_node(make_node("n3"))
    assert node_names.find_rows(cache.snapshot()).rows.tolist() == [-1, 0, 1]


def test_another_cache_has_other_rows() -> None:
    node_names = NodeNames(["n1"])
    for row in (0, 1):
        cache = Cache()
        for name in ("other", "n1")[1 - row :]:
            cache.add_or_update_node(make_node(name))
        assert node_names.find_rows(cache.snapshot()).rows.tolist() == [row]


def test_a_list_of_names_is_found_by_the_end_of_a_body_that_differs_by_its_pod() -> None:
    lists, first, second = RecentNameLists(), NodeNames(["n1"]), NodeNames(["n1", "n2"])
    for raw_names, names in ((b'["n1"]', first), (b'["n1","n2"]', second)):
        lists.add(b'{"Pod":{"a":1},"Nodes":null,"NodeNames":' + raw_names + b"}", b'{"a":1}', raw_names, names)
    assert lists.find(b'{"Pod":{"b":2},"Nodes":null,"NodeNames":["n1"]}') == (b'{"b":2}', first)
    assert lists.find(bytearray(b'{"Pod":{},"Nodes":null,"NodeNames":["n1","n2"]}')) == (b"{}", second)
    assert lists.find(b'{"Pod":{},"Nodes":null,"NodeNames":["n2"]}') is None
    assert lists.find(b'{"pod":{},"Nodes":null,"NodeNames":["n1"]}') is None


def test_a_body_in_another_form_is_not_found_again() -> None:
    for body in (
        b'{"Pod": {},"Nodes":null,"NodeNames":["n1"]}',
        b'{"Pod":{},"NodeNames":["n1"]}',
        b'{"Pod":{},"Nodes":null,"NodeNames":["n1"],"x":1}',
        b'{"Pod":{},"x":{},"Nodes":null,"NodeNames":["n1"]}',
    ):
        lists = RecentNameLists()
        lists.add(body, b"{}", b'["n1"]', NodeNames(["n1"]))
        assert lists.find(body) is None


def test_sixteen_recent_lists_are_found_and_long_ones_are_not() -> None:
    lists = RecentNameLists()
    bodies = []
    for number in range(17):
        raw_names = b'["n%d"]' % number
        bodies.append(b'{"Pod":{},"Nodes":null,"NodeNames":' + raw_names + b"}")
        lists.add(bodies[-1], b"{}", raw_names, NodeNames([f"n{number}"]))
    assert [lists.find(body) is not None for body in bodies] == [False] + [True] * 16
    long_names = b'["' + b"n" * (1 << 20) + b'"]'
    body = b'{"Pod":{},"Nodes":null,"NodeNames":' + long_names + b"}"
    lists.add(body, b"{}", long_names, NodeNames(["n"]))
    assert lists.find(body) is None
