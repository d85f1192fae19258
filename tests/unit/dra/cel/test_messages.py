"""The texts of CEL errors are those of kube-scheduler."""

import pytest

from extender.dra.cel.environment import (
    CompileError,
    DeviceValues,
    EvaluationError,
    compile_expression,
    to_message,
)
from extender.dra.cel.messages import translate_message
from extender.dra.cel.values import parse_semver

VALUES = 'device.attributes["a"]'
DEVICE = DeviceValues(
    "a",
    allow_multiple_allocations=False,
    attributes={"a": {"text": "x", "zero": 0, "version": to_message(parse_semver("1.2.3"))}},
    capacity={},
)

CASES = {
    f"1 / {VALUES}.zero == 1": "division by zero",
    f"1 % {VALUES}.zero == 1": "modulus by zero",
    f"int({VALUES}.text) == 1": "type conversion error from 'string' to 'int'",
    f"uint({VALUES}.text) == 1u": "type conversion error from 'string' to 'uint'",
    f"double({VALUES}.text) == 1.0": "type conversion error from 'string' to 'double'",
    f"bool({VALUES}.text)": "type conversion error from 'string' to 'bool'",
    f'duration({VALUES}.text) == duration("1s")': ("type conversion error from 'string' to 'google.protobuf.Duration'"),
    f"timestamp({VALUES}.text) == timestamp(1)": "type conversion error from 'string' to 'google.protobuf.Timestamp'",
    f"uint({VALUES}.zero - 1) == 0u": "unsigned integer overflow",
    "[1][1] == 1": "index out of bounds: 1",
    "[1][-1] == 1": "index out of bounds: -1",
    '["a"].flatten(-1) == ["a"]': "level must be non-negative",
    'quantity("x") == quantity("1")': (
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    ),
    f"{VALUES}.version.major == 1": "no such key: major",
    'semver("") == semver("1.2.3")': "Version string empty",
    f'{VALUES}.version.isLessThan(semver("535.104"))': "No Major.Minor.Patch elements found",
    'semver("v1.2.3").minor() == 2': 'Invalid character(s) found in major number "v1"',
    'semver("1.2.3.4").minor() == 2': 'Invalid character(s) found in patch number "3.4"',
    'semver("535.104.05").patch() == 5': 'Patch number must not contain leading zeroes "05"',
    'semver("1.2-rc", true).minor() == 2': "short version cannot contain PreRelease/Build meta data",
    f"{VALUES}.text": (
        "CEL result of type string could not be converted to bool: unsupported native conversion from string to 'bool'"
    ),
    f"{VALUES}.zero": (
        "CEL result of type int could not be converted to bool: unsupported type conversion from 'int' to bool"
    ),
    f"{VALUES}.version": (
        "CEL result of type kubernetes.Semver could not be converted to bool: "
        "type conversion error from 'Semver' to 'bool'"
    ),
    "dyn([1])": "CEL result of type list could not be converted to bool: type conversion error from list to 'bool'",
    "dyn({'a': 1})": "CEL result of type map could not be converted to bool: type conversion error from map to 'bool'",
}


@pytest.mark.parametrize(("expression", "text"), CASES.items(), ids=CASES)
def test_an_error_has_the_text_of_kube_scheduler(expression: str, text: str) -> None:
    """The texts are the answers of kube-scheduler 1.36.3."""
    with pytest.raises(EvaluationError) as caught:
        compile_expression(expression).matches(DEVICE)
    assert str(caught.value) == text


def test_an_unknown_message_loses_its_prefix_and_superfluous_spaces_only() -> None:
    assert translate_message("INTERNAL: no\n  such   thing") == "no such thing"
    assert translate_message("no prefix") == "no prefix"
    assert translate_message("INTERNAL: " + "x" * 5000).endswith("x... (4000 characters)")


COMPILE_ERRORS = {
    "[1].all(x)\n && nope": (
        "ERROR: <input>:1:8: undeclared reference to 'all' (in container '')\n | [1].all(x)\n | .......^\n"
        "ERROR: <input>:1:9: undeclared reference to 'x' (in container '')\n | [1].all(x)\n | ........^\n"
        "ERROR: <input>:2:5: undeclared reference to 'nope' (in container '')\n |  && nope\n | ....^"
    ),
    '"\u00e9" == nope': (
        "ERROR: <input>:1:8: undeclared reference to 'nope' (in container '')\n | \"\u00e9\" == nope\n | .\uff0e.....^"
    ),
    "device.driver.x": (
        "ERROR: <input>:1:14: type 'string' does not support field selection\n | device.driver.x\n | .............^"
    ),
    "has(device.nope)": "ERROR: <input>:1:4: undefined field 'nope'\n | has(device.nope)\n | ...^",
    "has(device)": "ERROR: <input>:1:5: invalid argument to has() macro\n | has(device)\n | ....^",
    "[1].all(1, true)": "ERROR: <input>:1:9: argument must be a simple name\n | [1].all(1, true)\n | ........^",
    "1.all(x, true)": (
        "ERROR: <input>:1:1: expression of type 'int' cannot be range of a comprehension (must be list, map, or "
        "dynamic)\n | 1.all(x, true)\n | ^"
    ),
    f"{VALUES}.text.startsWith(1)": (
        "ERROR: <input>:1:39: found no matching overload for 'startsWith' applied to 'dyn.(int)'\n"
        ' | device.attributes["a"].text.startsWith(1)\n | ......................................^'
    ),
    'duration("1s") + 1 > duration("1s")': (
        "ERROR: <input>:1:16: found no matching overload for '_+_' applied to '(duration, int)'\n"
        ' | duration("1s") + 1 > duration("1s")\n | ...............^'
    ),
    'string([1]) == "1"': (
        "ERROR: <input>:1:7: found no matching overload for 'string' applied to '(list(int))'\n"
        ' | string([1]) == "1"\n | ......^'
    ),
    'sets.contains([1, 2], ["a"])': (
        "ERROR: <input>:1:14: found no matching overload for 'sets.contains' applied to '(list(int), list(string))'\n"
        ' | sets.contains([1, 2], ["a"])\n | .............^'
    ),
    '[1, "a"].size() == 2': (
        "ERROR: <input>:1:5: expected type 'int' but found 'string'\n | [1, \"a\"].size() == 2\n | ....^"
    ),
}


@pytest.mark.parametrize(("expression", "text"), COMPILE_ERRORS.items(), ids=COMPILE_ERRORS)
def test_a_compile_error_has_the_text_and_the_place_of_kube_scheduler(expression: str, text: str) -> None:
    """The texts are the answers of kube-scheduler 1.37.2."""
    with pytest.raises(CompileError) as caught:
        compile_expression(expression)
    assert str(caught.value) == f"compilation failed: {text}"
