"""Label selectors and node selectors."""

import sys
from types import FrameType
from typing import Any

import pytest

from extender.api.kinds.affinity import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
)
from extender.api.kinds.meta import LabelSelector, LabelSelectorRequirement, ObjectMeta
from extender.api.kinds.pod import Pod, PodSpec
from extender.api.matching import (
    EVERYTHING,
    NOTHING,
    Requirement,
    Selector,
    compile_node_selector,
    compile_node_selector_term,
    compile_preferred_terms,
    compile_strict_node_selector,
    get_required_node_affinity,
    new_requirement,
    selector_from_label_selector,
    selector_from_labels,
)

REQUIREMENTS = {
    "In with one of the values": ("In", ("a", "b"), "a", True),
    "In with another value": ("In", ("a", "b"), "c", False),
    "In without the label": ("In", ("a",), None, False),
    "In with the empty value": ("In", ("",), "", True),
    "NotIn with another value": ("NotIn", ("a",), "b", True),
    "NotIn with the value": ("NotIn", ("a",), "a", False),
    "NotIn without the label": ("NotIn", ("a",), None, True),
    "Exists with an empty value": ("Exists", (), "", True),
    "Exists without the label": ("Exists", (), None, False),
    "DoesNotExist with the label": ("DoesNotExist", (), "a", False),
    "DoesNotExist without the label": ("DoesNotExist", (), None, True),
    "Gt above": ("Gt", ("5",), "6", True),
    "Gt equal": ("Gt", ("5",), "5", False),
    "Gt without the label": ("Gt", ("5",), None, False),
    "Gt with a word": ("Gt", ("5",), "six", False),
    "Gt with a sign and zeros": ("Gt", ("5",), "+007", True),
    "Gt compares numbers, not text": ("Gt", ("9",), "10", True),
    "Lt below": ("Lt", ("5",), "4", True),
    "Lt equal": ("Lt", ("5",), "5", False),
}


@pytest.mark.parametrize(("operator", "values", "label", "matches"), REQUIREMENTS.values(), ids=REQUIREMENTS.keys())
def test_a_requirement_matches_a_label_value_or_not(
    operator: str, values: tuple[str, ...], label: str | None, matches: bool
) -> None:
    assert new_requirement("key", operator, values).matches(label) is matches


