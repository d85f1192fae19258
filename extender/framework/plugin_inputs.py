"""Read-only inputs of third-party plugins, so that the plugins cannot modify the shared objects of the cache.

Built-in plugins receive the objects themselves. `protect_inputs` makes a subclass of a third-party plugin. The
methods of the subclass receive read-only inputs. The `state` of a cycle belongs to the plugin and stays as it is.
"""

import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import Any, Final, NoReturn, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod
from extender.api.read_only import (
    ReadOnlyDict,
    ReadOnlyMapping,
    ReadOnlySequence,
    copy_read_only,
    copy_value_read_only,
    refuse_change,
)
from extender.cache.pod_groups import PodGroupMembers
from extender.cache.pod_info import AssignedPodInfo, PodInfo
from extender.cache.pod_signature import PodSignature
from extender.cache.snapshot import NodeView, Snapshot
from extender.cache.tables.arrays import IntArray
from extender.cache.tables.images import ImageState
from extender.framework import binding_points, extension_points, pod_group_points
from extender.framework.events import ClusterEvent, ClusterEventWithHint
from extender.framework.plugin_errors import DEFINING_MODULE, check_sort_key, is_own_module
from extender.framework.plugin_results import check_events, check_result_fields, check_unreserve_result

T = TypeVar("T")
A = TypeVar("A", bound=np.generic)

_PROTOCOLS: Final = (
    extension_points.PreEnqueue,
    extension_points.QueueSort,
    extension_points.PreFilter,
    extension_points.CacheablePreFilter,
    extension_points.PreFilterExtensions,
    extension_points.BatchPreFilterExtensions,
    extension_points.Filter,
    extension_points.CacheableFilter,
    extension_points.PostFilter,
    extension_points.PreScore,
    extension_points.CacheablePreScore,
    extension_points.Score,
    extension_points.CacheableScore,
    extension_points.NormalizeScore,
    binding_points.Reserve,
    binding_points.AssumeExtensions,
    binding_points.Permit,
    pod_group_points.PlacementGenerate,
    pod_group_points.PlacementScore,
    pod_group_points.NormalizePlacementScore,
    binding_points.PreBindPreFlight,
    binding_points.PreBind,
    binding_points.Bind,
    binding_points.PostBind,
    extension_points.EnqueueExtensions,
)


def _collect_method_parameters() -> Mapping[str, tuple[str, ...]]:
    parameters: dict[str, tuple[str, ...]] = {}
    for protocol in _PROTOCOLS:
        for name, member in vars(protocol).items():
            if inspect.isfunction(member) and not name.startswith("_"):
                parameters[name] = tuple(inspect.signature(member).parameters)[1:]
    return parameters


METHOD_PARAMETERS: Final = _collect_method_parameters()
"""The parameter names, without `self`, of all methods that the scheduler calls, by method name."""


def make_array_read_only(array: NDArray[A]) -> NDArray[A]:
    """Return a view of *array* that cannot be written."""
    view = array.view()
    view.flags.writeable = False
    return view


def make_node_read_only(node: Node, snapshot: Snapshot) -> Node:
    """Return a read-only copy of *node*. The copies of a cluster are cached until the nodes change."""
    copies: dict[str, tuple[Node, Node]] = snapshot.symbols.get_or_create(make_node_read_only, dict)
    entry = copies.get(node.metadata.name)
    if entry is None or entry[0] is not node:
        if len(copies) > 2 * len(snapshot) + 100:  # names of nodes that were removed
            copies.clear()
        entry = copies[node.metadata.name] = node, copy_read_only(node)
    return entry[1]


def make_pod_read_only(pod: Pod, signature: "ReadOnlyPodSignature") -> Pod:
    """Return a read-only copy of *pod*, which shares its spec and labels with the *signature* if possible."""
    source, meta = signature.source, pod.metadata
    labels = signature.labels if meta.labels is source.labels else copy_value_read_only(meta.labels)
    return msgspec.structs.replace(
        pod,
        metadata=msgspec.structs.replace(meta, labels=labels, annotations=copy_value_read_only(meta.annotations)),
        spec=signature.spec if pod.spec is source.spec else copy_read_only(pod.spec),
        status=copy_read_only(pod.status),
    )


class ReadOnlyPodSignature(PodSignature):
    """A read-only pod signature. Its derived values, and those of `get_or_create`, are shared with its source."""

    source: PodSignature

    def __init__(self, source: PodSignature) -> None:
        pod = copy_read_only(source.representative_pod)
        values = {"source": source, "representative_pod": pod, "spec": pod.spec, "labels": pod.metadata.labels}
        self.__dict__.update({**vars(source), **values})
        object.__setattr__(self, "_memo", source._memo)  # noqa: SLF001  one memo for both

    requests = property(attrgetter("source.requests"))
    assigned_requests = property(attrgetter("source.assigned_requests"))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        refuse_change(self)


