"""Types in lists and maps that Kubernetes checks at compile time, and the library does not."""

import pytest

from extender.dra.cel.environment import CompileError, compile_expression

TEXT = 'device.attributes["a"].text'

INVALID = {
    "sets.contains([1], [1.0])": (
        "found no matching overload for 'sets.contains' applied to '(list(int), list(double))'"
    ),
    'sets.intersects([1], ["a"])': (
        "found no matching overload for 'sets.intersects' applied to '(list(int), list(string))'"
    ),
    'sets.equivalent([1], ["a"])': (
        "found no matching overload for 'sets.equivalent' applied to '(list(int), list(string))'"
    ),
    '["a"].sum() == 3': "found no matching overload for 'sum' applied to 'list(string).()'",
    "[[1]].isSorted()": "found no matching overload for 'isSorted' applied to 'list(list(int)).()'",
    '[1, 2].indexOf("a") == 0': "found no matching overload for 'indexOf' applied to 'list(int).(string)'",
    '["a"].lastIndexOf(1) == 0': "found no matching overload for 'lastIndexOf' applied to 'list(string).(int)'",
    '"ab".indexOf(1) == 1': "found no matching overload for 'indexOf' applied to 'string.(int)'",
    "[1, null].size() == 2": "expected type 'int' but found 'null'",
    "{1: 1, 1u: 2}.size() == 2": "expected type 'int' but found 'uint'",
    '{"a": 1, "b": "x"}.a == 1': "expected type 'int' but found 'string'",
    '[{"a": 1}, {"a": "b"}].size() == 2': "expected type 'map(string, int)' but found 'map(string, string)'",
    '[timestamp(1), duration("1s")].size() == 2': "expected type 'timestamp' but found 'duration'",
    '[1].map(x, [x, "a"]).size() == 1': "expected type 'int' but found 'string'",
    f"[{TEXT}, 1].size() == 2": "expected type 'dyn' but found 'int'",
    f"[device.driver, {TEXT}].size() == 2": "expected type 'string' but found 'dyn'",
    f'{{{TEXT}: 1, "a": 2}}.size() == 2': "expected type 'dyn' but found 'string'",
    f'{{"a": dyn(1), "b": {TEXT}, "c": 1}}.size() == 3': "expected type 'dyn' but found 'int'",
}


@pytest.mark.parametrize(("expression", "text"), INVALID.items(), ids=INVALID)
def test_values_of_mixed_types_do_not_compile(expression: str, text: str) -> None:
    """The texts are the answers of kube-scheduler 1.37.2. Release 1.36.3 calls the type of attributes `any`.

    Source: cel-go cel/validator.go, homogeneousAggregateLiteralValidator.Validate (0.29).
    """
    with pytest.raises(CompileError) as caught:
        compile_expression(expression)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    "expression",
    [
        "sets.contains([1, 2], [])",
        f'sets.contains(["a"], [{TEXT}])',
        f"sets.contains([1], [{TEXT}])",
        "[[], [1]].size() == 2",
        '{"a": [1], "b": []}.size() == 2',
        '["a", "b"].indexOf("b") == 1 && "abc".indexOf("c", 1) == 2',
        f"{TEXT}.indexOf(1) == 1",
        '"%s %d".format(["a", 1]) == "a 1"',
        "[?optional.of(1), 2].size() == 2",
        "[[1, 2].sum(), 3].size() == 2",
        f"[{TEXT}, {TEXT}].size() == 2 && [dyn(1), {TEXT}].size() == 2",
        "[1, 2].transformMap(i, v, v * 2) == {0: 2, 1: 4}",
        "cel.bind(x, 1, [x, 2].size() == 2)",
    ],
)
def test_values_of_one_type_compile(expression: str) -> None:
    """kube-scheduler 1.37.2 compiles these expressions too."""
    compile_expression(expression)
