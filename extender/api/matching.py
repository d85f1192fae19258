"""Label selectors and node selectors, compiled to requirements.

A requirement is evaluated against one label value, so callers can evaluate it once per distinct value.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final, Protocol, TypeVar

from extender.api.kinds.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PreferredSchedulingTerm
from extender.api.kinds.meta import LabelSelector
from extender.api.kinds.pod import Pod
from extender.api.label_syntax import (
    FIELD_OPERATORS,
    LABEL_OPERATORS,
    format_invalid_value,
    join_errors,
    parse_int64,
    unsupported_value,
    validate_requirement,
)


@dataclass(frozen=True, slots=True, order=True)
class Requirement:
    """A requirement on the value of one label; operator In, NotIn, Exists, DoesNotExist, Gt or Lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, value: str | None) -> bool:
        """Return whether a label value meets the requirement; None is an absent label.

        Source: component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go, RequiredNodeAffinity.Match (1.36).
        """
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
                return value is not None and self._compare_value(value)

    def _compare_value(self, value: str) -> bool:
        number, limit = parse_int64(value), parse_int64(self.values[0])
        if number is None or limit is None:
            return False
        return number > limit if self.operator == "Gt" else number < limit


_MAX_SCANNED_VALUES: Final = 64
"""Limit of the requirements and values of a label selector that are scanned for each object; more are indexed."""


class _RequirementIndex:
    """Requirements by key. Without Gt and Lt, the time of a match depends only on the number of labels."""

    __slots__ = ("_absent_keys", "_accepted_values", "_comparisons", "_rejected_values", "_required_keys")

    def __init__(self, requirements: Iterable[Requirement]) -> None:
        self._required_keys: set[str] = set()
        self._absent_keys: set[str] = set()
        self._accepted_values: dict[str, set[str]] = {}
        self._rejected_values: dict[str, set[str]] = {}
        self._comparisons: list[Requirement] = []  # Gt and Lt, which `parse_label_selector` accepts
        for requirement in requirements:
            key, values = requirement.key, requirement.values
            match requirement.operator:
                case "In":
                    self._required_keys.add(key)
                    self._accepted_values.setdefault(key, set(values)).intersection_update(values)
                case "NotIn":
                    self._rejected_values.setdefault(key, set()).update(values)
                case "Exists":
                    self._required_keys.add(key)
                case "DoesNotExist":
                    self._absent_keys.add(key)
                case _:
                    self._comparisons.append(requirement)

    def matches(self, labels: Mapping[str, str]) -> bool:
        accepted, rejected = self._accepted_values, self._rejected_values
        return (
            self._required_keys <= labels.keys()
            and self._absent_keys.isdisjoint(labels)
            and all(
                value not in rejected.get(key, ()) and (key not in accepted or value in accepted[key])
                for key, value in labels.items()
            )
            and all(requirement.matches(labels.get(requirement.key)) for requirement in self._comparisons)
        )


class _HasLabels(Protocol):
    @property
    def labels(self) -> Mapping[str, str]: ...


_Labelled = TypeVar("_Labelled", bound=_HasLabels)


@dataclass(frozen=True, slots=True)
class Selector:
    """A compiled label selector: all requirements must hold. Without requirements it matches every object.

    With `matches_nothing` it matches no object. Requirements are sorted, so equality does not depend on their order.
    """

    requirements: tuple[Requirement, ...] = ()
    matches_nothing: bool = False
    _index: _RequirementIndex | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Index many requirements and values: a selector may have 100,000, and be matched with each pod."""
        if (
            not self.matches_nothing
            and sum(len(requirement.values) or 1 for requirement in self.requirements) > _MAX_SCANNED_VALUES
        ):
            object.__setattr__(self, "_index", _RequirementIndex(self.requirements))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether the selector matches an object with these labels."""
        if self._index is not None:
            return self._index.matches(labels)
        if self.matches_nothing:
            return False
        for requirement in self.requirements:  # noqa: SIM110  `all` with a generator takes twice as long
            if not requirement.matches(labels.get(requirement.key)):
                return False
        return True

    def select(self, objects: list[_Labelled]) -> list[_Labelled]:
        """Return the *objects* that the selector matches, faster than with a call of `matches` for each."""
        if self.matches_nothing:
            return []
        if self._index is not None:
            return [obj for obj in objects if self._index.matches(obj.labels)]
        for requirement in self.requirements:
            key, matches = requirement.key, requirement.matches
            objects = [obj for obj in objects if matches(obj.labels.get(key))]
        return objects

    @property
    def is_empty(self) -> bool:
        """Whether the selector matches every object."""
        return not self.matches_nothing and not self.requirements

    def with_labels(self, labels: Mapping[str, str]) -> "Selector":
        """Return this selector with the additional requirement that the object has these labels."""
        return Selector(
            _sort_distinct((*self.requirements, *_build_equality_requirements(labels))), self.matches_nothing
        )


