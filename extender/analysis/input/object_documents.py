"""Read the objects of a JSON or YAML file one by one. A file may contain several documents and nested Lists."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from extender.analysis.input.input_errors import InputErrorLine, SourceLocation, UnreadableError
from extender.analysis.input.yaml_documents import LocatedMapping, make_document_limit_error, read_yaml_documents
from extender.answers.schema_version import MAJOR_VERSION, is_readable
from extender.api.codec import find_document_end, find_lone_surrogate
from extender.basics.input_limits import MAX_DOCUMENTS
from extender.config.model import KIND as CONFIG_KIND

_NULL: Final = msgspec.Raw(b"null")
# Only YAML allows an unquoted word after the first brace or bracket.
_JSON_START: Final = re.compile(rb'\s*[{\[]\s*(?:["{}\[\]]|\Z)', re.DOTALL)
_MAX_LISTS: Final = 100_000  # limits nested YAML aliases, whose expansion could exhaust the memory
_MAX_KIND_LENGTH: Final = 63  # as in a custom resource definition
_MAX_VERSION_LENGTH: Final = 253 + 1 + 63  # a group, a slash and a version
_SEPARATOR: Final = b"---"
_SPACE: Final = b" \n\r\t"
_EXPECTATION: Final = "want a Kubernetes object or a List of them, with apiVersion and kind"


class _ObjectHead(msgspec.Struct, rename="camel"):
    """The fields of an object that this module reads; the decoder of JSON skips all other fields.

    All fields except `kind` and `apiVersion` are used only for Lists. Those of parsed YAML are plain values.
    """

    kind: Any = None
    api_version: Any = None
    items: msgspec.Raw = _NULL
    config: msgspec.Raw = _NULL
    recorded_kinds: Any = None
    unreadable_kinds: Any = None
    kubernetes_version: Any = None
    schema_version: Any = None


_HEAD_DECODER: Final = msgspec.json.Decoder(_ObjectHead)
_ITEMS_DECODER: Final = msgspec.json.Decoder(list[msgspec.Raw])


@dataclass(frozen=True, slots=True)
class ObjectEntry:
    """One object of a file.

    Attributes:
        kind, version: the `kind` and `apiVersion` of the object, or else those that its List gives to all items.
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


@dataclass(frozen=True, slots=True)
class RecordedKinds:
    """The kinds that a List contains completely, even if it has no object of them.

    Attributes:
        unreadable: the kinds that could not be read, with the reason.
    """

    kinds: tuple[str, ...]
    unreadable: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RecordedVersion:
    """The version of the API server from which a List was recorded, such as `v1.37.2`."""

    kubernetes_version: str


Entry = ObjectEntry | ConfigEntry | RecordedKinds | RecordedVersion | InputErrorLine
"""One entry of a file."""


class NoObjectError(UnreadableError):
    """The exception for a file that has only comments and empty documents. Such a file of a directory is skipped.

    Source: cli-runtime/pkg/resource/visitor.go, StreamVisitor.Visit (1.36).
    """


def read_entries(data: bytes, source: str) -> Iterator[Entry]:
    """Yield the entries of a file in order. An entry that is not an object is yielded as an error.

    *data* is the file's text in UTF-8, not empty; *source* is the file's name.

    Raises:
        NoObjectError: the text has only comments and empty documents.
        UnreadableError: the remainder of the text cannot be parsed.
    """
    reader = _EntryReader(source)
    if _JSON_START.match(data):
        yield from _read_json_documents(data, source, reader)
        return
    has_document = False
    for line, value in read_yaml_documents(data, source):
        has_document = True
        yield from reader.read(value, f"line {line}")
    if not has_document:
        raise NoObjectError(source, f"holds no object; {_EXPECTATION}")


