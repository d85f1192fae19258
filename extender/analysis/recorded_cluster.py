"""Read a recorded cluster, the output of `kubectl get nodes,pods,... -A -o json`, and load it into a cache."""

import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from extender.analysis.input_errors import InputError, InputErrorLine, SourceLocation, UnreadableError
from extender.analysis.input_files import STDIN, read_file
from extender.analysis.object_documents import ConfigEntry, ObjectEntry, read_entries
from extender.api.codec import DecodeError, decode, from_builtins
from extender.api.defaulting import set_defaults, set_priority
from extender.api.kinds.disruption import PriorityClass
from extender.api.kinds.meta import KubernetesObject
from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod
from extender.api.scheme import KINDS
from extender.api.validation import validate_object
from extender.cache.cache import Cache
from extender.config.feature_gates import FeatureGates

_MAX_ERRORS: Final = 20
_KNOWN_KINDS: Final = frozenset(kind for _, kind in KINDS)


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded cluster.

    Attributes:
        objects: the objects of kinds that affect scheduling, in file order, with an API server's defaults.
        config: the KubeSchedulerConfiguration in the files, as plain values; None without a configuration.
        config_location: the location of the configuration, for messages.
        skipped: the number of objects of other kinds, by kind; with the apiVersion if only the version is unknown.
        sources: the names of the files.
    """

    objects: tuple[KubernetesObject, ...] = ()
    config: Any = None
    config_location: str = ""
    skipped: Counter[str] = field(default_factory=Counter)
    sources: tuple[str, ...] = ()


def read_recording(files: Iterable[str]) -> Recording:
    """Read a cluster from one or several files.

    Args:
        files: the files' paths, or `-` for standard input. A file is YAML or JSON with objects or Lists, plain or
            gzipped.

    Raises:
        InputError: the input is invalid; contains all errors, but at most twenty.
    """
    reader = _RecordingReader()
    file_names = list(files)
    for index, file in enumerate(file_names):
        if file in file_names[:index]:
            reader.add_error(
                InputErrorLine(SourceLocation("stdin" if file == STDIN else file), "is named twice; name it once")
            )
            continue
        try:
            source, data = read_file(file, sys.stdin.buffer.read)
            reader.sources.append(source)
            for entry in read_entries(data, source):
                reader.add_entry(entry)
        except UnreadableError as error:
            reader.add_error(error.error)
        except RecursionError:
            reader.add_error(
                InputErrorLine(SourceLocation(file), "Lists nested too deeply; name the objects one by one")
            )
    return reader.finish()


def parse_recording(data: bytes, source: str) -> Recording:
    """Read a cluster from one text.

    Args:
        data: the text in YAML or JSON, as UTF-8.
        source: the name of the text in messages.

    Raises:
        InputError: the input is invalid; contains all errors, but at most twenty.
    """
    reader = _RecordingReader()
    reader.sources.append(source)
    try:
        for entry in read_entries(data, source):
            reader.add_entry(entry)
    except UnreadableError as error:
        reader.add_error(error.error)
    return reader.finish()


def load_cache(recording: Recording, gates: FeatureGates | None = None) -> Cache:
    """Load a recording into a new cache: other objects first, then nodes, then pods, each in file order.

    Args:
        recording: the recording.
        gates: the feature gates; None: the default gates.
    """
    cache = Cache(gates)
    nodes: list[Node] = []
    pods: list[Pod] = []
    for obj in recording.objects:
        match obj:
            case Node():
                nodes.append(obj)
            case Pod():
                pods.append(obj)
            case _:
                cache.add_or_update_object(obj)
    for node in nodes:
        cache.add_or_update_node(node)
    for pod in pods:
        cache.add_or_update_pod(pod)
    return cache


class _RecordingReader:
    """Collects the objects and errors of all files."""

    def __init__(self) -> None:
        self.sources: list[str] = []
        self._objects: list[KubernetesObject] = []
        self._locations: dict[tuple[type, str, str], SourceLocation] = {}
        self._config: ConfigEntry | None = None
        self._skipped: Counter[str] = Counter()
        self._errors: list[InputErrorLine] = []

    def add_error(self, error: InputErrorLine) -> None:
        """Add an error; stop reading at the limit.

        Raises:
            InputError: the limit is reached.
        """
        self._errors.append(error)
        if len(self._errors) >= _MAX_ERRORS:
            raise InputError([*self._errors, InputErrorLine(error.location, "too many errors; reading stopped here")])

    def add_entry(self, entry: ObjectEntry | ConfigEntry | InputErrorLine) -> None:
        """Add one entry of a file."""
        match entry:
            case InputErrorLine():
                self.add_error(entry)
            case ConfigEntry():
                if self._config is not None:
                    message = f"a second configuration; the first is in {self._config.location}; keep one of them"
                    self.add_error(InputErrorLine(entry.location, message))
                self._config = entry
            case ObjectEntry():
                self._add_object_entry(entry)

    def _add_object_entry(self, entry: ObjectEntry) -> None:
        kind = KINDS.get((entry.version, entry.kind))
        if kind is None:
            is_known_kind = entry.kind in _KNOWN_KINDS
            self._skipped[f"{entry.kind} of {entry.version}" if is_known_kind else entry.kind] += 1
            return
        obj: KubernetesObject
        try:
            if isinstance(entry.value, msgspec.Raw):
                obj = decode(memoryview(entry.value), kind)  # type: ignore[arg-type]
            else:
                obj = from_builtins(entry.value, kind)
        except DecodeError as error:
            self.add_error(InputErrorLine(entry.location, error.message, _describe_entry(entry), error.path))
            return
        meta = obj.metadata
        if not meta.name:
            self.add_error(
                InputErrorLine(entry.location, "is missing; every object needs a name", entry.kind, "metadata.name")
            )
            return
        validation_errors = validate_object(obj)  # before defaults are set: defaulted fields would repeat the errors
        obj = set_defaults(obj)
        for path, message in validation_errors:
            self.add_error(InputErrorLine(entry.location, message, f"{entry.kind} {_get_object_name(obj)}", path))
        self._add_object(entry, obj)

    def _add_object(self, entry: ObjectEntry, obj: KubernetesObject) -> None:
        key = (type(obj), obj.metadata.namespace, obj.metadata.name)
        first_location = self._locations.setdefault(key, entry.location)
        if first_location is not entry.location:
            message = f"is defined twice; the first definition is in {first_location}; keep one of them"
            self.add_error(InputErrorLine(entry.location, message, f"{entry.kind} {_get_object_name(obj)}"))
        self._objects.append(obj)

    def finish(self) -> Recording:
        """Return the recording.

        Raises:
            InputError: an entry was invalid.
        """
        if self._errors:
            raise InputError(self._errors)
        classes = {obj.metadata.name: obj for obj in self._objects if isinstance(obj, PriorityClass)}
        return Recording(
            tuple(set_priority(obj, classes) if isinstance(obj, Pod) else obj for obj in self._objects),
            self._config.value if self._config else None,
            str(self._config.location) if self._config else "",
            self._skipped,
            tuple(self.sources),
        )


def _get_object_name(obj: KubernetesObject) -> str:
    meta = obj.metadata
    return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


def _describe_entry(entry: ObjectEntry) -> str:
    """Return the kind of an object that could not be decoded, and the object's name if it is readable."""
    value = msgspec.json.decode(entry.value) if isinstance(entry.value, msgspec.Raw) else entry.value
    meta = value.get("metadata") if isinstance(value, dict) else None
    name = meta.get("name") if isinstance(meta, dict) else None
    namespace = meta.get("namespace") if isinstance(meta, dict) else None
    if not isinstance(name, str) or not name:
        return entry.kind
    return f"{entry.kind} {namespace}/{name}" if isinstance(namespace, str) and namespace else f"{entry.kind} {name}"