EVERYTHING: Final = Selector()
NOTHING: Final = Selector(matches_nothing=True)


_SORT_KEY: Final = attrgetter("key", "operator", "values")


def _sort_distinct(requirements: Iterable[Requirement]) -> tuple[Requirement, ...]:
    return tuple(sorted(set(requirements), key=_SORT_KEY))


def _build_equality_requirements(labels: Mapping[str, str]) -> tuple[Requirement, ...]:
    return tuple(Requirement(key, "In", (value,)) for key, value in labels.items())


def selector_from_labels(labels: Mapping[str, str]) -> Selector:
    """Return a selector of objects with all these labels, without validation. Empty labels match every object.

    Source: apimachinery/pkg/labels/selector.go, SelectorFromSet (1.36).
    """
    return Selector(_sort_distinct(_build_equality_requirements(labels)))


def selector_from_label_selector(selector: LabelSelector | None) -> Selector:
    """Compile a label selector. None matches no object; an empty selector matches every object.

    Raises:
        ValueError: an invalid operator, key or value.

    Source: apimachinery/pkg/apis/meta/v1/helpers.go, LabelSelectorAsSelector (1.36).
    """
    if selector is None:
        return NOTHING
    requirements = [new_requirement(key, "In", (value,)) for key, value in selector.match_labels.items()]
    for expression in selector.match_expressions:
        if expression.operator not in LABEL_OPERATORS:
            raise ValueError(f'"{expression.operator}" is not a valid label selector operator')
        requirements.append(new_requirement(expression.key, expression.operator, expression.values))
    return Selector(_sort_distinct(requirements))


class RequirementError(ValueError):
    """An invalid requirement. Each of `errors` begins with its path in the requirement."""

    def __init__(self, errors: list[str]) -> None:
        self.errors = errors
        super().__init__(join_errors(errors))


def new_requirement(key: str, operator: str, values: tuple[str, ...]) -> Requirement:
    """Return a validated requirement with sorted values.

    Raises:
        RequirementError: an unknown operator, a wrong number of values, or an invalid key or value.

    Source: component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go, RequiredNodeAffinity.Match (1.36).
    """
    errors = validate_requirement(key, operator, values)
    if errors:
        raise RequirementError(errors)
    return Requirement(key, operator, tuple(sorted(set(values))))


@dataclass(frozen=True, slots=True)
class CompiledNodeSelectorTerm:
    """A compiled node selector term: all requirements must hold. A term with errors matches no node."""

    label_requirements: tuple[Requirement, ...] = ()
    field_requirements: tuple[Requirement, ...] = ()
    errors: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """Return whether the term matches a node with these labels and this name."""
        if self.errors or not all(
            requirement.matches(labels.get(requirement.key)) for requirement in self.label_requirements
        ):
            return False
        return self.matches_name(name)

    def matches_name(self, name: str) -> bool:
        """Return whether the field requirements hold for a node of this name. They always hold for an empty name.

        The value of a field other than metadata.name is the empty string.
        """
        return not name or all(
            field.matches(name if field.key == "metadata.name" else "") for field in self.field_requirements
        )


@dataclass(frozen=True, slots=True)
class CompiledNodeSelector:
    """A compiled node selector: at least one term must match.

    Terms without requirements match no node and are left out.
    """

    terms: tuple[CompiledNodeSelectorTerm, ...] = ()

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """Return whether a term matches a node with these labels and this name. Invalid terms match no node."""
        return any(term.matches(labels, name) for term in self.terms)

    @property
    def errors(self) -> tuple[str, ...]:
        """The errors of all terms; upstream reports them only if no term matches."""
        return tuple(error for term in self.terms for error in term.errors)


