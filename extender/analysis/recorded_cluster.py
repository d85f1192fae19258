"""Read a recorded cluster, the output of `kubectl get nodes,pods,... -A -o json`, and load it into a cache."""

import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Final

from msgspec.structs import replace

from extender.analysis.input.input_errors import InputError, InputErrorLine, SourceLocation, UnreadableError
from extender.analysis.input.input_files import get_display_name, list_files, read_file
from extender.analysis.input.manifest_rules import find_invalid_fields
from extender.analysis.input.misspelled_fields import find_misspelled_fields
from extender.analysis.input.object_decoding import InvalidObjectError, decode_entry, get_plain_values, suggest_kind
from extender.analysis.input.object_documents import (
    ConfigEntry,
    Entry,
    NoObjectError,
    ObjectEntry,
    RecordedKinds,
    RecordedVersion,
    read_entries,
)
from extender.analysis.input.workload_pods import count_replicas, list_workload_pods, make_workload_pods
from extender.analysis.input.workloads import WORKLOAD_VERSIONS, Workload, expand_cron_job
from extender.analysis.text_table import join_first
from extender.api.defaulting import set_defaults, set_priority, set_storage_class
from extender.api.defaults import DEFAULT_NAMESPACE
from extender.api.kinds.disruption import PriorityClass
from extender.api.kinds.meta import KubernetesObject
from extender.api.kinds.node import Node, NodeStatus
from extender.api.kinds.pod import Pod
from extender.api.kinds.storage import PersistentVolumeClaim, StorageClass
from extender.api.scheme import KINDS
from extender.api.validation import prefix_paths, validate_object
from extender.basics.input_limits import MAX_WORKLOAD_PODS
from extender.cache.cache import Cache
from extender.config.feature_gates import FeatureGates

_MAX_ERRORS: Final = 20
_MAX_SKIPPED_KINDS: Final = 1000
_MAX_NAMED_KINDS: Final = 5
_KNOWN_KINDS: Final = frozenset(kind for _, kind in KINDS) | WORKLOAD_VERSIONS.keys()


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded cluster.

    Attributes:
        objects: the objects of kinds that affect scheduling, in file order, with the API server's defaults.
        config: the KubeSchedulerConfiguration in the files, as plain values; None without a configuration.
        skipped_kinds: the number of objects by unknown kind, or by `<kind> of <apiVersion>` with an unknown apiVersion.
        recorded_kinds: the kinds that the files contain, even without objects.
        unreadable_kinds: the kinds that could not be read when the cluster was recorded, with the reason.
        workload_pods: the pods of each workload with a manifest, by `Workload.key`; those that were made are objects.
        kubernetes_version: the version of the recorded API server, such as `v1.37.2`; empty if it is unknown.
        notes: what the user should know about the objects, such as why a workload has no pods.
    """

    objects: tuple[KubernetesObject, ...] = ()
    config: Any = None
    config_location: str = ""
    skipped_kinds: Counter[str] = field(default_factory=Counter)
    sources: tuple[str, ...] = ()
    recorded_kinds: frozenset[str] = frozenset()
    unreadable_kinds: Mapping[str, str] = field(default_factory=dict)
    workload_pods: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    kubernetes_version: str = ""
    notes: tuple[str, ...] = ()


def read_recording(files: Iterable[str], *, override: bool | None = None) -> Recording:
    """Read a cluster from one or several files. Workloads are expanded to their pods.

    Args:
        files: the files' paths, or `-` for standard input. A file is YAML or JSON with objects or Lists, plain or
            gzipped. A directory stands for the files in it; see `list_files`.
        override: whether a later object of the same kind and name replaces an earlier one; otherwise this is an error.
            None: an error that does not name `--override`, since the caller has no such option.

    Raises:
        InputError: the input is invalid. The exception has all errors, or the first twenty.
    """
    reader = _RecordingReader(override=override)
    for file in files:
        reader.read(file)
    return reader.finish()


def parse_recording(data: bytes, source: str, *, checks_manifests: bool = False) -> Recording:
    """Read a cluster from one text.

    Args:
        data: the text in YAML or JSON, as UTF-8.
        source: the name of the text in messages.
        checks_manifests: whether objects without a UID are checked as by an API server, as those of files are.

    Raises:
        InputError: the input is invalid. The exception has all errors, or the first twenty.
    """
    reader = _RecordingReader(checks_manifests=checks_manifests)
    reader.sources.append(source)
    try:
        reader.add_entries(read_entries(data, source))
    except UnreadableError as error:
        reader.add_error(error.error)
    return reader.finish()


def check_nodes(recording: Recording) -> None:
    """Check that each node of a manifest has a status, without which it would have no capacity.

    A node with a UID is from an API server, where a node has no status before its kubelet writes it.

    Raises:
        InputError: a node has no status. The exception has all such nodes, or the first twenty.
    """
    location = SourceLocation(join_first(recording.sources))
    message = "is missing; add it, such as {cpu: 4, memory: 8Gi, pods: 110}"
    errors = [
        InputErrorLine(location, message, f"Node {obj.metadata.name}", "status.allocatable")
        for obj in recording.objects
        if isinstance(obj, Node) and not obj.metadata.uid and obj.status == NodeStatus()
    ]
    if errors:
        raise InputError(errors[:_MAX_ERRORS])


def load_cache(
    recording: Recording, gates: FeatureGates | None = None, scheduler_names: Collection[str] | None = None
) -> Cache:
    """Load a recording into a new cache. Nodes follow the other objects, and pods follow the nodes.

    Args:
        recording: the recording.
        gates: the feature gates; None means their default values.
        scheduler_names: the schedulers whose pending pods are loaded; None means all schedulers. The pending pods of
            other schedulers do not count as members of pod groups.

    Source: pkg/scheduler/eventhandlers.go, responsibleForPod (1.36).
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
        if pod.spec.node_name or scheduler_names is None or pod.spec.scheduler_name in scheduler_names:
            cache.add_or_update_pod(pod)
    return cache


