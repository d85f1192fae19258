"""Text tables and counts."""

import pytest

from extender.analysis.text_table import format_amounts, format_count, format_section, format_table, join_first


def test_columns_are_aligned_and_lines_have_no_trailing_spaces() -> None:
    rows = [("NODES", "PLUGIN"), ("8", "NodeResourcesFit"), ("12", "X")]
    assert format_table(rows, right_aligned=[0]) == ["  NODES  PLUGIN", "      8  NodeResourcesFit", "     12  X"]


def test_rows_may_have_different_lengths_and_an_indent() -> None:
    assert format_table([("a",), ("bb", "c")], indent="    ") == ["    a", "    bb  c"]


def test_wide_characters_take_two_columns_and_accents_none() -> None:
    rows = [("\u6392\u7a7a", "1", "x"), ("cafe\u0301", "10", "x"), ("\U0001f680", "\uff11", "x"), ("abcde", "2", "x")]
    assert format_table(rows, right_aligned=[1], indent="") == [
        "\u6392\u7a7a    1  x",
        "cafe\u0301   10  x",
        "\U0001f680     \uff11  x",
        "abcde   2  x",
    ]


def test_a_table_without_rows_is_empty() -> None:
    assert format_table([]) == []


def test_a_section_has_a_title_and_the_number_of_omitted_rows() -> None:
    rows = [("a", "1"), ("bb", "2"), ("c", "3")]
    assert format_section("Pods", rows, 3) == ["", "Pods", "  a   1", "  bb  2", "  c   3"]
    assert format_section("Pods", rows, 2) == ["", "Pods", "  a   1", "  bb  2", "  and 1 more"]
    assert format_section("Pods", [], 2) == []


def test_only_the_first_names_are_joined() -> None:
    assert join_first(["a", "b", "c"]) == "a, b, c"
    assert join_first(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"
    assert join_first([]) == ""


@pytest.mark.parametrize(("number", "expected"), [(0, "0 nodes"), (1, "1 node"), (2, "2 nodes")])
def test_a_count_has_its_noun_in_singular_or_plural(number: int, expected: str) -> None:
    assert format_count(number, "node") == expected


@pytest.mark.parametrize(
    ("resource", "amounts", "texts"),
    [
        ("cpu", (1000, 500, 500), ["1000m", "500m", "500m"]),
        ("cpu", (4000, 1000, 3000), ["4", "1", "3"]),
        ("cpu", (500, 0, 500), ["500m", "0", "500m"]),
        ("cpu", (64_000, 3500, 60_500), ["64", "3.5", "60.5"]),
        ("cpu", (12_000, -1), ["12", "-0.001"]),
        ("memory", (1 << 30, 1 << 29), ["1Gi", "512Mi"]),
        ("pods", (110, 5), ["110", "5"]),
    ],
)
def test_amounts_of_cpu_that_are_read_together_have_one_notation(
    resource: str, amounts: tuple[int, ...], texts: list[str]
) -> None:
    assert format_amounts(resource, *amounts) == texts
