"""Groups of nodes that reject a pod for the same reasons."""

from extender.analysis.pod_placer import PodPlacer
from extender.answers.planning import StoppingNodes
from extender.app import wiring
from extender.planning.node_rejections import group_rejecting_nodes, make_stopping_nodes
from tests.unit.planning.clusters import SETUP, decode_pod, make_cache, node, pod


def find_groups(*objects: dict[str, object], **spec: object) -> list[StoppingNodes]:
    cache = make_cache(*objects)
    attempt = PodPlacer(cache, SETUP.profiles, wiring.make_runtime()).place(decode_pod(pod("new", "2", **spec)))
    assert attempt.failure is not None
    return group_rejecting_nodes(attempt.failure, cache.snapshot().names)


def test_nodes_with_equal_reasons_are_one_group_and_the_largest_group_is_first() -> None:
    taint = [{"key": "a", "effect": "NoSchedule"}]
    groups = find_groups(node("n1", taints=taint), node("n2", "1"), node("n3", "1"))
    assert groups == [
        make_stopping_nodes(("Insufficient cpu",), ("NodeResourcesFit",), ("n2", "n3")),
        make_stopping_nodes(("node(s) had untolerated taint(s)",), ("TaintToleration",), ("n1",)),
    ]


def test_a_node_with_two_reasons_of_one_plugin_is_in_a_group_of_its_own() -> None:
    groups = find_groups(node("n1", "1"), node("n2", "1", pods=0))
    assert groups == [
        make_stopping_nodes(("Insufficient cpu",), ("NodeResourcesFit",), ("n1",)),
        make_stopping_nodes(("Too many pods", "Insufficient cpu"), ("NodeResourcesFit",), ("n2",)),
    ]


def test_nodes_that_prefilter_excludes_have_its_reason() -> None:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    groups = find_groups(node("n1", "1"), node("n2"), node("n3"), affinity=affinity)
    assert groups == [
        make_stopping_nodes(("node(s) didn't satisfy plugin(s) [NodeAffinity]",), ("NodeAffinity",), ("n2", "n3")),
        make_stopping_nodes(("Insufficient cpu",), ("NodeResourcesFit",), ("n1",)),
    ]


def test_a_rejection_by_prefilter_is_one_group_of_all_nodes() -> None:
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    groups = find_groups(node("n1"), node("n2"), volumes=volumes)
    assert [(group.reasons, group.nodes) for group in groups] == [
        (['persistentvolumeclaim "data" not found'], ["n1", "n2"])
    ]


def test_a_cluster_without_nodes_has_one_group_without_nodes() -> None:
    assert find_groups() == [make_stopping_nodes(("no nodes available to schedule pods",), (), ())]
