"""YAML and JSON text to and from plain values, as Kubernetes reads and writes them.

Kubernetes turns YAML into JSON before it looks at it. So a date stays a string, a duplicate key is a fault, and what
JSON cannot say is refused.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import yaml

from extender.config.faults import ConfigError, Fault
from extender.config.paths import child, item
from extender.config.strict import describe

_MOST_LEVELS: Final = 100  # what reads a level takes a few calls within each other
_MOST_VALUES: Final = 200_000  # aliases of aliases could unfold into more than any memory
# Numbers are written below; the others are unknown to Go: dates, and the bare characters `=`, `*`, `&` and `!`.
_NOT_OURS: Final = frozenset({"int", "float", "timestamp", "value", "yaml"})
_TEXT: Final = "tag:yaml.org,2002:str"
_ODD_BREAK: Final = re.compile("[\r\x85\u2028\u2029]")  # would come back as another break
INTEGER: Final = re.compile(r"^[-+]?(0b[01_]+|0x[0-9a-fA-F_]+|0o?[0-7_]+|0|[1-9][0-9_]*)$")
NUMBER: Final = re.compile(
    r"^([-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$"
)


class _Loader(yaml.SafeLoader):
    """PyYAML with Go's ideas of what is a number."""


class _Dumper(yaml.SafeDumper):
    """PyYAML that quotes what `_Loader` would not read back as a string, and never writes an alias."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True


for _side in (_Loader, _Dumper):
    _side.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag.rpartition(":")[2] not in _NOT_OURS]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    _side.add_implicit_resolver("tag:yaml.org,2002:int", INTEGER, list("-+0123456789"))
    _side.add_implicit_resolver("tag:yaml.org,2002:float", NUMBER, list("-+0123456789."))


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    tag = dumper.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
    if not text or tag != _TEXT or _ODD_BREAK.search(text):
        return dumper.represent_scalar(_TEXT, text, style='"')
    return dumper.represent_scalar(_TEXT, text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _represent_text)


class _Object(dict[str, object]):
    """A JSON object that remembers which of its keys came twice."""

    repeated: tuple[str, ...] = ()


def too_deep(most: int) -> str:
    """What is said of a text with more than *most* levels."""
    return f"nested too deeply; want at most {most} levels"


def bounded(events: Iterable[Any], most: int) -> Iterator[Any]:
    """The *events* of a YAML text as they come.

    Raises:
        yaml.MarkedYAMLError: objects and lists are nested in more than *most* levels.
    """
    level = 0
    for event in events:
        if isinstance(event, yaml.CollectionStartEvent):
            level += 1
            if level > most:
                raise _fault_at(event, too_deep(most))
        elif isinstance(event, yaml.CollectionEndEvent):
            level -= 1
        yield event


def _fault_at(event: Any, problem: str) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)


def write(value: object) -> str:
    """*value* as Kubernetes' YAML: keys sorted, two spaces, lists not indented."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=True, default_flow_style=False, width=2**31, allow_unicode=True)


