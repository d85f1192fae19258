"""The affinity terms that pods on nodes carry themselves, counted by node: what existing pods want or refuse near them.

Source: B055(a), B062.
"""

from dataclasses import dataclass
from enum import Enum

import numpy as np

from extender.basics.intern import Interner
from extender.cluster.nodes import NodeTable
from extender.cluster.rowcounts import RowCounts
from extender.cluster.selecting import PodTerm
from extender.cluster.vocabulary import PodClass

_DEAD_MOST = 1024
"""Terms of pods that are all gone which may stay before the table is tidied."""


class TermKind(Enum):
    """In which list of the pod's affinity a term stands."""

    REQUIRED_AFFINITY = "required affinity"
    REQUIRED_ANTI_AFFINITY = "required anti-affinity"
    PREFERRED_AFFINITY = "preferred affinity"
    PREFERRED_ANTI_AFFINITY = "preferred anti-affinity"


@dataclass(frozen=True, slots=True)
class CarriedTerm:
    """One affinity term of a pod, with the domain it talks about.

    Attributes:
        kind: which list it is from.
        term: the pods it talks about.
        topology_key: the node label whose equal values make a domain.
        weight: of a preferred term, 1 to 100; 0 for required ones.
    """

    kind: TermKind
    term: PodTerm
    topology_key: str
    weight: int = 0


class TermTable:
    """Carried terms to the pods that carry them, by node."""

    __slots__ = ("_classes", "_counts", "_epoch", "_found", "namespace_labels")

    def __init__(self, classes: Interner[PodClass]) -> None:
        self._epoch = object()
        self._classes = classes
        self._counts: dict[CarriedTerm, RowCounts] = {}
        self._found: dict[int, tuple[CarriedTerm, ...]] = {}
        self.namespace_labels: dict[str, dict[str, str]] = {}

    def fork(self) -> "TermTable":
        """The same terms, to be written without touching these."""
        child = TermTable(self._classes)
        child._counts = dict(self._counts)
        child._found = dict(self._found)
        child.namespace_labels = self.namespace_labels
        return child

    def add(self, carried: tuple[CarriedTerm, ...], row: int, nodes: NodeTable, *, sign: int = 1) -> None:
        """A pod that carries *carried* comes to *row* (*sign* 1) or leaves it (-1)."""
        for term in carried:
            counts = self._counts.get(term)
            if counts is None:
                counts = self._counts[term] = RowCounts(np.zeros(nodes.columns.capacity, dtype=np.int64), self._epoch)
                self._found = {}
            elif counts.epoch is not self._epoch:
                counts = self._counts[term] = counts.forked(self._epoch)
            counts.bump(row, sign, nodes)
        if sign < 0:
            self._tidy()

    def _tidy(self) -> None:
        if len(self._counts) <= _DEAD_MOST:
            return
        alive = {term: counts for term, counts in self._counts.items() if counts.total}
        if len(alive) < len(self._counts) // 2:
            self._counts, self._found = alive, {}

    def about(self, number: int) -> tuple[tuple[CarriedTerm, RowCounts], ...]:
        """The terms that talk about pods of class *number*, and who carries them. Read them only."""
        found = self._found.get(number)
        if found is None:
            pod_class = self._classes[number]
            labels = dict(pod_class.labels)
            namespace_labels = self.namespace_labels.get(pod_class.namespace, {})
            found = self._found[number] = tuple(
                carried
                for carried in self._counts
                if carried.term.matches(pod_class.namespace, labels, namespace_labels)
            )
        return tuple((carried, counts) for carried in found if (counts := self._counts[carried]).total)

    def known(self) -> list[tuple[CarriedTerm, RowCounts]]:
        """Every term that is or was carried, with its carriers."""
        return list(self._counts.items())

    def labels_changed(self, keys: set[str]) -> None:
        """The domains of topology *keys* changed: they are summed anew when asked for."""
        for term, counts in self._counts.items():
            # counts of another epoch are shared with older views, which may yet sum them by the labels
            # of their own time
            if counts.epoch is not self._epoch or keys & counts.domains.keys():
                self._counts[term] = counts.without_domains(keys)

    def namespaces_changed(self, labels: dict[str, dict[str, str]]) -> None:
        """Namespace labels are now *labels*."""
        self.namespace_labels = labels
        self._found = {}
