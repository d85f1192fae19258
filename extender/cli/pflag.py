"""Parse command lines as Go's pflag does: `--name=value`, `--name value`, booleans without a value, lists, `-v4`.

Existing manifests pass kube-scheduler's flags, so every accepted spelling must have the same meaning here.

Source: cmd/kube-scheduler/app/options/options.go, Options.initFlags (1.36).
"""

import csv
import ipaddress
import shutil
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from extender.config import durations
from extender.config.did_you_mean import did_you_mean
from extender.config.errors import ConfigError, FieldError
from extender.config.feature_gates_flag import FALSE_VALUES, TRUE_VALUES


class FlagError(ConfigError):
    """An invalid command line; contains one error."""

    def __init__(self, message: str) -> None:
        super().__init__([FieldError("", message)])


@dataclass(frozen=True, slots=True)
class FlagType:
    """The type of a flag's value.

    Attributes:
        type_name: the type's name in the help text; empty for booleans.
        parse: the function that converts an argument to a value, or raises ValueError.
        render: the function that converts a value to the text on `/flagz`.
        value_without_argument: the value of a flag without an argument; None: an argument is required.
        repeatable: whether each further use of the flag appends to the value, which is a tuple.
    """

    type_name: str
    parse: Callable[[str], Any]
    render: Callable[[Any], str] = str
    value_without_argument: str | None = None
    repeatable: bool = False


def _parse_bool(text: str) -> bool:
    if text not in TRUE_VALUES | FALSE_VALUES:
        raise ValueError("want true or false")
    return text in TRUE_VALUES


def _make_int_parser(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        digits = text.removeprefix("-").removeprefix("+")
        if not (digits.isascii() and digits.isdigit()) or len(digits) > 20:
            raise ValueError("want a whole number")
        number = int(text)
        if not low <= number <= high:
            raise ValueError(f"want a number from {low} to {high}")
        return number

    return parse


def _parse_float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("want a number") from None


def _parse_ip(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text.strip()))
    except ValueError:
        raise ValueError(f'failed to parse IP: "{text}"') from None


def _parse_list(text: str) -> tuple[str, ...]:
    return tuple(text.split(",")) if text else ()


def _render_list(values: Sequence[str]) -> str:
    return f"[{','.join(values)}]"


def _parse_pairs(text: str) -> tuple[str, ...]:
    """Parse `key=value`, or several of these as CSV. A single pair may have commas: `metric,label=value,other`.

    Source: github.com/spf13/pflag, string_to_string.go, stringToStringValue.Set (1.0.10).
    """
    pairs = [text.strip('"')] if text.count("=") <= 1 else next(csv.reader([text]))
    for pair in pairs:
        if "=" not in pair:
            raise ValueError(f"{pair} must be formatted as key=value")
    return tuple(pairs)


BOOL: Final = FlagType("", _parse_bool, lambda value: str(value).lower(), value_without_argument="true")
STRING: Final = FlagType("string", str)
STRINGS: Final = FlagType("strings", _parse_list, _render_list, repeatable=True)
PAIRS: Final = FlagType("key=value,...", _parse_pairs, _render_list, repeatable=True)
INT: Final = FlagType("int", _make_int_parser(-(2**63), 2**63 - 1))
INT32: Final = FlagType("int32", _make_int_parser(-(2**31), 2**31 - 1))
LEVEL: Final = FlagType("level", _make_int_parser(0, 2**31 - 1))
FLOAT: Final = FlagType("float", _parse_float, lambda number: f"{number:g}")
DURATION: Final = FlagType("duration", durations.parse, durations.render)
IP: Final = FlagType("ip", _parse_ip)
GATES: Final = FlagType("Gate=bool,...", lambda text: (text,), ",".join, repeatable=True)


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag.

    Attributes:
        name: the flag's name without leading dashes.
        short: the one-letter name; empty: none.
        deprecated: the end of the deprecation notice, such as `is ignored if ...`; empty: the flag is not deprecated.
        no_effect_reason: the reason why the flag has no effect; empty: the flag has an effect.
    """

    name: str
    type: FlagType
    default: Any
    help: str
    short: str = ""
    deprecated: str = ""
    no_effect_reason: str = ""

    @property
    def display_name(self) -> str:
        """The flag's name in error messages."""
        return f"-{self.short}, --{self.name}" if self.short else f"--{self.name}"