INVALID_LABEL_VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
INVALID_NAME = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
UNSUPPORTED_OPERATOR = (
    'operator: Unsupported value: "Like": supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"'
)
EMPTY_VALUES = "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"
UNEXPECTED_VALUES = 'values: Invalid value: ["a"]: values set must be empty for exists and does not exist'
NOT_AN_INTEGER = "for 'Gt', 'Lt' operators, the value must be an integer"
INVALID_REQUIREMENTS = {
    "unknown operator": ("key", "Like", ("a",), UNSUPPORTED_OPERATOR),
    "In without values": ("key", "In", (), EMPTY_VALUES),
    "NotIn without values": ("key", "NotIn", (), EMPTY_VALUES),
    "Exists with values": ("key", "Exists", ("a",), UNEXPECTED_VALUES),
    "DoesNotExist with values": ("key", "DoesNotExist", ("a",), UNEXPECTED_VALUES),
    "Gt with two values": (
        "key", "Gt", ("1", "2"),
        "values: Invalid value: [\"1\",\"2\"]: for 'Gt', 'Lt' operators, exactly one value is required",
    ),
    "Lt with a word": ("key", "Lt", ("one",), f'values[0]: Invalid value: "one": {NOT_AN_INTEGER}'),
    "Gt with a negative number, which is not a label value": (
        "key", "Gt", ("-1",), f'values[0][key]: Invalid value: "-1": {INVALID_LABEL_VALUE}',
    ),
    "empty key": ("", "Exists", (), f'key: Invalid value: "": name part must be non-empty; {INVALID_NAME}'),
    "value with a space": ("key", "In", ("a b",), f'values[0][key]: Invalid value: "a b": {INVALID_LABEL_VALUE}'),
    "a value that is neither a label value nor a number": (
        "key", "Lt", ("a b",),
        f'[values[0]: Invalid value: "a b": {NOT_AN_INTEGER}, '
        f'values[0][key]: Invalid value: "a b": {INVALID_LABEL_VALUE}]',
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("key", "operator", "values", "message"), INVALID_REQUIREMENTS.values(), ids=INVALID_REQUIREMENTS.keys()
)
def test_an_invalid_requirement_is_rejected_with_its_errors(
    key: str, operator: str, values: tuple[str, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=r".") as error:
        new_requirement(key, operator, values)
    assert str(error.value) == message


def test_a_non_numeric_operand_of_gt_never_matches() -> None:
    assert not Requirement("key", "Gt", ("one",)).matches("2")


def expression(key: str, operator: str, *values: str) -> LabelSelectorRequirement:
    return LabelSelectorRequirement(key=key, operator=operator, values=values)


def test_an_absent_selector_matches_nothing_and_an_empty_one_everything() -> None:
    assert selector_from_label_selector(None) is NOTHING
    assert not NOTHING.matches({})
    assert not NOTHING.is_empty
    assert selector_from_label_selector(LabelSelector()) == EVERYTHING
    assert EVERYTHING.matches({"any": "label"})
    assert EVERYTHING.is_empty


def test_all_requirements_of_a_selector_must_hold() -> None:
    selector = selector_from_label_selector(
        LabelSelector(match_labels={"app": "web"}, match_expressions=(expression("tier", "NotIn", "test"),))
    )
    assert selector.matches({"app": "web"})
    assert selector.matches({"app": "web", "tier": "live"})
    assert not selector.matches({"app": "web", "tier": "test"})
    assert not selector.matches({"tier": "live"})


def test_the_selected_objects_meet_all_requirements() -> None:
    web, live, test, db = (
        ObjectMeta(labels=labels)
        for labels in ({"app": "web"}, {"app": "web", "tier": "live"}, {"app": "web", "tier": "test"}, {"app": "db"})
    )
    selector = Selector((Requirement("app", "In", ("web",)), Requirement("tier", "NotIn", ("test",))))
    assert selector.select([web, live, test, db]) == [web, live]
    assert EVERYTHING.select([web, db]) == [web, db]
    assert NOTHING.select([web, db]) == []


def test_the_order_of_requirements_does_not_affect_equality() -> None:
    first = LabelSelector(match_expressions=(expression("a", "In", "x", "y"), expression("b", "Exists")))
    second = LabelSelector(match_expressions=(expression("b", "Exists"), expression("a", "In", "y", "x", "y")))
    assert selector_from_label_selector(first) == selector_from_label_selector(second)
    assert hash(selector_from_label_selector(first)) == hash(selector_from_label_selector(second))


@pytest.mark.parametrize(
    ("labels", "matches"),
    [
        ({"app": "web"}, True),
        ({"app": "web", "other": "x"}, True),
        ({"app": "web", "tier": "v1999"}, False),
        ({"app": "web", "tier": "v2000"}, True),
        ({"app": "web", "zone": "v1"}, False),
        ({"app": "web", "absent-1999": ""}, False),
        ({"app": "api"}, False),
        ({"app": "db"}, False),
        ({}, False),
    ],
)
def test_a_selector_with_many_requirements_matches_as_one_with_few(labels: dict[str, str], matches: bool) -> None:
    few = (
        expression("app", "In", "web", "api"),
        expression("app", "In", "web", "db"),
        expression("app", "Exists"),
        expression("zone", "DoesNotExist"),
    )
    many = [expression("tier", "NotIn", f"v{number}") for number in range(2000)]
    many += [expression(f"absent-{number}", "DoesNotExist") for number in range(2000)]
    selector = selector_from_label_selector(LabelSelector(match_expressions=(*few, *many)))
    assert selector.matches(labels) is matches
    labelled = ObjectMeta(labels=labels)
    assert selector.select([labelled]) == ([labelled] if matches else [])
    assert not selector.with_labels({"new": "x"}).matches(labels)


def test_the_time_of_a_match_does_not_depend_on_the_number_of_requirements() -> None:
    class CountedLabels(dict[str, str]):
        lookups = 0

        def get(self, key: str, default: Any = None) -> Any:
            self.lookups += 1
            return super().get(key, default)

    labels = CountedLabels(app="web")
    many = tuple(expression(f"absent-{number}", "DoesNotExist") for number in range(2000))
    assert selector_from_label_selector(LabelSelector(match_expressions=many)).matches(labels)
    assert labels.lookups < 10
    assert not NOTHING.with_labels({f"key-{number}": "" for number in range(100)}).matches({})


def test_a_match_calls_nothing_but_the_requirements() -> None:
    """Each term of each waiting pod is matched with each pod that changes; a generator would take most of the time."""
    selector, called = selector_from_labels({"app": "web", "tier": "live"}), []

    def record(frame: FrameType, event: str, _arg: object) -> None:
        if event == "call":
            called.append(frame.f_code.co_name)

    sys.setprofile(record)
    try:
        is_match = selector.matches({"app": "web", "tier": "live"})
    finally:
        sys.setprofile(None)
    assert is_match
    assert called == ["matches"] * 3


@pytest.mark.parametrize("operator", ["Gt", "Lt", "in", ""])
def test_a_label_selector_has_no_node_operators(operator: str) -> None:
    with pytest.raises(ValueError, match=r"is not a valid label selector operator$"):
        selector_from_label_selector(LabelSelector(match_expressions=(expression("a", operator, "1"),)))


def test_a_selector_from_labels_is_not_validated() -> None:
    selector = selector_from_labels({"not a key": "not a value"})
    assert selector.matches({"not a key": "not a value", "more": ""})
    assert not selector.matches({})
    assert selector_from_labels({}).is_empty


def test_labels_can_be_added_to_a_selector() -> None:
    selector = selector_from_labels({"app": "web"}).with_labels({"version": "2"})
    assert selector.matches({"app": "web", "version": "2"})
    assert not selector.matches({"app": "web"})
    assert not NOTHING.with_labels({"app": "web"}).matches({"app": "web"})


def rule(key: str, operator: str, *values: str) -> NodeSelectorRequirement:
    return NodeSelectorRequirement(key=key, operator=operator, values=values)


def term(*expressions: NodeSelectorRequirement) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=expressions)


def field_term(*fields: NodeSelectorRequirement) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_fields=fields)


