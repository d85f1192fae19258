"""Parse YAML and JSON documents, and dump YAML documents, as Kubernetes does.

Kubernetes converts YAML to JSON before decoding. A date therefore stays a string. A duplicate key or a value without a
JSON type is an error.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

import yaml

from extender.basics.input_limits import MAX_CONFIG_BYTES, MAX_CONFIG_DEPTH, MAX_CONFIG_VALUES, format_size
from extender.config.errors import ConfigError, FieldError, child, item
from extender.config.strict_decoding import describe_value

_MAX_TAG_DIRECTIVES: Final = 100
_TAG_DIRECTIVE: Final = re.compile(rb"(?:\A(?:\xef\xbb\xbf)?|[\r\n]|\xc2\x85|\xe2\x80[\xa8\xa9])%TAG")
_EXCESSIVE_ALIASING: Final = "document contains excessive aliasing"
# In a document with up to this number of values, 99% of the values may come from aliases.
_ALIAS_RATIO_RANGE_LOW: Final = 400_000
# In a document with at least this number of values, 10% may come from aliases. Between the two, the share is linear.
_ALIAS_RATIO_RANGE_HIGH: Final = 4_000_000
# PyYAML's resolvers of these tags are removed, so that dates and bare `=`, `*`, `&` and `!` stay strings, as in Go.
# The resolvers of numbers are replaced below.
_REMOVED_TAGS: Final = frozenset({"int", "float", "timestamp", "value", "yaml"})
_STR_TAG: Final = "tag:yaml.org,2002:str"
# Outside double quotes, PyYAML would not read these line breaks back unchanged.
_UNUSUAL_LINE_BREAK: Final = re.compile("[\r\x85\u2028\u2029]")
_LETTER_BOOLEAN: Final = re.compile(r"^[yYnN]$")
BOOLEANS: Final = {**yaml.SafeLoader.bool_values, "y": True, "n": False}
# The errors of libyaml do not name the character. Those of PyYAML have its representation.
_INVALID_START: Final = re.compile(
    r"found character ('.+' )?that cannot start any token|found a tab character that violates indentation"
)
# Go writes these in quotes, because readers of YAML 1.1 take them for a time, a number to the base 60 or a number.
_QUOTED_TEXT: Final = re.compile(
    r"^([0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ][0-9:.]+(Z|[-+][0-9:]+)?)?"
    r"|[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?"
    r"|[-+]?[0-9][0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9_]+)?)$"
)
INTEGER: Final = re.compile(r"^[-+]?(0b[01_]+|0x[0-9a-fA-F_]+|0o?[0-7_]+|0|[1-9][0-9_]*)$")
NUMBER: Final = re.compile(
    r"^([-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$"
)


class _Loader(yaml.SafeLoader):
    """PyYAML loader that reads numbers and booleans as Go does. Its error messages are better than those of libyaml."""

    bool_values = BOOLEANS


class _FastLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # a class of unknown type
    """`_Loader` with the parser of libyaml, which is faster."""

    bool_values = BOOLEANS


class _Dumper(yaml.SafeDumper):
    """PyYAML dumper that quotes strings that `_Loader` would otherwise read as another type. It writes no aliases."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True