def _share_derived_values() -> None:
    """Read the cached properties of `PodSignature` from the source. Their values are immutable."""
    for name, member in vars(PodSignature).items():
        if isinstance(member, cached_property):
            setattr(ReadOnlyPodSignature, name, property(attrgetter(f"source.{name}")))


_share_derived_values()


def make_signature_read_only(signature: PodSignature) -> ReadOnlyPodSignature:
    """Return the read-only form of *signature*, always the same object."""
    if isinstance(signature, ReadOnlyPodSignature):
        return signature
    return signature.get_or_create(ReadOnlyPodSignature, lambda: ReadOnlyPodSignature(signature))


class ReadOnlyPodInfo(PodInfo):
    """A `PodInfo` with a read-only pod and signature."""

    __slots__ = ()

    def __init__(self, source: PodInfo) -> None:
        signature = make_signature_read_only(source.signature)
        super().__init__(make_pod_read_only(source.pod, signature), signature)


class ReadOnlyAssignedPodInfo(AssignedPodInfo):
    """An `AssignedPodInfo` with a read-only pod and signature, which are made when they are read."""

    __slots__ = ("_source",)
    _source: AssignedPodInfo

    def __init__(self, source: AssignedPodInfo) -> None:
        object.__setattr__(self, "_source", source)

    uid = property(attrgetter("_source.uid"))
    namespace = property(attrgetter("_source.signature.namespace"))
    node_name = property(attrgetter("_source.node_name"))
    terminating = property(attrgetter("_source.terminating"))
    assumed = property(attrgetter("_source.assumed"))

    @property
    def signature(self) -> PodSignature:
        """The signature of the pod."""
        return make_signature_read_only(self._source.signature)

    @property
    def pod(self) -> Pod:
        """The typed object; its `spec.node_name` is empty."""
        return make_pod_read_only(self._source.pod, make_signature_read_only(self._source.signature))


def _make_pods_read_only(pods: Sequence[PodInfo]) -> tuple[PodInfo, ...]:
    return tuple(map(ReadOnlyPodInfo, pods))


def _copy_members(members: PodGroupMembers) -> PodGroupMembers:
    pending = {uid: copy_read_only(pod) for uid, pod in members.pending.items()}
    return PodGroupMembers(pending, {uid: ReadOnlyAssignedPodInfo(pod) for uid, pod in members.assigned.items()})


class ReadOnlySnapshot(Snapshot):
    """A read-only snapshot. It keeps its source alive, so that the cache does not write the shared arrays."""

    __slots__ = ("_source",)

    def __init__(self, source: Snapshot) -> None:
        super().__init__(source.tables)
        self._source, self.position = source, source.position

    @property
    def nodes(self) -> Sequence[Node]:
        """Node objects by row."""
        return ReadOnlySequence(self._source.nodes, lambda node: make_node_read_only(node, self._source))

    def view(self, rows: IntArray | None = None) -> NodeView:
        """Return a view of the nodes of *rows*, or of all nodes if it is None."""
        return ReadOnlyNodeView(self._source.view(rows))


_SNAPSHOT_CONVERTERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "names": lambda names: ReadOnlySequence(names, str),
    "find_changed_rows": make_array_read_only,
    "pods_on": lambda pods: ReadOnlyMapping(pods, ReadOnlyAssignedPodInfo),
    "pods_by_row": lambda pods_by_row: [tuple(map(ReadOnlyAssignedPodInfo, pods)) for pods in pods_by_row],
    "assigned_pods": lambda pods: list(map(ReadOnlyAssignedPodInfo, pods)),
    "nominated_pods": _make_pods_read_only,
    "nominated_pods_by_node": lambda pods_by_node: ReadOnlyMapping(pods_by_node, _make_pods_read_only),
    "make_pod_info": ReadOnlyPodInfo,
    "counts_by_row": make_array_read_only,
    "counts_by_domain": make_array_read_only,
    "sum_by_domain": lambda sums: {key: make_array_read_only(counts) for key, counts in sums.items()},
    "namespace_labels": lambda labels: types.MappingProxyType(dict(labels)),
    "image_state": lambda state: ImageState(state.size, set(state.rows)),
    "node_allocatable_claim_users": lambda uids_by_row: types.MappingProxyType(dict(uids_by_row)),
    "pod_group": _copy_members,
    "get_group": copy_value_read_only,
    "child_groups": tuple,
    "objects": lambda objects: ReadOnlyMapping(objects, copy_value_read_only),
    "get_object": copy_value_read_only,
}
"""The functions that make the results of a snapshot's methods and properties read-only; None stays None."""


def _convert_results(name: str, convert: Callable[[Any], Any]) -> None:
    """Let `ReadOnlySnapshot` convert what the method or property *name* of its source returns."""
    member = vars(Snapshot)[name]

    def read(self: ReadOnlySnapshot, *args: Any, **kwargs: Any) -> Any:
        value = getattr(self._source, name)
        result = value if isinstance(member, property) else value(*args, **kwargs)
        return None if result is None else convert(result)

    read.__doc__ = member.__doc__
    setattr(ReadOnlySnapshot, name, property(read) if isinstance(member, property) else read)


