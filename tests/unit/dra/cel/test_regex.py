"""Matches of regular expressions: groups, errors, and the cost of patterns that are slow with backtracking."""

import pytest

from extender.dra.cel.costs import COST_LIMIT, COST_LIMIT_EXCEEDED, COST_METER
from extender.dra.cel.regex import find, find_all, spend_pattern

LONG = "a" * 64


@pytest.fixture(autouse=True)
def _new_evaluation() -> None:
    COST_METER.reset()


@pytest.mark.parametrize(
    ("text", "pattern", "match"),
    [
        pytest.param("abc 123 45", "[0-9]+", "123", id="the first match"),
        pytest.param("xabab", "(a)(b)", "ab", id="two groups"),
        pytest.param("xabab", "(?P<first>a)(?<second>b)", "ab", id="named groups"),
        pytest.param("a(b", r"\(b", "(b", id="an escaped bracket"),
        pytest.param("a(b", "[(]b", "(b", id="a bracket in a class"),
        pytest.param("a](b", "[]a(]+", "a](", id="a class with its own end"),
        pytest.param("a(b", r"\Qa(\E", "a(", id="a quotation"),
        pytest.param("xAB", "(?i)(ab)", "AB", id="a flag"),
        pytest.param("b", "a*", "", id="an empty match"),
        pytest.param("b", "a", "", id="no match"),
    ],
)
def test_find_returns_the_whole_first_match(text: str, pattern: str, match: str) -> None:
    assert find(text, pattern) == match


@pytest.mark.parametrize(
    ("text", "pattern", "matches"),
    [
        pytest.param("baaau", "a*", ["", "aaa", ""], id="no empty match directly after a match"),
        pytest.param("b", "a*", ["", ""], id="an empty match at each end"),
        pytest.param("", "a*", [""], id="an empty text"),
        pytest.param("", "a", [], id="an empty text without a match"),
        pytest.param("abc", "", ["", "", "", ""], id="an empty pattern"),
        pytest.param("\u00e4\u00f6", "x*", ["", "", ""], id="characters of two bytes"),
        pytest.param("abc", "b|", ["", "b", ""], id="an empty alternative"),
        pytest.param("ab12cd", "([a-z]*)", ["ab", "", "cd"], id="a group"),
        pytest.param("aXbX", r"X\b|b*", ["", "", "b", "X"], id="a match that depends on the character before"),
        pytest.param("aaa", "^a", ["a"], id="only the start of the text is the start"),
        pytest.param("a b", r"\b", ["", "", "", ""], id="word boundaries"),
        pytest.param("foo\nbar", "(?m)$", ["", ""], id="ends of lines"),
        pytest.param("a\ue000b", ".", ["a", "\ue000", "b"], id="a character for private use"),
    ],
)
def test_find_all_returns_the_matches_of_go(text: str, pattern: str, matches: list[str]) -> None:
    """The expected matches are those of FindAllString in Go 1.26."""
    assert find_all(text, pattern) == matches
    assert find_all(text, pattern, 2) == matches[:2]


def test_find_all_returns_all_matches_or_the_first_ones() -> None:
    assert find_all("1 22 333", "[0-9]+") == ["1", "22", "333"]
    assert find_all("1 22 333", "[0-9]+", 2) == ["1", "22"]
    assert find_all("1 22 333", "[0-9]+", 0) == []


@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param("(a+)+b", id="repeats within repeats"),
        pytest.param("(a|aa)?" * 60 + "b", id="60 alternatives"),
        pytest.param("a?" * 64 + "a" * 64 + "b", id="64 options"),
        pytest.param("a{0,60}" * 30 + "b", id="30 bounded repeats"),
        pytest.param(".{0,99}" * 8 + "b", id="eight wide repeats"),
    ],
)
def test_a_pattern_that_would_backtrack_exponentially_has_a_result(pattern: str) -> None:
    assert find(LONG, pattern) == ""
    assert find_all(LONG, pattern) == []


@pytest.mark.parametrize(
    ("pattern", "cost"),
    [
        pytest.param("^gpu-[0-9]+$", 12, id="no repetition"),
        pytest.param("[0-9]{1,3}", 30, id="a repetition"),
        pytest.param("[0-9]{2,}x{4}", 52, id="the largest repetition counts"),
        pytest.param("(?:[0-9]{1,3}x){4}", 216, id="repetitions of repetitions are multiplied"),
        pytest.param("((a{9}){99}){999}", 17_000, id="RE2 allows 1,000 repetitions"),
        pytest.param(r"\pL\p{Lu}", 2009, id="Unicode classes"),
    ],
)
def test_the_cost_of_a_pattern_grows_with_its_repetitions_and_unicode_classes(pattern: str, cost: int) -> None:
    COST_METER.spend(COST_LIMIT - cost)
    assert spend_pattern(pattern) == pattern
    with pytest.raises(ValueError, match=COST_LIMIT_EXCEEDED):
        COST_METER.spend(1)


def test_the_cost_of_a_match_grows_with_the_text_and_the_pattern() -> None:
    assert find("a" * 960, "b" * 39_999) == ""  # 96 units for the text, 10,000 for the pattern; 39,999 to compile it
    with pytest.raises(ValueError, match=COST_LIMIT_EXCEEDED):
        find("a", "b")


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(", "invalid regular expression: missing "),
        (r"\1", "invalid regular expression: invalid escape sequence"),
        ("(?=a)", "invalid regular expression: invalid perl operator"),
        ("a{1,60000}", "invalid regular expression: invalid repetition size"),
    ],
    ids=["an open group", "a backreference", "lookaround", "60,000 repeats"],
)
def test_an_invalid_pattern_is_an_error(pattern: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        find("a", pattern)
