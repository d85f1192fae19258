"""Amounts of resources as people write them: `500m` of CPU, `1.5Gi` of memory."""

from typing import Final

_UNITS: Final = (("Ei", 60), ("Pi", 50), ("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10))
_MANY_MILLI: Final = 10_000
_BYTES: Final = ("memory", "ephemeral-storage")


def readable(resource: str, amount: int) -> str:
    """*amount* as a short text.

    Args:
        resource: what it is an amount of.
        amount: in base units: milli-CPU for cpu, bytes for memory, storage and huge pages, else a count. Bytes have at
            most two decimals of the greatest unit that suits, so they may be rounded.
    """
    if amount < 0:
        return f"-{readable(resource, -amount)}"
    if resource == "cpu":
        return (
            f"{amount}m" if amount % 1000 and amount < _MANY_MILLI else f"{amount / 1000:.3f}".rstrip("0").rstrip(".")
        )
    if resource not in _BYTES and not resource.startswith("hugepages-"):
        return str(amount)
    for unit, bits in _UNITS:
        if amount >= 1 << bits:
            return f"{amount / (1 << bits):.2f}".rstrip("0").rstrip(".") + unit
    return str(amount)


def percent(part: int, whole: int) -> str:
    """*part* of *whole* in percent, without decimals; a dash where there is no whole."""
    return f"{100 * part / whole:.0f}%" if whole else "-"
