"""Format amounts of resources: `500m` of CPU, `1.5Gi` of memory."""

from typing import Final

_UNITS: Final = (("Ei", 60), ("Pi", 50), ("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10))
_MIN_MILLI_CPU_SHOWN_IN_CORES: Final = 10_000
_RESOURCES_IN_BYTES: Final = ("memory", "ephemeral-storage")


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
        if amount % 1000 and amount < _MIN_MILLI_CPU_SHOWN_IN_CORES:
            return f"{amount}m"
        return f"{amount / 1000:.3f}".rstrip("0").rstrip(".")
    if resource not in _RESOURCES_IN_BYTES and not resource.startswith("hugepages-"):
        return str(amount)
    for unit, bits in _UNITS:
        if amount >= 1 << bits:
            return f"{amount / (1 << bits):.2f}".rstrip("0").rstrip(".") + unit
    return str(amount)


def format_percent(part: int, whole: int) -> str:
    """Return the fraction *part* / *whole* in percent without decimals, or a dash if *whole* is 0."""
    return f"{100 * part / whole:.0f}%" if whole else "-"