for _yaml_class in (_Loader, _FastLoader, _Dumper):
    _yaml_class.yaml_implicit_resolvers = {
        first_character: [(tag, pattern) for tag, pattern in resolvers if tag.rpartition(":")[2] not in _REMOVED_TAGS]
        for first_character, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    _yaml_class.add_implicit_resolver("tag:yaml.org,2002:bool", _LETTER_BOOLEAN, list("yYnN"))
    _yaml_class.add_implicit_resolver("tag:yaml.org,2002:int", INTEGER, list("-+0123456789"))
    _yaml_class.add_implicit_resolver("tag:yaml.org,2002:float", NUMBER, list("-+0123456789."))


def parse_number(text: str) -> float | str:
    """Return the number in a text that `NUMBER` matches; the text if the number is too large, such as `12e4567`.

    Source: go.yaml.in/yaml/v2, resolve.go, resolve.
    """
    number = float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
    return text if math.isinf(number) and "inf" not in text.lower() else number


for _loader_class in (_Loader, _FastLoader):
    _loader_class.add_constructor("tag:yaml.org,2002:float", lambda _, node: parse_number(node.value))


def _represent_str(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    tag = dumper.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
    if not text or tag != _STR_TAG or _QUOTED_TEXT.match(text) or _UNUSUAL_LINE_BREAK.search(text):
        return dumper.represent_scalar(_STR_TAG, text, style='"')
    return dumper.represent_scalar(_STR_TAG, text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _represent_str)


class _JsonObject(dict[str, object]):
    """A JSON object and the list of its duplicate keys."""

    duplicate_keys: tuple[str, ...] = ()


def format_depth_error(max_depth: int) -> str:
    """Return the error message for a document with more than *max_depth* levels."""
    return f"nested too deeply; want at most {max_depth} levels"


def check_tag_directives(data: bytes) -> None:
    """Check the number of %TAG directives.

    libyaml compares each with all earlier ones before it yields an event: 40,000 of them take 5 seconds.

    Raises:
        yaml.MarkedYAMLError: there are too many.
    """
    if data.count(b"%TAG") > _MAX_TAG_DIRECTIVES and any(
        islice(_TAG_DIRECTIVE.finditer(data), _MAX_TAG_DIRECTIVES, None)
    ):
        raise yaml.MarkedYAMLError(problem=f"more than {_MAX_TAG_DIRECTIVES} lines begin with %TAG; leave them out")


def limit_events(events: Iterable[Any], max_depth: int, max_values: int | None = None) -> Iterator[Any]:
    """Yield the *events* of a YAML parser, up to the first event that exceeds a limit.

    Args:
        events: the events.
        max_depth: the maximum number of nested objects and lists.
        max_values: the maximum number of values of a document, keys included; None: no maximum. An alias counts as
            the values that it stands for.

    Raises:
        yaml.MarkedYAMLError: a document exceeds a limit, or most of its values come from aliases.
    """
    anchor_sizes: dict[str, int] = {}
    open_containers: list[tuple[str | None, int]] = []  # the anchor, and the number of values before the container
    value_count = alias_count = 0
    for event in events:
        if isinstance(event, yaml.ScalarEvent):
            value_count += 1
            if event.anchor is not None:
                anchor_sizes[event.anchor] = 1
        elif isinstance(event, yaml.CollectionStartEvent):
            open_containers.append((event.anchor, value_count))
            value_count += 1
            if len(open_containers) > max_depth:
                raise _make_yaml_error(event, format_depth_error(max_depth))
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, start_count = open_containers.pop()
            if anchor is not None:
                anchor_sizes[anchor] = value_count - start_count
        elif isinstance(event, yaml.AliasEvent):
            size = anchor_sizes.get(event.anchor or "", 1)
            value_count, alias_count = value_count + size, alias_count + size
            if _is_excessive(alias_count, value_count):
                raise _make_yaml_error(event, _EXCESSIVE_ALIASING)
        elif isinstance(event, yaml.DocumentStartEvent):
            value_count = alias_count = 0
            anchor_sizes = {}
        if max_values is not None and value_count > max_values:
            raise _make_yaml_error(event, f"more than {max_values} values; want a smaller document")
        yield event


def _is_excessive(alias_count: int, value_count: int) -> bool:
    """Return whether too many of the values come from aliases. Source: go.yaml.in/yaml/v2, decode.go, unmarshal."""
    if alias_count <= 100 or value_count <= 1000:
        return False
    range_size = _ALIAS_RATIO_RANGE_HIGH - _ALIAS_RATIO_RANGE_LOW
    excess = min(max(value_count - _ALIAS_RATIO_RANGE_LOW, 0) / range_size, 1.0)
    return alias_count / value_count > 0.99 - 0.89 * excess


def _make_yaml_error(event: Any, problem: str) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)


def dump_yaml(value: object) -> str:
    """Dump *value* as YAML in the style of Kubernetes: sorted keys, two spaces, lists not indented."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=True, default_flow_style=False, width=2**31, allow_unicode=True)


def parse_document(data: bytes, source: str, max_bytes: int = MAX_CONFIG_BYTES) -> tuple[object, list[FieldError]]:
    """Parse a YAML or JSON document. Return its plain values, and an error for each duplicate key or non-JSON value.

    Raises:
        ConfigError: the text is too long, or neither YAML nor JSON; the message begins with *source*, line and column.
    """
    if len(data) > max_bytes:
        raise ConfigError([FieldError("", f"{source}: has more than {format_size(max_bytes)}")])
    try:
        text = data.decode()
    except UnicodeDecodeError as exc:
        line = data.count(b"\n", 0, exc.start) + 1
        raise ConfigError([FieldError("", f"{source}: line {line}: not UTF-8")]) from exc
    if text.lstrip().startswith("{"):
        try:
            return normalize(json.loads(text, object_pairs_hook=_build_json_object))
        except ValueError as exc:
            json_error = exc
        except RecursionError as exc:
            raise ConfigError([FieldError("", f"{source}: {format_depth_error(MAX_CONFIG_DEPTH)}")]) from exc
    else:
        json_error = None
    try:
        check_tag_directives(data)
        return _parse_yaml(text)
    except yaml.YAMLError as exc:
        # For a text that begins like a JSON object, the message of the YAML parser would mislead.
        looks_like_json = text.lstrip("{ \t\r\n")[:1] == '"'
        if json_error is not None and looks_like_json:
            message = _format_json_error(json_error)
        else:
            message = _format_yaml_error(exc, text)
        raise ConfigError([FieldError("", f"{source}: {message}")]) from exc
    except ValueError as exc:  # an invalid integer, date or base64 value
        raise ConfigError([FieldError("", f"{source}: {exc}")]) from exc


def _parse_yaml(text: str) -> tuple[object, list[FieldError]]:
    try:
        return _parse_yaml_with(_FastLoader, text)
    except (yaml.YAMLError, ValueError) as error:
        # PyYAML rejects each tab before a value, and would name it in place of the character that is invalid.
        if isinstance(error, yaml.MarkedYAMLError) and is_invalid_start(error):
            raise
        return _parse_yaml_with(_Loader, text)


def _parse_yaml_with(loader_class: type[Any], text: str) -> tuple[object, list[FieldError]]:
    _check_structure(text, loader_class)
    loader = loader_class(text)
    try:
        if not loader.check_node():
            return None, []
        node = loader.get_node()
        duplicate_key_errors: list[FieldError] = []
        _find_duplicate_keys(node, "", duplicate_key_errors, set())
        value, errors = normalize(loader.construct_document(node))
        return value, duplicate_key_errors + errors
    finally:
        loader.dispose()


def _check_structure(text: str, loader_class: type[Any]) -> None:
    """Raise an error if the text exceeds a limit, or has a document after the first one that is not empty."""
    starts: list[Any] = []
    for event in limit_events(yaml.parse(text, Loader=loader_class), MAX_CONFIG_DEPTH, MAX_CONFIG_VALUES):
        if isinstance(event, yaml.DocumentStartEvent):
            starts.append(event)
        elif len(starts) > 1 and isinstance(event, yaml.NodeEvent) and getattr(event, "value", None) != "":
            raise _make_yaml_error(starts[-1], "a second document; want one document per file")


def _find_duplicate_keys(node: yaml.Node, path: str, errors: list[FieldError], visited_ids: set[int]) -> None:
    if id(node) in visited_ids:
        return
    visited_ids.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for index, element in enumerate(node.value):
            _find_duplicate_keys(element, item(path, index), errors, visited_ids)
    elif isinstance(node, yaml.MappingNode):
        names: set[str] = set()
        for key in _iterate_keys(node):
            name = key.value if isinstance(key.value, str) else ""
            if name in names:
                line = key.start_mark.line + 1
                errors.append(FieldError(child(path, name), f'duplicate field "{name}" (line {line})'))
            names.add(name)
        for key, value in node.value:
            key_path = child(path, key.value if isinstance(key.value, str) else "")
            _find_duplicate_keys(value, key_path, errors, visited_ids)


def _iterate_keys(mapping: yaml.MappingNode, outer: tuple[yaml.MappingNode, ...] = ()) -> Iterator[Any]:
    """Yield the keys of a mapping and of the mappings that its keys `<<` merge. Upstream lets none replace another.

    Source: go.yaml.in/yaml/v2, decode.go, mapping and merge.
    """
    for key, value in mapping.value:
        if key.value != "<<":
            yield key
            continue
        for merged in value.value if isinstance(value, yaml.SequenceNode) else [value]:
            if isinstance(merged, yaml.MappingNode):
                if merged is mapping or merged in outer:
                    raise _make_yaml_error(key, "the anchor's value contains itself")
                yield from _iterate_keys(merged, (*outer, mapping))


def _build_json_object(pairs: list[tuple[str, object]]) -> _JsonObject:
    json_object = _JsonObject(pairs)
    if len(json_object) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        json_object.duplicate_keys = tuple(name for name, count in counts.items() if count > 1)
    return json_object


def is_invalid_start(error: yaml.MarkedYAMLError) -> bool:
    """Return whether an error is about a tab, or another character that cannot begin a value."""
    return error.problem_mark is not None and _INVALID_START.fullmatch(error.problem or "") is not None


def describe_invalid_start(text: str, mark: yaml.Mark) -> str:
    """Return the error about the character of *text* at *mark*, which cannot begin a value."""
    line = "".join(text.removeprefix("\ufeff").splitlines()[mark.line : mark.line + 1])
    before, character = line[: mark.column].strip(), line[mark.column : mark.column + 1]
    if character != "\t":
        return f"a value starts with {character}; put it in quotes"
    return f'a tab follows "{before[-1]}"; write a space' if before else "a tab indents the line; indent with spaces"


def _format_yaml_error(exc: yaml.YAMLError, text: str) -> str:
    if isinstance(exc, yaml.MarkedYAMLError) and exc.problem_mark is not None:
        mark = exc.problem_mark
        problem = describe_invalid_start(text, mark) if is_invalid_start(exc) else exc.problem or exc.context
        return f"line {mark.line + 1}, column {mark.column + 1}: {problem}"
    return " ".join(str(exc).split())


def _format_json_error(exc: ValueError) -> str:
    if isinstance(exc, json.JSONDecodeError):
        return f"line {exc.lineno}, column {exc.colno}: {exc.msg}"
    return str(exc)


def normalize(value: object) -> tuple[object, list[FieldError]]:
    """Convert *value* to JSON types (objects, lists, strings, finite numbers, booleans, null) and collect errors."""
    normalizer = _Normalizer()
    return normalizer.normalize_value(value, ""), normalizer.errors


class _Normalizer:
    """Converts one value to JSON types and collects errors."""

    def __init__(self) -> None:
        self.errors: list[FieldError] = []
        self._remaining_values = MAX_CONFIG_VALUES
        self._depth = 0

    def normalize_value(self, value: object, path: str) -> object:
        self._remaining_values -= 1
        if self._remaining_values < 0:
            raise ConfigError([FieldError("", _EXCESSIVE_ALIASING)])
        if isinstance(value, Mapping | list | tuple):
            return self._normalize_container(value, path)
        if value is None or isinstance(value, bool | str | int) or (isinstance(value, float) and math.isfinite(value)):
            return value
        self.errors.append(FieldError(path, f"expected a JSON value, got {describe_value(value)}"))
        return None

    def _normalize_container(
        self, value: Mapping[Any, object] | list[object] | tuple[object, ...], path: str
    ) -> object:
        self._depth += 1
        if self._depth > MAX_CONFIG_DEPTH:
            raise ConfigError([FieldError("", format_depth_error(MAX_CONFIG_DEPTH))])
        normalized: object
        if isinstance(value, Mapping):
            normalized = self._normalize_object(value, path)
        else:
            normalized = [self.normalize_value(element, item(path, index)) for index, element in enumerate(value)]
        self._depth -= 1
        return normalized

    def _normalize_object(self, value: Mapping[Any, object], path: str) -> dict[str, object]:
        if isinstance(value, _JsonObject):
            self.errors += (FieldError(child(path, name), f'duplicate field "{name}"') for name in value.duplicate_keys)
        normalized: dict[str, object] = {}
        for key, field_value in value.items():
            if isinstance(key, str):
                normalized[key] = self.normalize_value(field_value, child(path, key))
            else:
                self.errors.append(FieldError(path, f"field names have to be strings, got {describe_value(key)}"))
        return normalized