for _name, _convert in _SNAPSHOT_CONVERTERS.items():
    _convert_results(_name, _convert)


class ReadOnlyNodeView(NodeView):
    """A view with a read-only snapshot. Its arrays cannot be written."""

    __slots__ = ("source",)

    def __init__(self, source: NodeView) -> None:
        self.source = source
        rows = None if source.rows is None else make_array_read_only(source.rows)
        super().__init__(ReadOnlySnapshot(source.snapshot), rows)

    def take(self, column: NDArray[A]) -> NDArray[A]:
        """Select the entries of the view's nodes from an array with one entry for each row."""
        return make_array_read_only(super().take(column))


def _make_fields_read_only(value: Any) -> Any:
    """Return a copy of the dataclass instance *value* with read-only arrays, dicts and nested dataclass instances."""
    changes = {
        item.name: _make_field_read_only(part)
        for item in fields(value)
        if item.init and (part := getattr(value, item.name)) is not None
    }
    return replace(value, **changes)


def _make_field_read_only(part: Any) -> Any:
    if type(part) is tuple:
        return tuple(map(_make_field_read_only, part))
    if type(part) is dict:
        return ReadOnlyDict(part)
    if isinstance(part, np.ndarray):
        return make_array_read_only(part)
    return _make_fields_read_only(part) if is_dataclass(part) and not isinstance(part, type) else part


_CONVERTERS: Final[Mapping[type, Callable[[Any], Any]]] = {
    PodInfo: ReadOnlyPodInfo,
    AssignedPodInfo: ReadOnlyAssignedPodInfo,
    Snapshot: ReadOnlySnapshot,
    NodeView: ReadOnlyNodeView,
    np.ndarray: make_array_read_only,
    extension_points.QueueSortEntry: lambda entry: replace(entry, pod=ReadOnlyPodInfo(entry.pod)),
    ClusterEvent: lambda event: replace(event, old=make_read_only(event.old), new=make_read_only(event.new)),
}


def make_read_only(value: Any) -> Any:
    """Return the read-only form of an input of a plugin; values that are already read-only stay as they are."""
    convert = _CONVERTERS.get(type(value))
    if convert is not None:
        return convert(value)
    if isinstance(value, msgspec.Struct):
        return copy_read_only(value)
    diagnosis = getattr(value, "diagnosis", None)  # a failed attempt, for PostFilter
    return value if diagnosis is None else replace(value, diagnosis=_make_fields_read_only(diagnosis))


def protect_hints(events: Sequence[ClusterEventWithHint]) -> Sequence[ClusterEventWithHint]:
    """Return *events* with hints that receive read-only inputs.

    Raises:
        ValueError: the events, or a field of an event, have another type.
    """
    return tuple(
        event if event.hint is None else replace(event, hint=_protect_hint(event.hint))
        for event in check_events(events)
    )


def _protect_hint(hint: Callable[..., Any]) -> Callable[..., Any]:
    return lambda pod, event: hint(make_read_only(pod), make_read_only(event))


_RESULT_CHECKS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "events_to_register": protect_hints,
    "unreserve": check_unreserve_result,
}


def protect_inputs(plugin: type[T]) -> type[T]:
    """Return a subclass of *plugin* whose methods receive read-only inputs, and whose results are checked.

    A built-in plugin is returned unchanged.
    """
    if is_own_module(plugin.__module__) or hasattr(plugin, DEFINING_MODULE):  # a per-node plugin protects itself
        return plugin
    methods: dict[str, Any] = {
        name: _protect_method(plugin, name, parameters.index("state") if "state" in parameters else None)
        for name, parameters in METHOD_PARAMETERS.items()
        if callable(getattr(plugin, name, None))
    }
    if "sort_key" in methods:
        methods["sort_key"] = check_sort_key(methods["sort_key"])
    names = {"__module__": plugin.__module__, "__qualname__": plugin.__qualname__, DEFINING_MODULE: plugin.__module__}
    namespace = {"__slots__": (), "__doc__": plugin.__doc__, **names, **methods}
    return types.new_class(plugin.__name__, (plugin,), {}, lambda members: members.update(namespace))


def _protect_method(plugin: type[Any], name: str, state_position: int | None) -> Callable[..., Any]:
    implementation = inspect.getattr_static(plugin, name)  # a function, a static method or a class method
    check_result = _RESULT_CHECKS.get(name, check_result_fields)

    def call(self: Any, *arguments: Any) -> Any:
        inputs = (
            argument if position == state_position else make_read_only(argument)
            for position, argument in enumerate(arguments)
        )
        return check_result(implementation.__get__(self, plugin)(*inputs))

    call.__name__ = name
    return call
