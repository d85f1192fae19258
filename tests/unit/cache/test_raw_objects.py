"""Raw nodes and pods are cached only as far as extenders get them."""

import msgspec
import pytest

from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod
from extender.api.kinds.storage import StorageClass
from extender.cache.raw_objects import RawObjectCache
from extender.config.model import Extender
from tests.build import make_node, make_pod

NAMES = Extender(url_prefix="http://x", filter_verb="f", node_cache_capable=True)
WHOLE = Extender(url_prefix="http://x", prioritize_verb="p")
VICTIMS = Extender(url_prefix="http://x", preempt_verb="v")
BINDS = Extender(url_prefix="http://x", bind_verb="b")
NODE = b'{"kind":"Node","apiVersion":"v1","metadata":{"name":"n","managedFields":[{}]},"spec":{"podCIDR":"10.0.0.0/8"}}'
POD = b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","managedFields":[{}]},"spec":{"hostname":"h"}}'


@pytest.mark.parametrize(
    ("extenders", "kinds"),
    [
        ([], set()),
        ([BINDS], set()),
        ([NAMES], {Pod}),
        ([VICTIMS], {Pod}),
        ([NAMES, WHOLE], {Pod, Node}),
    ],
    ids=["no extender", "bind only", "with a node cache", "preempt", "without a node cache"],
)
def test_only_kinds_that_extenders_get_are_cached(extenders: list[Extender], kinds: set[type]) -> None:
    raw_objects = RawObjectCache(extenders)
    assert {kind for kind in (Pod, Node, StorageClass) if raw_objects.is_cached_kind(kind)} == kinds


def test_a_node_keeps_its_managed_fields_and_a_pod_does_not() -> None:
    """Neither has a kind, as in kube-scheduler."""
    raw_objects, node, pod = RawObjectCache([WHOLE]), make_node("n"), make_pod("p")
    raw_objects.put(node, NODE)
    raw_objects.put(pod, POD)
    assert msgspec.json.decode(raw_objects.get(node)) == {
        "metadata": {"name": "n", "managedFields": [{}]},
        "spec": {"podCIDR": "10.0.0.0/8"},
    }
    assert msgspec.json.decode(raw_objects.get(pod)) == {"metadata": {"name": "p"}, "spec": {"hostname": "h"}}


@pytest.mark.parametrize(("extender", "count"), [(WHOLE, 0), (VICTIMS, 1)], ids=["not otherwise", "as victims"])
def test_assigned_pods_are_cached_only_as_victims(extender: Extender, count: int) -> None:
    raw_objects = RawObjectCache([extender])
    raw_objects.put(make_pod("p"), POD)
    assert len(raw_objects) == 1
    raw_objects.put(make_pod("p", node="n"), POD)
    assert len(raw_objects) == count


def test_removed_and_unknown_objects_are_encoded_from_our_types() -> None:
    raw_objects, node = RawObjectCache([WHOLE]), make_node("n")
    raw_objects.put(node, NODE)
    raw_objects.remove(node)
    raw_objects.remove(node)
    assert len(raw_objects) == 0
    assert msgspec.json.decode(raw_objects.get(node))["metadata"]["name"] == "n"
