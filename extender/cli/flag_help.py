"""The help text of a command with many flags: description, flags in groups, examples."""

import shutil
import textwrap
from collections.abc import Mapping, Sequence

from extender.cli.pflag import Flag


def format_help(
    usage: str, description: str, groups: Mapping[str, Sequence[Flag]], epilog: str, width: int | None = None
) -> str:
    """Return the help text.

    Args:
        usage: the usage line, such as `extender schedule [flags]`.
        description: the paragraphs above the flags, separated by empty lines.
        groups: the flags by group name.
        epilog: the text below the flags, which is not wrapped.
        width: the line width in characters; None: that of the terminal, from 80 to 120.
    """
    if width is None:
        width = min(max(shutil.get_terminal_size().columns, 80), 120)
    paragraphs = [textwrap.fill(paragraph, width) for paragraph in description.split("\n\n")]
    sections = [f"Usage:\n  {usage}", *paragraphs]
    column_width = max(len(_format_flag_name(flag)) for flags in groups.values() for flag in flags) + 2
    column_width = min(column_width, width // 2)
    for name, flags in groups.items():
        sections.append("\n".join([f"{name} flags:", *(_format_flag(flag, column_width, width) for flag in flags)]))
    return "\n\n".join([*sections, epilog])


def _format_flag_name(flag: Flag) -> str:
    dashes = f"  -{flag.short}, --{flag.name}" if flag.short else f"      --{flag.name}"
    return f"{dashes} {flag.type.type_name}".rstrip()


def _format_flag(flag: Flag, column_width: int, width: int) -> str:
    flag_text = _format_flag_name(flag)
    sentences = [flag.help]
    if flag.deprecated:
        sentences.insert(0, "DEPRECATED:")
        sentences.append(f"It {flag.deprecated}.")
    if flag.no_effect_reason:
        sentences.append(f"Accepted without effect: {flag.no_effect_reason}.")
    default = flag.type.render(flag.default)
    if default not in {"", "false", "0", "[]", "0s"}:
        sentences.append(f"(default {default})")
    lines = textwrap.wrap(" ".join(sentences), max(width - column_width, 20), break_on_hyphens=False)
    if len(flag_text) + 2 > column_width:
        return "\n".join([flag_text, *(" " * column_width + line for line in lines)])
    return "\n".join([flag_text.ljust(column_width) + lines[0], *(" " * column_width + line for line in lines[1:])])
