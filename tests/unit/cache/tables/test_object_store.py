"""The object store logs writes by kind, so that readers can update incrementally."""

from typing import Any

from extender.api.kinds.storage import PersistentVolume, StorageClass
from extender.cache.cache import Cache
from extender.cache.tables.object_store import ObjectStore
from tests.build import make_cluster, make_object


def make_volume(name: str, class_name: str = "") -> Any:
    meta = {"name": name}
    return make_object(
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": meta, "spec": {"storageClassName": class_name}}
    )


def three_volumes() -> Cache:
    return make_cluster(make_volume("a", "x"), make_volume("b", "y"), make_volume("c", "x"))


def test_keys_have_a_namespace_unless_the_object_is_cluster_scoped() -> None:
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c", "namespace": "shop"}}
    assert make_object(claim).metadata.key == "shop/c"
    assert make_volume("a").metadata.key == "a"


def test_objects_stay_in_the_order_in_which_they_were_added() -> None:
    store = ObjectStore()
    for name in ("b", "a", "b"):
        store.add_or_update(make_volume(name))
    store.remove(PersistentVolume, "unknown")
    assert list(store.get_by_kind(PersistentVolume)) == ["b", "a"]
    assert [store.get_version(kind).revision for kind in (PersistentVolume, StorageClass)] == [3, 0]
    assert store.get(PersistentVolume, "unknown") is None


def test_the_first_write_to_a_fork_starts_a_new_history() -> None:
    store = ObjectStore()
    start = store.get_version(PersistentVolume)
    store.add_or_update(make_volume("a"))
    branch, successor = store.fork(), store.fork(new_history=False)
    assert branch.get_version(PersistentVolume) == store.get_version(PersistentVolume)
    branch.add_or_update(make_volume("b"))
    successor.add_or_update(make_volume("c"))
    assert branch.get_version(PersistentVolume).history_id is not start.history_id
    assert branch.get_keys_written_since(PersistentVolume, start) is None
    assert successor.get_version(PersistentVolume).history_id is start.history_id
    assert successor.get_keys_written_since(PersistentVolume, start) == {"a", "c"}
    assert list(store.get_by_kind(PersistentVolume)) == ["a"]


def test_a_store_returns_the_keys_written_since_a_revision() -> None:
    cache = three_volumes()
    snapshot = cache.snapshot()
    version = snapshot.kind_version(PersistentVolume)
    assert snapshot.keys_written_since(PersistentVolume, version) == frozenset()
    cache.add_or_update_object(make_volume("d", "x"))
    cache.remove_object(PersistentVolume, "a")
    assert cache.snapshot().keys_written_since(PersistentVolume, version) == {"a", "d"}
    assert snapshot.keys_written_since(PersistentVolume, version) == frozenset(), (
        "the older snapshot does not see later writes"
    )
    assert snapshot.keys_written_since(PersistentVolume, version._replace(revision=4)) is None


def test_a_log_of_writes_has_at_most_8_192_keys_or_twice_as_many_as_objects() -> None:
    cache = three_volumes()
    for number in range(20_000):
        cache.add_or_update_object(make_volume("abc"[number % 3]))
        assert len(cache.snapshot().tables.objects._write_logs[PersistentVolume].keys) <= 8192
    snapshot = cache.snapshot()
    version = snapshot.kind_version(PersistentVolume)
    assert version.revision == 20_003
    for revision, keys in ((20_000, {"a", "b", "c"}), (20_003 - 4096, {"a", "b", "c"}), (20_003 - 8193, None)):
        assert snapshot.keys_written_since(PersistentVolume, version._replace(revision=revision)) == keys

    store = ObjectStore()
    for number in range(20_000):
        store.add_or_update(make_volume(f"v{number % 5000}"))
    assert 8192 < len(store._write_logs[PersistentVolume].keys) <= 10_000
    version = store.get_version(PersistentVolume)._replace(revision=15_000)
    assert len(store.get_keys_written_since(PersistentVolume, version) or ()) == 5000
