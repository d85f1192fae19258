"""Format text tables with aligned columns, and counts with their nouns."""

from collections.abc import Iterable, Sequence


def format_table(rows: Sequence[Sequence[str]], *, right_aligned: Sequence[int] = (), indent: str = "  ") -> list[str]:
    """Return the lines of a table. Columns are left-aligned, except those with an index in *right_aligned*."""
    if not rows:
        return []
    widths = [max(len(row[index]) for row in rows if index < len(row)) for index in range(max(map(len, rows)))]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(widths[index]) if index in right_aligned else cell.ljust(widths[index])
            for index, cell in enumerate(row)
        ]
        lines.append((indent + "  ".join(cells)).rstrip())
    return lines


def format_section(title: str, rows: Iterable[Sequence[str]], max_lines: int) -> list[str]:
    """Return an empty line, the title and a table of at most *max_lines* rows; no lines without rows."""
    rows = list(rows)
    more = [f"  and {len(rows) - max_lines} more"] if len(rows) > max_lines else []
    return ["", title, *format_table(rows[:max_lines]), *more] if rows else []


def join_first(names: Sequence[str], limit: int = 3) -> str:
    """Return the first names and the number of the others: `a, b, c and 2 more`."""
    text = ", ".join(names[:limit])
    return f"{text} and {len(names) - limit} more" if len(names) > limit else text


def format_count(number: int, noun: str) -> str:
    """Return a count with its noun: `1 node`, `2 nodes`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
