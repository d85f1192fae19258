"""Rewrites of calls that the CEL library lacks."""

import pytest

from extender.dra.cel.call_rewrites import find_reserved_name, rewrite_calls


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        ("a.existsOne(i, i > 0)", "a.exists_one(i, i > 0)"),
        ("a.exists_one(i, v, v > 0)", "a.existsOne(i, v, v > 0)"),
        (
            "a.transformMap(k, v, v + 1)",
            "__mergeMaps(cel.bind(__it, a, __spend(__it.size() * __it.size() / 4) ? __it : __it)"
            ".transformList(k, v, {k:  v + 1}))",
        ),
        (
            "a.map(x, x > 1, x)",
            "cel.bind(__it, a, __spend(__it.size() * __it.size() / 4) ? __it : __it).map(x, x > 1, x)",
        ),
        ("a.indexOf(x, 1)", "a.__indexOf([x, 1])"),
        ("string(a)", "string(__stringArgument(a))"),
        ('format.named("date")', 'format.named("date")[?0]'),
        ("a.b(c)[d].reverse()", "cel.bind(__it, a.b(c)[d], __spend(__it.size()) ? __it : __it).reverse()"),
        ("a.exists(x, a.all(y, x > y))", "a.exists(x, a.all(y, x > y))"),
        (
            "a.exists(x, x > 1) || cel.bind(b, 1, b > 0)",
            "(a.exists(x, x > 1) ? [0].all(__it, __value, true) : false) || cel.bind(b, 1, b > 0)",
        ),
        (
            "a.all(i, x, x > i) && b.optMap(c, c).value()",
            "(a.all(i, x, x > i) ? true : ![0].all(__it, __value, true)) && b.optMap(c, c).value()",
        ),
        ('"a.reverse()" == a.size()', '"a.reverse()" == a.size()'),
    ],
)
def test_a_call_is_rewritten(expression: str, want: str) -> None:
    assert rewrite_calls(expression) == want


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        ("__spend(1) || true", "__spend"),
        ("device.__existingCapacity", "__existingCapacity"),
        ("a.map(__it, __it + 1)", ""),
    ],
)
def test_reserved_functions_and_device_fields_are_found(expression: str, want: str) -> None:
    assert find_reserved_name(expression) == want
