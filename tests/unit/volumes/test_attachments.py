"""The attachment table is updated from the objects that changed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from extender.api.kinds.storage import CSINode, PersistentVolume, PersistentVolumeClaim, VolumeAttachment
from extender.cache.cache import Cache
from extender.cache.hypothesis import Hypothesis
from extender.volumes.attachments import UNLIMITED, AttachmentCache
from tests.build import make_cluster, make_node, make_object, make_pod


def make_csi_node(name: str, count: int | None = 3) -> Any:
    driver = {"name": "d", **({} if count is None else {"allocatable": {"count": count}})}
    return make_object(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSINode",
            "metadata": {"name": name},
            "spec": {"drivers": [driver]},
        }
    )


def make_claim(name: str, volume: str) -> Any:
    meta = {"name": name, "namespace": "default"}
    return make_object(
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": {"volumeName": volume}}
    )


def make_volume(name: str, handle: str, driver: str = "d") -> Any:
    spec = {"csi": {"driver": driver, "volumeHandle": handle}}
    return make_object({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec})


def make_attachment(name: str, node: str, volume: str) -> Any:
    spec = {"attacher": "d", "nodeName": node, "source": {"persistentVolumeName": volume}}
    return make_object(
        {"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": name}, "spec": spec}
    )


def make_user(name: str, node: str, *claims: str) -> Any:
    volumes = [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in claims]
    return make_pod(name, node=node, spec={"volumes": volumes})


def make_two_nodes() -> Cache:
    """Make two nodes. On node `a` are two claims of one volume, and an attachment. Node `b` is empty."""
    return make_cluster(
        make_node("a"),
        make_node("b"),
        make_csi_node("a"),
        make_csi_node("b"),
        make_claim("c1", "v1"),
        make_claim("c2", "v1"),
        make_claim("c3", "v3"),
        make_volume("v1", "h1"),
        make_volume("v2", "h2"),
        make_user("p", "a", "c1", "c2"),
        make_attachment("x", "a", "v2"),
    )


def get_counts_by_node(attachments: AttachmentCache, cache: Cache) -> dict[str, int]:
    nodes = cache.snapshot().view()
    table, slots = attachments.get_table(nodes)
    return dict(zip(nodes.names, table.get_counts("d")[slots].tolist(), strict=True))


CHANGES: dict[str, tuple[Callable[[Cache], None], dict[str, int]]] = {
    "nothing": (lambda cache: None, {"a": 2, "b": 0}),
    "a pod is added": (lambda cache: cache.add_or_update_pod(make_user("q", "b", "c1")), {"a": 2, "b": 1}),
    "a pod is removed": (lambda cache: cache.remove_pod("uid-default-p"), {"a": 1, "b": 0}),
    "a claim gets another volume": (lambda cache: cache.add_or_update_object(make_claim("c1", "v2")), {"a": 2, "b": 0}),
    "a claim is removed": (lambda cache: cache.remove_object(PersistentVolumeClaim, "default/c2"), {"a": 2, "b": 0}),
    "a volume becomes the attached one": (
        lambda cache: cache.add_or_update_object(make_volume("v1", "h2")),
        {"a": 1, "b": 0},
    ),
    "a volume is of another driver": (
        lambda cache: cache.add_or_update_object(make_volume("v1", "h1", "e")),
        {"a": 1, "b": 0},
    ),
    "the attached volume is removed": (lambda cache: cache.remove_object(PersistentVolume, "v2"), {"a": 1, "b": 0}),
    "an attachment moves": (
        lambda cache: cache.add_or_update_object(make_attachment("x", "b", "v2")),
        {"a": 1, "b": 1},
    ),
    "an attachment is removed": (lambda cache: cache.remove_object(VolumeAttachment, "x"), {"a": 1, "b": 0}),
    "a node has no limit": (lambda cache: cache.add_or_update_object(make_csi_node("a", None)), {"a": 0, "b": 0}),
    "a node loses its CSINode": (lambda cache: cache.remove_object(CSINode, "a"), {"a": 0, "b": 0}),
    "a node is removed": (lambda cache: cache.remove_node("a"), {"b": 0}),
    "a node is added": (lambda cache: cache.add_or_update_node(make_node("c")), {"a": 2, "b": 0, "c": 0}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_table_follows_a_change(change: str) -> None:
    cache, attachments = make_two_nodes(), AttachmentCache()
    write, expected = CHANGES[change]
    assert get_counts_by_node(attachments, cache) == {"a": 2, "b": 0}
    write(cache)
    assert get_counts_by_node(attachments, cache) == expected
    assert get_counts_by_node(AttachmentCache(), cache) == expected


def test_limits_and_used_volumes_follow_a_change() -> None:
    cache, attachments = make_two_nodes(), AttachmentCache()
    table, _ = attachments.get_table(cache.snapshot().view())
    assert (table.get_limits("d").tolist(), table.uses_volume(("d", "h1")).tolist()) == ([3, 3], [True, False])
    cache.add_or_update_object(make_csi_node("b", None))
    cache.remove_pod("uid-default-p")
    table, _ = attachments.get_table(cache.snapshot().view())
    assert (table.get_limits("d").tolist(), table.uses_volume(("d", "h1")).tolist()) == ([3, UNLIMITED], [False, False])
    assert table.is_installed("d").tolist() == [True, True]
    assert table.get_limits("unknown").tolist() == [UNLIMITED, UNLIMITED]


def test_a_hypothesis_of_a_few_nodes_leaves_the_cached_table_unchanged() -> None:
    cache, attachments = make_two_nodes(), AttachmentCache()
    snapshot = cache.snapshot()
    cached, _ = attachments.get_table(snapshot.view())
    hypothesis = Hypothesis(snapshot)
    hypothesis.remove_pod(snapshot.pods_on("a")["uid-default-p"])
    rows = np.array([1, 0], dtype=np.int64)
    table, slots = attachments.get_table(hypothesis.snapshot().view(rows))
    assert table.get_counts("d")[slots].tolist() == [0, 1]
    assert attachments.get_table(snapshot.view())[0] is cached
    assert cached.get_counts("d").tolist() == [2, 0]
