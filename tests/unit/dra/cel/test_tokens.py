"""Tokens, brackets and edits of expressions."""

import pytest

from extender.dra.cel.tokens import apply_edits, match_brackets, tokenize


def test_strings_names_and_other_tokens_are_split_without_space_and_comments() -> None:
    tokens = tokenize("a.b(\"x // y\", r'\\d') // comment\n+ 1.5")
    assert [(token.kind, token.text) for token in tokens] == [
        ("name", "a"),
        ("other", "."),
        ("name", "b"),
        ("other", "("),
        ("string", '"x // y"'),
        ("other", ","),
        ("string", "r'\\d'"),
        ("other", ")"),
        ("other", "+"),
        ("other", "1.5"),
    ]
    assert (tokens[2].start, tokens[2].end) == (2, 3)


@pytest.mark.parametrize(
    ("expression", "pairs"),
    [("f(a[0])", {1: 6, 6: 1, 3: 5, 5: 3}), ('f("(")', {1: 3, 3: 1}), ("f(a]", {}), ("a)", {})],
)
def test_brackets_are_matched_outside_of_strings(expression: str, pairs: dict[int, int]) -> None:
    assert match_brackets(tokenize(expression)) == pairs


def test_edits_at_one_position_keep_their_order() -> None:
    assert apply_edits("abc", [(3, 3, "!"), (0, 0, "1"), (0, 0, "2"), (1, 2, "B")]) == "12aBc!"
