"""Where in a view of nodes the conditions of volumes hold, as positions in the view.

A cluster may have a volume a node, each with a condition on the node's name: going over all nodes for each of them
would take the product. So the nodes are sorted by the values of a label once, and a condition that names values looks
up where they are.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from extender.cluster.arrays import IntArray
from extender.cluster.node_matching import requirements_mask
from extender.cluster.snapshot import NodeView
from extender.objects.affinity import NodeSelector
from extender.objects.matching import NodeTerms, Requirement, Selector, compile_node_selector
from extender.objects.storage import TopologySelectorTerm

_FEW = 32
"""Views up to this size are not sorted."""


@lru_cache(maxsize=1 << 16)
def node_terms(selector: NodeSelector) -> NodeTerms:
    """A volume's node selector compiled."""
    return compile_node_selector(selector)


class Places:
    """Positions in one view."""

    __slots__ = ("_found", "_nodes", "_sorted", "everywhere")

    def __init__(self, nodes: NodeView) -> None:
        self._nodes = nodes
        self._sorted: dict[str, tuple[IntArray, IntArray]] = {}
        self._found: dict[NodeTerms, IntArray] = {}
        self.everywhere: IntArray = np.arange(len(nodes), dtype=np.int64)
        """All positions."""

    def __len__(self) -> int:
        return len(self.everywhere)

    def of_terms(self, terms: NodeTerms | None) -> IntArray:
        """Where any of *terms* holds; None holds everywhere. Conditions on fields count as met."""
        if terms is None:
            return self.everywhere
        found = self._found.get(terms)
        if found is None:
            parts = [self.of_rules(term.labels) for term in terms.terms if not term.errors]
            found = parts[0] if len(parts) == 1 else np.unique(np.concatenate([*parts, self.everywhere[:0]]))
            self._found[terms] = found
        return found

    def of_selector(self, selector: Selector) -> IntArray:
        """Where *selector* selects the node."""
        return self.everywhere[:0] if selector.nothing else self.of_rules(selector.requirements)

    def of_topologies(self, terms: Sequence[TopologySelectorTerm]) -> IntArray:
        """Where the labels are among those of a term; no terms hold everywhere, a term without conditions nowhere.

        Source: B096.
        """
        if not terms:
            return self.everywhere
        parts = [
            self.of_rules([Requirement(rule.key, "In", rule.values) for rule in term.match_label_expressions])
            for term in terms
            if term.match_label_expressions and all(rule.values for rule in term.match_label_expressions)
        ]
        return np.unique(np.concatenate([*parts, self.everywhere[:0]]))

    def of_rules(self, rules: Sequence[Requirement]) -> IntArray:
        """Where all of *rules* hold."""
        lead = next((rule for rule in rules if rule.operator == "In"), None) if len(self) > _FEW else None
        if lead is None:
            return np.flatnonzero(requirements_mask(self._nodes, rules)) if rules else self.everywhere
        found = self._having(lead)
        rest = [rule for rule in rules if rule is not lead]
        if not rest or not len(found):
            return found
        rows = self._nodes.rows
        view = self._nodes.snapshot.view(found if rows is None else rows[found])
        return found[requirements_mask(view, rest)]

    def _having(self, rule: Requirement) -> IntArray:
        words = self._nodes.snapshot.vocabulary.label_values(rule.key)
        order, starts = self._by_value(rule.key)
        parts = [
            order[starts[number + 1] : starts[number + 2]]
            for value in dict.fromkeys(rule.values)
            if (number := words.find(value)) is not None and number + 2 < len(starts)
        ]
        return parts[0] if len(parts) == 1 else np.concatenate([*parts, self.everywhere[:0]])

    def _by_value(self, key: str) -> tuple[IntArray, IntArray]:
        """Positions sorted by the value of a label, and where each value starts, absent ones first."""
        known = self._sorted.get(key)
        if known is None:
            values = self._nodes.label(key) + 1
            starts = np.concatenate([[0], np.cumsum(np.bincount(values))]).astype(np.int64)
            known = self._sorted[key] = (np.argsort(values, kind="stable"), starts)
        return known
