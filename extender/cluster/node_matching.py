"""Which nodes of a view a selector, a required node affinity or a set of tolerations is content with, as bool arrays.

Nothing here walks over nodes: a label requirement is looked up among the values of its label, taints are judged once
a distinct list, and the verdicts are gathered by the columns that hold the ids.
"""

from collections.abc import Callable, Collection, Sequence

import numpy as np

from extender.cluster.arrays import BoolArray, IntArray
from extender.cluster.nodes import ABSENT
from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import NodeView
from extender.objects.affinity import Toleration
from extender.objects.matching import NodeTerm, NodeTerms, RequiredNodeAffinity, Requirement, required_node_affinity
from extender.objects.node import Taint
from extender.objects.tolerations import HARD_EFFECTS, untolerated

_NAME_FIELD = "metadata.name"


def required_affinity(pod: PodQuery) -> RequiredNodeAffinity:
    """What *pod* requires of its node, compiled once for all pods of its shape. Source: B008."""
    return pod.shape.remember(("node_matching", "required"), lambda: required_node_affinity(pod.pod))


def required_affinity_mask(nodes: NodeView, pod: PodQuery) -> BoolArray:
    """Which nodes satisfy the pod's node selector and required node affinity: a new bool array, shape (len(nodes),).

    Source: B008.
    """
    required = required_affinity(pod)
    mask = requirements_mask(nodes, required.selector.requirements)
    return mask if required.terms is None else mask & terms_mask(nodes, required.terms)


def terms_mask(nodes: NodeView, selector: NodeTerms) -> BoolArray:
    """Which nodes satisfy any term of a compiled node selector: bool, shape (len(nodes),); without terms none does."""
    mask = np.zeros(len(nodes), dtype=np.bool_)
    for term in selector.terms:
        mask |= term_mask(nodes, term)
    return mask


def term_mask(nodes: NodeView, term: NodeTerm) -> BoolArray:
    """Which nodes satisfy every condition of *term*: bool, shape (len(nodes),); a faulty term matches none."""
    if term.errors:
        return np.zeros(len(nodes), dtype=np.bool_)
    mask = requirements_mask(nodes, term.labels)
    for rule in term.fields:
        mask &= _field_mask(nodes, rule)
    return mask


def requirements_mask(nodes: NodeView, rules: Sequence[Requirement]) -> BoolArray:
    """Which nodes have labels that satisfy all of *rules*: a new bool array, shape (len(nodes),)."""
    mask = np.ones(len(nodes), dtype=np.bool_)
    for rule in rules:
        mask &= _label_mask(nodes, rule)
    return mask


def _label_mask(nodes: NodeView, rule: Requirement) -> BoolArray:
    values = nodes.label(rule.key)
    match rule.operator:
        case "Exists":
            return ~_is(values, ABSENT)
        case "DoesNotExist":
            return _is(values, ABSENT)
        case "In":
            return _among(nodes, values, rule)
        case "NotIn":
            return ~_among(nodes, values, rule)
        case _:
            words = nodes.snapshot.vocabulary.label_values(rule.key)
            verdicts = np.zeros(len(words) + 1, dtype=np.bool_)
            for number in np.flatnonzero(np.bincount(values[values != ABSENT])).tolist():
                verdicts[number] = rule.matches(words[number])
            return verdicts[values]


def _is(values: IntArray, number: int) -> BoolArray:
    same: BoolArray = values == number
    return same


def _among(nodes: NodeView, values: IntArray, rule: Requirement) -> BoolArray:
    words = nodes.snapshot.vocabulary.label_values(rule.key)
    wanted = [number for value in rule.values if (number := words.find(value)) is not None]
    if len(wanted) == 1:
        return _is(values, wanted[0])
    verdicts = np.zeros(len(words) + 1, dtype=np.bool_)
    verdicts[wanted] = True
    return verdicts[values]


def _field_mask(nodes: NodeView, rule: Requirement) -> BoolArray:
    if rule.key != _NAME_FIELD:
        return np.full(len(nodes), rule.matches(""), dtype=np.bool_)
    mask = named_mask(nodes, rule.values)
    return mask if rule.operator == "In" else ~mask


def named_mask(nodes: NodeView, names: Collection[str]) -> BoolArray:
    """Which nodes have one of *names*: bool, shape (len(nodes),)."""
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


def untolerated_mask(
    nodes: NodeView,
    tolerations: Collection[Toleration],
    effects: Collection[str] = HARD_EFFECTS,
    *,
    comparison_operators: bool = False,
) -> BoolArray:
    """Which nodes have a taint of one of *effects* that none of *tolerations* accepts: bool, shape (len(nodes),).

    Args:
        nodes: the view.
        tolerations: of the pod.
        effects: taints of other effects do not count.
        comparison_operators: whether Gt and Lt are known (gate TaintTolerationComparisonOperators).

    Source: B007, B016.
    """

    def refused(taints: tuple[Taint, ...]) -> int:
        return int(untolerated(taints, tolerations, effects, comparison_operators=comparison_operators) is not None)

    return by_taint_set(nodes, refused).astype(np.bool_)


def by_taint_set(nodes: NodeView, judge: Callable[[tuple[Taint, ...]], int]) -> IntArray:
    """What *judge* says of each node's taints, asked once for each distinct list: int64, shape (len(nodes),)."""
    sets = nodes.taint_set
    known = nodes.snapshot.vocabulary.taint_sets
    present = np.flatnonzero(np.bincount(sets))
    verdicts = np.zeros(len(known), dtype=np.int64)
    for number in present.tolist():
        verdicts[number] = judge(known[number])
    return verdicts[sets]