def compile_node_selector_term(term: NodeSelectorTerm) -> CompiledNodeSelectorTerm | None:
    """Compile one term; None for a term without requirements. Validation errors are stored in `errors`."""
    if not term.match_expressions and not term.match_fields:
        return None
    errors: list[str] = []
    label_requirements: list[Requirement] = []
    field_requirements: list[Requirement] = []
    for index, expression in enumerate(term.match_expressions):
        try:
            label_requirements.append(new_requirement(expression.key, expression.operator, expression.values))
        except RequirementError as error:
            errors += [f"matchExpressions[{index}].{message}" for message in error.errors]
    for index, expression in enumerate(term.match_fields):
        try:
            field_requirements.append(_build_field_requirement(expression))
        except RequirementError as error:
            errors += [f"matchFields[{index}].{message}" for message in error.errors]
    return CompiledNodeSelectorTerm(tuple(label_requirements), tuple(field_requirements), tuple(errors))


def _build_field_requirement(expression: NodeSelectorRequirement) -> Requirement:
    if expression.operator not in FIELD_OPERATORS:
        raise RequirementError([f"operator: {unsupported_value(expression.operator, FIELD_OPERATORS)}"])
    if len(expression.values) != 1:
        raise RequirementError([format_invalid_value("values", expression.values, "must have one element")])
    return Requirement(expression.key, expression.operator, expression.values)


def compile_node_selector(selector: NodeSelector) -> CompiledNodeSelector:
    """Compile a node selector; the errors of a term do not affect other terms.

    Source: component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go, NewLazyErrorNodeSelector (1.36).
    """
    terms = (compile_node_selector_term(term) for term in selector.node_selector_terms)
    return CompiledNodeSelector(tuple(term for term in terms if term is not None))


def compile_strict_node_selector(selector: NodeSelector) -> CompiledNodeSelector:
    """Compile a node selector in which every term must be valid, such as the node affinity of a volume.

    Raises:
        ValueError: the errors of all terms, joined.

    Source: component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go, NewNodeSelector (1.36).
    """
    terms = [compile_node_selector_term(term) for term in selector.node_selector_terms]
    errors = [
        f"nodeSelectorTerms[{index}].{error}" for index, term in enumerate(terms) if term for error in term.errors
    ]
    if errors:
        raise ValueError(join_errors(errors))
    return CompiledNodeSelector(tuple(term for term in terms if term is not None))


@dataclass(frozen=True, slots=True)
class CompiledPreferredTerm:
    """A compiled node selector term with its weight."""

    weight: int
    term: CompiledNodeSelectorTerm


def compile_preferred_terms(terms: Iterable[PreferredSchedulingTerm]) -> tuple[CompiledPreferredTerm, ...]:
    """Compile preferred terms. Terms of weight 0 or without requirements are skipped without validation.

    Raises:
        ValueError: the errors of the compiled terms, joined.

    Source: pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go, NodeAffinity.PreScore, NodeAffinity.Score
    (1.36).
    """
    compiled_terms: list[CompiledPreferredTerm] = []
    errors: list[str] = []
    for index, preferred_term in enumerate(terms):
        term = compile_node_selector_term(preferred_term.preference) if preferred_term.weight else None
        if term is not None:
            compiled_terms.append(CompiledPreferredTerm(preferred_term.weight, term))
            errors += [f"[{index}].{error}" for error in term.errors]
    if errors:
        raise ValueError(join_errors(errors))
    return tuple(compiled_terms)


@dataclass(frozen=True, slots=True)
class RequiredNodeAffinity:
    """The nodes that a pod requires, as in upstream's struct of this name.

    Attributes:
        label_selector: the compiled `spec.nodeSelector`, which selects node labels.
        node_selector: the compiled terms of the required node affinity; None if the pod has none.
    """

    label_selector: Selector = EVERYTHING
    node_selector: CompiledNodeSelector | None = None

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """Return whether a node with these labels and this name matches both selectors."""
        return self.label_selector.matches(labels) and (
            self.node_selector is None or self.node_selector.matches(labels, name)
        )


def get_required_node_affinity(pod: Pod) -> RequiredNodeAffinity:
    """Compile the node selector and the required node affinity of a pod.

    Source: component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go, GetRequiredNodeAffinity (1.36).
    """
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    required_selector = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    node_selector = None if required_selector is None else compile_node_selector(required_selector)
    return RequiredNodeAffinity(selector_from_labels(pod.spec.node_selector), node_selector)
