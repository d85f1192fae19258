"""A recorded cluster: what `kubectl get nodes,pods,... -A -o json` prints, read, checked, and put into the tables."""

import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from extender.cluster.state import ClusterState
from extender.config.gates import FeatureGates
from extender.objects.codec import DecodeError, decode, from_builtins
from extender.objects.kinds import KINDS
from extender.objects.meta import KubernetesObject
from extender.objects.node import Node
from extender.objects.pod import Pod
from extender.objects.policy import PriorityClass
from extender.offline.checks import problems
from extender.offline.defaulting import completed, with_priority
from extender.offline.entries import ConfigEntry, Entry, entries
from extender.offline.faults import InputError, InputFault, Place, UnreadableError
from extender.offline.reading import STDIN, read

_MOST_FAULTS: Final = 20
_KNOWN_KINDS: Final = frozenset(kind for _, kind in KINDS)


@dataclass(frozen=True, slots=True)
class Capture:
    """A recorded cluster.

    Attributes:
        objects: every object of a kind that scheduling reads, in file order, with an API server's defaults.
        config: the KubeSchedulerConfiguration in force there, as plain values; None if the files carry none.
        config_place: where that stands, for messages.
        skipped: how many objects of other kinds there were, by kind; with the apiVersion where only that is unknown.
        sources: the names of the files.
    """

    objects: tuple[KubernetesObject, ...] = ()
    config: Any = None
    config_place: str = ""
    skipped: Counter[str] = field(default_factory=Counter)
    sources: tuple[str, ...] = ()


def read_capture(files: Iterable[str]) -> Capture:
    """Reads a cluster recorded in one or several files.

    Args:
        files: paths, or `-` for standard input; YAML or JSON, plain or gzipped, objects, many documents or Lists.

    Raises:
        InputError: with every fault found, at most twenty of them.
    """
    reader = _Reader()
    names = list(files)
    for index, file in enumerate(names):
        if file in names[:index]:
            reader.fault(InputFault(Place("stdin" if file == STDIN else file), "is named twice; name it once"))
            continue
        try:
            source, data = read(file, sys.stdin.buffer.read)
            reader.sources.append(source)
            for entry in entries(data, source):
                reader.take(entry)
        except UnreadableError as error:
            reader.fault(error.fault)
        except RecursionError:
            reader.fault(InputFault(Place(file), "Lists nested too deeply; name the objects one by one"))
    return reader.finish()


def parse_capture(data: bytes, source: str) -> Capture:
    """Reads a cluster recorded in one text, as `read_capture` reads files.

    Args:
        data: YAML or JSON in UTF-8.
        source: what to call it in messages.

    Raises:
        InputError: with every fault found, at most twenty of them.
    """
    reader = _Reader()
    reader.sources.append(source)
    try:
        for entry in entries(data, source):
            reader.take(entry)
    except UnreadableError as error:
        reader.fault(error.fault)
    return reader.finish()


def load_state(capture: Capture, gates: FeatureGates | None = None) -> ClusterState:
    """The cluster as recorded: first what is neither node nor pod, then nodes, then pods, each in file order.

    Args:
        capture: the recording.
        gates: the feature gates in force; None: the default ones.
    """
    state = ClusterState(gates)
    nodes: list[Node] = []
    pods: list[Pod] = []
    for thing in capture.objects:
        match thing:
            case Node():
                nodes.append(thing)
            case Pod():
                pods.append(thing)
            case _:
                state.put_object(thing)
    for node in nodes:
        state.put_node(node)
    for pod in pods:
        state.put_pod(pod)
    return state


class _Reader:
    """Collects objects and faults from all files."""

    def __init__(self) -> None:
        self.sources: list[str] = []
        self._objects: list[KubernetesObject] = []
        self._places: dict[tuple[type, str, str], Place] = {}
        self._config: ConfigEntry | None = None
        self._skipped: Counter[str] = Counter()
        self._faults: list[InputFault] = []

    def fault(self, fault: InputFault) -> None:
        """Notes a fault; ends the reading when there are enough.

        Raises:
            InputError: there are.
        """
        self._faults.append(fault)
        if len(self._faults) >= _MOST_FAULTS:
            raise InputError([*self._faults, InputFault(fault.place, "too many faults; reading stopped here")])

    def take(self, entry: Entry | ConfigEntry | InputFault) -> None:
        """Reads what stands at one place."""
        match entry:
            case InputFault():
                self.fault(entry)
            case ConfigEntry():
                if self._config is not None:
                    message = f"a second configuration; the first is in {self._config.place}; keep one of them"
                    self.fault(InputFault(entry.place, message))
                self._config = entry
            case Entry():
                self._take_object(entry)

    def _take_object(self, entry: Entry) -> None:
        kind = KINDS.get((entry.version, entry.kind))
        if kind is None:
            known = entry.kind in _KNOWN_KINDS
            self._skipped[f"{entry.kind} of {entry.version}" if known else entry.kind] += 1
            return
        thing: KubernetesObject
        try:
            if isinstance(entry.value, msgspec.Raw):
                thing = decode(memoryview(entry.value), kind)  # type: ignore[arg-type]
            else:
                thing = from_builtins(entry.value, kind)
        except DecodeError as fault:
            self.fault(InputFault(entry.place, fault.message, _about(entry), fault.path))
            return
        meta = thing.metadata
        if not meta.name:
            self.fault(InputFault(entry.place, "is missing; every object needs a name", entry.kind, "metadata.name"))
            return
        found = problems(thing)  # as written: what is filled in would repeat them
        thing = completed(thing)
        for path, message in found:
            self.fault(InputFault(entry.place, message, f"{entry.kind} {_name(thing)}", path))
        self._put(entry, thing)

    def _put(self, entry: Entry, thing: KubernetesObject) -> None:
        key = (type(thing), thing.metadata.namespace, thing.metadata.name)
        first = self._places.setdefault(key, entry.place)
        if first is not entry.place:
            message = f"stands here a second time; the first is in {first}; keep one of them"
            self.fault(InputFault(entry.place, message, f"{entry.kind} {_name(thing)}"))
        self._objects.append(thing)

    def finish(self) -> Capture:
        """What was read.

        Raises:
            InputError: something was wrong.
        """
        if self._faults:
            raise InputError(self._faults)
        classes = {thing.metadata.name: thing for thing in self._objects if isinstance(thing, PriorityClass)}
        return Capture(
            tuple(with_priority(thing, classes) if isinstance(thing, Pod) else thing for thing in self._objects),
            self._config.value if self._config else None,
            str(self._config.place) if self._config else "",
            self._skipped,
            tuple(self.sources),
        )


def _name(thing: KubernetesObject) -> str:
    meta = thing.metadata
    return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


def _about(entry: Entry) -> str:
    """The object by kind and, where it can be read, name; for one that could not be decoded."""
    value = msgspec.json.decode(entry.value) if isinstance(entry.value, msgspec.Raw) else entry.value
    meta = value.get("metadata") if isinstance(value, dict) else None
    name = meta.get("name") if isinstance(meta, dict) else None
    space = meta.get("namespace") if isinstance(meta, dict) else None
    if not isinstance(name, str) or not name:
        return entry.kind
    return f"{entry.kind} {space}/{name}" if isinstance(space, str) and space else f"{entry.kind} {name}"
