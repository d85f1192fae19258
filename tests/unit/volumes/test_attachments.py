"""The table of attachments follows what is written, row by row. B086."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from extender.cluster.hypothesis import Hypothesis
from extender.cluster.state import ClusterState
from extender.objects.storage import CSINode, PersistentVolume, PersistentVolumeClaim, VolumeAttachment
from extender.volumes.attachments import UNLIMITED, Attachments
from tests.build import a_cluster, a_node, a_pod, an_object


def a_csi_node(name: str, count: int | None = 3) -> Any:
    driver = {"name": "d", **({} if count is None else {"allocatable": {"count": count}})}
    return an_object(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSINode",
            "metadata": {"name": name},
            "spec": {"drivers": [driver]},
        }
    )


def a_claim(name: str, volume: str) -> Any:
    meta = {"name": name, "namespace": "default"}
    return an_object(
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": {"volumeName": volume}}
    )


def a_volume(name: str, handle: str, driver: str = "d") -> Any:
    spec = {"csi": {"driver": driver, "volumeHandle": handle}}
    return an_object({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec})


def attached(name: str, node: str, volume: str) -> Any:
    spec = {"attacher": "d", "nodeName": node, "source": {"persistentVolumeName": volume}}
    return an_object(
        {"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": name}, "spec": spec}
    )


def a_user(name: str, node: str, *claims: str) -> Any:
    volumes = [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in claims]
    return a_pod(name, node=node, spec={"volumes": volumes})


def two_nodes() -> ClusterState:
    """Node a: two claims on one volume and one attachment; node b: nothing."""
    return a_cluster(
        a_node("a"),
        a_node("b"),
        a_csi_node("a"),
        a_csi_node("b"),
        a_claim("c1", "v1"),
        a_claim("c2", "v1"),
        a_claim("c3", "v3"),
        a_volume("v1", "h1"),
        a_volume("v2", "h2"),
        a_user("p", "a", "c1", "c2"),
        attached("x", "a", "v2"),
    )


def counts(table: Attachments, state: ClusterState) -> dict[str, int]:
    nodes = state.snapshot().view()
    columns, slots = table.of(nodes)
    return dict(zip(nodes.names, columns.counts("d")[slots].tolist(), strict=True))


CHANGES: dict[str, tuple[Callable[[ClusterState], None], dict[str, int]]] = {
    "nothing": (lambda state: None, {"a": 2, "b": 0}),
    "a pod comes": (lambda state: state.put_pod(a_user("q", "b", "c1")), {"a": 2, "b": 1}),
    "a pod goes": (lambda state: state.drop_pod("uid-default-p"), {"a": 1, "b": 0}),
    "a claim gets another volume": (lambda state: state.put_object(a_claim("c1", "v2")), {"a": 2, "b": 0}),
    "a claim goes": (lambda state: state.drop_object(PersistentVolumeClaim, "default/c2"), {"a": 2, "b": 0}),
    "a volume turns out to be the attached one": (
        lambda state: state.put_object(a_volume("v1", "h2")),
        {"a": 1, "b": 0},
    ),
    "a volume is of another driver": (lambda state: state.put_object(a_volume("v1", "h1", "e")), {"a": 1, "b": 0}),
    "the attached volume goes": (lambda state: state.drop_object(PersistentVolume, "v2"), {"a": 1, "b": 0}),
    "an attachment moves": (lambda state: state.put_object(attached("x", "b", "v2")), {"a": 1, "b": 1}),
    "an attachment goes": (lambda state: state.drop_object(VolumeAttachment, "x"), {"a": 1, "b": 0}),
    "a node takes any number": (lambda state: state.put_object(a_csi_node("a", None)), {"a": 0, "b": 0}),
    "a node says nothing": (lambda state: state.drop_object(CSINode, "a"), {"a": 0, "b": 0}),
    "a node goes": (lambda state: state.drop_node("a"), {"b": 0}),
    "a node comes": (lambda state: state.put_node(a_node("c")), {"a": 2, "b": 0, "c": 0}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_table_follows_when(change: str) -> None:
    state, table = two_nodes(), Attachments()
    write, wanted = CHANGES[change]
    assert counts(table, state) == {"a": 2, "b": 0}
    write(state)
    assert counts(table, state) == wanted
    assert counts(Attachments(), state) == wanted


def test_limits_and_holders_follow_too() -> None:
    state, table = two_nodes(), Attachments()
    columns, _ = table.of(state.snapshot().view())
    assert (columns.limits("d").tolist(), columns.holding(("d", "h1")).tolist()) == ([3, 3], [True, False])
    state.put_object(a_csi_node("b", None))
    state.drop_pod("uid-default-p")
    columns, _ = table.of(state.snapshot().view())
    assert (columns.limits("d").tolist(), columns.holding(("d", "h1")).tolist()) == ([3, UNLIMITED], [False, False])
    assert columns.installed("d").tolist() == [True, True]
    assert columns.limits("unknown").tolist() == [UNLIMITED, UNLIMITED]


def test_a_hypothesis_about_a_few_nodes_leaves_the_kept_table_alone() -> None:
    state, table = two_nodes(), Attachments()
    cluster = state.snapshot()
    kept, _ = table.of(cluster.view())
    imagined = Hypothesis(cluster)
    imagined.remove(cluster.pods_on("a")["uid-default-p"])
    rows = np.array([1, 0], dtype=np.int64)
    columns, slots = table.of(imagined.snapshot().view(rows))
    assert columns.counts("d")[slots].tolist() == [0, 1]
    assert table.of(cluster.view())[0] is kept
    assert kept.counts("d").tolist() == [2, 0]
