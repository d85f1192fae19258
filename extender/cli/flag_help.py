"""The help of a command with many flags: what it does, examples, flags in groups."""

import textwrap
from collections.abc import Mapping, Sequence

from extender.cli.flags import Flag


def help_text(usage: str, about: str, groups: Mapping[str, Sequence[Flag]], end: str, width: int) -> str:
    """The text.

    Args:
        usage: such as `extender schedule [flags]`.
        about: paragraphs.
        groups: flags by the name of their group.
        end: what comes last, as it is.
        width: characters a line.
    """
    paragraphs = [textwrap.fill(paragraph, width) for paragraph in about.split("\n\n")]
    parts = [f"Usage:\n  {usage}", *paragraphs]
    column = max(len(_left(flag)) for flags in groups.values() for flag in flags) + 2
    column = min(column, width // 2)
    for name, flags in groups.items():
        parts.append("\n".join([f"{name} flags:", *(_entry(flag, column, width) for flag in flags)]))
    return "\n\n".join([*parts, end])


def _left(flag: Flag) -> str:
    dashes = f"  -{flag.short}, --{flag.name}" if flag.short else f"      --{flag.name}"
    return f"{dashes} {flag.kind.word}".rstrip()


def _entry(flag: Flag, column: int, width: int) -> str:
    left = _left(flag)
    notes = [flag.help]
    if flag.deprecated:
        notes.insert(0, "DEPRECATED:")
        notes.append(f"It {flag.deprecated}.")
    if flag.idle:
        notes.append(f"Accepted, and changes nothing: {flag.idle}.")
    shown = flag.kind.render(flag.default)
    if shown not in {"", "false", "0", "[]", "0s"}:
        notes.append(f"(default {shown})")
    lines = textwrap.wrap(" ".join(notes), max(width - column, 20), break_on_hyphens=False)
    if len(left) + 2 > column:
        return "\n".join([left, *(" " * column + line for line in lines)])
    return "\n".join([left.ljust(column) + lines[0], *(" " * column + line for line in lines[1:])])
