"""An object index reads only written objects again, and is rebuilt for another history."""

from typing import Any

from extender.api.kinds.storage import PersistentVolume
from extender.cache.cache import Cache
from extender.cache.hypothesis import Hypothesis
from extender.cache.object_index import ObjectIndex
from extender.cache.snapshot import Snapshot
from tests.build import make_cluster, make_object


def make_volume(name: str, class_name: str) -> Any:
    meta = {"name": name}
    return make_object(
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": meta, "spec": {"storageClassName": class_name}}
    )


class CountingIndex:
    """An index of volumes by class that counts the entries it made."""

    def __init__(self) -> None:
        self.made_count = 0
        self.index = ObjectIndex(PersistentVolume, lambda volume: volume.spec.storage_class_name, self._make)

    def _make(self, volume: PersistentVolume) -> str:
        self.made_count += 1
        return volume.metadata.name.upper()

    def names(self, snapshot: Snapshot, class_name: str) -> list[str]:
        return list(self.index.get_entries(snapshot, class_name).values())


def three_volumes() -> Cache:
    return make_cluster(make_volume("a", "x"), make_volume("b", "y"), make_volume("c", "x"))


def test_entries_are_grouped_in_the_order_in_which_they_were_added() -> None:
    volumes = CountingIndex()
    assert volumes.names(three_volumes().snapshot(), "x") == ["A", "C"]
    assert volumes.names(three_volumes().snapshot(), "z") == []


def test_only_written_objects_are_read_again() -> None:
    cache, volumes = three_volumes(), CountingIndex()
    assert volumes.names(cache.snapshot(), "x") == ["A", "C"]
    cache.add_or_update_object(make_volume("a", "y"))
    cache.add_or_update_object(make_volume("d", "x"))
    assert volumes.index.update(cache.snapshot()) == {"x", "y"}
    assert (volumes.names(cache.snapshot(), "x"), volumes.names(cache.snapshot(), "y")) == (["C", "D"], ["B", "A"])
    assert volumes.made_count == 5
    cache.remove_object(PersistentVolume, "b")
    cache.remove_object(PersistentVolume, "a")
    assert volumes.index.update(cache.snapshot()) == {"y"}
    assert list(volumes.index.get_entries_by_group(cache.snapshot())) == ["x"]
    assert volumes.made_count == 5


def test_an_older_snapshot_rebuilds_the_index() -> None:
    cache, volumes = three_volumes(), CountingIndex()
    old = cache.snapshot()
    cache.add_or_update_object(make_volume("d", "x"))
    assert volumes.names(cache.snapshot(), "x") == ["A", "C", "D"]
    assert volumes.names(old, "x") == ["A", "C"]
    assert volumes.names(cache.snapshot(), "x") == ["A", "C", "D"]


def test_another_cluster_rebuilds_the_index() -> None:
    volumes = CountingIndex()
    assert volumes.names(three_volumes().snapshot(), "y") == ["B"]
    assert volumes.names(make_cluster(make_volume("z", "y")).snapshot(), "y") == ["Z"]


def test_a_hypothesis_has_the_same_objects() -> None:
    cache, volumes = three_volumes(), CountingIndex()
    snapshot = cache.snapshot()
    assert volumes.names(snapshot, "x") == ["A", "C"]
    assert volumes.names(Hypothesis(snapshot).snapshot(), "x") == ["A", "C"]
    assert volumes.made_count == 3