def _read_json_documents(data: bytes, source: str, reader: "_EntryReader") -> Iterator[Entry]:
    remaining, document_number = memoryview(data), 1
    while True:
        if document_number > MAX_DOCUMENTS:
            raise make_document_limit_error(source, f"document {document_number}")
        end = _find_document_end(remaining, data, source)
        # Copy the bytes: msgspec.Raw does not preserve the bounds of a memoryview.
        text = msgspec.Raw(data if end == len(data) else bytes(remaining[:end]))
        yield from reader.read(
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
        return find_document_end(remaining)
    except RecursionError as error:
        raise UnreadableError(source, "is nested more deeply than any Kubernetes object") from error
    except msgspec.DecodeError as error:
        raise _make_json_error(remaining, data, source, str(error)) from error


def _make_json_error(remaining: memoryview, data: bytes, source: str, message: str) -> UnreadableError:
    """Return the error of the standard library's parser, which has a line number.

    If that parser accepts the text, return an error with msgspec's *message*.
    """
    text = bytes(remaining).decode().rstrip()
    try:
        json.loads(text)
    except RecursionError:
        return UnreadableError(source, "is nested more deeply than any Kubernetes object")
    except json.JSONDecodeError as error:
        start = len(data) - len(remaining)
        line = data.count(b"\n", 0, start) + error.lineno
        line_start = data.rfind(b"\n", 0, start) + 1
        column = error.colno + (len(data[line_start:start].decode()) if error.lineno == 1 else 0)
        if error.pos >= len(text):
            return UnreadableError(source, "broken JSON: it ends too early; was it cut short?", f"line {line}")
        return UnreadableError(source, f"broken JSON: {error.msg} (column {column})", f"line {line}")
    position = find_lone_surrogate(data[len(data) - len(remaining) :])
    if position is not None:
        position += len(data) - len(remaining)
        escape, line = data[position : position + len("\\uXXXX")].decode(), data.count(b"\n", 0, position) + 1
        return UnreadableError(source, f"broken JSON: {escape} is half of a surrogate pair; remove it", f"line {line}")
    return UnreadableError(source, f"broken JSON: {message}")


class _EntryReader:
    """Reads the objects of one file, including the items of Lists."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._list_count = 0

    def read(self, value: msgspec.Raw | Any, position: str, kind: str = "", version: str = "") -> Iterator[Entry]:
        """Yield the entries of an object. *kind* and *version* are used if the object has none.

        Args:
            value: the JSON text, or the parsed YAML.
            position: the position in the file.
            kind: the kind that the List of the object gives to its items; empty without one.
            version: the apiVersion that this List gives; empty without one.

        Raises:
            UnreadableError: a number is out of range, or there are too many Lists.
        """
        head = _read_head(value)
        if head is None:
            yield self._make_not_an_object_error(position, self._decode(position, value))
            return
        kind_and_version = self._parse_kind_and_version(position, head.kind or kind, head.api_version or version)
        if isinstance(kind_and_version, InputErrorLine):
            yield kind_and_version
        elif kind_and_version[0] == "List" or (kind_and_version[0].endswith("List") and head.items is not _NULL):
            yield from self._read_list(head, position, *kind_and_version)
        elif kind_and_version[0] == CONFIG_KIND:
            yield from self._read_config(position, self._decode(position, value))
        else:
            yield ObjectEntry(*kind_and_version, SourceLocation(self._source, position), value)

    def _read_list(self, head: _ObjectHead, position: str, kind: str, version: str) -> Iterator[Entry]:
        self._list_count += 1
        if self._list_count > _MAX_LISTS:
            message = f"has more than {_MAX_LISTS} Lists; are Lists nested through YAML aliases?"
            raise UnreadableError(self._source, message, position)
        yield from self._read_config(position, self._decode(position, head.config))
        yield from self._read_recorded_kinds(position, kind, head.recorded_kinds, head.unreadable_kinds)
        yield from self._read_recorded_version(position, head.kubernetes_version)
        yield from self._check_schema_version(position, head.schema_version)
        items = _list_items(head.items)
        if items is None:
            yield self._make_error(position, "items: want a list of objects")
            return
        # The items of a NodeList are Nodes, also without their kind.
        item_kind_and_version = (kind.removesuffix("List"), version) if kind != "List" else ("", "")
        for index, item in enumerate(items):
            item_position = f"{position}.items[{index}]" if position else f"items[{index}]"
            if isinstance(item, LocatedMapping):
                item_position = f"line {item.line}"
            yield from self.read(item, item_position, *item_kind_and_version)

    def _decode(self, position: str, value: msgspec.Raw | Any) -> Any:
        """Decode a JSON value to plain values; parsed YAML stays as it is."""
        if not isinstance(value, msgspec.Raw):
            return value
        try:
            return msgspec.json.decode(value)
        except msgspec.DecodeError as error:
            raise UnreadableError(self._source, f"broken JSON: {error}", position) from error

    def _parse_kind_and_version(self, position: str, kind: Any, version: Any) -> tuple[str, str] | InputErrorLine:
        if not isinstance(kind, str) or not isinstance(version, str):
            return self._make_error(position, "kind and apiVersion: want text")
        if not kind:
            return self._make_error(position, f"kind: is missing; {_EXPECTATION}")
        if len(kind) > _MAX_KIND_LENGTH or len(version) > _MAX_VERSION_LENGTH:
            limits = f"at most {_MAX_KIND_LENGTH} and {_MAX_VERSION_LENGTH} characters"
            return self._make_error(position, f"kind and apiVersion: too long; want {limits}")
        if not version:
            return self._make_error(
                position, f"apiVersion: is missing in this {kind}; add it, for example apiVersion: v1"
            )
        return kind, version

    def _read_config(self, position: str, value: Any) -> Iterator[ConfigEntry]:
        if value is not None:
            yield ConfigEntry(SourceLocation(self._source, position), value)

    def _read_recorded_kinds(
        self, position: str, list_kind: str, kinds: Any, unreadable_kinds: Any
    ) -> Iterator[RecordedKinds | InputErrorLine]:
        """Yield the kinds that `extender record` names in a List, or the kind of the items of a typed List."""
        if list_kind != "List":
            yield RecordedKinds((list_kind.removesuffix("List"),), {})
        if kinds is not None and not _are_texts(kinds, list):
            yield self._make_error(position, "recordedKinds: want a list of kinds")
        elif unreadable_kinds is not None and not (
            _are_texts(unreadable_kinds, dict) and _are_texts(list(unreadable_kinds.values()), list)
        ):
            yield self._make_error(position, "unreadableKinds: want a mapping of kinds to reasons")
        elif kinds is not None or unreadable_kinds is not None:
            yield RecordedKinds(tuple(kinds or ()), unreadable_kinds or {})

    def _read_recorded_version(self, position: str, version: Any) -> Iterator[RecordedVersion | InputErrorLine]:
        """Yield the version that `extender record` writes to a List."""
        if isinstance(version, str):
            yield RecordedVersion(version)
        elif version is not None:
            yield self._make_error(position, "kubernetesVersion: want text")

    def _check_schema_version(self, position: str, version: Any) -> Iterator[InputErrorLine]:
        """Yield an error for a recording whose major version this program does not read. Old ones have no version."""
        if version is not None and not (isinstance(version, str) and is_readable(version)):
            message = f'schemaVersion: "{version}" is not readable; want {MAJOR_VERSION}.x, or use a newer extender'
            yield self._make_error(position, message)

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


def _read_head(value: msgspec.Raw | Any) -> _ObjectHead | None:
    """Return the head of an object; None if *value* is no object."""
    if not isinstance(value, msgspec.Raw):
        if not isinstance(value, dict):
            return None
        fields = msgspec.structs.fields(_ObjectHead)
        return _ObjectHead(**{field.name: value[field.encode_name] for field in fields if field.encode_name in value})
    try:
        return _HEAD_DECODER.decode(value)
    except msgspec.ValidationError:
        return None


def _list_items(items: msgspec.Raw | Any) -> list[Any] | None:
    """Return the items of a List; None if they are no list."""
    if not isinstance(items, msgspec.Raw):
        return (items or []) if isinstance(items or [], list) else None
    try:
        return _ITEMS_DECODER.decode(items) if bytes(items) != b"null" else []
    except msgspec.ValidationError:
        return None


def _are_texts(values: Any, container: type[list[Any]] | type[dict[Any, Any]]) -> bool:
    return isinstance(values, container) and all(isinstance(value, str) for value in values)
