"""Label selectors and node selectors: B008, B023, B024, B054."""

import pytest

from extender.objects.affinity import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
)
from extender.objects.label_syntax import int64, label_value_faults
from extender.objects.matching import (
    EVERYTHING,
    NOTHING,
    Requirement,
    compile_node_selector,
    compile_preferred,
    compile_term,
    from_label_selector,
    from_labels,
    is_qualified_name,
    required_node_affinity,
    requirement,
    strict_node_selector,
)
from extender.objects.meta import LabelSelector, LabelSelectorRequirement
from extender.objects.pod import Pod, PodSpec

VERDICTS = {
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


@pytest.mark.parametrize(("operator", "values", "label", "verdict"), VERDICTS.values(), ids=VERDICTS.keys())
def test_a_requirement_judges_one_label_value(
    operator: str, values: tuple[str, ...], label: str | None, verdict: bool
) -> None:
    assert requirement("key", operator, values).matches(label) is verdict


NO_LABEL = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
NO_NAME = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
LIKE = 'operator: Unsupported value: "Like": supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"'
NO_VALUES = "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"
VALUES = 'values: Invalid value: ["a"]: values set must be empty for exists and does not exist'
NO_NUMBER = "for 'Gt', 'Lt' operators, the value must be an integer"
FAULTS = {
    "unknown operator": ("key", "Like", ("a",), LIKE),
    "In without values": ("key", "In", (), NO_VALUES),
    "NotIn without values": ("key", "NotIn", (), NO_VALUES),
    "Exists with values": ("key", "Exists", ("a",), VALUES),
    "DoesNotExist with values": ("key", "DoesNotExist", ("a",), VALUES),
    "Gt with two values": (
        "key", "Gt", ("1", "2"),
        "values: Invalid value: [\"1\",\"2\"]: for 'Gt', 'Lt' operators, exactly one value is required",
    ),
    "Lt with a word": ("key", "Lt", ("one",), f'values[0]: Invalid value: "one": {NO_NUMBER}'),
    "Gt with a negative number, which is no label value": (
        "key", "Gt", ("-1",), f'values[0][key]: Invalid value: "-1": {NO_LABEL}',
    ),
    "no key": ("", "Exists", (), f'key: Invalid value: "": name part must be non-empty; {NO_NAME}'),
    "value with a space": ("key", "In", ("a b",), f'values[0][key]: Invalid value: "a b": {NO_LABEL}'),
    "a value that is no label and no number": (
        "key", "Lt", ("a b",),
        f'[values[0]: Invalid value: "a b": {NO_NUMBER}, values[0][key]: Invalid value: "a b": {NO_LABEL}]',
    ),
}  # fmt: skip


@pytest.mark.parametrize(("key", "operator", "values", "message"), FAULTS.values(), ids=FAULTS.keys())
def test_a_faulty_requirement_is_refused_with_what_is_right(
    key: str, operator: str, values: tuple[str, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=r".") as fault:
        requirement(key, operator, values)
    assert str(fault.value) == message


def test_a_requirement_made_by_hand_never_compares_with_a_word() -> None:
    assert not Requirement("key", "Gt", ("one",)).matches("2")


@pytest.mark.parametrize(
    ("text", "legal"),
    [("a", True), ("example.com/a", True), ("a" * 63, True), ("a" * 64, False), ("", False), ("/a", False),
     ("example.com/", False), ("Example.com/a", False), ("a/b/c", False), ("-a", False), ("a\n", False),
     ("a" * 254 + "/b", False), ("a_b.c-d", True)],
)  # fmt: skip
def test_label_keys_are_told_from_other_text(text: str, legal: bool) -> None:
    assert is_qualified_name(text) is legal


@pytest.mark.parametrize(("text", "legal"), [("", True), ("v1", True), ("v" * 64, False), ("v-", False), ("ä", False)])
def test_label_values_are_told_from_other_text(text: str, legal: bool) -> None:
    assert (not label_value_faults(text)) is legal


@pytest.mark.parametrize(
    ("text", "number"),
    [("12", 12), ("-012", -12), ("+1", 1), ("", None), ("1_000", None), (" 1", None), ("٣", None),
     ("9223372036854775807", 2**63 - 1), ("9223372036854775808", None), ("9" * 5000, None)],
)  # fmt: skip
def test_integers_are_read_as_by_go(text: str, number: int | None) -> None:
    assert int64(text) == number


def expression(key: str, operator: str, *values: str) -> LabelSelectorRequirement:
    return LabelSelectorRequirement(key=key, operator=operator, values=values)


def test_an_absent_selector_selects_nothing_and_an_empty_one_everything() -> None:
    assert from_label_selector(None) is NOTHING
    assert not NOTHING.matches({})
    assert not NOTHING.is_empty
    assert from_label_selector(LabelSelector()) == EVERYTHING
    assert EVERYTHING.matches({"any": "label"})
    assert EVERYTHING.is_empty


def test_all_requirements_of_a_selector_must_hold() -> None:
    selector = from_label_selector(
        LabelSelector(match_labels={"app": "web"}, match_expressions=(expression("tier", "NotIn", "test"),))
    )
    assert selector.matches({"app": "web"})
    assert selector.matches({"app": "web", "tier": "live"})
    assert not selector.matches({"app": "web", "tier": "test"})
    assert not selector.matches({"tier": "live"})


def test_selectors_that_differ_in_order_only_are_equal() -> None:
    one = LabelSelector(match_expressions=(expression("a", "In", "x", "y"), expression("b", "Exists")))
    two = LabelSelector(match_expressions=(expression("b", "Exists"), expression("a", "In", "y", "x", "y")))
    assert from_label_selector(one) == from_label_selector(two)
    assert hash(from_label_selector(one)) == hash(from_label_selector(two))


@pytest.mark.parametrize("operator", ["Gt", "Lt", "in", ""])
def test_a_label_selector_does_not_know_the_operators_of_nodes(operator: str) -> None:
    with pytest.raises(ValueError, match=r"is not a valid label selector operator$"):
        from_label_selector(LabelSelector(match_expressions=(expression("a", operator, "1"),)))


def test_labels_make_a_selector_without_being_validated() -> None:
    selector = from_labels({"not a key": "not a value"})
    assert selector.matches({"not a key": "not a value", "more": ""})
    assert not selector.matches({})
    assert from_labels({}).is_empty


def test_labels_can_be_added_to_a_selector() -> None:
    selector = from_labels({"app": "web"}).and_labels({"version": "2"})
    assert selector.matches({"app": "web", "version": "2"})
    assert not selector.matches({"app": "web"})
    assert not NOTHING.and_labels({"app": "web"}).matches({"app": "web"})


def rule(key: str, operator: str, *values: str) -> NodeSelectorRequirement:
    return NodeSelectorRequirement(key=key, operator=operator, values=values)


def term(*expressions: NodeSelectorRequirement) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=expressions)


def field_term(*fields: NodeSelectorRequirement) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_fields=fields)


