"""What selectors select: label selectors, and the terms of node selectors.

Selectors are compiled once to requirements. A requirement judges one label value at a time, so that it can be asked
once for each distinct value.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from extender.objects.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PreferredSchedulingTerm
from extender.objects.label_syntax import condition_faults, int64, invalid, joined
from extender.objects.meta import LabelSelector
from extender.objects.pod import Pod

_LABEL_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")
_FIELD_OPERATORS: Final = ("In", "NotIn")

_NAME: Final = re.compile(r"(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]", re.ASCII)
_SUBDOMAIN: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*", re.ASCII)


@lru_cache(maxsize=16384)
def is_qualified_name(text: str) -> bool:
    """Whether a text is a label key: a name of at most 63 characters after an optional DNS prefix and a slash."""
    prefix, slash, name = text.rpartition("/")
    if slash and (len(prefix) > 253 or _SUBDOMAIN.fullmatch(prefix) is None):
        return False
    return len(name) <= 63 and _NAME.fullmatch(name) is not None


@dataclass(frozen=True, slots=True, order=True)
class Requirement:
    """A condition on the value of one label; operator In, NotIn, Exists, DoesNotExist, Gt or Lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, value: str | None) -> bool:
        """Whether a label value satisfies the condition; None stands for an absent label. Source: B008."""
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case _:
                return value is not None and self._compares(value)

    def _compares(self, value: str) -> bool:
        left, right = int64(value), int64(self.values[0])
        if left is None or right is None:
            return False
        return left > right if self.operator == "Gt" else left < right


@dataclass(frozen=True, slots=True)
class Selector:
    """All requirements must hold; without any it selects everything, with `nothing` it selects nothing.

    Requirements are sorted, so that selectors that differ in order only are equal.
    """

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels is selected."""
        return not self.nothing and all(rule.matches(labels.get(rule.key)) for rule in self.requirements)

    @property
    def is_empty(self) -> bool:
        """Whether it selects everything for want of requirements."""
        return not self.nothing and not self.requirements

    def and_labels(self, labels: Mapping[str, str]) -> "Selector":
        """This selector and, besides, these labels with these values."""
        return Selector(_sorted((*self.requirements, *_equalities(labels))), self.nothing)


EVERYTHING: Final = Selector()
NOTHING: Final = Selector(nothing=True)


def _sorted(requirements: Iterable[Requirement]) -> tuple[Requirement, ...]:
    return tuple(sorted(set(requirements)))


def _equalities(labels: Mapping[str, str]) -> tuple[Requirement, ...]:
    return tuple(Requirement(key, "In", (value,)) for key, value in labels.items())


def from_labels(labels: Mapping[str, str]) -> Selector:
    """The selector of objects that have all these labels; no labels select everything. Nothing is validated."""
    return Selector(_sorted(_equalities(labels)))


def from_label_selector(selector: LabelSelector | None) -> Selector:
    """Compiles a label selector; an absent one selects nothing, an empty one everything.

    Raises:
        ValueError: an operator, key or value that Kubernetes does not know.

    Source: B054.
    """
    if selector is None:
        return NOTHING
    rules = [requirement(key, "In", (value,)) for key, value in selector.match_labels.items()]
    for expression in selector.match_expressions:
        if expression.operator not in _LABEL_OPERATORS:
            raise ValueError(f'"{expression.operator}" is not a valid label selector operator')
        rules.append(requirement(expression.key, expression.operator, expression.values))
    return Selector(_sorted(rules))


class ConditionError(ValueError):
    """A condition on a label that cannot be read. `faults` holds each thing wrong with it, with the place within it."""

    def __init__(self, faults: list[str]) -> None:
        self.faults = faults
        super().__init__(joined(faults))


def requirement(key: str, operator: str, values: tuple[str, ...]) -> Requirement:
    """A validated requirement with its values sorted.

    Raises:
        ConditionError: the operator is unknown, the number of values does not suit it, or a key or value is no label's.

    Source: B008.
    """
    faults = condition_faults(key, operator, values)
    if faults:
        raise ConditionError(faults)
    return Requirement(key, operator, tuple(sorted(set(values))))


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """One term of a node selector: all its requirements must hold. A term with errors matches no node."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()
    errors: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """Whether a node with these labels and this name satisfies the term."""
        if self.errors or not all(rule.matches(labels.get(rule.key)) for rule in self.labels):
            return False
        return self.matches_name(name)

    def matches_name(self, name: str) -> bool:
        """Whether the conditions on fields hold for a node of this name; a nameless node meets them all.

        A field other than metadata.name counts as empty.
        """
        return not name or all(rule.matches(name if rule.key == "metadata.name" else "") for rule in self.fields)


