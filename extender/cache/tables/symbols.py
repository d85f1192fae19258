"""Intern values of a cluster as small integers: resource names, taints, features, label values and labels of pods.

A value is interned when it is first needed. Ids are never reused, so the tables and snapshots of a cluster share one
`Symbols`. If most values of nodes are unused, the tables get new symbols; earlier snapshots keep theirs.
"""

from collections.abc import Callable, Hashable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar, cast
from weakref import WeakValueDictionary

from extender.api.kinds.node import Taint
from extender.basics.intern import Interner, InternerFork

T = TypeVar("T")

_MAX_MEMO_ENTRIES = 4096

MAX_UNUSED_VALUES = 1024
"""Limit of the taint lists, feature sets or values of one label that no node has, beyond the number of nodes."""

_MAX_UNUSED_LABEL_KEYS = 4096
"""Limit of the label keys without values that are retained. The rules of one pod may name a thousand such keys."""

_MAX_USED_LABEL_KEYS = 1024
"""Limit of the label keys with values that are retained, also of keys that nodes had when a pod named them."""

CPU, MEMORY, EPHEMERAL_STORAGE = 0, 1, 2
"""Ids of the first three resources in `Symbols.resources`. Units: milli-CPU, bytes, bytes."""

UNKNOWN_RESOURCE = 1 << 30
"""The id of all resources that no node has had. Each node has 0 of it.

Pods may request resources without end, so their names are not interned.
"""


class PodLabels:
    """The namespace of a pod and its labels. Equal `PodLabels` are the same object (see `Symbols`).

    Attributes:
        labels: the labels, which are those of a pod; read-only.
    """

    __slots__ = ("__weakref__", "labels", "namespace")

    def __init__(self, namespace: str, labels: Mapping[str, str]) -> None:
        self.namespace = namespace
        self.labels = labels


class Symbols:
    """The interned values of one cluster, append-only.

    Attributes:
        resources: names of resources that nodes have had or the configuration names; the first three are cpu, memory
            and ephemeral-storage.
        taint_sets: lists of taints, each in the order of a node's spec.
        feature_sets: sets of declared node features.
    """

    def __init__(self) -> None:
        self.resources: Interner[str] = Interner(("cpu", "memory", "ephemeral-storage"))
        self.taint_sets: Interner[tuple[Taint, ...]] = Interner(((),))
        self.feature_sets: Interner[frozenset[str]] = Interner((frozenset(),))
        # Many pods have labels of their own. So their labels are kept only as long as a pod or a count has them.
        self._pod_labels: WeakValueDictionary[object, PodLabels] = WeakValueDictionary()
        self._label_values: dict[str, Interner[str]] = {}
        self._max_label_keys = _MAX_UNUSED_LABEL_KEYS
        self._original: Symbols | None = None
        self._memo: dict[Hashable, Any] = {}

    def fork_node_sets(self) -> "Symbols":
        """Return symbols whose new sets of taints, sets of features and label values are not added to these symbols.

        All other values are shared, because the ids of resources and of the labels of pods are also those of pods.
        """
        child = object.__new__(Symbols)
        child.resources, child._pod_labels = self.resources, self._pod_labels
        child._label_values, child._max_label_keys, child._original = {}, _MAX_UNUSED_LABEL_KEYS, self
        child.taint_sets, child.feature_sets = InternerFork(self.taint_sets), InternerFork(self.feature_sets)
        child._memo = {}
        return child

    def without_node_values(self) -> "Symbols":
        """Return symbols without taints, features and label values; all other values are shared, as in a fork."""
        symbols = Symbols()
        symbols.resources, symbols._pod_labels = self.resources, self._pod_labels
        return symbols

    def get_or_create(self, key: Hashable, create: Callable[[], T]) -> T:
        """Return the cached value of *key*, or cache the result of *create*.

        Use it for values that many pod signatures share. A value must depend only on its key and on interned values.
        """
        memo = self._memo
        if key not in memo:
            if len(memo) >= _MAX_MEMO_ENTRIES:
                memo.clear()
            memo[key] = create()
        return cast("T", memo[key])

    def forget_values(self) -> None:
        """Drop the values that `get_or_create` cached."""
        self._memo.clear()

    def get_resource_id(self, name: str) -> int:
        """Return the id of a resource that a pod requests; `UNKNOWN_RESOURCE` if no node has had it."""
        resource_id = self.resources.get(name)
        return UNKNOWN_RESOURCE if resource_id is None else resource_id

    def get_label_values(self, key: str) -> Interner[str]:
        """Return the interned values of the node label *key*.

        Do not store the result: as long as it is empty, it may be replaced.
        """
        values = self._label_values.get(key)
        if values is None:
            if len(self._label_values) >= self._max_label_keys:
                self._drop_unused_label_keys()
            original = self._original
            values = Interner() if original is None else InternerFork(original.get_label_values(key))
            self._label_values[key] = values
        return values

    @property
    def has_many_label_keys(self) -> bool:
        """Whether most label keys have values of removed nodes only, because few keys have a column."""
        return self._max_label_keys > _MAX_USED_LABEL_KEYS + _MAX_UNUSED_LABEL_KEYS

    def _drop_unused_label_keys(self) -> None:
        self._label_values = {key: values for key, values in self._label_values.items() if len(values)}
        self._max_label_keys = len(self._label_values) + _MAX_UNUSED_LABEL_KEYS

    def intern_pod_labels(self, namespace: str, labels: Mapping[str, str]) -> PodLabels:
        """Return the one object with this namespace and these labels."""
        sorted_labels = tuple(sorted(labels.items()))
        pod_labels = self._pod_labels.get((namespace, sorted_labels))
        if pod_labels is None:
            pod_labels = self._pod_labels[namespace, sorted_labels] = PodLabels(namespace, MappingProxyType(labels))
        return pod_labels