def selects(*terms: NodeSelectorTerm) -> bool:
    return compile_node_selector(NodeSelector(node_selector_terms=terms)).matches({"zone": "a", "rank": "7"}, "n1")


NODES = {
    "no terms match nothing": ((), False),
    "an empty term matches nothing": ((NodeSelectorTerm(),), False),
    "a term whose expression holds": ((term(rule("zone", "In", "a")),), True),
    "a term needs all its expressions": ((term(rule("zone", "In", "a"), rule("gpu", "Exists")),), False),
    "any term will do": ((term(rule("gpu", "Exists")), term(rule("rank", "Gt", "6"))), True),
    "an empty term does not hinder another": ((NodeSelectorTerm(), term(rule("zone", "Exists"))), True),
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
    "a faulty term matches nothing": ((term(rule("zone", "In", "a"), rule("zone", "Like", "a")),), False),
    "a faulty term does not hinder another": ((term(rule("zone", "Like", "a")), term(rule("zone", "In", "a"))), True),
    "two names are a fault": ((field_term(rule("metadata.name", "In", "n1", "n2")),), False),
    "Exists is no operator for fields": ((field_term(rule("metadata.name", "Exists")),), False),
}


@pytest.mark.parametrize(("terms", "verdict"), NODES.values(), ids=NODES.keys())
def test_a_node_selector_selects_a_node_or_not(terms: tuple[NodeSelectorTerm, ...], verdict: bool) -> None:
    assert selects(*terms) is verdict


