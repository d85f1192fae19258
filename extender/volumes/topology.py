"""Match the topology requirements of volumes with the nodes of a view.

A cluster may have one volume for each node, each with a requirement on the node's name. To evaluate each volume on all
nodes would take volumes x nodes evaluations. So the nodes are sorted once by the values of a label. A requirement that
lists values looks up the nodes with these values.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeVar

import numpy as np

from extender.api.kinds.affinity import NodeSelector
from extender.api.kinds.storage import TopologySelectorTerm
from extender.api.matching import CompiledNodeSelector, Requirement, Selector, compile_node_selector
from extender.basics.intern import Interner
from extender.cache.node_matching import match_requirements
from extender.cache.snapshot import NodeView
from extender.cache.tables.arrays import IntArray

_SelectorT = TypeVar("_SelectorT", CompiledNodeSelector, Selector)

_MAX_UNSORTED_NODES = 32
"""Views with at most this many nodes are not sorted."""


@lru_cache(maxsize=1 << 16)
def compile_volume_node_selector(selector: NodeSelector) -> CompiledNodeSelector:
    """Compile a volume's node selector."""
    return compile_node_selector(selector)


class TopologyIndex:
    """Index of the nodes of one view by label values. Results are positions in the view, int64.

    Attributes:
        all_positions: the positions of all nodes.
    """

    def __init__(self, nodes: NodeView) -> None:
        self._nodes = nodes
        self._sorted_by_label: dict[str, tuple[IntArray, IntArray]] = {}
        self._positions_by_selector: dict[CompiledNodeSelector, IntArray] = {}
        # By id, with the selector: a pod may have many claims, and the hash of a selector takes as long as its match.
        self._positions_by_selector_id: dict[int, tuple[object, IntArray]] = {}
        self.all_positions: IntArray = np.arange(len(nodes), dtype=np.int64)

    def __len__(self) -> int:
        return len(self.all_positions)

    def get_label_values(self, key: str) -> Interner[str]:
        """Return the ids of the values of the node label *key*, after `get_label_value_ids` has added the values."""
        return self._nodes.snapshot.symbols.get_label_values(key)

    def get_label_value_ids(self, key: str) -> IntArray:
        """Return the id of each node's value of the label *key*, -1 without the label: int64, shape (len(self),)."""
        return self._nodes.label_value_ids(key)

    def match_node_selector(self, selector: CompiledNodeSelector | None) -> IntArray:
        """Return the positions of nodes that *selector* matches; None matches all. Field requirements are ignored."""
        if selector is None:
            return self.all_positions
        return self._match_once(selector, self._match_node_selector)

    def match_label_selector(self, selector: Selector) -> IntArray:
        """Return the positions of nodes that *selector* matches."""
        return self._match_once(selector, self._match_label_selector)

    def _match_once(self, selector: _SelectorT, match: Callable[[_SelectorT], IntArray]) -> IntArray:
        """Return the result of *match* for *selector*, which is called once for this object."""
        selector_and_positions = self._positions_by_selector_id.get(id(selector))
        if selector_and_positions is None:
            selector_and_positions = self._positions_by_selector_id[id(selector)] = selector, match(selector)
        return selector_and_positions[1]

    def _match_node_selector(self, selector: CompiledNodeSelector) -> IntArray:
        positions = self._positions_by_selector.get(selector)
        if positions is None:
            positions_by_term = [
                self.match_requirements(term.label_requirements) for term in selector.terms if not term.errors
            ]
            if len(positions_by_term) == 1:
                positions = positions_by_term[0]
            else:
                positions = np.unique(np.concatenate([*positions_by_term, self.all_positions[:0]]))
            self._positions_by_selector[selector] = positions
        return positions

    def _match_label_selector(self, selector: Selector) -> IntArray:
        return self.all_positions[:0] if selector.matches_nothing else self.match_requirements(selector.requirements)

    def match_topologies(self, terms: Sequence[TopologySelectorTerm]) -> IntArray:
        """Return the positions of nodes that match any term; all if *terms* is empty. An empty term matches no node.

        Source: pkg/scheduler/framework/plugins/volumebinding/binder.go, volumeBinder.checkVolumeProvisions (1.36).
        """
        if not terms:
            return self.all_positions
        positions_by_term = [
            self.match_requirements(
                [Requirement(expression.key, "In", expression.values) for expression in term.match_label_expressions]
            )
            for term in terms
            if term.match_label_expressions and all(expression.values for expression in term.match_label_expressions)
        ]
        return np.unique(np.concatenate([*positions_by_term, self.all_positions[:0]]))

    def match_requirements(self, requirements: Sequence[Requirement]) -> IntArray:
        """Return the positions of nodes that match all of *requirements*."""
        indexed_requirement = None
        if len(self) > _MAX_UNSORTED_NODES:
            indexed_requirement = next(
                (requirement for requirement in requirements if requirement.operator == "In"), None
            )
        if indexed_requirement is None:
            if not requirements:
                return self.all_positions
            return np.flatnonzero(match_requirements(self._nodes, requirements))
        positions = self._match_values(indexed_requirement)
        remaining_requirements = [requirement for requirement in requirements if requirement is not indexed_requirement]
        if not remaining_requirements or not len(positions):
            return positions
        rows = self._nodes.rows
        view = self._nodes.snapshot.view(positions if rows is None else rows[positions])
        return positions[match_requirements(view, remaining_requirements)]

    def _match_values(self, requirement: Requirement) -> IntArray:
        label_values = self.get_label_values(requirement.key)
        order, starts = self._sort_by_value(requirement.key)
        positions_by_value = [
            order[starts[value_id + 1] : starts[value_id + 2]]
            for value in dict.fromkeys(requirement.values)
            if (value_id := label_values.get(value)) is not None and value_id + 2 < len(starts)
        ]
        return (
            positions_by_value[0]
            if len(positions_by_value) == 1
            else np.concatenate([*positions_by_value, self.all_positions[:0]])
        )

    def _sort_by_value(self, key: str) -> tuple[IntArray, IntArray]:
        """Return the positions sorted by label value, and each value's start. Nodes without the label come first."""
        sorted_positions = self._sorted_by_label.get(key)
        if sorted_positions is None:
            shifted_ids = self.get_label_value_ids(key) + 1
            starts = np.concatenate([[0], np.cumsum(np.bincount(shifted_ids))]).astype(np.int64)
            sorted_positions = self._sorted_by_label[key] = (np.argsort(shifted_ids, kind="stable"), starts)
        return sorted_positions