@dataclass(slots=True)
class ParsedFlags:
    """A parsed command line.

    Attributes:
        changed: the names of the flags on the command line.
    """

    values: dict[str, Any]
    changed: set[str] = field(default_factory=set)
    arguments: list[str] = field(default_factory=list)

    def __getitem__(self, name: str) -> Any:
        return self.values[name]


def parse(
    words: Sequence[str], flags: Mapping[str, Flag], removed_flags: Mapping[str, str] = MappingProxyType({})
) -> ParsedFlags:
    """Parse a command line. *removed_flags* has the advice for the flags of old releases, by name.

    Raises:
        FlagError: a flag is unknown, lacks its argument, or has an invalid argument.
    """
    parsed_flags = ParsedFlags({name: flag.default for name, flag in flags.items()})
    flags_by_letter = {flag.short: flag for flag in flags.values() if flag.short}
    remaining_words = list(words)
    while remaining_words:
        word = remaining_words.pop(0)
        if word == "--":
            parsed_flags.arguments += remaining_words
            break
        if word.startswith("--"):
            _parse_long_flag(word, remaining_words, flags, parsed_flags, removed_flags)
        elif word.startswith("-") and len(word) > 1:
            _parse_short_flags(word, remaining_words, flags_by_letter, parsed_flags)
        else:
            parsed_flags.arguments.append(word)
    return parsed_flags


def _parse_long_flag(
    word: str,
    remaining_words: list[str],
    flags: Mapping[str, Flag],
    parsed_flags: ParsedFlags,
    removed_flags: Mapping[str, str],
) -> None:
    written_name, separator, text = word[2:].partition("=")
    name = written_name.replace("_", "-")
    flag = flags.get(name)
    if not name or name[0] in "-=":
        raise FlagError(f"bad flag syntax: {word}")
    if flag is None:
        advice = removed_flags.get(name)
        suggestion = f"; {advice}" if advice else did_you_mean(name, flags).replace('"', '"--', 1)
        raise FlagError(f"unknown flag: --{written_name}{suggestion}")
    _set_value(flag, text if separator else _take_argument(flag, remaining_words, f"--{written_name}"), parsed_flags)


def _parse_short_flags(
    word: str, remaining_words: list[str], flags_by_letter: Mapping[str, Flag], parsed_flags: ParsedFlags
) -> None:
    letters = word[1:]
    while letters:
        letter, letters = letters[0], letters[1:]
        flag = flags_by_letter.get(letter)
        if flag is None:
            raise FlagError(f"unknown shorthand flag: '{letter}' in {word}; long flags begin with two dashes")
        if letters.startswith("="):
            _set_value(flag, letters[1:], parsed_flags)
            return
        if flag.type.value_without_argument is None:
            _set_value(flag, letters or _take_argument(flag, remaining_words, f"'{letter}' in {word}"), parsed_flags)
            return
        _set_value(flag, flag.type.value_without_argument, parsed_flags)


def _take_argument(flag: Flag, remaining_words: list[str], display_name: str) -> str:
    if flag.type.value_without_argument is not None:
        return flag.type.value_without_argument
    if not remaining_words:
        raise FlagError(f"flag needs an argument: {display_name}")
    return remaining_words.pop(0)


def _set_value(flag: Flag, text: str, parsed_flags: ParsedFlags) -> None:
    try:
        value = flag.type.parse(text)
    except ValueError as error:
        raise FlagError(f'invalid argument "{text}" for "{flag.display_name}" flag: {error}') from None
    if flag.type.repeatable and flag.name in parsed_flags.changed:
        value = (*parsed_flags.values[flag.name], *value)
    parsed_flags.values[flag.name] = value
    parsed_flags.changed.add(flag.name)


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