@dataclass(frozen=True, slots=True)
class NodeTerms:
    """A compiled node selector: any term may match. Terms without conditions match nothing and are left out."""

    terms: tuple[NodeTerm, ...] = ()

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """Whether a node with these labels and this name is selected; a faulty term does not hinder another."""
        return any(term.matches(labels, name) for term in self.terms)

    @property
    def errors(self) -> tuple[str, ...]:
        """What is wrong with the terms; upstream reports it only where no term matches."""
        return tuple(error for term in self.terms for error in term.errors)


def compile_term(term: NodeSelectorTerm) -> NodeTerm | None:
    """Compiles one term; None for a term without conditions, which matches no node. Faults are kept in `errors`."""
    if not term.match_expressions and not term.match_fields:
        return None
    errors: list[str] = []
    labels: list[Requirement] = []
    fields: list[Requirement] = []
    for index, expression in enumerate(term.match_expressions):
        try:
            labels.append(requirement(expression.key, expression.operator, expression.values))
        except ConditionError as wrong:
            errors += [f"matchExpressions[{index}].{fault}" for fault in wrong.faults]
    for index, expression in enumerate(term.match_fields):
        try:
            fields.append(_field_requirement(expression))
        except ConditionError as wrong:
            errors += [f"matchFields[{index}].{fault}" for fault in wrong.faults]
    return NodeTerm(tuple(labels), tuple(fields), tuple(errors))


def _field_requirement(expression: NodeSelectorRequirement) -> Requirement:
    if expression.operator not in _FIELD_OPERATORS:
        known = ", ".join(f'"{name}"' for name in _FIELD_OPERATORS)
        raise ConditionError([f'operator: Unsupported value: "{expression.operator}": supported values: {known}'])
    if len(expression.values) != 1:
        raise ConditionError([invalid("values", expression.values, "must have one element")])
    return Requirement(expression.key, expression.operator, expression.values)


def compile_node_selector(selector: NodeSelector) -> NodeTerms:
    """Compiles a node selector, keeping the faults of a term with it. Source: B008."""
    terms = (compile_term(term) for term in selector.node_selector_terms)
    return NodeTerms(tuple(term for term in terms if term is not None))


def strict_node_selector(selector: NodeSelector) -> NodeTerms:
    """Compiles a node selector of which every term must be right, such as a volume's node affinity.

    Raises:
        ValueError: all faults of all terms, joined.
    """
    terms = [compile_term(term) for term in selector.node_selector_terms]
    errors = [
        f"nodeSelectorTerms[{index}].{error}" for index, term in enumerate(terms) if term for error in term.errors
    ]
    if errors:
        raise ValueError(joined(errors))
    return NodeTerms(tuple(term for term in terms if term is not None))


@dataclass(frozen=True, slots=True)
class PreferredTerm:
    """A node term and what it is worth."""

    weight: int
    term: NodeTerm


def compile_preferred(terms: Iterable[PreferredSchedulingTerm]) -> tuple[PreferredTerm, ...]:
    """Compiles preferred terms; those of weight 0 or without conditions are left out unread.

    Raises:
        ValueError: all faults of the other terms, joined.

    Source: B023, B024.
    """
    compiled: list[PreferredTerm] = []
    errors: list[str] = []
    for index, preferred in enumerate(terms):
        term = compile_term(preferred.preference) if preferred.weight else None
        if term is not None:
            compiled.append(PreferredTerm(preferred.weight, term))
            errors += [f"[{index}].{error}" for error in term.errors]
    if errors:
        raise ValueError(joined(errors))
    return tuple(compiled)


@dataclass(frozen=True, slots=True)
class RequiredNodeAffinity:
    """What a pod requires of its node: `spec.nodeSelector` and its required node affinity (None: any node)."""

    selector: Selector = EVERYTHING
    terms: NodeTerms | None = None

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """Whether a node with these labels and this name will do."""
        return self.selector.matches(labels) and (self.terms is None or self.terms.matches(labels, name))


def required_node_affinity(pod: Pod) -> RequiredNodeAffinity:
    """What a pod requires of its node. Source: B008."""
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    terms = None if required is None else compile_node_selector(required)
    return RequiredNodeAffinity(from_labels(pod.spec.node_selector), terms)