def test_a_node_without_a_name_meets_all_conditions_on_fields() -> None:
    compiled = compile_term(field_term(rule("metadata.name", "In", "n1")))
    assert compiled is not None
    assert compiled.matches({}, "")


def test_the_faults_of_all_terms_are_kept() -> None:
    selector = NodeSelector(
        node_selector_terms=(
            term(rule("zone", "Exists"), rule("zone", "Like")),
            field_term(rule("metadata.name", "Exists"), rule("metadata.name", "In")),
        )
    )
    wanted = (
        f"matchExpressions[1].{LIKE}",
        'matchFields[0].operator: Unsupported value: "Exists": supported values: "In", "NotIn"',
        "matchFields[1].values: Invalid value: null: must have one element",
    )
    assert compile_node_selector(selector).errors == wanted
    with pytest.raises(ValueError, match="Like") as fault:
        strict_node_selector(selector)
    first, second, third = wanted
    places = (f"nodeSelectorTerms[0].{first}", f"nodeSelectorTerms[1].{second}", f"nodeSelectorTerms[1].{third}")
    assert str(fault.value) == f"[{', '.join(places)}]"


def test_a_right_selector_compiles_strictly() -> None:
    compiled = strict_node_selector(NodeSelector(node_selector_terms=(term(rule("zone", "In", "a")),)))
    assert compiled.matches({"zone": "a"}, "n")


def preferred(weight: int, preference: NodeSelectorTerm) -> PreferredSchedulingTerm:
    return PreferredSchedulingTerm(weight=weight, preference=preference)


def test_preferred_terms_of_no_weight_or_without_conditions_are_left_out_unread() -> None:
    compiled = compile_preferred(
        (
            preferred(0, term(rule("a", "Like"))),
            preferred(3, NodeSelectorTerm()),
            preferred(7, term(rule("a", "Exists"))),
        )
    )
    assert [each.weight for each in compiled] == [7]
    assert compiled[0].term.matches({"a": ""}, "n")


def test_a_faulty_preferred_term_is_an_error() -> None:
    with pytest.raises(ValueError, match=r".") as fault:
        compile_preferred((preferred(1, term(rule("a", "Exists"))), preferred(1, term(rule("a", "Like")))))
    assert str(fault.value) == f"[1].matchExpressions[0].{LIKE}"


def test_a_pod_s_selector_and_affinity_must_both_match() -> None:
    required = NodeSelector(node_selector_terms=(term(rule("rank", "Gt", "6")),))
    affinity = Affinity(node_affinity=NodeAffinity(required_during_scheduling_ignored_during_execution=required))
    wanted = required_node_affinity(Pod(spec=PodSpec(node_selector={"zone": "a"}, affinity=affinity)))
    assert wanted.matches({"zone": "a", "rank": "7"}, "n")
    assert not wanted.matches({"zone": "b", "rank": "7"}, "n")
    assert not wanted.matches({"zone": "a", "rank": "6"}, "n")


def test_a_pod_without_wishes_takes_any_node_and_one_with_no_terms_none() -> None:
    assert required_node_affinity(Pod()).matches({}, "n")
    empty = Affinity(node_affinity=NodeAffinity(required_during_scheduling_ignored_during_execution=NodeSelector()))
    assert not required_node_affinity(Pod(spec=PodSpec(affinity=empty))).matches({}, "n")
