"""Lists of node names: JSON strings and snapshot rows."""

import json

from hypothesis import given
from hypothesis import strategies as st

from extender.cache.cache import Cache
from extender.extender_api.node_names import NodeNames
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
