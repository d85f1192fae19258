"""Lists of node names: JSON strings and snapshot rows."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.cache.cache import Cache
from extender.extender_api.node_names import NodeNames, cut_names_request
from tests.build import make_node

NAMES = st.one_of(st.text(max_size=6), st.text(alphabet='",\\\n\u00e9\U0001f600a', max_size=6))


@given(st.lists(NAMES), st.sampled_from([None, 0]))
def test_names_become_json_strings(names: list[str], indent: int | None) -> None:
    raw = f" {json.dumps(names, indent=indent)}\n".encode()
    assert [json.loads(text) for text in NodeNames(names).json_strings] == names
    assert [json.loads(text) for text in NodeNames(names, raw).json_strings] == names


@pytest.mark.parametrize(
    ("raw", "strings"),
    [
        (b'["n1","n2"]', [b'"n1"', b'"n2"']),
        (b'["n1","a,b"]', [b'"n1"', b'"a,b"']),
        (b'["\\u006e1"]', [b'"\\u006e1"']),
        (b"[]", []),
    ],
)
def test_json_strings_are_cut_from_the_json_of_the_request(raw: bytes, strings: list[bytes]) -> None:
    assert NodeNames(json.loads(raw), raw).json_strings.tolist() == strings


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


def test_names_can_be_replaced_by_the_equal_strings_of_the_snapshot() -> None:
    cache = Cache()
    for name in ("node-1", "node-2"):
        cache.add_or_update_node(make_node(name))
    snapshot = cache.snapshot()
    node_names = NodeNames(json.loads('["node-2", "node-1"]'))
    node_names.use_strings_of(snapshot)
    assert node_names.names == ["node-2", "node-1"]
    assert [name is own for name, own in zip(node_names.names, reversed(snapshot.names), strict=True)] == [True, True]


def test_names_with_an_unknown_one_stay_as_they_are() -> None:
    cache = Cache()
    cache.add_or_update_node(make_node("node-1"))
    names = ["node-2", "node-1"]
    node_names = NodeNames(names)
    node_names.use_strings_of(cache.snapshot())
    assert node_names.names is names


def test_a_request_in_go_s_form_is_cut_into_the_pod_and_the_names() -> None:
    cut = cut_names_request
    assert cut(b'{"Pod":{"b":2},"Nodes":null,"NodeNames":["n1"]}') == (b'{"b":2}', b'["n1"]')
    assert cut(bytearray(b'{"Pod":{},"Nodes":null,"NodeNames":[]}')) == (b"{}", b"[]")


@pytest.mark.parametrize(
    "body",
    [
        b'{"pod":{},"Nodes":null,"NodeNames":["n1"]}',
        b'{"Pod": {},"Nodes":null,"NodeNames":["n1"]}',
        b'{"Pod":{},"NodeNames":["n1"]}',
        b'{"Pod":{},"Nodes":null,"NodeNames":["n1"],"x":1}',
        b'{"Pod":{},"Nodes":null,"NodeNames":["n1"]} ',
    ],
)
def test_a_request_in_another_form_is_not_cut(body: bytes) -> None:
    assert cut_names_request(body) is None


def test_the_json_of_a_request_is_returned_as_it_was_sent() -> None:
    assert NodeNames(["n1"], b'[ "n1"]').json == b'[ "n1"]'
    assert NodeNames(["n1"]).json == b'["n1"]'
