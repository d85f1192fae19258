"""Lists of node names: JSON strings and snapshot rows."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.cache.cache import Cache
from extender.extender_api.node_names import NodeNames, RecentNameLists, cut_names_request
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


class RecentLists:
    """Recent lists, and the lists that were decoded because they could not be joined from recent ones."""

    def __init__(self) -> None:
        self.lists, self.decoded = RecentNameLists(), list[bytes]()

    def get(self, raw: bytes) -> NodeNames:
        return self.lists.get_or_create(raw, self.decode)

    def decode(self, raw: bytes) -> NodeNames:
        self.decoded.append(raw)
        return NodeNames(json.loads(raw), raw)


def encode(names: list[str]) -> bytes:
    return json.dumps(names, separators=(",", ":")).encode()


JOINED_LISTS = {
    "the same list": ["a1", "a2", "a3", "a4"],
    "the end of a list": ["a3", "a4"],
    "the middle of a list": ["a2", "a3"],
    "the end of a list and the start of the next one": ["a3", "a4", "b1", "b2"],
    "parts in another order, one of them twice": ["b2", "b3", "a1", "b2", "b3"],
    "sixteen parts": ["a1", "a3"] * 8,
}


@pytest.mark.parametrize("names", JOINED_LISTS.values(), ids=JOINED_LISTS.keys())
def test_a_list_is_joined_from_parts_of_recent_lists(names: list[str]) -> None:
    recent = RecentLists()
    recent.get(b'["a1","a2","a3","a4"]')
    recent.get(b'["b1","b2","b3"]')
    joined = recent.get(encode(names))
    assert (joined.names, len(joined), joined.json) == (names, len(names), encode(names))
    assert [json.loads(text) for text in joined.json_strings] == names
    assert len(recent.decoded) == 2


DECODED_LISTS = {
    "a name that is not in a recent list": b'["a1","a5"]',
    "the start of a recent name": b'["a"]',
    "a longer name": b'["a11"]',
    "whitespace": b'["a1", "a2"]',
    "an empty list": b"[]",
    "seventeen parts": b"[" + b'"a1",' * 16 + b'"a1"]',
}


@pytest.mark.parametrize("raw", DECODED_LISTS.values(), ids=DECODED_LISTS.keys())
def test_a_list_with_other_parts_is_decoded(raw: bytes) -> None:
    recent = RecentLists()
    recent.get(b'["a1","a2","a3","a4"]')
    assert recent.get(raw).names == json.loads(raw)
    assert recent.decoded == [b'["a1","a2","a3","a4"]', raw]


@pytest.mark.parametrize("raw", [b'["a1",]', b'["a1"', b'["a1""a2"]', b'["a1";"a2"]', b'["a1', b'["a1"]]', b'{"a1"]'])
def test_invalid_json_is_not_joined(raw: bytes) -> None:
    recent = RecentLists()
    recent.get(b'["a1","a2"]')
    with pytest.raises(json.JSONDecodeError):
        recent.get(raw)


@pytest.mark.parametrize("names", [["a,b", "c"], ["\\"], ['","', "d"], ["\u00e9", "\n"]])
def test_no_parts_are_taken_from_names_with_commas_or_escaped_characters(names: list[str]) -> None:
    recent = RecentLists()
    recent.get(encode(names))
    recent.get(b'["x"]')
    assert recent.get(encode(names)).names == names
    assert len(recent.decoded) == 3


@given(st.lists(st.lists(st.sampled_from([*"abcdef", "a\\", "b,", '"']), max_size=8), max_size=30), st.data())
def test_a_joined_list_equals_the_decoded_list(lists_of_names: list[list[str]], data: st.DataObject) -> None:
    cache, recent = Cache(), RecentLists()
    for name in "fbd":
        cache.add_or_update_node(make_node(name))
    for names in lists_of_names:
        raw = bytearray(encode(names))
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.sampled_from(b'",[]abcdef\\'))
        for sent in (encode(names), bytes(raw)):
            try:
                expected = json.loads(sent)
            except json.JSONDecodeError:
                with pytest.raises(json.JSONDecodeError):
                    recent.get(sent)
                continue
            if not all(isinstance(name, str) for name in expected):
                continue
            joined = recent.get(sent)
            assert joined.names == expected
            rows, fresh_rows = joined.find_rows(cache.snapshot()), NodeNames(expected).find_rows(cache.snapshot())
            assert rows.rows.tolist() == fresh_rows.rows.tolist()
            assert rows.unknown_count == fresh_rows.unknown_count


def test_rows_of_a_joined_list_are_looked_up_again_after_nodes_were_removed() -> None:
    cache, recent = Cache(), RecentLists()
    for name in ("n1", "n2", "n3"):
        cache.add_or_update_node(make_node(name))
    recent.get(b'["n1","n2","n3"]')
    joined = recent.get(b'["n3","n1"]')
    assert joined.find_rows(cache.snapshot()).rows.tolist() == [2, 0]
    cache.remove_node("n1")
    rows = joined.find_rows(cache.snapshot())
    assert (rows.rows.tolist(), rows.unknown_count) == ([0, -1], 1)


def test_the_last_64_lists_that_were_decoded_are_used() -> None:
    recent = RecentLists()
    for number in range(65):
        recent.get(b'["n%d","other%d"]' % (number, number))
        recent.get(b'["n%d"]' % number)  # is joined, so every list is kept
    recent.get(b'["n1"]')
    assert len(recent.decoded) == 65
    recent.get(b'["n0"]')
    assert recent.decoded[-1] == b'["n0"]'
    recent.get(b'["n1"]')  # was replaced by n0
    assert recent.decoded[-1] == b'["n1"]'


def test_one_of_eight_lists_with_a_known_first_name_is_added() -> None:
    recent = RecentLists()
    for number in range(9):
        recent.get(b'["n","m%d"]' % number)
    for number in (0, 8):
        recent.get(b'["m%d"]' % number)
    assert len(recent.decoded) == 9
    recent.get(b'["m7"]')
    assert len(recent.decoded) == 10


def test_recent_lists_are_bounded_by_their_memory() -> None:
    recent = RecentLists()
    for letter, length in ((b"a", 4 << 20), (b"b", 2 << 20), (b"c", 1 << 19)):  # 5 bytes for each: 20, 10 and 2.5 MiB
        recent.get(b'["%s","%s"]' % (letter * length, letter))
    recent.get(b'["b"]')
    assert len(recent.decoded) == 3
    recent.get(b'["a"]')  # was removed, because all three have more than 32 MiB
    assert recent.decoded[-1] == b'["a"]'


def test_a_list_beyond_the_limit_is_not_added_and_replaces_no_other() -> None:
    recent = RecentLists()
    recent.get(b'["a","b"]')
    recent.get(b'["%s","c"]' % (b"c" * (8 << 20)))
    recent.get(b'["b"]')
    assert len(recent.decoded) == 2
    recent.get(b'["c"]')
    assert len(recent.decoded) == 3


def test_the_json_of_a_request_is_returned_as_it_was_sent() -> None:
    assert NodeNames(["n1"], b'[ "n1"]').json == b'[ "n1"]'
    assert NodeNames(["n1"]).json == b'["n1"]'
