"""The number of entries on a page of waiting pods."""

import pytest

from extender.ui.page_source import get_entries_per_page


@pytest.mark.parametrize(("node_count", "entries"), [(0, 200), (12, 200), (1000, 100), (5000, 20), (50_000, 10)])
def test_a_page_of_waiting_pods_is_shorter_for_a_larger_cluster(node_count: int, entries: int) -> None:
    assert get_entries_per_page(node_count) == entries