def _affects_scheduling(entry: ObjectEntry) -> bool:
    return (entry.version, entry.kind) in KINDS or WORKLOAD_VERSIONS.get(entry.kind) == entry.version


class _RecordingReader:
    """Collects the objects and the errors of all files."""

    def __init__(self, *, override: bool | None = None, checks_manifests: bool = True) -> None:
        self.sources: list[str] = []
        self._override, self._checks_manifests = override, checks_manifests
        self._advice = "keep one of them" + (", or pass --override to use the last one" if override is not None else "")
        self._objects: dict[tuple[type, str, str], KubernetesObject] = {}
        self._workloads: dict[str, Workload] = {}
        self._generated_names: Counter[str] = Counter()
        self._exported_workloads: list[tuple[str, ObjectEntry]] = []  # with the key of the workload that owns it
        self._workload_pod_count = 0
        self._locations: dict[tuple[type, str, str], SourceLocation] = {}
        self._config: ConfigEntry | None = None
        self._skipped: Counter[str] = Counter()
        self._recorded_kinds: set[str] = set()
        self._unreadable_kinds: dict[str, str] = {}
        self._kubernetes_version = ""
        self._errors: list[InputErrorLine] = []

    def read(self, file: str) -> None:
        """Add the objects of a file or a directory. One without an object that scheduling reads is an error."""
        try:
            results = [self._read_file(name, is_named=name == file) for name in list_files(file)]
        except UnreadableError as error:
            self.add_error(error.error)
            return
        if not any(results):
            kinds = ", ".join(sorted(self._skipped)[:_MAX_NAMED_KINDS])
            reason = f"scheduling does not read its kinds, such as {kinds}" if kinds else "it has no object"
            self._add_file_error(file, f"adds nothing to the cluster: {reason}")

    def _read_file(self, file: str, *, is_named: bool) -> bool:
        """Add a file's objects or its error. Return whether it has an error, or an object that scheduling reads."""
        if (name := get_display_name(file)) in self.sources:
            self._add_file_error(file, "is named twice; name it once")
            return True
        self.sources.append(name)
        try:
            return self.add_entries(read_entries(read_file(file, sys.stdin.buffer.read)[1], name))
        except UnreadableError as error:
            if isinstance(error, NoObjectError) and not is_named:
                return False
            self.add_error(error.error)
        except RecursionError:
            self._add_file_error(file, "Lists are nested too deeply; put the objects into one List")
        return True

    def _add_file_error(self, file: str, message: str) -> None:
        self.add_error(InputErrorLine(SourceLocation(get_display_name(file)), message))

    def add_error(self, error: InputErrorLine) -> None:
        """Add an error. Stop reading at the maximum number of errors.

        Raises:
            InputError: the maximum is reached.
        """
        self._errors.append(error)
        if len(self._errors) >= _MAX_ERRORS:
            raise InputError([*self._errors, InputErrorLine(error.location, "too many errors; reading stopped here")])

    def add_entries(self, entries: Iterable[Entry]) -> bool:
        """Add the entries of one text, and return whether one affects scheduling.

        In a text with nodes or pods, a workload of an API server has its pods already. In another text, such as the
        output of `kubectl get deployment web -o yaml`, it is a manifest, unless its owner is one.
        """
        adds_something = is_recording = False
        for entry in entries:
            self._add_entry(entry)
            adds_something |= not isinstance(entry, ObjectEntry) or _affects_scheduling(entry)
            is_recording |= getattr(entry, "kind", "") in {"Node", "Pod"} or isinstance(entry, RecordedKinds)
        for owner_key, entry in () if is_recording else sorted(self._exported_workloads, key=itemgetter(0)):
            try:
                if owner_key not in self._workloads:
                    self._add_workload(entry)
            except InvalidObjectError as error:
                self.add_error(error.error)
        self._exported_workloads.clear()
        return adds_something

    def _add_entry(self, entry: Entry) -> None:
        match entry:
            case InputErrorLine():
                self.add_error(entry)
            case ConfigEntry():
                if self._config is not None:
                    message = f"is a second configuration; the first is in {self._config.location}; keep one of them"
                    self.add_error(InputErrorLine(entry.location, message))
                self._config = entry
            case RecordedKinds():
                self._recorded_kinds.update(entry.kinds)
                self._unreadable_kinds.update(entry.unreadable)
            case RecordedVersion():
                self._kubernetes_version = entry.kubernetes_version
            case ObjectEntry():
                self._add_object_entry(entry)

    def _add_object_entry(self, entry: ObjectEntry) -> None:
        kind = KINDS.get((entry.version, entry.kind))
        is_workload = WORKLOAD_VERSIONS.get(entry.kind) == entry.version
        if kind is None and not is_workload:
            self._skip_entry(entry)
            return
        try:
            obj = decode_entry(entry, kind or Workload)
            owner = obj.metadata.controller
            if is_workload and not obj.metadata.uid:
                self._add_workload(entry)
            elif is_workload:
                owner_key = f"{owner.kind.lower()}/{obj.metadata.namespace}/{owner.name}" if owner is not None else ""
                self._exported_workloads.append((owner_key, entry))
        except InvalidObjectError as error:
            self.add_error(error.error)
            return
        if kind is None:
            return
        if not obj.metadata.name:
            obj = replace(obj, metadata=replace(obj.metadata, name=self._generate_name(obj)))
        # Validate before set_defaults, which copies fields: an error in a copied field would be reported twice.
        misspelled = tuple(self._find_misspelled_fields(entry, obj))
        validation_errors = [*misspelled, *validate_object(obj), *(() if misspelled else self._check_manifest(obj))]
        obj = set_defaults(obj)
        for path, message in validation_errors:
            self.add_error(InputErrorLine(entry.location, message, f"{entry.kind} {obj.metadata.key}", path))
        self._add_object(entry, obj)

    def _find_misspelled_fields(self, entry: ObjectEntry, obj: KubernetesObject) -> Iterable[tuple[str, str]]:
        """Return the path and the error of each misspelled field of a manifest. An object of an API server has none."""
        if obj.metadata.uid or not isinstance(obj, Pod | Workload):
            return ()
        return find_misspelled_fields(get_plain_values(entry), type(obj))

    def _check_manifest(self, obj: KubernetesObject) -> Iterable[tuple[str, str]]:
        """Return the errors of an object that no API server has checked, because it has no UID."""
        return find_invalid_fields(obj) if self._checks_manifests and not obj.metadata.uid else ()

    def _skip_entry(self, entry: ObjectEntry) -> None:
        """Count an object of an unknown kind. A misspelled kind is an error."""
        is_known_kind = entry.kind in _KNOWN_KINDS
        if not is_known_kind and (suggestion := suggest_kind(entry)):
            message = f'"{entry.kind}" is no kind of {entry.version}; did you mean "{suggestion}"?'
            self.add_error(InputErrorLine(entry.location, message, path="kind"))
            return
        kind_name = f"{entry.kind} of {entry.version}" if is_known_kind else entry.kind
        has_own_count = kind_name in self._skipped or len(self._skipped) < _MAX_SKIPPED_KINDS
        self._skipped[kind_name if has_own_count else "of other kinds"] += 1

    def _add_workload(self, entry: ObjectEntry) -> None:
        workload = decode_entry(entry, Workload)
        meta = workload.metadata
        name = meta.name or self._generate_name(workload)
        new_meta = replace(meta, name=name, namespace=meta.namespace or DEFAULT_NAMESPACE)
        workload = expand_cron_job(replace(workload, kind=entry.kind, metadata=new_meta))
        misspelled = tuple(self._find_misspelled_fields(entry, workload))
        errors = [*misspelled, *self._validate_pod_count(workload)]
        if workload.spec.template is not None:
            errors += prefix_paths(f"{workload.spec_path}.template", validate_object(workload.spec.template))
        errors += () if misspelled else self._check_manifest(workload)
        for path, message in errors:
            self.add_error(InputErrorLine(entry.location, message, f"{entry.kind} {workload.metadata.key}", path))
        if workload.key in self._workloads and not self._override:
            message = f"is defined twice; {self._advice}"
            self.add_error(InputErrorLine(entry.location, message, f"{entry.kind} {workload.metadata.key}"))
        self._workloads[workload.key] = workload

    def _validate_pod_count(self, workload: Workload) -> Iterator[tuple[str, str]]:
        """Yield the path and the error of each negative number of pods, and of one that exceeds the limit."""
        for name in ("replicas", "parallelism", "completions"):
            number = getattr(workload.spec, name)
            if number is not None and number < 0:
                yield f"{workload.spec_path}.{name}", f"{number}: want 0 or more"
        self._workload_pod_count += max(count_replicas(workload), 0)
        if self._workload_pod_count > MAX_WORKLOAD_PODS:
            yield "spec", f"the workloads have more than {MAX_WORKLOAD_PODS} pods"

    def _generate_name(self, obj: KubernetesObject) -> str:
        """Return a new name for an object with `generateName`: the prefix and a number from 1."""
        prefix = obj.metadata.generate_name
        self._generated_names[prefix] += 1
        return f"{prefix}{self._generated_names[prefix]}"

    def _add_object(self, entry: ObjectEntry, obj: KubernetesObject) -> None:
        key = (type(obj), obj.metadata.namespace, obj.metadata.name)
        first_location = self._locations.setdefault(key, entry.location)
        if first_location is not entry.location and not self._override:
            message = f"is defined twice; the first definition is in {first_location}; {self._advice}"
            self.add_error(InputErrorLine(entry.location, message, f"{entry.kind} {obj.metadata.key}"))
        self._objects[key] = obj

    def finish(self) -> Recording:
        """Return the recording.

        Raises:
            InputError: an entry was invalid.
        """
        if self._errors:
            raise InputError(self._errors)
        recorded_kinds = self._recorded_kinds | {type(obj).__name__ for obj in self._objects.values()}
        workload_pods = self._expand_workloads()
        return Recording(
            tuple(self._admit_objects()),
            self._config.value if self._config else None,
            str(self._config.location) if self._config else "",
            self._skipped,
            tuple(self.sources),
            frozenset(recorded_kinds),
            self._unreadable_kinds,
            workload_pods,
            self._kubernetes_version,
        )

    def _admit_objects(self) -> Iterator[KubernetesObject]:
        """Yield the objects, with the values that admission plugins of an API server take from other objects."""
        objects = self._objects.values()
        priority_classes = {obj.metadata.name: obj for obj in objects if isinstance(obj, PriorityClass)}
        storage_classes = [obj for obj in objects if isinstance(obj, StorageClass)]
        for obj in objects:
            if isinstance(obj, PersistentVolumeClaim):
                yield set_storage_class(obj, storage_classes)
            else:
                yield set_priority(obj, priority_classes)

    def _expand_workloads(self) -> dict[str, tuple[str, ...]]:
        """Add the missing pods of all workloads; return the keys of all pods of each workload."""
        pods_by_workload = {}
        for workload in self._workloads.values():
            new_pods = make_workload_pods(workload, self._objects.values())
            existing_pods = list_workload_pods(workload, self._objects.values())
            for obj in (*new_pods.other_objects, *new_pods.pods):
                self._objects.setdefault((type(obj), obj.metadata.namespace, obj.metadata.name), obj)
            pods_by_workload[workload.key] = tuple(pod.key for pod in (*existing_pods, *new_pods.pods))
        return pods_by_workload