def matches_node(*terms: NodeSelectorTerm) -> bool:
    return compile_node_selector(NodeSelector(node_selector_terms=terms)).matches({"zone": "a", "rank": "7"}, "n1")


NODES = {
    "no terms match nothing": ((), False),
    "an empty term matches nothing": ((NodeSelectorTerm(),), False),
    "a term whose expression holds": ((term(rule("zone", "In", "a")),), True),
    "a term needs all its expressions": ((term(rule("zone", "In", "a"), rule("gpu", "Exists")),), False),
    "one matching term is enough": ((term(rule("gpu", "Exists")), term(rule("rank", "Gt", "6"))), True),
    "an empty term does not affect other terms": ((NodeSelectorTerm(), term(rule("zone", "Exists"))), True),
    "the node's name": ((field_term(rule("metadata.name", "In", "n1")),), True),
    "another node's name": ((field_term(rule("metadata.name", "In", "n2")),), False),
    "not another node's name": ((field_term(rule("metadata.name", "NotIn", "n2")),), True),
    "an unknown field is empty": ((field_term(rule("spec.x", "In", "n1")),), False),
    "an unknown field differs from any value": ((field_term(rule("spec.x", "NotIn", "n1")),), True),
    "fields and expressions must both hold": (
        (
            NodeSelectorTerm(
                match_expressions=(rule("zone", "In", "b"),), match_fields=(rule("metadata.name", "In", "n1"),)
            ),
        ),
        False,
    ),
    "an invalid term matches nothing": ((term(rule("zone", "In", "a"), rule("zone", "Like", "a")),), False),
    "an invalid term does not affect other terms": (
        (term(rule("zone", "Like", "a")), term(rule("zone", "In", "a"))),
        True,
    ),
    "two names are an error": ((field_term(rule("metadata.name", "In", "n1", "n2")),), False),
    "Exists is not an operator of fields": ((field_term(rule("metadata.name", "Exists")),), False),
}


