"""Floods of small objects: the caches of decoded requests take at most their limit of memory."""

import gc
import tracemalloc
from collections.abc import Callable
from random import Random

import pytest

from extender.basics.byte_lru import ByteLRU
from extender.extender_api.payloads import DecodeCaches, decode_args
from tests.coroutines import run_now

LIMIT = 2 << 20
NODE = b'{"metadata":{"name":"n%d"}}'


def make_nodes_request(number: int) -> bytes:
    """Return a request with a thousand small nodes that no other request has."""
    nodes = b",".join(NODE % (1000 * number + index) for index in range(1000))
    return b'{"Pod":{},"Nodes":{"items":[%b]}}' % nodes


def make_pod_request(number: int) -> bytes:
    """Return a request with a pod of small containers that no other request has."""
    containers = b",".join(b'{"name":"c%d"}' % index for index in range(50))
    return b'{"Pod":{"metadata":{"name":"p%d"},"spec":{"containers":[%b]}},"NodeNames":[]}' % (number, containers)


FLOODS: dict[str, tuple[Callable[[int], bytes], int]] = {
    "nodes": (make_nodes_request, 8),
    "pods": (make_pod_request, 800),
}


@pytest.mark.parametrize(("make_request", "count"), FLOODS.values(), ids=FLOODS.keys())
def test_the_caches_of_a_flood_of_objects_take_at_most_their_limit(
    make_request: Callable[[int], bytes], count: int
) -> None:
    caches = DecodeCaches(ByteLRU(LIMIT), ByteLRU(LIMIT, rng=Random(0)))
    requests = [make_request(number) for number in range(count)]
    for request in (make_nodes_request(1000), make_pod_request(1000)):
        run_now(decode_args(request, caches=DecodeCaches()))
    gc.collect()
    tracemalloc.start()
    try:
        for request in requests:
            run_now(decode_args(request, caches=caches))
        gc.collect()
        size = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert 0.3 * LIMIT < size < LIMIT
