"""Rows of text as columns."""

from collections.abc import Sequence


def columns(rows: Sequence[Sequence[str]], *, right: Sequence[int] = (), indent: str = "  ") -> list[str]:
    """The lines of a table, cells padded to the width of their column; those numbered in *right* stand right."""
    if not rows:
        return []
    widths = [max(len(row[index]) for row in rows if index < len(row)) for index in range(max(map(len, rows)))]
    lines = []
    for row in rows:
        cells = [cell.rjust(widths[i]) if i in right else cell.ljust(widths[i]) for i, cell in enumerate(row)]
        lines.append((indent + "  ".join(cells)).rstrip())
    return lines


def counted(number: int, noun: str) -> str:
    """`1 node`, `2 nodes`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
