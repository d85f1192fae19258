"""Matching on many nodes at once: which volume each claim gets where. B095."""

from typing import Any

import numpy as np

from extender.objects.matching import Requirement
from extender.volumes.claims import claim_class
from extender.volumes.matching import NONE, match
from extender.volumes.places import Places
from extender.volumes.stock import Stock
from tests.build import a_cluster, a_node, an_object

NODES = 40
"""More than are looked at one by one."""


def a_claim(name: str, size: str) -> Any:
    meta = {"name": name, "namespace": "default"}
    spec = {"storageClassName": "local", "resources": {"requests": {"storage": size}}}
    return an_object({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec})


def a_volume(name: str, size: str, *rules: dict[str, Any]) -> Any:
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": list(rules)}]}} if rules else None
    spec = {"storageClassName": "local", "capacity": {"storage": size}, "nodeAffinity": affinity}
    return an_object(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": spec,
            "status": {"phase": "Available"},
        }
    )


def at(key: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": list(values)}


def chosen(claims: list[Any], *volumes: Any) -> list[list[str]]:
    """For each claim the name of its volume by node, `-` for none. Nodes 0 to 19 are in zone a, the rest in b."""
    nodes = [a_node(f"n{i}", labels={"host": f"n{i}", "zone": "a" if i < 20 else "b"}) for i in range(NODES)]
    cluster = a_cluster(*nodes, *volumes).snapshot()
    stock = Stock()
    offers = [(claim, stock.volumes(cluster, claim_class(claim))) for claim in claims]
    found = match(offers, Places(cluster.view()), np.ones(NODES, dtype=np.bool_))
    names = [volume.metadata.name for volume in found.volumes]
    return [["-" if number == NONE else names[number] for number in choice.tolist()] for choice in found.choices]


def test_each_node_gets_the_smallest_volume_it_can_use() -> None:
    (got,) = chosen(
        [a_claim("c", "1Gi")],
        a_volume("anywhere", "9Gi"),
        a_volume("zone-a", "4Gi", at("zone", "a")),
        a_volume("on-3", "2Gi", at("host", "n3")),
        a_volume("on-4-but-in-b", "2Gi", at("host", "n4"), at("zone", "b")),
        a_volume("on-5", "512Mi", at("host", "n5")),
    )
    assert got == ["on-3" if i == 3 else "zone-a" if i < 20 else "anywhere" for i in range(NODES)]


def test_the_second_claim_gets_what_the_first_left_on_that_node() -> None:
    first, second = chosen(
        [a_claim("c", "1Gi"), a_claim("d", "1Gi")],
        a_volume("zone-a", "2Gi", at("zone", "a")),
        a_volume("anywhere", "3Gi"),
        a_volume("on-39", "1Gi", at("host", "n39", "unknown")),
    )
    assert first == ["zone-a" if i < 20 else "on-39" if i == 39 else "anywhere" for i in range(NODES)]
    assert second == ["anywhere" if i < 20 or i == 39 else "-" for i in range(NODES)]


def test_of_two_volumes_of_one_size_the_older_is_taken() -> None:
    (got,) = chosen([a_claim("c", "1Gi")], a_volume("old", "1024Mi"), a_volume("new", "1Gi"))
    assert set(got) == {"old"}


def test_places_are_found_by_every_kind_of_condition() -> None:
    nodes = [a_node(f"n{i}", labels={"host": f"n{i}", **({"zone": "a"} if i % 2 else {})}) for i in range(NODES)]
    places = Places(a_cluster(*nodes).snapshot().view())
    assert places.of_rules([Requirement("zone", "DoesNotExist")]).tolist() == list(range(0, NODES, 2))
    rules = [Requirement("host", "In", ("n1", "n2", "n3")), Requirement("zone", "Exists")]
    assert places.of_rules(rules).tolist() == [1, 3]
    assert places.of_rules([Requirement("host", "In", ("elsewhere",))]).tolist() == []
    assert places.of_rules([]).tolist() == list(range(NODES))
