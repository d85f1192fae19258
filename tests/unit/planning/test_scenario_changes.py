"""A scenario that is applied to a cache: the nodes, and the pods that must be placed."""

from typing import Any

from extender.api.kinds.node import Node, Taint
from extender.api.kinds.storage import CSINode
from extender.cache.cache import Cache
from extender.planning.cache_edits import CacheEdits
from extender.planning.pod_removals import PodRemovals
from extender.planning.remaining_disruptions import ClusterBudgets, RemainingDisruptions
from extender.planning.scenario import AddedNodes, LabelChange, Scenario, TaintChange
from extender.planning.scenario_changes import (
    add_node_like,
    apply_scenario,
    change_label,
    change_taint,
    choose_new_names,
    cordon_node,
)
from tests.coroutines import run_steps
from tests.unit.planning.clusters import ZONE, decode_pod, make_cache, node, pod


def apply(cache: Cache, scenario: Scenario) -> tuple[list[str], PodRemovals]:
    edits = CacheEdits(cache)
    removals = PodRemovals(cache, edits, RemainingDisruptions(ClusterBudgets(cache.snapshot())))
    created, deleted = run_steps(apply_scenario(scenario, cache, edits, removals))
    assert deleted == frozenset()
    return [new_pod.key for new_pod in (*removals.take_replacements(), *created)], removals


def test_a_lost_zone_leaves_the_other_nodes_and_its_pods_need_new_ones() -> None:
    cache = make_cache(node("n1", zone="a"), node("n2", zone="b"), node("n3", zone="a"), pod("web", on="n1"))
    assert apply(cache, Scenario(lose=((ZONE, "a"),)))[0] == ["default/web"]
    assert list(cache.snapshot().names) == ["n2"]


def test_new_nodes_may_be_like_a_node_that_is_removed() -> None:
    cache = make_cache(node("n1", "7"), pod("agent", on="n1", owner="DaemonSet"))
    assert apply(cache, Scenario(add=(AddedNodes(2, "n1"),), remove=("n1",)))[0] == []
    snapshot = cache.snapshot()
    assert sorted(snapshot.names) == ["n1-new-1", "n1-new-2"]
    assert (snapshot.view().allocatable(0).tolist(), snapshot.view().pod_count.tolist()) == ([7000, 7000], [1, 1])


def test_a_drain_cordons_its_node_and_evicts_nothing_yet() -> None:
    cache = make_cache(node("n1"), node("n2"), pod("web", on="n1"))
    created, removals = apply(cache, Scenario(drain=("n1",), cordon=("n2",)))
    assert cache.snapshot().view().unschedulable.tolist() == [True, True]
    assert (created, list(cache.assigned_pods)) == ([], ["uid-web"])
    assert [new_pod.key for new_pod in run_steps(removals.evict_drained_pods())] == ["default/web"]


def test_a_no_execute_taint_evicts_the_pods_that_do_not_tolerate_it() -> None:
    tolerations = [{"key": "k", "operator": "Exists"}]
    cache = make_cache(
        node("n1"),
        pod("web", on="n1"),
        pod("safe", on="n1", tolerations=tolerations),
        pod("own", on="n1", owner="Node"),
    )
    taints = (
        TaintChange("n1", Taint(key="k", effect="NoExecute")),
        TaintChange("n1", Taint(key="z", effect="NoSchedule")),
    )
    assert apply(cache, Scenario(taints=taints))[0] == ["default/web"]
    assert sorted(cache.assigned_pods) == ["uid-own", "uid-safe"]


def test_a_removed_taint_evicts_nothing() -> None:
    cache = make_cache(node("n1", taints=[{"key": "k", "effect": "NoExecute"}]), pod("web", on="n1"))
    assert apply(cache, Scenario(taints=(TaintChange("n1", Taint(key="k", effect="NoExecute"), remove=True),)))[0] == []
    assert cache.snapshot().nodes[0].spec.taints == ()


def test_new_pods_of_the_scenario_are_returned() -> None:
    cache = make_cache(node("n1"))
    assert apply(cache, Scenario(pods=(decode_pod(pod("new")),)))[0] == ["default/new"]


def test_each_lost_node_and_each_new_node_is_a_step() -> None:
    cache = make_cache(node("n1", zone="a"), node("n2", zone="b"), node("n3", zone="a"))
    edits = CacheEdits(cache)
    removals = PodRemovals(cache, edits, RemainingDisruptions(ClusterBudgets(cache.snapshot())))
    scenario = Scenario(lose=((ZONE, "a"),), add=(AddedNodes(2, "n2"),))
    counts = [len(cache.snapshot().names) for _ in apply_scenario(scenario, cache, edits, removals)]
    assert counts == [4, 5, 4, 3]


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
    deletion = {"key": "ToBeDeletedByClusterAutoscaler", "value": "1", "effect": "NoSchedule"}
    old = node("n1", zone="a", unschedulable=True, taints=[*OLD_TAINTS, cordon, deletion])
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
