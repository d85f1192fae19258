"""The texts of CEL errors are those of kube-scheduler."""

import pytest

from extender.dra.cel.environment import DeviceValues, EvaluationError, compile_expression, to_message
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