@pytest.mark.parametrize(("terms", "matches"), NODES.values(), ids=NODES.keys())
def test_a_node_selector_matches_a_node_or_not(terms: tuple[NodeSelectorTerm, ...], matches: bool) -> None:
    assert matches_node(*terms) is matches


def test_a_node_without_a_name_meets_all_field_requirements() -> None:
    compiled = compile_node_selector_term(field_term(rule("metadata.name", "In", "n1")))
    assert compiled is not None
    assert compiled.matches({}, "")


def test_the_errors_of_all_terms_are_collected() -> None:
    selector = NodeSelector(
        node_selector_terms=(
            term(rule("zone", "Exists"), rule("zone", "Like")),
            field_term(rule("metadata.name", "Exists"), rule("metadata.name", "In")),
        )
    )
    messages = (
        f"matchExpressions[1].{UNSUPPORTED_OPERATOR}",
        'matchFields[0].operator: Unsupported value: "Exists": supported values: "In", "NotIn"',
        "matchFields[1].values: Invalid value: null: must have one element",
    )
    assert compile_node_selector(selector).errors == messages
    with pytest.raises(ValueError, match="Like") as error:
        compile_strict_node_selector(selector)
    first, second, third = messages
    expected = (f"nodeSelectorTerms[0].{first}", f"nodeSelectorTerms[1].{second}", f"nodeSelectorTerms[1].{third}")
    assert str(error.value) == f"[{', '.join(expected)}]"


def test_a_valid_selector_compiles_strictly() -> None:
    compiled = compile_strict_node_selector(NodeSelector(node_selector_terms=(term(rule("zone", "In", "a")),)))
    assert compiled.matches({"zone": "a"}, "n")


def preferred(weight: int, preference: NodeSelectorTerm) -> PreferredSchedulingTerm:
    return PreferredSchedulingTerm(weight=weight, preference=preference)


def test_preferred_terms_without_weight_or_requirements_are_skipped() -> None:
    compiled = compile_preferred_terms(
        (
            preferred(0, term(rule("a", "Like"))),
            preferred(3, NodeSelectorTerm()),
            preferred(7, term(rule("a", "Exists"))),
        )
    )
    assert [preferred_term.weight for preferred_term in compiled] == [7]
    assert compiled[0].term.matches({"a": ""}, "n")


def test_an_invalid_preferred_term_is_an_error() -> None:
    with pytest.raises(ValueError, match=r".") as error:
        compile_preferred_terms((preferred(1, term(rule("a", "Exists"))), preferred(1, term(rule("a", "Like")))))
    assert str(error.value) == f"[1].matchExpressions[0].{UNSUPPORTED_OPERATOR}"


def test_the_node_selector_and_the_affinity_of_a_pod_must_both_match() -> None:
    required = NodeSelector(node_selector_terms=(term(rule("rank", "Gt", "6")),))
    affinity = Affinity(node_affinity=NodeAffinity(required_during_scheduling_ignored_during_execution=required))
    affinity_and_selector = get_required_node_affinity(
        Pod(spec=PodSpec(node_selector={"zone": "a"}, affinity=affinity))
    )
    assert affinity_and_selector.matches({"zone": "a", "rank": "7"}, "n")
    assert not affinity_and_selector.matches({"zone": "b", "rank": "7"}, "n")
    assert not affinity_and_selector.matches({"zone": "a", "rank": "6"}, "n")


def test_no_affinity_matches_any_node_and_an_empty_node_selector_none() -> None:
    assert get_required_node_affinity(Pod()).matches({}, "n")
    empty = Affinity(node_affinity=NodeAffinity(required_during_scheduling_ignored_during_execution=NodeSelector()))
    assert not get_required_node_affinity(Pod(spec=PodSpec(affinity=empty))).matches({}, "n")


def test_a_comparison_beside_many_values_is_a_comparison() -> None:
    values = tuple(f"v{number}" for number in range(100))
    selector = Selector((Requirement("app", "In", values), Requirement("version", "Gt", ("1",))))
    assert selector.matches({"app": "v7", "version": "2"})
    assert not selector.matches({"app": "v7", "version": "1"})
    assert not selector.matches({"app": "v7"})
