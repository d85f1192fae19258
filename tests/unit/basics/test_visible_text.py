"""Text with unprintable characters becomes visible."""

import pytest

from extender.basics.visible_text import make_value_visible, make_visible, quote


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("node-1", "node-1"),
        ("größer 中文", "größer 中文"),
        ("a\u202eb", "a\\u202eb"),
        ("a\u200fb", "a\\u200fb"),
        ("a\u2066b", "a\\u2066b"),
        ("a\x00b\x1b[1m", "a\\x00b\\x1b[1m"),
        ("line\n\tnext", "line\n\tnext"),
        ("\U000e0041", "\\U000e0041"),
    ],
    ids=["plain", "other scripts", "override", "mark", "isolate", "control", "line breaks and tabs", "tag character"],
)
def test_unprintable_characters_are_shown_as_escapes(text: str, want: str) -> None:
    assert make_visible(text) == want


def test_keys_and_nested_strings_of_values_become_visible() -> None:
    assert make_value_visible({"a\u200f": ["b\u202e", 1, None, ("c\x00",)]}) == {
        "a\\u200f": ["b\\u202e", 1, None, ["c\\x00"]]
    }


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("data-1", '"data-1"'),
        ("größer 中文", '"größer 中文"'),
        ('a"b\\c', r'"a\"b\\c"'),
        ("\a\b\f\n\r\t\v", r'"\a\b\f\n\r\t\v"'),
        ("\x00\x1b\x7f", r'"\x00\x1b\x7f"'),
        ("\x9b\u202e\U000e0041", r'"\u009b\u202e\U000e0041"'),
    ],
    ids=["plain", "other scripts", "quotes", "short escapes", "controls", "unprintable"],
)
def test_quoted_text_has_the_escapes_of_go(text: str, want: str) -> None:
    """Source: Go 1.26, strconv/quote.go, Quote."""
    assert quote(text) == want
