"""Validation of label keys, label values and requirements."""

import pytest

from extender.api.label_syntax import (
    format_invalid_value,
    invalid_value,
    is_qualified_name,
    join_errors,
    parse_int64,
    validate_label_value,
    validate_qualified_name,
    validate_requirement,
    validate_subdomain,
)
from extender.config.validation import make_invalid_value_error


@pytest.mark.parametrize(("text", "valid"), [("", True), ("v1", True), ("v" * 64, False), ("v-", False), ("ä", False)])
def test_label_values_are_validated(text: str, valid: bool) -> None:
    assert (not validate_label_value(text)) is valid


@pytest.mark.parametrize(
    ("text", "number"),
    [("12", 12), ("-012", -12), ("+1", 1), ("", None), ("1_000", None), (" 1", None), ("٣", None),
     ("9223372036854775807", 2**63 - 1), ("9223372036854775808", None), ("9" * 5000, None)],
)  # fmt: skip
def test_integers_are_parsed_as_in_go(text: str, number: int | None) -> None:
    assert parse_int64(text) == number


@pytest.mark.parametrize(("name", "errors"), [("example.com/gpu", 0), ("gpu", 0), ("/gpu", 1), ("a/b/c", 1), ("", 2)])
def test_qualified_names_are_validated(name: str, errors: int) -> None:
    assert len(validate_qualified_name(name)) == errors


def test_a_subdomain_may_have_any_length() -> None:
    assert validate_subdomain("a." * 300 + "a") == ""
    assert validate_subdomain("Example.com").startswith("a lowercase RFC 1123 subdomain must consist of")


def test_a_requirement_without_values_has_an_error_with_its_path() -> None:
    message = "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"
    assert validate_requirement("zone", "In", ()) == [message]
    assert validate_requirement("zone", "In", ("a",)) == []


def test_distinct_errors_are_joined_in_brackets() -> None:
    assert join_errors(["a", "a"]) == "a"
    assert join_errors(["a", "b", "a"]) == "[a, b]"


@pytest.mark.parametrize(
    ("text", "valid"),
    [("a", True), ("example.com/a", True), ("a" * 63, True), ("a" * 64, False), ("", False), ("/a", False),
     ("example.com/", False), ("Example.com/a", False), ("a/b/c", False), ("-a", False), ("a\n", False),
     ("a" * 254 + "/b", False), ("a_b.c-d", True)],
)  # fmt: skip
def test_label_keys_are_validated(text: str, valid: bool) -> None:
    assert is_qualified_name(text) is valid


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a/b/c", '"a/b/c"'),
        ('say "no" \\ yes', r'"say \"no\" \\ yes"'),
        ("tab\tbell\aline\n", r'"tab\tbell\aline\n"'),
        ("\x1b[31mred\x7f", r'"\x1b[31mred\x7f"'),
        ("caf\u00e9 \u6392\u7a7a", '"caf\u00e9 \u6392\u7a7a"'),
        ("\u202eright to left\u0085", r'"\u202eright to left\u0085"'),
        ("\U000e0001tag", r'"\U000e0001tag"'),
        (-1, "-1"),
        (True, "true"),
        (None, "null"),
        (["a", "b"], '["a","b"]'),
        ({"app": "web"}, '{"app":"web"}'),
    ],
)
def test_a_value_is_shown_as_go_shows_it(value: object, text: str) -> None:
    """The texts are those of Go 1.26: fmt.Sprintf("%q", ...) and json.Marshal."""
    assert invalid_value(value, "must differ") == f"Invalid value: {text}: must differ"
    assert make_invalid_value_error("spec", value, "must differ").message == f"Invalid value: {text}: must differ"


def test_an_empty_list_of_a_label_requirement_is_null() -> None:
    assert format_invalid_value("values", [], "must differ") == "values: Invalid value: null: must differ"
    assert format_invalid_value("key", "", "must differ") == 'key: Invalid value: "": must differ'
