"""YAML to plain values, document by document, with the line each object begins in.

PyYAML's own construction recurses, so that a deeply nested file ends the process where libyaml is used. Here libyaml
only cuts the text into events, which are put together without recursion; that is also what is fast.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

import yaml

from extender.config.documents import INTEGER, NUMBER, bounded
from extender.offline.faults import UnreadableError

_MOST_LEVELS: Final = 500
_PREFIX: Final = "tag:yaml.org,2002:"
_MERGE: Final = "<<"
_TAGGED: Final = {"int": (int,), "float": (int, float), "bool": (bool,), "null": (type(None),)}
_PARSER: Final[type[Any]] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Located(dict[str, Any]):
    """An object of a document.

    Attributes:
        line: where it begins, from 1.
    """

    __slots__ = ("line",)

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line


def documents(data: bytes, source: str) -> Iterator[tuple[int, Any]]:
    """The line and the value of each document that is not empty.

    Raises:
        UnreadableError: broken YAML, an unknown tag or alias, a key that is no text, too many levels; says where.
    """
    builder = _Builder(source)
    try:
        for event in bounded(yaml.parse(data, Loader=_PARSER), _MOST_LEVELS):
            if isinstance(event, yaml.DocumentStartEvent):
                builder = _Builder(source)
            elif isinstance(event, yaml.DocumentEndEvent):
                if builder.root is not None:
                    yield builder.line, builder.root
            else:
                builder.take(event)
    except yaml.MarkedYAMLError as fault:
        mark = fault.problem_mark if fault.problem_mark is not None else fault.context_mark
        position = f"line {mark.line + 1}" if mark else ""
        what = " ".join(part for part in (fault.context, fault.problem) if part)
        raise UnreadableError(source, f"broken YAML: {what}", position) from fault
    except yaml.reader.ReaderError as fault:
        line = data.decode()[: fault.position].count("\n") + 1
        raise UnreadableError(source, f"broken YAML: {fault.reason}", f"line {line}") from fault


class _Builder:
    """One document being put together.

    Attributes:
        root: the value, None until there is one.
        line: where it begins.
    """

    def __init__(self, source: str) -> None:
        self.root: Any = None
        self.line = 1
        self._source = source
        self._open: list[Any] = []
        self._keys: list[Any] = []
        self._anchors: dict[str, Any] = {}

    def take(self, event: Any) -> None:
        """Goes on with the next event."""
        match event:
            case yaml.ScalarEvent():
                self._put(event, self._scalar(event))
            case yaml.MappingStartEvent():
                self._begin(event, Located(_line(event)))
            case yaml.SequenceStartEvent():
                self._begin(event, [])
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self._open.pop()
                self._keys.pop()
            case yaml.AliasEvent():
                if event.anchor not in self._anchors:
                    raise self._fault(event, f"unknown alias *{event.anchor}; define it before with &{event.anchor}")
                self._put(event, self._anchors[event.anchor])

    def _begin(self, event: Any, container: Any) -> None:
        wanted = "map" if isinstance(container, dict) else "seq"
        if event.tag not in (None, "!", f"{_PREFIX}{wanted}"):
            raise self._fault(event, f"unknown tag {event.tag}; leave it out")
        self._put(event, container)
        self._open.append(container)
        self._keys.append(None)

    def _put(self, event: Any, value: Any) -> None:
        if getattr(event, "anchor", None) and not isinstance(event, yaml.AliasEvent):
            self._anchors[event.anchor] = value
        if not self._open:
            self.root, self.line = value, _line(event)
            return
        inside = self._open[-1]
        if isinstance(inside, list):
            inside.append(value)
        elif self._keys[-1] is None:
            if isinstance(value, dict | list) or value is None:
                raise self._fault(event, "a key must be text")
            self._keys[-1] = value if isinstance(value, str) else _as_text(value)
        else:
            key, self._keys[-1] = self._keys[-1], None
            if key == _MERGE:
                self._merge(event, inside, value)
            else:
                inside[key] = value

    def _merge(self, event: Any, inside: dict[str, Any], value: Any) -> None:
        for part in value if isinstance(value, list) else [value]:
            if not isinstance(part, dict):
                raise self._fault(event, f"{_MERGE} wants an object")
            for key, inner in part.items():
                inside.setdefault(key, inner)

    def _scalar(self, event: Any) -> Any:
        tag, text = event.tag, event.value
        if tag is None:
            return _plain(text) if event.implicit[0] else text
        if tag in {"!", f"{_PREFIX}str", f"{_PREFIX}binary"}:
            return text
        made = _plain(text)
        if type(made) not in _TAGGED.get(tag.removeprefix(_PREFIX), ()):
            raise self._fault(event, f"{text!r} has the tag {tag}, which does not suit it; leave the tag out")
        return made

    def _fault(self, event: Any, message: str) -> UnreadableError:
        return UnreadableError(self._source, message, f"line {_line(event)}")


def _line(event: Any) -> int:
    """The line an event begins in, from 1."""
    return int(event.start_mark.line) + 1


def _as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


_WORDS: Final[dict[str, bool | None]] = {
    spelling: value
    for word, value in {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}.items()
    for spelling in (word, word.capitalize(), word.upper())
} | dict.fromkeys(("", "~", "null", "Null", "NULL"))
_MOST_DIGITS: Final = 4000  # Python reads no longer integers


@lru_cache(maxsize=65536)
def _plain(text: str) -> bool | int | float | str | None:
    """A bare scalar as Kubernetes reads it: words for truth, numbers, and text; dates are text."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789" or len(text) > _MOST_DIGITS:
        return text
    if INTEGER.match(text):
        digits = text.replace("_", "").lower()
        plain = digits.lstrip("+-")
        old_octal = len(plain) > 1 and plain.startswith("0") and plain.isdigit()
        try:
            return int(digits, 8 if old_octal else 0)
        except ValueError:  # such as `0x_`
            return text
    return float(text.lower().replace(".inf", "inf").replace(".nan", "nan")) if NUMBER.match(text) else text
