"""The document of the page Cluster."""

from extender.cache.cache import Cache
from extender.ui.cluster_document import make_cluster_document, make_node_document, sort_resources
from tests.build import make_node, make_pod

ZONE = "topology.kubernetes.io/zone"


def make_document() -> dict[str, object]:
    cache = Cache()
    cache.add_or_update_node(make_node("a", labels={ZONE: "z1", "pool": "x"}, allocatable={"cpu": "2", "pods": "10"}))
    cache.add_or_update_node(
        make_node("b", labels={ZONE: "z2", "pool": "x"}, allocatable={"cpu": "4", "pods": "1", "example.com/gpu": "2"})
    )
    cache.add_or_update_node(
        make_node(
            "c",
            labels={"name": "c"},
            allocatable={"cpu": "4", "pods": "10"},
            taints=({"key": "db", "value": "yes", "effect": "NoSchedule"}, {"key": "old", "effect": "NoExecute"}),
            unschedulable=True,
        )
    )
    cache.add_or_update_pod(make_pod("web", node="a", requests={"cpu": "500m"}))
    cache.add_or_update_pod(make_pod("job", node="b", requests={"cpu": "1", "example.com/gpu": "1"}))
    return make_cluster_document(cache.snapshot())


def test_use_is_in_thousandths_and_minus_1_without_the_resource() -> None:
    document = make_document()
    assert document["nodes"] == ["a", "b", "c"]
    assert document["use"] == {"cpu": [250, 250, 0], "pods": [100, 1000, 0], "example.com/gpu": [-1, 500, -1]}
    assert document["pods"] == [1, 1, 0]
    assert document["unschedulable"] == [False, False, True]


def test_totals_have_amounts_as_text_and_the_number_of_full_nodes() -> None:
    totals = make_document()["totals"]
    assert isinstance(totals, list)
    cpu = {
        "resource": "cpu",
        "requested": "1500m",
        "allocatable": "10",
        "percent": "15%",
        "thousandths": 150,
        "full": 0,
    }
    assert totals[0] == cpu
    use = {"percent": "10%", "thousandths": 95, "full": 1}
    assert totals[1] == {"resource": "pods", "requested": "2", "allocatable": "21", **use}


def test_nodes_are_grouped_by_zone_by_labels_that_divide_them_and_by_taints() -> None:
    groups = make_document()["groups"]
    assert groups == {
        ZONE: {"values": ["no such label", "z1", "z2"], "index": [1, 2, 0]},
        "pool": {"values": ["no such label", "x"], "index": [1, 1, 0]},
        "name": {"values": ["c", "no such label"], "index": [1, 1, 0]},
        "taints": {"values": ["db=yes:NoSchedule, old:NoExecute", "no taint"], "index": [1, 1, 0]},
    }


def test_a_label_with_a_value_per_node_does_not_group_them() -> None:
    cache = Cache()
    for number in range(41):
        cache.add_or_update_node(make_node(f"n{number}", labels={"host": str(number), "same": "x"}))
    assert list(make_cluster_document(cache.snapshot())["groups"]) == ["taints"]


def test_cpu_memory_and_pods_come_before_other_resources() -> None:
    assert sort_resources(["b", "pods", "a", "memory", "cpu"]) == ["cpu", "memory", "pods", "a", "b"]


def test_a_cluster_without_nodes_has_empty_lists() -> None:
    document = make_cluster_document(Cache().snapshot())
    assert (document["nodes"], document["totals"]) == ([], [{
        "resource": "pods", "requested": "0", "allocatable": "0", "percent": "-", "thousandths": 0, "full": 0
    }])  # fmt: skip


def make_cache() -> Cache:
    cache = Cache()
    cache.add_or_update_node(
        make_node(
            "a",
            labels={"zone": "z1", "arch": "arm"},
            allocatable={"cpu": "2", "memory": "4Gi", "pods": "10"},
            taints=({"key": "db", "value": "yes", "effect": "NoSchedule"},),
        )
    )
    cache.add_or_update_node(make_node("b", allocatable={"example.com/gpu": "2"}))
    cache.add_or_update_pod(make_pod("small", node="a", requests={"cpu": "100m"}))
    cache.add_or_update_pod(make_pod("large", node="a", requests={"cpu": "1", "memory": "1Gi"}))
    return cache


def test_a_node_has_its_amounts_and_its_pods_the_largest_first() -> None:
    document = make_node_document(make_cache().snapshot(), "a")
    assert document is not None
    assert document["resources"][:2] == [
        {
            "resource": "cpu",
            "requested": "1100m",
            "allocatable": "2",
            "free": "900m",
            "percent": "55%",
            "thousandths": 550,
        },
        {
            "resource": "memory",
            "requested": "1Gi",
            "allocatable": "4Gi",
            "free": "3Gi",
            "percent": "25%",
            "thousandths": 250,
        },
    ]
    assert [entry["resource"] for entry in document["resources"]] == ["cpu", "memory", "pods"]
    assert document["pods"] == [
        {"pod": "default/large", "priority": 0, "requests": {"cpu": "1", "memory": "1Gi"}},
        {"pod": "default/small", "priority": 0, "requests": {"cpu": "100m"}},
    ]
    assert document["labels"] == {"arch": "arm", "zone": "z1"}
    assert document["taints"] == [{"key": "db", "value": "yes", "effect": "NoSchedule"}]


def test_a_node_has_its_conditions_with_their_messages() -> None:
    message = "container runtime network not ready"
    condition = {"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": message}
    cache = Cache()
    cache.add_or_update_node(make_node("a", status={"conditions": [condition]}))
    document = make_node_document(cache.snapshot(), "a")
    assert document is not None
    assert document["conditions"] == [condition]


def test_an_unknown_node_has_no_document() -> None:
    assert make_node_document(make_cache().snapshot(), "c") is None
