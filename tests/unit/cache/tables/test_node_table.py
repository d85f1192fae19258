"""The node table: rows and columns, shared images, and heartbeats that change no row."""

import pytest

from extender.api.codec import from_builtins
from extender.api.kinds.node import Node
from extender.cache.cache import Cache
from extender.cache.tables.node_table import ABSENT, MAX_LABEL_COLUMNS, NodeTable
from extender.cache.tables.symbols import Symbols


def make_node(name: str = "one", version: str = "1", **status: object) -> Node:
    images = [{"names": [f"registry.example/web:{number}"], "sizeBytes": number} for number in range(3)]
    body = {
        "metadata": {"name": name, "resourceVersion": version, "labels": {"zone": "a"}},
        "status": {"allocatable": {"cpu": "4", "pods": "110"}, "images": images, **status},
    }
    return from_builtins(body, Node)


NODE_INFO = {"kubeletVersion": "v1.37.2", "kernelVersion": "6.12.0"}


def test_deduplicated_nodes_are_equal_and_share_their_images_and_system_information() -> None:
    cache = Cache()
    (one, _), (two, _) = map(cache.deduplicate, (make_node(name, nodeInfo=NODE_INFO) for name in ("one", "two")))
    assert (one, two) == (make_node("one", nodeInfo=NODE_INFO), make_node("two", nodeInfo=NODE_INFO))
    assert all(image is other for image, other in zip(one.status.images, two.status.images, strict=True))
    assert one.status.node_info is two.status.node_info


@pytest.mark.parametrize(
    ("update", "is_written"),
    [
        (make_node(version="2"), False),
        (make_node(version="2", allocatable={"cpu": "8", "pods": "110"}), True),
        (make_node(version="2", conditions=[{"type": "Ready", "status": "False"}]), True),
        (make_node(version="2", images=[]), True),
        (make_node(version="2", nodeInfo=NODE_INFO), True),
        (from_builtins({"metadata": {"name": "one", "resourceVersion": "2"}}, Node), True),
    ],
    ids=["only its version", "its allocatable resources", "a condition", "its images", "its kubelet", "its labels"],
)
def test_a_node_update_other_than_a_heartbeat_writes_its_row(update: Node, is_written: bool) -> None:
    cache = Cache()
    cache.add_or_update_node(make_node())
    old_position = cache.snapshot().position.node_log_position
    cache.add_or_update_node(update)
    snapshot = cache.snapshot()
    assert (snapshot.position.node_log_position > old_position) is is_written
    assert snapshot.nodes[0] is update


def three_nodes() -> NodeTable:
    table = NodeTable(Symbols())
    for index in range(3):
        labels = {"zone": "ab"[index % 2]}
        status = {"allocatable": {"cpu": str(index + 1), "pods": str(10 + index)}}
        node = {"metadata": {"name": f"n{index}", "labels": labels}, "status": status}
        table.add_or_update(from_builtins(node, Node))
    return table


def test_the_row_of_a_node_has_its_values() -> None:
    table = three_nodes()
    assert table.columns.get("allocatable")[0, :3].tolist() == [1000, 2000, 3000]
    assert table.columns.get("allowed_pods")[:3].tolist() == [10, 11, 12]
    assert table.get_label_column("zone")[:4].tolist() == [0, 1, 0, ABSENT]


def test_the_last_row_moves_into_the_row_of_a_removed_node() -> None:
    table = three_nodes()
    table.get_label_column("zone")
    table.remove("n0")
    assert (table.names, table.row_by_name) == (["n2", "n1"], {"n2": 0, "n1": 1})
    assert table.columns.get("allocatable")[0, :3].tolist() == [3000, 2000, 0]
    assert table.get_label_column("zone")[:3].tolist() == [0, 1, ABSENT]


