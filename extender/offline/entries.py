"""The objects in a file one by one: out of JSON, YAML, many documents, and Lists of any depth."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from extender.config.model import KIND as CONFIG_KIND
from extender.offline.faults import InputFault, Place, UnreadableError
from extender.offline.yaml_documents import Located, documents

_NOTHING: Final = msgspec.Raw(b"null")
_TRAILING: Final = re.compile(r"trailing characters \(byte (\d+)\)")  # the byte after the first of them
_MOST_LISTS: Final = 100_000  # Lists in Lists; aliases of aliases could unfold into more than any memory
_SEPARATOR: Final = b"---"
_SPACE: Final = b" \n\r\t"
_WANTED: Final = "want a Kubernetes object or a List of them, with apiVersion and kind"


class _Head(msgspec.Struct, rename="camel"):
    """The start of an object in JSON; everything else is skipped, not read."""

    kind: Any = None
    api_version: Any = None
    items: msgspec.Raw = _NOTHING
    config: msgspec.Raw = _NOTHING


_HEAD: Final = msgspec.json.Decoder(_Head)
_ITEMS: Final = msgspec.json.Decoder(list[msgspec.Raw])


@dataclass(frozen=True, slots=True)
class Entry:
    """One object as it stands in a file.

    Attributes:
        kind, version: its `kind` and `apiVersion`, from its List where it has none of its own.
        place: where it stands.
        value: its JSON, or what YAML made of it.
    """

    kind: str
    version: str
    place: Place
    value: msgspec.Raw | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """A KubeSchedulerConfiguration that a file carries, as plain values."""

    place: Place
    value: Any


def entries(data: bytes, source: str) -> Iterator[Entry | ConfigEntry | InputFault]:
    """What is in the file, in order; what is no object comes as a fault, and reading goes on.

    Args:
        data: UTF-8 text that is not empty.
        source: the file's name.

    Raises:
        UnreadableError: the text is broken from here on.
    """
    walk = _Walk(source)
    start = data.lstrip()[:1]
    if start in {b"{", b"["} and not _is_flow_yaml(data):
        yield from _of_json(data, source, walk)
        return
    found = False
    for line, value in documents(data, source):
        found = True
        yield from walk.value(value, f"line {line}")
    if not found:
        raise UnreadableError(source, f"holds no object; {_WANTED}")


def _is_flow_yaml(data: bytes) -> bool:
    """Whether an opening brace is followed by a bare word, which only YAML allows."""
    inside = data.lstrip()[1:].lstrip()[:1]
    return inside not in {b'"', b"}", b"{", b"[", b"]", b""}


def _of_json(data: bytes, source: str, walk: "_Walk") -> Iterator[Entry | ConfigEntry | InputFault]:
    rest, number = memoryview(data), 1
    while True:
        end = _end(rest, data, source)
        # A copy, since Raw forgets that a view is a part of its bytes.
        text = msgspec.Raw(data if end == len(data) else bytes(rest[:end]))
        yield from walk.json(text, "" if number == 1 and end == len(rest) else f"document {number}")
        rest, number = _after(rest, end), number + 1
        if not rest:
            return


def _after(rest: memoryview, end: int) -> memoryview:
    """What follows a document, without space and YAML separators."""
    while end < len(rest):
        if rest[end] in _SPACE:
            end += 1
        elif bytes(rest[end : end + 3]) == _SEPARATOR:
            end += 3
        else:
            break
    return rest[end:]


def _end(rest: memoryview, data: bytes, source: str) -> int:
    """Where the first document of `rest`, the end of `data`, ends.

    Raises:
        UnreadableError: it is broken, nested too deeply, or cut short.
    """
    try:
        msgspec.json.decode(rest, type=msgspec.Raw)
    except RecursionError as fault:
        raise UnreadableError(source, "nested too deeply; no Kubernetes object is") from fault
    except msgspec.DecodeError as fault:
        trailing = _TRAILING.search(str(fault))
        if trailing is None:
            raise _broken(rest, data, source, str(fault)) from fault
        return int(trailing[1]) - 1
    return len(rest)


def _broken(rest: memoryview, data: bytes, source: str, message: str) -> UnreadableError:
    """What is wrong with JSON, in the words of the standard library, which knows the line; else in msgspec's."""
    text = bytes(rest).decode().rstrip()
    try:
        json.loads(text)
    except RecursionError:
        return UnreadableError(source, "nested too deeply; no Kubernetes object is")
    except json.JSONDecodeError as fault:
        line = data.count(b"\n", 0, len(data) - len(rest)) + fault.lineno
        if fault.pos >= len(text):
            return UnreadableError(source, "broken JSON: it ends too early; was it cut short?", f"line {line}")
        return UnreadableError(source, f"broken JSON: {fault.msg} (column {fault.colno})", f"line {line}")
    return UnreadableError(source, f"broken JSON: {message}")