def read(data: bytes, source: str) -> tuple[object, list[Fault]]:
    """The plain value in *data*, and the faults that do not keep it from being read.

    Raises:
        ConfigError: the text is neither YAML nor JSON; the message begins with *source*, line and column.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as exc:
        line = data.count(b"\n", 0, exc.start) + 1
        raise ConfigError([Fault("", f"{source}: line {line}: not UTF-8")]) from exc
    if text.lstrip().startswith("{"):
        try:
            return normalise(json.loads(text, object_pairs_hook=_pairs))
        except ValueError as exc:
            as_json = exc
        except RecursionError as exc:
            raise ConfigError([Fault("", f"{source}: {too_deep(_MOST_LEVELS)}")]) from exc
    else:
        as_json = None
    try:
        return _read_yaml(text)
    except yaml.YAMLError as exc:
        # What begins like JSON is most likely meant as JSON, where YAML's complaint would mislead.
        quoted = text.lstrip("{ \t\r\n")[:1] == '"'
        message = _json_fault(as_json) if as_json is not None and quoted else _yaml_fault(exc)
        raise ConfigError([Fault("", f"{source}: {message}")]) from exc
    except ValueError as exc:  # an integer or a date that is none, or base64 that is none
        raise ConfigError([Fault("", f"{source}: {exc}")]) from exc


def _read_yaml(text: str) -> tuple[object, list[Fault]]:
    _check(text)
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None, []
        repeated: list[Fault] = []
        _find_repeated(node, "", repeated, set())
        value, faults = normalise(loader.construct_document(node))
        return value, repeated + faults
    finally:
        loader.dispose()


def _check(text: str) -> None:
    """Whatever follows calls itself for each level, and reads one document."""
    begun = 0
    for event in bounded(yaml.parse(text, Loader=_Loader), _MOST_LEVELS):
        begun += isinstance(event, yaml.DocumentStartEvent)
        if begun > 1:
            raise _fault_at(event, "a second document; want one a file, profiles being a list within it")


def _find_repeated(node: yaml.Node, path: str, faults: list[Fault], seen: set[int]) -> None:
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for index, element in enumerate(node.value):
            _find_repeated(element, item(path, index), faults, seen)
    elif isinstance(node, yaml.MappingNode):
        keys: set[str] = set()
        for key, value in node.value:
            name = key.value if isinstance(key.value, str) else ""
            where = child(path, name)
            if name in keys and name != "<<":
                faults.append(Fault(where, f'duplicate field "{name}" (line {key.start_mark.line + 1})'))
            keys.add(name)
            _find_repeated(value, where, faults, seen)


def _pairs(pairs: list[tuple[str, object]]) -> _Object:
    found = _Object(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        found.repeated = tuple(dict.fromkeys(name for name in names if names.count(name) > 1))
    return found


def _yaml_fault(exc: yaml.YAMLError) -> str:
    if isinstance(exc, yaml.MarkedYAMLError) and exc.problem_mark is not None:
        mark = exc.problem_mark
        return f"line {mark.line + 1}, column {mark.column + 1}: {exc.problem or exc.context}"
    return " ".join(str(exc).split())


def _json_fault(exc: ValueError) -> str:
    if isinstance(exc, json.JSONDecodeError):
        return f"line {exc.lineno}, column {exc.colno}: {exc.msg}"
    return str(exc)


def normalise(value: object) -> tuple[object, list[Fault]]:
    """*value* with nothing but what JSON has: objects, lists, strings, finite numbers, booleans and null."""
    walk = _Walk()
    return walk.plain(value, ""), walk.faults


class _Walk:
    """One pass over a value."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self._left = _MOST_VALUES
        self._level = 0

    def plain(self, value: object, path: str) -> object:
        self._left -= 1
        if self._left < 0:
            raise ConfigError([Fault("", "document contains excessive aliasing")])
        if isinstance(value, Mapping | list | tuple):
            return self._inside(value, path)
        if value is None or isinstance(value, bool | str | int) or (isinstance(value, float) and math.isfinite(value)):
            return value
        self.faults.append(Fault(path, f"expected a value that JSON has, got {describe(value)}"))
        return None

    def _inside(self, value: Mapping[Any, object] | list[object] | tuple[object, ...], path: str) -> object:
        self._level += 1
        if self._level > _MOST_LEVELS:
            raise ConfigError([Fault("", too_deep(_MOST_LEVELS))])
        found: object
        if isinstance(value, Mapping):
            found = self._object(value, path)
        else:
            found = [self.plain(element, item(path, index)) for index, element in enumerate(value)]
        self._level -= 1
        return found

    def _object(self, value: Mapping[Any, object], path: str) -> dict[str, object]:
        if isinstance(value, _Object):
            self.faults += (Fault(child(path, name), f'duplicate field "{name}"') for name in value.repeated)
        found: dict[str, object] = {}
        for key, inner in value.items():
            if isinstance(key, str):
                found[key] = self.plain(inner, child(path, key))
            else:
                self.faults.append(Fault(path, f"field names have to be strings, got {describe(key)}"))
        return found
