"""The document of the page of a node."""

from extender.cache.cache import Cache
from extender.ui.node_document import make_node_document
from tests.build import make_node, make_pod


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


def test_an_unknown_node_has_no_document() -> None:
    assert make_node_document(make_cache().snapshot(), "c") is None
