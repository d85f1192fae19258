"""Images have the size that the first node reported, as long as any node has them.

Source: pkg/scheduler/backend/cache/cache.go, cacheImpl.addNodeImageStates (1.36).
"""

from extender.api.kinds.node import Node
from extender.cache.tables.images import ImageTable
from tests.build import make_node


def make_node_with_image(size: int) -> Node:
    return make_node(images=[{"names": ["web:1", "web@sha256:1"], "sizeBytes": size}])


def image(table: ImageTable, name: str = "web:1") -> tuple[int, list[int]] | None:
    state = table.get(name)
    return None if state is None else (state.size, sorted(state.rows))


def test_an_image_has_all_its_names_and_the_first_size() -> None:
    table = ImageTable()
    table.add(0, make_node_with_image(10))
    table.add(2, make_node_with_image(20))
    assert image(table) == image(table, "web@sha256:1") == (10, [0, 2])
    state = table.get("web:1")
    assert state is not None
    assert state.get_mask(4).tolist() == [True, False, True, False]


def test_an_image_that_no_node_has_is_unknown() -> None:
    table = ImageTable()
    table.add(0, make_node_with_image(10))
    table.add(1, make_node_with_image(20))
    table.remove(0, make_node_with_image(10))
    assert image(table) == (10, [1])
    table.remove(1, make_node_with_image(20))
    assert image(table) is None
    table.add(1, make_node_with_image(20))
    assert image(table) == (20, [1])


def test_other_images_than_the_indexed_ones_are_found_when_they_are_read() -> None:
    table = ImageTable()
    table.add(0, make_node_with_image(10))
    table = table.fork()
    table.index_only(["web:1"])
    table.add(1, make_node_with_image(20))
    table.add(2, make_node(images=[{"names": ["job:1"], "sizeBytes": 5}]))
    table.add(3, make_node(images=[{"names": ["job:1"], "sizeBytes": 6}]))
    table.remove(0, make_node_with_image(10))
    table.remove(2, make_node(images=[{"names": ["job:1"], "sizeBytes": 5}]))
    assert set(table._states) == {"web:1", "web@sha256:1"}
    assert image(table) == (10, [1])
    assert image(table, "web@sha256:1") == (10, [1])
    assert image(table, "job:1") == (5, [3])
    assert image(table, "none") is None
    table.add(4, make_node(images=[{"names": ["job:1"], "sizeBytes": 7}]))
    assert image(table, "job:1") == (5, [3, 4])


def test_a_fork_has_the_images_that_its_original_did_not_index() -> None:
    table = ImageTable()
    table.index_only([])
    table.add(0, make_node_with_image(10))
    fork = table.fork()
    fork.add(1, make_node_with_image(20))
    assert image(fork) == (10, [0, 1])
    assert image(table) == (10, [0])


def test_a_mask_follows_its_rows_and_forks_are_independent() -> None:
    table = ImageTable()
    table.add(0, make_node_with_image(10))
    state = table.get("web:1")
    assert state is not None
    assert state.get_mask(2).tolist() == [True, False]
    fork = table.fork()
    fork.add(1, make_node_with_image(10))
    fork_state = fork.get("web:1")
    assert fork_state is not None
    assert fork_state.get_mask(2).tolist() == [True, True]
    assert state.get_mask(2).tolist() == [True, False]
