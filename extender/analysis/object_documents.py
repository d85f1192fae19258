"""Read the objects of a file one by one, from JSON or YAML, with several documents and nested Lists."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from extender.analysis.input_errors import InputErrorLine, SourceLocation, UnreadableError
from extender.analysis.yaml_documents import LocatedMapping, read_yaml_documents
from extender.config.model import KIND as CONFIG_KIND

_NULL: Final = msgspec.Raw(b"null")
_TRAILING_CHARACTERS: Final = re.compile(
    r"trailing characters \(byte (\d+)\)"
)  # the group is the position after the first trailing byte
_MAX_LISTS: Final = 100_000  # limits nested YAML aliases, whose expansion could exhaust the memory
_SEPARATOR: Final = b"---"
_SPACE: Final = b" \n\r\t"
_EXPECTATION: Final = "want a Kubernetes object or a List of them, with apiVersion and kind"


class _ObjectHead(msgspec.Struct, rename="camel"):
    """The fields of a JSON object that determine its type; all other fields are skipped."""

    kind: Any = None
    api_version: Any = None
    items: msgspec.Raw = _NULL
    config: msgspec.Raw = _NULL


_HEAD_DECODER: Final = msgspec.json.Decoder(_ObjectHead)
_ITEMS_DECODER: Final = msgspec.json.Decoder(list[msgspec.Raw])


@dataclass(frozen=True, slots=True)
class ObjectEntry:
    """One object of a file.

    Attributes:
        kind, version: the `kind` and `apiVersion` of the object, or else of its List.
        location: the position in the file.
        value: the JSON text, or the parsed YAML.
    """

    kind: str
    version: str
    location: SourceLocation
    value: msgspec.Raw | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """A KubeSchedulerConfiguration in a file, as plain values."""

    location: SourceLocation
    value: Any


def read_entries(data: bytes, source: str) -> Iterator[ObjectEntry | ConfigEntry | InputErrorLine]:
    """Yield the entries of a file in order; yield an error for an entry that is not an object.

    Args:
        data: the file's text in UTF-8, not empty.
        source: the file's name.

    Raises:
        UnreadableError: the remainder of the text cannot be parsed.
    """
    reader = _EntryReader(source)
    first_character = data.lstrip()[:1]
    if first_character in {b"{", b"["} and not _is_flow_yaml(data):
        yield from _read_json_documents(data, source, reader)
        return
    has_document = False
    for line, value in read_yaml_documents(data, source):
        has_document = True
        yield from reader.read_yaml(value, f"line {line}")
    if not has_document:
        raise UnreadableError(source, f"holds no object; {_EXPECTATION}")


def _is_flow_yaml(data: bytes) -> bool:
    """Return whether an unquoted word follows the first brace, which only YAML allows."""
    next_character = data.lstrip()[1:].lstrip()[:1]
    return next_character not in {b'"', b"}", b"{", b"[", b"]", b""}


def _read_json_documents(
    data: bytes, source: str, reader: "_EntryReader"
) -> Iterator[ObjectEntry | ConfigEntry | InputErrorLine]:
    remaining, document_number = memoryview(data), 1
    while True:
        end = _find_document_end(remaining, data, source)
        # Copy the bytes: msgspec.Raw does not preserve the bounds of a memoryview.
        text = msgspec.Raw(data if end == len(data) else bytes(remaining[:end]))
        yield from reader.read_json(
            text, "" if document_number == 1 and end == len(remaining) else f"document {document_number}"
        )
        remaining, document_number = _skip_separators(remaining, end), document_number + 1
        if not remaining:
            return


def _skip_separators(remaining: memoryview, end: int) -> memoryview:
    """Return the data after a document, without leading white space and YAML separators."""
    while end < len(remaining):
        if remaining[end] in _SPACE:
            end += 1
        elif bytes(remaining[end : end + 3]) == _SEPARATOR:
            end += 3
        else:
            break
    return remaining[end:]


def _find_document_end(remaining: memoryview, data: bytes, source: str) -> int:
    """Return the end of the first document in *remaining*, which is the last part of *data*.

    Raises:
        UnreadableError: the document is malformed, nested too deeply, or truncated.
    """
    try:
        msgspec.json.decode(remaining, type=msgspec.Raw)
    except RecursionError as error:
        raise UnreadableError(source, "nested too deeply; no Kubernetes object is") from error
    except msgspec.DecodeError as error:
        trailing_match = _TRAILING_CHARACTERS.search(str(error))
        if trailing_match is None:
            raise _make_json_error(remaining, data, source, str(error)) from error
        return int(trailing_match[1]) - 1
    return len(remaining)


def _make_json_error(remaining: memoryview, data: bytes, source: str, message: str) -> UnreadableError:
    """Return the error of the standard library's parser, which has a line number, or else *message* of msgspec."""
    text = bytes(remaining).decode().rstrip()
    try:
        json.loads(text)
    except RecursionError:
        return UnreadableError(source, "nested too deeply; no Kubernetes object is")
    except json.JSONDecodeError as error:
        line = data.count(b"\n", 0, len(data) - len(remaining)) + error.lineno
        if error.pos >= len(text):
            return UnreadableError(source, "broken JSON: it ends too early; was it cut short?", f"line {line}")
        return UnreadableError(source, f"broken JSON: {error.msg} (column {error.colno})", f"line {line}")
    return UnreadableError(source, f"broken JSON: {message}")