class _Walk:
    """One pass over a file's Lists."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._lists = 0

    def json(self, text: msgspec.Raw, where: str, kind: str = "", version: str = "") -> Iterator[Any]:
        """The entries of an object in JSON. `kind` and `version` are those of an item that has none."""
        try:
            head = _HEAD.decode(text)
        except msgspec.ValidationError:
            yield self._no_object(where, msgspec.json.decode(text))
            return
        named = self._names(where, head.kind or kind, head.api_version or version)
        if isinstance(named, InputFault):
            yield named
            return
        if _is_list(named[0], head.items is not _NOTHING):
            yield from self._config(where, msgspec.json.decode(head.config))
            try:
                items = _ITEMS.decode(head.items) if bytes(head.items) != b"null" else []
            except msgspec.ValidationError:
                yield self._fault(where, "items: want a list of objects")
                return
            inherited = _of_items(*named)
            for index, item in enumerate(items):
                yield from self.json(item, self._item(where, index), *inherited)
        elif named[0] == CONFIG_KIND:
            yield from self._config(where, msgspec.json.decode(text))
        else:
            yield Entry(*named, Place(self._source, where), text)

    def value(self, value: Any, where: str, kind: str = "", version: str = "") -> Iterator[Any]:
        """The entries of an object of YAML; arguments as for `json`."""
        if not isinstance(value, dict):
            yield self._no_object(where, value)
            return
        named = self._names(where, value.get("kind") or kind, value.get("apiVersion") or version)
        if isinstance(named, InputFault):
            yield named
            return
        if _is_list(named[0], "items" in value):
            yield from self._config(where, value.get("config"))
            items = value.get("items") or []
            if not isinstance(items, list):
                yield self._fault(where, "items: want a list of objects")
                return
            inherited = _of_items(*named)
            for index, item in enumerate(items):
                position = f"line {item.line}" if isinstance(item, Located) else self._item(where, index)
                yield from self.value(item, position, *inherited)
        elif named[0] == CONFIG_KIND:
            yield from self._config(where, value)
        else:
            yield Entry(*named, Place(self._source, where), value)

    def _names(self, where: str, kind: Any, version: Any) -> tuple[str, str] | InputFault:
        if not isinstance(kind, str) or not isinstance(version, str):
            return self._fault(where, "kind and apiVersion: want text")
        if not kind:
            return self._fault(where, f"kind: is missing; {_WANTED}")
        if not version:
            return self._fault(where, f"apiVersion: is missing in this {kind}; write it, such as apiVersion: v1")
        return kind, version

    def _item(self, where: str, index: int) -> str:
        return f"{where}.items[{index}]" if where else f"items[{index}]"

    def _config(self, where: str, value: Any) -> Iterator[ConfigEntry]:
        self._lists += 1
        if self._lists > _MOST_LISTS:
            message = f"more than {_MOST_LISTS} Lists; is there an alias of a List inside it?"
            raise UnreadableError(self._source, message, where)
        if value is not None:
            yield ConfigEntry(Place(self._source, where), value)

    def _no_object(self, where: str, value: Any) -> InputFault:
        kinds = {list: "a list", str: "text", bool: "a boolean", int: "a number", float: "a number", type(None): "null"}
        return self._fault(where, f"is {kinds.get(type(value), 'something else')}; {_WANTED}")

    def _fault(self, where: str, message: str) -> InputFault:
        return InputFault(Place(self._source, where), message)


def _is_list(kind: str, has_items: bool) -> bool:
    return kind == "List" or (kind.endswith("List") and has_items)


def _of_items(kind: str, version: str) -> tuple[str, str]:
    """The kind and version of items that have none: those of a NodeList are nodes."""
    return (kind.removesuffix("List"), version) if kind != "List" else ("", "")
