"""Changes of nodes: cordons, labels, taints, and new nodes like existing ones."""

from typing import Any

from extender.api.kinds.node import Node, Taint
from extender.api.kinds.storage import CSINode
from extender.planning.cache_edits import CacheEdits
from extender.planning.node_changes import (
    add_node_like,
    change_label,
    change_taint,
    choose_new_names,
    cordon_node,
)
from extender.planning.scenario import LabelChange, TaintChange
from tests.unit.planning.clusters import ZONE, make_cache, node, pod

OLD_TAINTS = [{"key": "a", "value": "1", "effect": "NoSchedule"}, {"key": "a", "effect": "NoExecute"}]


def describe_taints(changed: Node) -> list[tuple[str, str, str]]:
    return [(taint.key, taint.value, taint.effect) for taint in changed.spec.taints]


def test_a_cordoned_node_is_unschedulable_and_has_the_taint_of_the_node_controller() -> None:
    edits = CacheEdits(make_cache(node("n1")))
    cordon_node(edits, "n1")
    cordon_node(edits, "n1")
    assert edits.get_node("n1").spec.unschedulable
    assert describe_taints(edits.get_node("n1")) == [("node.kubernetes.io/unschedulable", "", "NoSchedule")]


def test_a_label_is_set_and_removed() -> None:
    edits = CacheEdits(make_cache(node("n1", zone="a")))
    change_label(edits, LabelChange("n1", ZONE, "b"))
    change_label(edits, LabelChange("n1", "kubernetes.io/hostname", None))
    assert edits.get_node("n1").metadata.labels == {ZONE: "b"}


def test_a_taint_is_added_replaced_and_removed() -> None:
    def change(taint: Taint, *, remove: bool = False) -> list[tuple[str, str, str]]:
        edits = CacheEdits(make_cache(node("n1", taints=OLD_TAINTS)))
        change_taint(edits, TaintChange("n1", taint, remove))
        return describe_taints(edits.get_node("n1"))

    assert change(Taint(key="b", effect="NoSchedule"))[-1] == ("b", "", "NoSchedule")
    assert change(Taint(key="a", value="2", effect="NoSchedule")) == [("a", "", "NoExecute"), ("a", "2", "NoSchedule")]
    assert change(Taint(key="a", effect="NoExecute"), remove=True) == [("a", "1", "NoSchedule")]
    assert change(Taint(key="a"), remove=True) == []


def test_new_names_skip_those_that_are_taken() -> None:
    assert choose_new_names("n1", 2, {"n1", "n1-new-1"}) == ["n1-new-2", "n1-new-3"]


def test_a_new_node_has_the_labels_the_limits_and_the_node_s_own_pods_of_the_old_one() -> None:
    csi_node: dict[str, Any] = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": "n1"},
        "spec": {"drivers": [{"name": "csi.example.com", "nodeID": "x", "allocatable": {"count": 3}}]},
    }
    cordon = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    old = node("n1", zone="a", unschedulable=True, taints=[*OLD_TAINTS, cordon])
    cache = make_cache(
        old,
        csi_node,
        pod("agent", "100m", on="n1", owner="DaemonSet"),
        pod("web", on="n1"),
        pod("own", on="n1", owner="Node"),
    )
    edits = CacheEdits(cache)
    new = add_node_like(edits, cache, edits.get_node("n1"), "n9")
    assert new.metadata.labels == {"kubernetes.io/hostname": "n9", ZONE: "a"}
    assert (new.spec.unschedulable, describe_taints(new)) == (False, [("a", "1", "NoSchedule"), ("a", "", "NoExecute")])
    snapshot = cache.snapshot()
    assert sorted(pod.key for pod in snapshot.pods_on("n9").values()) == ["default/agent-n9", "default/own-n9"]
    new_csi_node = snapshot.get_object(CSINode, "n9")
    assert new_csi_node is not None
    assert new_csi_node.spec.drivers[0].name == "csi.example.com"
    edits.undo()
    assert list(cache.snapshot().names) == ["n1"]
    assert cache.snapshot().get_object(CSINode, "n9") is None
