"""The comparisons that check the types of their operands first."""

import pytest

from extender.dra.cel.environment import DeviceValues, EvaluationError, compile_expression, to_message
from extender.dra.cel.equality import find_compared_attributes
from extender.dra.cel.values import parse_semver

TEXTS = "['1', r'b']"
V = 'device.attributes["a"].v'


def checked(left: str, right: str) -> str:
    return f"(__comparable([{left}, {right}]) ? {left} == {right} : false)"


def hashed(left: str, right: str) -> str:
    return f"(__hashable([{left}]) ? {left} in {right} : false)"


CASES = {
    "an attribute and a string": (f'{V} == "1"', checked(V, '"1"')),
    "the operand ends before a logical operator": (f"{V}==1+2*3&&true", f"{checked(V, '1+2*3')}&&true"),
    "the operand ends before a conditional": (f"{V} == (1 == 1) ? 1 : 2", f"{checked(V, '(1 == 1)')} ? 1 : 2"),
    "the operand ends before the operator in": (f"{V} == 1 in [true]", f"{checked(V, '1')} in [true]"),
    "the operand ends before a second comparison": (f"{V} == 1 != true", f"{checked(V, '1')} != true"),
    "an operand with an optional field": (f"{V} == a.?b.in", checked(V, "a.?b.in")),
    "an operand with a sign": (f"[{V} == -1]", f"[{checked(V, '-1')}]"),
    "a variable of cel.bind": (f"cel.bind(v, {V}, v == 1)", f"cel.bind(v, {V}, {checked('v', '1')})"),
    "a call on an attribute": (f"{V}.size() == 1", checked(f"{V}.size()", "1")),
    "two comparisons": (f"{V} == 1 || {V} == 2", f"{checked(V, '1')} || {checked(V, '2')}"),
    "a version and an attribute": (f'semver("1.0.0") == {V}', checked('semver("1.0.0")', V)),
    "a capacity and an attribute": (f"!(device.capacity.a.b == {V})", f"!({checked('device.capacity.a.b', V)})"),
    "a version and a version": (f'semver("1.0.0") == semver("2.0.0") || {V}', None),
    "an attribute in a list of numbers": (f"{V} in [0, -1.5,] && x", f"{hashed(V, '[0, -1.5,]')} && x"),
    "an attribute in a list of strings": (f"!({V} in ['1', r'b'])", f"!({hashed(V, TEXTS)})"),
    "an attribute in a list and a comparison": (f"{V} in [true] == true", f"{hashed(V, '[true]')} == true"),
    "an attribute in an empty list": (f"{V} in []", None),
    "an attribute in a list of bytes": (f"{V} in [1, B'1']", None),
    "an attribute in a list with null": (f"{V} in [1, null]", None),
    "an attribute in a list with a variable": (f"{V} in [1, device.driver]", None),
    "an attribute in an element of a list": (f"{V} in [[1]][0]", None),
    "a field in": (f"{V}.in[1]", None),
    "an attribute on the right": (f"1 == {V}", None),
    "another operator": (f"{V} != 1 || {V} <= 1 || {V} >= 1", None),
    "an attribute in a sum": (f"1 + {V} == 2", None),
    "a variable of a macro": ('device.attributes["a"].all(k, k == "x")', None),
    "another field": ('device.driver == "a" && adevice.attributes == 1', None),
    "an unfinished comparison": (f"{V} ==", None),
}


@pytest.mark.parametrize(("expression", "text"), CASES.values(), ids=CASES)
def test_comparisons_of_an_attribute_or_a_kubernetes_value_check_the_types(expression: str, text: str | None) -> None:
    found = find_compared_attributes(expression)
    assert found.text == (text or expression)
    assert bool(found.words) is (text is not None)
    is_attribute = expression.lstrip("[!(").startswith((V, "cel.bind"))
    assert found.has_value_on_left is (text is not None and not is_attribute)


def test_the_words_of_the_left_operands_contain_the_names_of_their_attributes() -> None:
    found = find_compared_attributes(f"{V} == 1 || device.attributes.b['w'] == x")
    assert found.words == {"device", "attributes", "a", "v", "b", "w"}


def test_a_variable_on_the_left_may_have_any_attribute_of_the_expression() -> None:
    found = find_compared_attributes(f"cel.bind(x, {V}, x == 1)")
    assert {"a", "v"} <= found.words


@pytest.mark.parametrize("expression", [f'{V} in ["1.0.0"]', f"{V} in [0] || true", f"!({V} in [true]) && false"])
def test_a_version_in_a_list_of_literals_ends_the_evaluation(expression: str) -> None:
    """cel-go panics, so that no operator ignores the error."""
    attributes = {"a": {"v": to_message(parse_semver("1.0.0"))}}
    device = DeviceValues("a", allow_multiple_allocations=False, attributes=attributes, capacity={})
    with pytest.raises(EvaluationError, match=r"^internal error: runtime error: hash of unhashable type cel.Semver$"):
        compile_expression(expression).matches(device)
