"""Lists of whole nodes: equal nodes are decoded once, and a list is rejected as a whole."""

import msgspec
import pytest

from extender.basics.byte_lru import ByteLRU
from extender.extender_api.json_parts import cut_body
from extender.extender_api.node_list import NODES_FORM, SentNode, decode_cut_nodes, decode_node_list
from extender.extender_api.request_limits import DEFAULT_LIMITS, RequestError
from tests.coroutines import run_now


def test_both_forms_share_the_cache_of_nodes() -> None:
    cache = ByteLRU[SentNode](1 << 20)
    cut = cut_body(
        b'{"Pod":{},"Nodes":{"metadata":{},"items":[{"metadata":{"name":"a"}}]},"NodeNames":null}', NODES_FORM
    )
    assert cut is not None
    first = run_now(decode_cut_nodes(cut, cache, DEFAULT_LIMITS))
    second = run_now(decode_node_list(msgspec.Raw(b'{"items": [{"metadata":{"name":"a"}}]}'), cache, DEFAULT_LIMITS))
    assert first.nodes[0] is second.nodes[0]
    assert first.with_items(first.raw) == {"metadata": msgspec.Raw(b"{}"), "items": first.raw}
    assert second.with_items([]) == {"items": []}


def test_a_node_without_a_name_is_rejected_with_its_index() -> None:
    data = msgspec.Raw(b'{"items": [{"metadata":{"name":"a"}}, {}]}')
    with pytest.raises(RequestError, match=r"Nodes\.items\[1\]\.metadata\.name: is missing"):
        run_now(decode_node_list(data, ByteLRU[SentNode](1 << 20), DEFAULT_LIMITS))
