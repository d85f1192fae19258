"""Each claim gets the smallest available volume on each node that no earlier claim has."""

from random import Random
from typing import Any

import numpy as np
import pytest

from extender.api.matching import CompiledNodeSelector
from extender.cache.tables.arrays import IntArray
from extender.volumes.claims import get_claim_class
from extender.volumes.topology import TopologyIndex
from extender.volumes.volume_index import VolumeIndex
from extender.volumes.volume_matching import NO_VOLUME, ClaimToMatch, match_volumes
from tests.build import make_cluster, make_node, make_object

NODES = 40
"""More nodes than TopologyIndex matches without sorting."""
HOSTS = [f"n{i}" for i in range(NODES)]


def make_claim(name: str, size: str) -> Any:
    meta = {"name": name, "namespace": "default"}
    spec = {"storageClassName": "local", "resources": {"requests": {"storage": size}}}
    return make_object({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec})


def make_volume(name: str, size: str, *requirements: dict[str, Any]) -> Any:
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": list(requirements)}]}} if requirements else None
    spec = {"storageClassName": "local", "capacity": {"storage": size}, "nodeAffinity": affinity}
    return make_object(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": spec,
            "status": {"phase": "Available"},
        }
    )


def make_requirement(key: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": list(values)}


class CountingTopologyIndex(TopologyIndex):
    """Counts the matched node selectors."""

    match_count = 0

    def match_node_selector(self, selector: CompiledNodeSelector | None) -> IntArray:
        self.match_count += 1
        return super().match_node_selector(selector)


def choose_volumes(claims: list[Any], *volumes: Any, provisionable: bool = False) -> list[list[str]]:
    """Return each claim's volume name by node, `-` for none. Nodes 0 to 19 are in zone a, the others in zone b."""
    return choose_and_count(claims, *volumes, provisionable=provisionable)[0]


def choose_and_count(claims: list[Any], *volumes: Any, provisionable: bool = False) -> tuple[list[list[str]], int]:
    """Return what `choose_volumes` returns, and the number of matched node selectors."""
    nodes = [make_node(f"n{i}", labels={"host": f"n{i}", "zone": "a" if i < 20 else "b"}) for i in range(NODES)]
    snapshot = make_cluster(*nodes, *volumes).snapshot()
    volume_index = VolumeIndex()
    claims_to_match = [
        ClaimToMatch(claim, volume_index.get_volumes(snapshot, get_claim_class(claim)), provisionable)
        for claim in claims
    ]
    topology = CountingTopologyIndex(snapshot.view())
    matches = match_volumes(claims_to_match, topology, np.ones(NODES, dtype=np.bool_))
    names = [volume.metadata.name for volume in matches.volumes]
    chosen = [["-" if index == NO_VOLUME else names[index] for index in choice.tolist()] for choice in matches.choices]
    return chosen, topology.match_count


def test_each_node_gets_the_smallest_volume_it_can_use() -> None:
    (volumes,) = choose_volumes(
        [make_claim("c", "1Gi")],
        make_volume("anywhere", "9Gi"),
        make_volume("zone-a", "4Gi", make_requirement("zone", "a")),
        make_volume("on-3", "2Gi", make_requirement("host", "n3")),
        make_volume("on-4-but-in-b", "2Gi", make_requirement("host", "n4"), make_requirement("zone", "b")),
        make_volume("on-5", "512Mi", make_requirement("host", "n5")),
    )
    assert volumes == ["on-3" if i == 3 else "zone-a" if i < 20 else "anywhere" for i in range(NODES)]


def test_a_claim_does_not_get_the_volume_of_an_earlier_claim_on_the_node() -> None:
    first, second = choose_volumes(
        [make_claim("c", "1Gi"), make_claim("d", "1Gi")],
        make_volume("zone-a", "2Gi", make_requirement("zone", "a")),
        make_volume("anywhere", "3Gi"),
        make_volume("on-39", "1Gi", make_requirement("host", "n39", "unknown")),
    )
    assert first == ["zone-a" if i < 20 else "on-39" if i == 39 else "anywhere" for i in range(NODES)]
    assert second == ["anywhere" if i < 20 or i == 39 else "-" for i in range(NODES)]


def test_of_two_volumes_of_one_size_the_older_is_taken() -> None:
    (volumes,) = choose_volumes([make_claim("c", "1Gi")], make_volume("old", "1024Mi"), make_volume("new", "1Gi"))
    assert set(volumes) == {"old"}


def test_local_volumes_of_one_label_are_chosen_like_volumes_with_other_requirements() -> None:
    rng = Random(7)
    volumes = [
        make_volume(f"v{i}", f"{rng.randint(1, 4)}Gi", make_requirement("host", *rng.sample(HOSTS, rng.randint(1, 3))))
        for i in range(60)
    ]
    unrelated = make_volume("none", "1Gi", make_requirement("other-label", "a"))
    claim = make_claim("c", "2Gi")
    (chosen,) = choose_volumes([claim], *volumes)
    assert choose_volumes([claim], *volumes, unrelated) == [chosen]
    assert chosen.count("-") < NODES // 2
    assert chosen == [find_smallest_volume(volumes, host) for host in HOSTS]


@pytest.mark.parametrize("provisionable", [False, True])
def test_many_claims_get_on_each_node_what_they_would_get_there_alone(*, provisionable: bool) -> None:
    rng = Random(3)
    volumes = [
        make_volume(f"v{i}", f"{rng.randint(1, 4)}Gi", make_requirement("host", *rng.sample(HOSTS, rng.randint(1, 30))))
        for i in range(30)
    ]
    claims = [make_claim(f"c{i}", "2Gi") for i in range(8)]
    chosen = choose_volumes(claims, *volumes, provisionable=provisionable)
    for position, host in enumerate(HOSTS):
        remaining = list(volumes)
        for names in chosen:
            name = find_smallest_volume(remaining, host)
            assert names[position] == name
            remaining = [volume for volume in remaining if volume.metadata.name != name]
    assert chosen[0].count("-") < chosen[-1].count("-") < NODES


def test_volumes_are_not_matched_on_nodes_where_an_earlier_claim_gets_none() -> None:
    """A pod with 100 claims must not stop the scheduler for half a minute."""
    volumes = [make_volume(f"{host}-{i}", "1Gi", make_requirement("host", host)) for host in HOSTS for i in range(2)]
    claims = [make_claim(f"c{i}", "1Gi") for i in range(100)]
    chosen, match_count = choose_and_count(claims, *volumes)
    assert [names.count("-") for names in chosen] == [0, 0, *[NODES] * 98]
    assert match_count <= 3 * len(volumes)


def find_smallest_volume(volumes: list[Any], host: str) -> str:
    """Return the name of the first of the smallest volumes of 2 GiB and more on *host*, `-` if there is none."""
    sizes: dict[str, int] = {}
    for volume in volumes:
        (term,) = volume.spec.node_affinity.required.node_selector_terms
        size = int(volume.spec.capacity["storage"].removesuffix("Gi"))
        if size >= 2 and host in term.match_expressions[0].values:
            sizes[volume.metadata.name] = size
    return min(sizes, key=lambda name: sizes[name]) if sizes else "-"
