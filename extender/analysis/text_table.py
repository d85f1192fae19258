"""Format text: tables with aligned columns, counts with their nouns, and amounts: `500m` of CPU, `1.5Gi` of memory."""

from collections.abc import Iterable, Sequence
from typing import Final
from unicodedata import combining, east_asian_width

_UNITS: Final = (("Ei", 60), ("Pi", 50), ("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10))
_MIN_MILLI_CPU_SHOWN_IN_CORES: Final = 10_000
_RESOURCES_IN_BYTES: Final = ("memory", "ephemeral-storage")


def format_table(rows: Sequence[Sequence[str]], *, right_aligned: Sequence[int] = (), indent: str = "  ") -> list[str]:
    """Return the lines of a table. Columns are left-aligned, except those with an index in *right_aligned*."""
    if not rows:
        return []
    widths = [max(_get_width(row[index]) for row in rows if index < len(row)) for index in range(max(map(len, rows)))]
    lines = []
    for row in rows:
        spaces = [" " * (widths[index] - _get_width(cell)) for index, cell in enumerate(row)]
        cells = [
            spaces[index] + cell if index in right_aligned else cell + spaces[index] for index, cell in enumerate(row)
        ]
        lines.append((indent + "  ".join(cells)).rstrip())
    return lines


def _get_width(text: str) -> int:
    """Return the number of columns of a text at a terminal: Chinese characters and emoji take two, accents none."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)


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


def format_amount(resource: str, amount: int) -> str:
    """Return an amount as short text.

    Args:
        resource: the name of the resource.
        amount: the amount in base units: milli-CPU, bytes (memory, storage, huge pages), or a count. Bytes are shown in
            the largest possible unit, with at most two decimals.
    """
    if amount < 0:
        return f"-{format_amount(resource, -amount)}"
    if resource == "cpu":
        return format_amounts(resource, amount)[0]
    if resource not in _RESOURCES_IN_BYTES and not resource.startswith("hugepages-"):
        return str(amount)
    for unit, bits in _UNITS:
        if amount >= 1 << bits:
            return f"{amount / (1 << bits):.2f}".rstrip("0").rstrip(".") + unit
    return str(amount)


def format_amounts(resource: str, *amounts: int) -> list[str]:
    """Return amounts that are read together as `format_amount` does: CPU of all of them in milli-CPU, or in cores."""
    if resource != "cpu":
        return [format_amount(resource, amount) for amount in amounts]
    largest = max(map(abs, amounts))
    if any(amount % 1000 for amount in amounts) and largest < _MIN_MILLI_CPU_SHOWN_IN_CORES:
        return [f"{amount}m" if amount else "0" for amount in amounts]
    return [f"{amount / 1000:.3f}".rstrip("0").rstrip(".") for amount in amounts]


def format_percent(part: int, whole: int) -> str:
    """Return the fraction *part* / *whole* in percent without decimals, or a dash if *whole* is 0."""
    return f"{100 * part / whole:.0f}%" if whole else "-"
