"""An index of objects reads only what was written, and begins anew where it cannot tell."""

from typing import Any

from extender.cluster.hypothesis import Hypothesis
from extender.cluster.object_index import ObjectIndex
from extender.cluster.snapshot import Snapshot
from extender.cluster.state import ClusterState
from extender.objects.storage import PersistentVolume
from tests.build import a_cluster, an_object


def a_volume(name: str, kind: str) -> Any:
    meta = {"name": name}
    return an_object(
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": meta, "spec": {"storageClassName": kind}}
    )


class Counted:
    """An index of volumes by class that counts how many it read."""

    def __init__(self) -> None:
        self.made = 0
        self.index = ObjectIndex(PersistentVolume, lambda volume: volume.spec.storage_class_name, self._make)

    def _make(self, volume: PersistentVolume) -> str:
        self.made += 1
        return volume.metadata.name.upper()

    def of(self, cluster: Snapshot, kind: str) -> list[str]:
        return list(self.index.of(cluster, kind).values())


def three() -> ClusterState:
    return a_cluster(a_volume("a", "x"), a_volume("b", "y"), a_volume("c", "x"))


def test_entries_stand_in_their_groups_in_order_of_arrival() -> None:
    volumes = Counted()
    assert volumes.of(three().snapshot(), "x") == ["A", "C"]
    assert volumes.of(three().snapshot(), "z") == []


def test_only_what_was_written_is_read_again() -> None:
    state, volumes = three(), Counted()
    assert volumes.of(state.snapshot(), "x") == ["A", "C"]
    state.put_object(a_volume("a", "y"))
    state.put_object(a_volume("d", "x"))
    assert volumes.index.catch_up(state.snapshot()) == {"x", "y"}
    assert (volumes.of(state.snapshot(), "x"), volumes.of(state.snapshot(), "y")) == (["C", "D"], ["B", "A"])
    assert volumes.made == 5
    state.drop_object(PersistentVolume, "b")
    state.drop_object(PersistentVolume, "a")
    assert volumes.index.catch_up(state.snapshot()) == {"y"}
    assert list(volumes.index.groups(state.snapshot())) == ["x"]
    assert volumes.made == 5


def test_an_older_snapshot_is_read_anew() -> None:
    state, volumes = three(), Counted()
    old = state.snapshot()
    state.put_object(a_volume("d", "x"))
    assert volumes.of(state.snapshot(), "x") == ["A", "C", "D"]
    assert volumes.of(old, "x") == ["A", "C"]
    assert volumes.of(state.snapshot(), "x") == ["A", "C", "D"]


def test_another_cluster_is_read_anew() -> None:
    volumes = Counted()
    assert volumes.of(three().snapshot(), "y") == ["B"]
    assert volumes.of(a_cluster(a_volume("z", "y")).snapshot(), "y") == ["Z"]


def test_a_hypothesis_has_the_same_objects() -> None:
    state, volumes = three(), Counted()
    cluster = state.snapshot()
    assert volumes.of(cluster, "x") == ["A", "C"]
    assert volumes.of(Hypothesis(cluster).snapshot(), "x") == ["A", "C"]
    assert volumes.made == 3


def test_a_store_says_what_was_written_since() -> None:
    state = three()
    cluster = state.snapshot()
    since = cluster.revision(PersistentVolume)
    assert cluster.written(PersistentVolume, since) == frozenset()
    state.put_object(a_volume("d", "x"))
    state.drop_object(PersistentVolume, "a")
    assert state.snapshot().written(PersistentVolume, since) == {"a", "d"}
    assert cluster.written(PersistentVolume, since) == frozenset(), "the older snapshot knows nothing of it"
    assert cluster.written(PersistentVolume, since + 1) is None
