"""The tables of a snapshot whose read scope has ended."""

import pytest

from extender.cache.tables.closed_tables import CLOSED_TABLES, ClosedSnapshotError


def test_each_use_names_what_was_read_and_the_fix() -> None:
    message = "^node_lists of a snapshot was read after its read scope; read it in the scope$"
    with pytest.raises(ClosedSnapshotError, match=message):
        _ = CLOSED_TABLES.node_lists
