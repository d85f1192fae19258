"""What expressions over devices give, and what is wrong with those that give nothing. Source: B123."""

from typing import Any

import pytest

from extender.cel.environment import (
    CompileError,
    DeviceValues,
    Dialect,
    EvaluationError,
    compiled,
    message,
)
from extender.cel.values import quantity, semver

G = 'device.attributes["gpu.example.com"]'
C = 'device.capacity["gpu.example.com"]'
DEVICE = DeviceValues(
    "gpu.example.com",
    shared=True,
    attributes={
        "gpu.example.com": {"model": "a100", "index": 3, "healthy": True, "version": message(semver("1.10.0"))},
        "vendor.com": {"rack": "r1"},
    },
    capacity={"gpu.example.com": {"memory": message(quantity("40Gi")), "cores": message(quantity("1500m"))}},
)


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        pytest.param('device.driver == "gpu.example.com"', True, id="the driver"),
        pytest.param("device.allowMultipleAllocations", True, id="whether it is shared"),
        pytest.param(f'{G}.model == "a100"', True, id="a string attribute"),
        pytest.param(f"{G}.index + 1 == 4", True, id="an int attribute"),
        pytest.param(f"{G}.index < 3.5", True, id="an int attribute beside a double"),
        pytest.param(f"{G}.healthy", True, id="a bool attribute by itself"),
        pytest.param(f'{G}.version.isGreaterThan(semver("1.9.9"))', True, id="versions by number, not by letter"),
        pytest.param(f'{G}.version.compareTo(semver("1.10.0-rc.1")) == 1', True, id="a release is after its candidate"),
        pytest.param(f'{G}.version == semver("1.10.0+build")', True, id="build data does not tell versions apart"),
        pytest.param(f"{G}.version.minor() == 10", True, id="the parts of a version"),
        pytest.param('semver("v1.2", true) == semver("1.2.0")', True, id="a version put right"),
        pytest.param('isSemver("01.2.3")', False, id="a version with leading zeros is none"),
        pytest.param(f'{C}.memory.compareTo(quantity("40Gi")) == 0', True, id="a capacity"),
        pytest.param(f'{C}.memory == quantity("40960Mi")', True, id="equal amounts are equal however written"),
        pytest.param(f'{C}.memory.isLessThan(quantity("41Gi"))', True, id="less than"),
        pytest.param(f"{C}.memory.asInteger() > 1.5", True, id="an integer beside a double"),
        pytest.param(f"{C}.cores.isInteger()", False, id="an amount that is not whole"),
        pytest.param(f"{C}.cores.asApproximateFloat() == 1.5", True, id="an amount as a float"),
        pytest.param('quantity("1Gi").add(quantity("1Gi")).sub(1) == quantity("2147483647")', True, id="arithmetic"),
        pytest.param('sign(quantity("-1")) == -1 && isQuantity("1Gi") && !isQuantity("x")', True, id="signs"),
        pytest.param('"model" in device.attributes["other.com"]', False, id="an unknown domain is empty"),
        pytest.param("has(device.attributes.other)", True, id="and is there when asked for"),
        pytest.param('"other.com" in device.attributes', False, id="but not among the domains"),
        pytest.param("device.attributes.size() == 2", True, id="nor is it counted"),
        pytest.param('device.attributes.exists(d, d == "vendor.com")', True, id="domains can be looked through"),
        pytest.param("device.attributes[device.driver].index == 3", True, id="a domain that is worked out"),
        pytest.param(f"has({G}.nosuch)", False, id="an attribute that is not there"),
        pytest.param("has(device.capacity) && has(device.driver)", True, id="a device has its fields"),
        pytest.param(f'{G}.?nosuch.orValue("x") == "x"', True, id="an optional attribute"),
        pytest.param(f'cel.bind(a, {G}, a.model == "a100" && a.healthy)', True, id="a name for a part"),
        pytest.param('cel.bind(d, device, d.driver == "gpu.example.com")', True, id="a name for the device"),
        pytest.param(f'{G}.model.matches("^a[0-9]+$")', True, id="a regular expression"),
        pytest.param(f'{G}.model.upperAscii() == "A100"', True, id="letters"),
        pytest.param('"device.nosuch" == "x"', False, id="a text that looks like code"),
        pytest.param('// device.nosuch\ntrue', True, id="a comment that looks like code"),
        pytest.param(f'{G}.model in ["a100", "h100"]', True, id="membership"),
        pytest.param("sets.contains([1, 2], [2]) && sets.intersects([1], [1, 3])", True, id="sets"),
        pytest.param("sets.equivalent([1, 1], [1]) && !sets.contains([true], [1])", True, id="sets tell true from 1"),
        pytest.param('[3, 1].min() == 1 && ["a", "b"].max() == "b" && [1, 2].sum() == 3', True, id="lists"),
        pytest.param('"abc 123 45".find("[0-9]+") == "123"', True, id="what a regular expression finds"),
        pytest.param('"1 22 3".findAll("[0-9]+") == ["1", "22", "3"]', True, id="all that it finds"),
        pytest.param('"1 22 3".findAll("[0-9]+", 2).size() == 2', True, id="the first of what it finds"),
        pytest.param("[1, 2, 2].isSorted() && ![2, 1].isSorted()", True, id="sorted lists"),
        pytest.param('ip("10.0.0.1").family() == 4 && ip("::1").isLoopback()', True, id="addresses"),
        pytest.param('isIP("10.0.0.300") || ip.isCanonical("::0001")', False, id="texts that are no address"),
        pytest.param('cidr("10.0.0.0/8").containsIP("10.1.2.3")', True, id="an address in a network"),
        pytest.param('cidr("10.0.0.0/8").containsCIDR(cidr("10.1.0.0/16"))', True, id="a network in a network"),
        pytest.param('cidr("10.1.2.3/8").masked() == cidr("10.0.0.0/8")', True, id="a network without host bits"),
        pytest.param('url("https://x.com:80/a?b=c").getHostname() == "x.com"', True, id="a URL"),
        pytest.param('url("https://x.com:80/a?b=c").getQuery()["b"][0] == "c"', True, id="the query of a URL"),
        pytest.param('true || 1/0 == 1', True, id="an error that does not matter"),
    ],
)  # fmt: skip
def test_an_expression_gives(expression: str, want: bool) -> None:
    assert compiled(expression, Dialect()).matches(DEVICE) is want


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        pytest.param(f'{G}.nosuch == "x"', "no such key: nosuch", id="a missing attribute"),
        pytest.param('device.attributes["other.com"].model == "x"', "no such key: model", id="of an unknown domain"),
        pytest.param(f"{G}.model < 3", "no such overload", id="a text beside a number"),
        pytest.param(f"{G}.index", "CEL result of type int could not be converted to bool", id="a number"),
        pytest.param(f'{C}.memory.isLessThan(semver("1.0.0"))', "no such overload", id="amounts beside versions"),
        pytest.param('sign(quantity("many")) == 1', 'quantity "many"', id="a text that is no quantity"),
        pytest.param(f"{C}.cores.asInteger() == 1", "cannot convert value to integer", id="not whole"),
        pytest.param('"aaaa".find("(a+)+b") == ""', "cost limit exceeded", id="repeats within repeats"),
        pytest.param('"a".find("(?=a)") == ""', "not supported", id="looking around"),
        pytest.param('"a".find("(") == ""', "invalid regular expression", id="a wrong expression"),
        pytest.param("[].min() == 1", "min called on empty list", id="the least of nothing"),
    ],
)
def test_an_expression_fails_with(expression: str, want: str) -> None:
    with pytest.raises(EvaluationError, match=want):
        compiled(expression, Dialect()).matches(DEVICE)


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        pytest.param("device.nosuch == 1", "undeclared reference", id="an unknown field"),
        pytest.param('device["driver"] == "x"', "undeclared reference", id="a device taken for a map"),
        pytest.param("nosuch == 1", "undeclared reference", id="an unknown name"),
        pytest.param("1 +", "Syntax error", id="half an expression"),
        pytest.param("", "Syntax error", id="nothing"),
        pytest.param("1 + 1", "must evaluate to bool or the unknown type, not int", id="a number"),
        pytest.param('device.driver + 1 == "x"', "no matching overload", id="a text plus a number"),
        pytest.param("(" * 200 + "true" + ")" * 200, "limit", id="too many brackets"),
        pytest.param("true || " * 2000 + "true", "must be no longer than 10240 characters", id="too long"),
    ],
)
def test_an_expression_does_not_compile(expression: str, want: str) -> None:
    with pytest.raises(CompileError, match=want):
        compiled(expression, Dialect())


def test_the_field_of_shared_devices_is_unknown_while_its_gate_is_off() -> None:
    with pytest.raises(CompileError, match="undeclared reference"):
        compiled("device.allowMultipleAllocations", Dialect(shares=False))


def test_lists_can_be_asked_what_they_include_if_the_gate_is_on() -> None:
    lists: dict[str, Any] = {"gpu.example.com": {"links": [1, 2], "names": ["a"]}}
    device = DeviceValues("gpu.example.com", shared=False, attributes=lists, capacity={})
    dialect = Dialect(lists=True)
    assert compiled(f"{G}.links.includes(2) && {G}.names.includes('a')", dialect).matches(device)
    assert not compiled(f"{G}.links.includes(3)", dialect).matches(device)
    with pytest.raises(CompileError):
        compiled(f"{G}.links.includes(2)", Dialect())


def test_a_loop_over_a_million_elements_is_stopped() -> None:
    ten = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"
    expression = "true"
    for name in "abcdef":
        expression = f"{ten}.all({name}, {expression})"
    with pytest.raises(EvaluationError, match="cost limit exceeded"):
        compiled(expression, Dialect()).matches(DEVICE)
