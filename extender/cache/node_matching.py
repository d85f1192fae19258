"""Match the nodes of a view against selectors, required node affinity and tolerations.

The masks are bool arrays with one entry for each node of the view. No function loops over nodes: a requirement is
evaluated once for each value of its label, and tolerations once for each distinct list of taints. The id columns of
the node table then map these results to the nodes.
"""

from collections.abc import Callable, Collection, Sequence

import numpy as np

from extender.api.kinds.affinity import Toleration
from extender.api.kinds.node import Taint
from extender.api.label_syntax import parse_int64
from extender.api.matching import (
    CompiledNodeSelector,
    CompiledNodeSelectorTerm,
    RequiredNodeAffinity,
    Requirement,
    get_required_node_affinity,
)
from extender.api.tolerations import find_untolerated_taint
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import NodeView
from extender.cache.tables.arrays import BoolArray, IntArray, make_mask
from extender.cache.tables.node_table import ABSENT

_NAME_FIELD = "metadata.name"


def get_compiled_required_node_affinity(pod: PodInfo) -> RequiredNodeAffinity:
    """Return the compiled required node affinity of *pod*, cached by pod signature.

    Source: component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go, RequiredNodeAffinity.Match (1.36).
    """
    return pod.signature.get_or_create(("node_matching", "required"), lambda: get_required_node_affinity(pod.pod))


def match_required_node_affinity(nodes: NodeView, pod: PodInfo) -> BoolArray:
    """Return a new mask of the nodes that match the pod's node selector and required node affinity.

    Source: component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go, RequiredNodeAffinity.Match (1.36).
    """
    required = get_compiled_required_node_affinity(pod)
    mask = match_requirements(nodes, required.label_selector.requirements)
    return mask if required.node_selector is None else mask & match_node_selector(nodes, required.node_selector)


def match_node_selector(nodes: NodeView, selector: CompiledNodeSelector) -> BoolArray:
    """Return a mask of the nodes that match any term of *selector*; without terms no node matches."""
    mask = np.zeros(len(nodes), dtype=np.bool_)
    for term in selector.terms:
        mask |= match_node_selector_term(nodes, term)
    return mask


def match_node_selector_term(nodes: NodeView, term: CompiledNodeSelectorTerm) -> BoolArray:
    """Return a mask of the nodes that match every requirement of *term*; a term with errors matches no node."""
    if term.errors:
        return np.zeros(len(nodes), dtype=np.bool_)
    mask = match_requirements(nodes, term.label_requirements)
    for requirement in term.field_requirements:
        mask &= _match_field(nodes, requirement)
    return mask


def match_requirements(nodes: NodeView, requirements: Sequence[Requirement]) -> BoolArray:
    """Return a new mask of the nodes whose labels match all of *requirements*."""
    mask = np.ones(len(nodes), dtype=np.bool_)
    for requirement in requirements:
        mask &= _match_label(nodes, requirement)
    return mask


def _match_label(nodes: NodeView, requirement: Requirement) -> BoolArray:
    value_ids = nodes.label_value_ids(requirement.key)
    match requirement.operator:
        case "Exists":
            return ~_match_value_id(value_ids, ABSENT)
        case "DoesNotExist":
            return _match_value_id(value_ids, ABSENT)
        case "In":
            return _match_listed_values(nodes, value_ids, requirement)
        case "NotIn":
            return ~_match_listed_values(nodes, value_ids, requirement)
        case _:
            return _match_number(nodes, value_ids, requirement)


def _match_number(nodes: NodeView, value_ids: IntArray, requirement: Requirement) -> BoolArray:
    """Match the operators Gt and Lt."""
    limit = parse_int64(requirement.values[0])
    if limit is None:
        return np.zeros(len(nodes), dtype=np.bool_)
    numbers, is_number = _get_label_numbers(nodes, requirement.key)
    matches_by_id = is_number & (numbers > limit if requirement.operator == "Gt" else numbers < limit)
    mask: BoolArray = matches_by_id[value_ids]
    return mask


def _get_label_numbers(nodes: NodeView, key: str) -> tuple[IntArray, BoolArray]:
    """Return the values of label *key* as numbers, by value id, and a mask of the values that are numbers.

    The other values are 0. Both arrays end with an entry for `ABSENT`.
    """
    symbols = nodes.snapshot.symbols
    label_values = symbols.get_label_values(key)

    def parse_values() -> tuple[IntArray, BoolArray]:
        numbers = [*map(parse_int64, label_values), None]
        return np.array([number or 0 for number in numbers]), np.array([number is not None for number in numbers])

    return symbols.get_or_create(("label numbers", key, len(label_values)), parse_values)


def _match_value_id(value_ids: IntArray, value_id: int) -> BoolArray:
    mask: BoolArray = value_ids == value_id
    return mask


def _match_listed_values(nodes: NodeView, value_ids: IntArray, requirement: Requirement) -> BoolArray:
    label_values = nodes.snapshot.symbols.get_label_values(requirement.key)
    accepted_ids = [value_id for value in requirement.values if (value_id := label_values.get(value)) is not None]
    if len(accepted_ids) == 1:
        return _match_value_id(value_ids, accepted_ids[0])
    return make_mask(accepted_ids, len(label_values) + 1)[value_ids]


def _match_field(nodes: NodeView, requirement: Requirement) -> BoolArray:
    if requirement.key != _NAME_FIELD:
        return np.full(len(nodes), requirement.matches(""), dtype=np.bool_)
    mask = match_names(nodes, requirement.values)
    return mask if requirement.operator == "In" else ~mask


def match_names(nodes: NodeView, names: Collection[str]) -> BoolArray:
    """Return a mask of the nodes with one of *names*."""
    mask = np.zeros(len(nodes), dtype=np.bool_)
    for name in names:
        row = nodes.snapshot.row(name)
        if row is None:
            continue
        if nodes.rows is None:
            mask[row] = True
        else:
            mask |= nodes.rows == row
    return mask


def match_untolerated_taints(
    nodes: NodeView, tolerations: Collection[Toleration], *, comparison_operators: bool = False
) -> BoolArray:
    """Return a mask of the nodes that have an untolerated taint of effect `NoSchedule` or `NoExecute`.

    *comparison_operators* enables the operators Gt and Lt (gate TaintTolerationComparisonOperators).

    Source: api/core/v1/toleration.go, Toleration.ToleratesTaint;
    pkg/scheduler/framework/plugins/tainttoleration/taint_toleration.go, TaintToleration.Filter (1.36).
    """

    def has_untolerated_taint(taints: tuple[Taint, ...]) -> int:
        return int(find_untolerated_taint(taints, tolerations, comparison_operators=comparison_operators) is not None)

    return map_taint_sets(nodes, has_untolerated_taint).astype(np.bool_)


def map_taint_sets(nodes: NodeView, function: Callable[[tuple[Taint, ...]], int]) -> IntArray:
    """Apply *function* once to each distinct list of taints; return each node's result: int64, shape (len(nodes),)."""
    set_ids = nodes.taint_set_ids
    taint_sets = nodes.snapshot.symbols.taint_sets
    results = np.zeros(len(taint_sets), dtype=np.int64)
    for set_id in np.flatnonzero(np.bincount(set_ids)).tolist():
        results[set_id] = function(taint_sets[set_id])
    return results[set_ids]
