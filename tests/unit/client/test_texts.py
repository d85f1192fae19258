"""Nodes and pods are kept word for word as far as extenders are sent them, and no further."""

import msgspec
import pytest

from extender.client.texts import Texts
from extender.config.model import Extender
from extender.objects.node import Node
from extender.objects.pod import Pod
from extender.objects.storage import StorageClass
from tests.build import a_node, a_pod

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
    ids=["nobody asks", "one that binds", "one that knows nodes", "one for victims", "one that is sent nodes"],
)
def test_only_what_is_sent_is_kept(extenders: list[Extender], kinds: set[type]) -> None:
    texts = Texts(extenders)
    assert {kind for kind in (Pod, Node, StorageClass) if texts.concerns(kind)} == kinds


def test_a_node_is_sent_as_it_was_written_and_a_pod_without_managed_fields() -> None:
    """Neither has a kind, as in kube-scheduler."""
    texts, node, pod = Texts([WHOLE]), a_node("n"), a_pod("p")
    texts.heard(node, NODE)
    texts.heard(pod, POD)
    assert msgspec.json.decode(texts.of(node)) == {
        "metadata": {"name": "n", "managedFields": [{}]},
        "spec": {"podCIDR": "10.0.0.0/8"},
    }
    assert msgspec.json.decode(texts.of(pod)) == {"metadata": {"name": "p"}, "spec": {"hostname": "h"}}


@pytest.mark.parametrize(("extender", "kept"), [(WHOLE, 0), (VICTIMS, 1)], ids=["else they are not", "as victims"])
def test_pods_on_nodes_are_kept_only_where_they_can_be_sent(extender: Extender, kept: int) -> None:
    texts = Texts([extender])
    texts.heard(a_pod("p"), POD)
    assert len(texts) == 1
    texts.heard(a_pod("p", node="n"), POD)
    assert len(texts) == kept


def test_what_is_gone_is_forgotten_and_what_was_never_heard_of_is_written_anew() -> None:
    texts, node = Texts([WHOLE]), a_node("n")
    texts.heard(node, NODE)
    texts.forget(node)
    texts.forget(node)
    assert len(texts) == 0
    assert msgspec.json.decode(texts.of(node))["metadata"]["name"] == "n"
