"""The words of a cluster as small integers: resources, taint sets, feature sets, label values, classes of pods.

Everything is interned once, when an object arrives, never in a scheduling cycle. Ids are never reused, so tables,
snapshots and
hypotheses share one vocabulary.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from extender.basics.intern import Interner
from extender.objects.node import Taint

T = TypeVar("T")

_MOST_REMEMBERED = 4096

CPU, MEMORY, EPHEMERAL_STORAGE = 0, 1, 2
"""Ids of the resources that every cluster has (milli-CPU, bytes, bytes)."""


@dataclass(frozen=True, slots=True)
class PodClass:
    """What a pod selector can see of a pod: its namespace and its labels, sorted by key."""

    namespace: str
    labels: tuple[tuple[str, str], ...]


class Vocabulary:
    """The interned words; append-only and shared by all views of one cluster.

    Attributes:
        resources: resource names; the first three are cpu, memory and ephemeral-storage.
        taint_sets: the taints of a node, in the node's order.
        feature_sets: the declared features of a node.
        pod_classes: namespace and labels of pods.
    """

    __slots__ = ("_label_values", "_remembered", "feature_sets", "pod_classes", "resources", "taint_sets")

    def __init__(self) -> None:
        self.resources: Interner[str] = Interner(("cpu", "memory", "ephemeral-storage"))
        self.taint_sets: Interner[tuple[Taint, ...]] = Interner(((),))
        self.feature_sets: Interner[frozenset[str]] = Interner((frozenset(),))
        self.pod_classes: Interner[PodClass] = Interner()
        self._label_values: dict[str, Interner[str]] = {}
        self._remembered: dict[Hashable, Any] = {}

    def remember(self, key: Hashable, make: Callable[[], T]) -> T:
        """What *make* returned when it was first asked for under *key*; for what hangs on the key and on ids alone.

        Pods of many shapes have that in common, so it outlives them.
        """
        known = self._remembered
        if key not in known:
            if len(known) >= _MOST_REMEMBERED:
                known.clear()
            known[key] = make()
        return cast("T", known[key])

    def label_values(self, key: str) -> Interner[str]:
        """The values seen under the node label *key*."""
        values = self._label_values.get(key)
        if values is None:
            values = self._label_values[key] = Interner()
        return values