class _EntryReader:
    """Reads the objects of one file, Lists included."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._list_count = 0

    def read_json(self, text: msgspec.Raw, position: str, kind: str = "", version: str = "") -> Iterator[Any]:
        """Yield the entries of a JSON object; *kind* and *version* are the defaults for objects without them."""
        try:
            head = _HEAD_DECODER.decode(text)
        except msgspec.ValidationError:
            yield self._make_not_an_object_error(position, msgspec.json.decode(text))
            return
        kind_and_version = self._parse_kind_and_version(position, head.kind or kind, head.api_version or version)
        if isinstance(kind_and_version, InputErrorLine):
            yield kind_and_version
            return
        if _is_list(kind_and_version[0], head.items is not _NULL):
            yield from self._read_config(position, msgspec.json.decode(head.config))
            try:
                items = _ITEMS_DECODER.decode(head.items) if bytes(head.items) != b"null" else []
            except msgspec.ValidationError:
                yield self._make_error(position, "items: want a list of objects")
                return
            inherited = _get_item_kind_and_version(*kind_and_version)
            for index, item in enumerate(items):
                yield from self.read_json(item, self._make_item_position(position, index), *inherited)
        elif kind_and_version[0] == CONFIG_KIND:
            yield from self._read_config(position, msgspec.json.decode(text))
        else:
            yield ObjectEntry(*kind_and_version, SourceLocation(self._source, position), text)

    def read_yaml(self, value: Any, position: str, kind: str = "", version: str = "") -> Iterator[Any]:
        """Yield the entries of a YAML object; arguments as for `read_json`."""
        if not isinstance(value, dict):
            yield self._make_not_an_object_error(position, value)
            return
        kind_and_version = self._parse_kind_and_version(
            position, value.get("kind") or kind, value.get("apiVersion") or version
        )
        if isinstance(kind_and_version, InputErrorLine):
            yield kind_and_version
            return
        if _is_list(kind_and_version[0], "items" in value):
            yield from self._read_config(position, value.get("config"))
            items = value.get("items") or []
            if not isinstance(items, list):
                yield self._make_error(position, "items: want a list of objects")
                return
            inherited = _get_item_kind_and_version(*kind_and_version)
            for index, item in enumerate(items):
                item_position = (
                    f"line {item.line}"
                    if isinstance(item, LocatedMapping)
                    else self._make_item_position(position, index)
                )
                yield from self.read_yaml(item, item_position, *inherited)
        elif kind_and_version[0] == CONFIG_KIND:
            yield from self._read_config(position, value)
        else:
            yield ObjectEntry(*kind_and_version, SourceLocation(self._source, position), value)

    def _parse_kind_and_version(self, position: str, kind: Any, version: Any) -> tuple[str, str] | InputErrorLine:
        if not isinstance(kind, str) or not isinstance(version, str):
            return self._make_error(position, "kind and apiVersion: want text")
        if not kind:
            return self._make_error(position, f"kind: is missing; {_EXPECTATION}")
        if not version:
            return self._make_error(
                position, f"apiVersion: is missing in this {kind}; write it, such as apiVersion: v1"
            )
        return kind, version

    def _make_item_position(self, position: str, index: int) -> str:
        return f"{position}.items[{index}]" if position else f"items[{index}]"

    def _read_config(self, position: str, value: Any) -> Iterator[ConfigEntry]:
        self._list_count += 1
        if self._list_count > _MAX_LISTS:
            message = f"more than {_MAX_LISTS} Lists; is there an alias of a List inside it?"
            raise UnreadableError(self._source, message, position)
        if value is not None:
            yield ConfigEntry(SourceLocation(self._source, position), value)

    def _make_not_an_object_error(self, position: str, value: Any) -> InputErrorLine:
        type_names = {
            list: "a list",
            str: "text",
            bool: "a boolean",
            int: "a number",
            float: "a number",
            type(None): "null",
        }
        return self._make_error(position, f"is {type_names.get(type(value), 'something else')}; {_EXPECTATION}")

    def _make_error(self, position: str, message: str) -> InputErrorLine:
        return InputErrorLine(SourceLocation(self._source, position), message)


def _is_list(kind: str, has_items: bool) -> bool:
    return kind == "List" or (kind.endswith("List") and has_items)


def _get_item_kind_and_version(kind: str, version: str) -> tuple[str, str]:
    """Return the default kind and version of the items: items of a NodeList are Nodes."""
    return (kind.removesuffix("List"), version) if kind != "List" else ("", "")
