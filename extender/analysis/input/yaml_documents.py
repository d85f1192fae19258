"""Parse YAML documents to plain values, and record the first line of each object.

The values are built from libyaml's events without recursion. PyYAML's own constructor is slower.
It is also recursive: a deeply nested file can crash the process.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

import yaml

from extender.analysis.input.input_errors import UnreadableError
from extender.basics.input_limits import (
    MAX_DIGITS,
    MAX_DOCUMENTS,
    MAX_RECORDING_DEPTH,
    MAX_YAML_BYTES,
    MAX_YAML_EVENTS,
    format_size,
    shorten,
)
from extender.config.documents import (
    BOOLEANS,
    INTEGER,
    NUMBER,
    check_tag_directives,
    describe_invalid_start,
    is_invalid_start,
    limit_events,
    parse_number,
)

_MAX_KEY_LENGTH: Final = 63
_TAG_PREFIX: Final = "tag:yaml.org,2002:"
_MAX_INTEGER: Final = 2**63
_MERGE_KEY: Final = "<<"
_TYPES_BY_TAG: Final = {"int": (int,), "float": (int, float), "bool": (bool,), "null": (type(None),)}
_PARSER: Final[type[Any]] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class LocatedMapping(dict[str, Any]):
    """A YAML mapping with the line on which it begins.

    Attributes:
        line: the first line of the mapping, from 1.
    """

    __slots__ = ("line",)

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line


def read_yaml_documents(data: bytes, source: str) -> Iterator[tuple[int, Any]]:
    """Yield the first line and the value of each document that is not empty.

    Raises:
        UnreadableError: malformed YAML, an unknown tag or alias, a key that is not text, a duplicate key, or an
            exceeded limit of `input_limits`.
    """
    if len(data) > MAX_YAML_BYTES:
        raise UnreadableError(source, f"has more than {format_size(MAX_YAML_BYTES)} of YAML; write it with -o json")
    builder = _DocumentBuilder(source)
    document_count = 0
    try:
        check_tag_directives(data)
        events = limit_events(yaml.parse(data, Loader=_PARSER), MAX_RECORDING_DEPTH)
        for event_count, event in enumerate(events, start=1):
            if event_count > MAX_YAML_EVENTS:
                message = "has too many values for YAML; write it with -o json"
                raise UnreadableError(source, message, f"line {_get_line(event)}")
            if isinstance(event, yaml.DocumentStartEvent):
                builder = _DocumentBuilder(source)
                document_count += 1
                if document_count > MAX_DOCUMENTS:
                    raise make_document_limit_error(source, f"line {_get_line(event)}")
            elif isinstance(event, yaml.DocumentEndEvent):
                if builder.root is not None:
                    yield builder.line, builder.root
            else:
                builder.add_event(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark if error.problem_mark is not None else error.context_mark
        position = f"line {mark.line + 1}" if mark else ""
        message = " ".join(part for part in (error.context, error.problem) if part)
        if mark and is_invalid_start(error):
            message = describe_invalid_start(data.decode(), mark)
        raise UnreadableError(source, f"broken YAML: {message}", position) from error
    except yaml.reader.ReaderError as error:
        line = data.decode()[: error.position].count("\n") + 1
        raise UnreadableError(source, f"broken YAML: {error.reason}", f"line {line}") from error


def make_document_limit_error(source: str, position: str) -> UnreadableError:
    """Return the error for a file with more than `MAX_DOCUMENTS` documents."""
    return UnreadableError(source, f"more than {MAX_DOCUMENTS} documents; write the objects as one List", position)


class _DocumentBuilder:
    """Builds the value of one document from the parser's events.

    Attributes:
        root: the value; None before the first event.
        line: the first line of the value.
    """

    def __init__(self, source: str) -> None:
        self.root: Any = None
        self.line = 1
        self._source = source
        self._open_containers: list[Any] = []
        self._pending_keys: list[Any] = []
        self._anchors: dict[str, Any] = {}
        self._merged_keys: dict[int, set[str]] = {}  # by the id of the container, which the document keeps alive

    def add_event(self, event: Any) -> None:
        match event:
            case yaml.ScalarEvent():
                self._add_value(event, self._parse_scalar(event))
            case yaml.MappingStartEvent():
                self._open_container(event, LocatedMapping(_get_line(event)))
            case yaml.SequenceStartEvent():
                self._open_container(event, [])
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self._open_containers.pop()
                self._pending_keys.pop()
            case yaml.AliasEvent():
                if event.anchor not in self._anchors:
                    raise self._make_error(
                        event, f"unknown alias *{event.anchor}; define it before with &{event.anchor}"
                    )
                self._add_value(event, self._anchors[event.anchor])

    def _open_container(self, event: Any, container: Any) -> None:
        expected_tag = "map" if isinstance(container, dict) else "seq"
        if event.tag not in (None, "!", f"{_TAG_PREFIX}{expected_tag}"):
            raise self._make_error(event, f"unknown tag {event.tag}; leave it out")
        self._add_value(event, container)
        self._open_containers.append(container)
        self._pending_keys.append(None)

    def _add_value(self, event: Any, value: Any) -> None:
        if getattr(event, "anchor", None) and not isinstance(event, yaml.AliasEvent):
            self._anchors[event.anchor] = value
        if not self._open_containers:
            self.root, self.line = value, _get_line(event)
            return
        container = self._open_containers[-1]
        if isinstance(container, list):
            container.append(value)
        elif self._pending_keys[-1] is None:
            if isinstance(value, dict | list) or value is None:
                raise self._make_error(event, "a key must be text")
            self._pending_keys[-1] = value if isinstance(value, str) else _format_key(value)
        else:
            key, self._pending_keys[-1] = self._pending_keys[-1], None
            if key == _MERGE_KEY:
                self._merge(event, container, value)
            else:
                self._check_duplicate_key(event, container, key)
                container[key] = value

    def _check_duplicate_key(self, event: Any, container: dict[str, Any], key: str) -> None:
        """Raise an error if *key* has a value already. A merged value may be replaced."""
        if key in container:
            merged_keys = self._merged_keys.get(id(container), set())
            if key not in merged_keys:
                message = f'duplicate key "{shorten(key, _MAX_KEY_LENGTH)}"; keep one of them'
                raise self._make_error(event, message)
            merged_keys.discard(key)

    def _merge(self, event: Any, container: dict[str, Any], value: Any) -> None:
        for merged_mapping in value if isinstance(value, list) else [value]:
            if not isinstance(merged_mapping, dict):
                raise self._make_error(event, f"{_MERGE_KEY} wants an object")
            merged_keys = self._merged_keys.setdefault(id(container), set())
            for key, merged_value in merged_mapping.items():
                if key not in container:
                    container[key] = merged_value
                    merged_keys.add(key)

    def _parse_scalar(self, event: Any) -> Any:
        tag, text = event.tag, event.value
        if tag is None:
            return _parse_plain_scalar(text) if event.implicit[0] else text
        if tag in {"!", f"{_TAG_PREFIX}str", f"{_TAG_PREFIX}binary"}:
            return text
        value = _parse_plain_scalar(text)
        if type(value) not in _TYPES_BY_TAG.get(tag.removeprefix(_TAG_PREFIX), ()):
            raise self._make_error(event, f"{text!r} has the tag {tag}, which does not suit it; leave the tag out")
        return value

    def _make_error(self, event: Any, message: str) -> UnreadableError:
        return UnreadableError(self._source, message, f"line {_get_line(event)}")


def _get_line(event: Any) -> int:
    """Return the first line of an event, from 1."""
    return int(event.start_mark.line) + 1


def _format_key(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


_LITERALS: Final[dict[str, bool | None]] = {
    spelling: value for word, value in BOOLEANS.items() for spelling in (word, word.capitalize(), word.upper())
} | dict.fromkeys(("", "~", "null", "Null", "NULL"))


@lru_cache(maxsize=65536)
def _parse_plain_scalar(text: str) -> bool | int | float | str | None:
    """Parse a plain scalar as Kubernetes does: to a boolean, a number, None or a string. A date stays a string."""
    if text in _LITERALS:
        return _LITERALS[text]
    if text[0] not in "+-.0123456789" or len(text) > MAX_DIGITS:
        return text
    if INTEGER.match(text):
        digits = text.replace("_", "").lower()
        unsigned_digits = digits.lstrip("+-")
        is_octal = len(unsigned_digits) > 1 and unsigned_digits.startswith("0") and unsigned_digits.isdigit()
        try:
            return int(digits, 8 if is_octal else 0)
        except ValueError:  # such as `0x_`
            return text
    number = parse_number(text) if NUMBER.match(text) else text
    # kubectl writes `1.0` as the JSON number 1, which is an integer.
    return int(number) if isinstance(number, float) and number.is_integer() and abs(number) < _MAX_INTEGER else number
