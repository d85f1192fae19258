"""Expressions whose values could fill the memory do not compile; selectors of usual size do."""

import pytest

from extender.dra.cel.environment import CompileError, compile_expression

ATTRIBUTES = 'device.attributes["gpu.example.com"]'


def double(value: str, count: int, result: str) -> str:
    """Return an expression that doubles *value* *count* times and binds the last value to `v`."""
    return f"cel.bind(v, {value}, " + "cel.bind(v, v + v, " * count + result + ")" * (count + 1)


ACCEPTED = {
    "comparisons": f'{ATTRIBUTES}.model == "A100" && {ATTRIBUTES}.index in [1, 2, 3]',
    "a quantity": 'device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("10Gi"))',
    "a loop over attributes": f'{ATTRIBUTES}.exists(k, k == "x" && {ATTRIBUTES}[k].matches("^(a+)+$"))',
    "a loop over domains and attributes": "device.attributes.all(d, device.attributes[d].exists(k, k != d))",
    "a text of all attributes": (
        "device.attributes.all(d, device.attributes[d].map(k, string(device.attributes[d][k])).join(',').size() > 0)"
    ),
    "a text with the driver and a number": f'{ATTRIBUTES}.model == "%s-%d".format([device.driver, {ATTRIBUTES}.index])',
    "a loop with formatted texts": f'{ATTRIBUTES}.exists(k, k == "%s-%d".format([device.driver, 3]))',
    "a loop with the driver": f"{ATTRIBUTES}.exists(k, k == device.driver.replace('a', device.driver))",
    "a loop over 9,990 numbers": "lists.range(9990).all(x, x in [1, 2, 3])",
    "a list of 999,999 numbers": "lists.range(999999).size() > 0",
    "1,400 terms": "||".join(["false"] * 1400),
    "10,000 negations": "!" * 10_000 + "true",
    "a text that is doubled 11 times": double(f"'{'x' * 1000}'", 11, "v.size() > 0"),
}


@pytest.mark.parametrize("expression", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_an_expression_with_small_values_compiles(expression: str) -> None:
    compile_expression(expression)


TOO_LARGE = {
    "a text that is doubled 12 times": double(f"'{'x' * 1000}'", 12, "v.size() > 0"),
    "a text that is doubled 20 times": double(f"'{'x' * 1000}'", 20, "v.size() > 0"),
    "a list that is doubled 20 times": double("[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]", 20, "v.size() > 0"),
    "9,000 comparisons of long lists": double(
        "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]", 12, "lists.range(9000).all(x, v == v)"
    ),
    "9,000 searches in a list of 100,000": "cel.bind(l, lists.range(100000), lists.range(9000).all(x, !(-1 in l)))",
    "9,000 texts of 5,000 characters": f"lists.range(9000).map(x, '{'x' * 5000}').join('').size() > 0",
    "three replacements by 1,000 characters": (
        f"'{'x' * 1000}'.replace('x', '{'y' * 1000}').replace('y', '{'z' * 1000}').size() > 0"
    ),
    "5,000 times 4,000 characters": f"'{'x' * 5000}'.split('').map(x, '{'x' * 4000}'.split('')).size() > 0",
    "a loop of lists": "lists.range(5000).map(x, lists.range(5000)).size() > 0",
}


@pytest.mark.parametrize("expression", TOO_LARGE.values(), ids=TOO_LARGE.keys())
def test_an_expression_with_large_values_does_not_compile(expression: str) -> None:
    assert len(expression) <= 10 * 1024
    with pytest.raises(
        CompileError, match=r"^too complex, its values or the work to compute them may exceed the limit"
    ):
        compile_expression(expression)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("||".join(["false"] * 100_000), "must be no longer than 10240 characters, has 699998"),
        ("(" * 2000 + "true" + ")" * 2000, "compilation failed: Expression recursion limit exceeded. limit: 32"),
        ("[1]" + ".sort()" * 1400, "compilation failed: "),
        ("'\\" * 3000, "compilation failed: ERROR: "),
        ("string(" + ",".join(["string(1)"] * 900) + ")", "compilation failed: ERROR: "),
    ],
    ids=["100,000 terms", "2,000 brackets", "1,400 calls", "3,000 open texts", "900 arguments"],
)
def test_an_invalid_expression_has_a_short_message(expression: str, message: str) -> None:
    with pytest.raises(CompileError) as caught:
        compile_expression(expression)
    assert str(caught.value).startswith(message)
    assert len(str(caught.value)) < 1100
