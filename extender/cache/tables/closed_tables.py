"""The tables of a snapshot whose read scope has ended and whose tables were written since."""

from typing import Any, Final


class ClosedSnapshotError(RuntimeError):
    """A snapshot was used after its read scope had ended and its tables had been written."""


class _ClosedTables:
    """Stands for the tables of a closed snapshot. Each use raises `ClosedSnapshotError`."""

    def __getattr__(self, name: str) -> Any:
        raise ClosedSnapshotError(f"{name} of a snapshot was read after its read scope; read it in the scope")


CLOSED_TABLES: Final[Any] = _ClosedTables()
