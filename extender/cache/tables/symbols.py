"""Intern values of a cluster as small integers: resource names, taints, features, label values and labels of pods.

Values are interned when an object is written, never in a scheduling cycle. Ids are never reused, so all tables and
snapshots of a cluster share one `Symbols`.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from extender.api.kinds.node import Taint
from extender.basics.intern import Interner

T = TypeVar("T")

_MAX_MEMO_ENTRIES = 4096

CPU, MEMORY, EPHEMERAL_STORAGE = 0, 1, 2
"""Ids of the first three resources in `Symbols.resources`. Units: milli-CPU, bytes, bytes."""


@dataclass(frozen=True, slots=True)
class PodLabels:
    """The namespace of a pod and its labels, sorted by key."""

    namespace: str
    labels: tuple[tuple[str, str], ...]


class Symbols:
    """The interned values of one cluster, append-only.

    Attributes:
        resources: resource names; the first three are cpu, memory and ephemeral-storage.
        taint_sets: the taints of a node, in the node's order.
        feature_sets: the declared features of a node.
        pod_labels: the namespace and labels of a pod.
    """

    __slots__ = ("_label_values", "_memo", "feature_sets", "pod_labels", "resources", "taint_sets")

    def __init__(self) -> None:
        self.resources: Interner[str] = Interner(("cpu", "memory", "ephemeral-storage"))
        self.taint_sets: Interner[tuple[Taint, ...]] = Interner(((),))
        self.feature_sets: Interner[frozenset[str]] = Interner((frozenset(),))
        self.pod_labels: Interner[PodLabels] = Interner()
        self._label_values: dict[str, Interner[str]] = {}
        self._memo: dict[Hashable, Any] = {}

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

    def get_label_values(self, key: str) -> Interner[str]:
        """Return the interned values of the node label *key*."""
        values = self._label_values.get(key)
        if values is None:
            values = self._label_values[key] = Interner()
        return values
