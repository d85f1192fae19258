"""Command lines as Go's pflag reads them: `--name=value`, `--name value`, bare booleans, lists, `-v4`.

kube-scheduler is started by manifests that others wrote; what works there must mean the same here. Source: G.5.
"""

import ipaddress
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from extender.config import durations
from extender.config.faults import ConfigError, Fault
from extender.config.feature_flags import FALSE, TRUE
from extender.config.nearest import hint


class FlagError(ConfigError):
    """A command line that cannot be used; one fault."""

    def __init__(self, message: str) -> None:
        super().__init__([Fault("", message)])


@dataclass(frozen=True, slots=True)
class Value:
    """A kind of value.

    Attributes:
        word: what help calls it; empty for booleans.
        parse: from what is written; raises ValueError.
        render: to what the page `/flagz` shows.
        bare: what the flag alone stands for; None: it needs a value.
        many: repeating the flag adds to the value, a tuple.
    """

    word: str
    parse: Callable[[str], Any]
    render: Callable[[Any], str] = str
    bare: str | None = None
    many: bool = False


def _boolean(text: str) -> bool:
    if text not in TRUE | FALSE:
        raise ValueError("want true or false")
    return text in TRUE


def _whole(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        digits = text.removeprefix("-").removeprefix("+")
        if not (digits.isascii() and digits.isdigit()) or len(digits) > 20:
            raise ValueError("want a whole number")
        number = int(text)
        if not low <= number <= high:
            raise ValueError(f"want a number from {low} to {high}")
        return number

    return parse


def _decimal(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("want a number") from None


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text.strip()))
    except ValueError:
        raise ValueError(f'failed to parse IP: "{text}"') from None


def _list(text: str) -> tuple[str, ...]:
    return tuple(text.split(",")) if text else ()


def _render_list(values: Sequence[str]) -> str:
    return f"[{','.join(values)}]"


def _pairs(text: str) -> tuple[str, ...]:
    for item in _list(text):
        if "=" not in item:
            raise ValueError(f"{item} must be formatted as key=value")
    return _list(text)


BOOL: Final = Value("", _boolean, lambda on: str(on).lower(), bare="true")
STRING: Final = Value("string", str)
STRINGS: Final = Value("strings", _list, _render_list, many=True)
PAIRS: Final = Value("key=value,...", _pairs, _render_list, many=True)
INT: Final = Value("int", _whole(-(2**63), 2**63 - 1))
INT32: Final = Value("int32", _whole(-(2**31), 2**31 - 1))
LEVEL: Final = Value("level", _whole(0, 2**31 - 1))
FLOAT: Final = Value("float", _decimal, lambda number: f"{number:g}")
DURATION: Final = Value("duration", durations.parse, durations.render)
IP: Final = Value("ip", _address)
GATES: Final = Value("Gate=bool,...", lambda text: (text,), ",".join, many=True)


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag.

    Attributes:
        name: without dashes in front.
        kind: of its value.
        default: when it is not given.
        help: what it does.
        short: one letter, or empty.
        deprecated: what to do instead; empty if it is not deprecated.
        idle: why it changes nothing here; empty if it does.
    """

    name: str
    kind: Value
    default: Any
    help: str
    short: str = ""
    deprecated: str = ""
    idle: str = ""

    @property
    def shown(self) -> str:
        """As messages name it."""
        return f"-{self.short}, --{self.name}" if self.short else f"--{self.name}"


@dataclass(slots=True)
class Parsed:
    """A command line.

    Attributes:
        values: of every flag there is, by name.
        changed: names of those that were given.
        arguments: what is no flag.
    """

    values: dict[str, Any]
    changed: set[str] = field(default_factory=set)
    arguments: list[str] = field(default_factory=list)

    def __getitem__(self, name: str) -> Any:
        return self.values[name]


def parse(words: Sequence[str], flags: Mapping[str, Flag]) -> Parsed:
    """Read a command line.

    Args:
        words: without the command's name.
        flags: by name.

    Raises:
        FlagError: a flag is unknown, lacks its value, or has one that cannot be read.
    """
    parsed = Parsed({name: flag.default for name, flag in flags.items()})
    shorts = {flag.short: flag for flag in flags.values() if flag.short}
    left = list(words)
    while left:
        word = left.pop(0)
        if word == "--":
            parsed.arguments += left
            break
        if word.startswith("--"):
            _long(word, left, flags, parsed)
        elif word.startswith("-") and len(word) > 1:
            _short(word, left, shorts, parsed)
        else:
            parsed.arguments.append(word)
    return parsed


def _long(word: str, left: list[str], flags: Mapping[str, Flag], parsed: Parsed) -> None:
    written, separator, text = word[2:].partition("=")
    name = written.replace("_", "-")
    flag = flags.get(name)
    if not name or name[0] in "-=":
        raise FlagError(f"bad flag syntax: {word}")
    if flag is None:
        meant = hint(name, flags).replace('"', '"--', 1)
        raise FlagError(f"unknown flag: --{written}{meant}")
    _put(flag, text if separator else _next(flag, left, f"--{written}"), parsed)


def _short(word: str, left: list[str], shorts: Mapping[str, Flag], parsed: Parsed) -> None:
    letters = word[1:]
    while letters:
        letter, letters = letters[0], letters[1:]
        flag = shorts.get(letter)
        if flag is None:
            raise FlagError(f"unknown shorthand flag: '{letter}' in {word}; long flags begin with two dashes")
        if letters.startswith("="):
            _put(flag, letters[1:], parsed)
            return
        if flag.kind.bare is None:
            _put(flag, letters or _next(flag, left, f"'{letter}' in {word}"), parsed)
            return
        _put(flag, flag.kind.bare, parsed)


def _next(flag: Flag, left: list[str], shown: str) -> str:
    if flag.kind.bare is not None:
        return flag.kind.bare
    if not left:
        raise FlagError(f"flag needs an argument: {shown}")
    return left.pop(0)


def _put(flag: Flag, text: str, parsed: Parsed) -> None:
    try:
        value = flag.kind.parse(text)
    except ValueError as wrong:
        raise FlagError(f'invalid argument "{text}" for "{flag.shown}" flag: {wrong}') from None
    if flag.kind.many and flag.name in parsed.changed:
        value = (*parsed.values[flag.name], *value)
    parsed.values[flag.name] = value
    parsed.changed.add(flag.name)