def test_at_most_4096_label_keys_that_no_node_has_are_retained() -> None:
    table = three_nodes()
    symbols = table.symbols
    assert table.get_label_column("zone")[:3].tolist() == [0, 1, 0]
    for number in range(10_000):
        assert len(symbols.get_label_values(f"key-{number}")) == 0
        assert len(symbols._label_values) <= 4097
    assert list(symbols.get_label_values("zone")) == ["a", "b"]
    assert table.get_label_column("zone")[:3].tolist() == [0, 1, 0]
    late = symbols.get_label_values("late")
    assert (late.intern("x"), late is symbols.get_label_values("late")) == (0, True)


def test_at_most_256_labels_have_a_column() -> None:
    table = three_nodes()
    keys = [f"key-{number}" for number in range(2 * MAX_LABEL_COLUMNS)]
    table.add_or_update(from_builtins({"metadata": {"name": "n3", "labels": dict.fromkeys(keys, "x")}}, Node))
    for key in ("zone", *keys, "zone"):
        column = table.get_label_column(key)
        assert len(table._label_columns) <= MAX_LABEL_COLUMNS
    assert column[:3].tolist() == [0, 1, 0]
    fork = table.fork()
    fork.get_label_column("key-0")
    fork.remove("n3")
    fork.remove("n0")
    assert fork.get_label_column("zone")[:2].tolist() == [0, 1]
    assert table.get_label_column("zone")[:3].tolist() == [0, 1, 0]


def test_a_label_that_no_node_has_takes_no_column() -> None:
    table = three_nodes()
    for number in range(1000):
        assert table.get_label_column(f"key-{number}")[:3].tolist() == [ABSENT] * 3
    assert table._label_columns == {}


def test_a_label_that_a_node_gets_later_has_a_column_then() -> None:
    table = three_nodes()
    fork = table.fork()
    assert fork.get_label_column("rack")[:3].tolist() == [ABSENT] * 3
    fork.add_or_update(from_builtins({"metadata": {"name": "n1", "labels": {"rack": "r"}}}, Node))
    assert fork.get_label_column("rack")[:3].tolist() == [ABSENT, 0, ABSENT]
    assert table.get_label_column("rack")[:3].tolist() == [ABSENT] * 3


def test_at_most_1024_label_keys_of_removed_nodes_are_known() -> None:
    table = three_nodes()
    for number in range(5000):
        labels = {f"key-{number}": "x", "zone": "b"}
        table.add_or_update(from_builtins({"metadata": {"name": "n2", "labels": labels}}, Node))
        assert len(table._label_keys) <= 2 * 2 + 1024 + 1
    assert table.get_label_column("key-4999")[:3].tolist() == [ABSENT, ABSENT, 0]
    assert table.get_label_column("zone")[:3].tolist() == [0, 1, 1]


def test_only_adding_and_removing_nodes_changes_the_row_map() -> None:
    table = three_nodes()
    version = table.row_map_version
    table.add_or_update(make_node("n1"))
    assert table.row_map_version is version
    table.remove("n1")
    assert table.row_map_version is not version


def test_writing_a_fork_leaves_the_original_unchanged() -> None:
    table = three_nodes()
    fork = table.fork()
    fork.remove("n0")
    fork.add_or_update(make_node("n3"))
    assert table.names == ["n0", "n1", "n2"]
    assert table.columns.get("allocatable")[0, :3].tolist() == [1000, 2000, 3000]
    assert fork.names == ["n2", "n1", "n3"]


def test_an_image_keeps_the_size_of_its_first_node_when_the_row_of_another_node_moves() -> None:
    """Source: pkg/scheduler/backend/cache/cache.go, cacheImpl.removeNodeImageStates (1.37)."""
    table = NodeTable(Symbols())
    table.add_or_update(make_node("other", images=[]))
    for name, size in (("first", 10), ("last", 20)):
        table.add_or_update(make_node(name, images=[{"names": ["web:1"], "sizeBytes": size}]))
    sizes_and_rows = []
    for name in ("first", "other"):
        table.remove(name)
        state = table.images.get("web:1")
        assert state is not None
        sizes_and_rows.append((state.size, sorted(state.rows)))
    assert sizes_and_rows == [(10, [1]), (10, [0])]
