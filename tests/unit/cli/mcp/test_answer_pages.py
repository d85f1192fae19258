"""Pages of answers: their size in tokens, long lines, and pages that do not exist."""

import pytest

from extender.cli.mcp.answer_pages import MAX_TOKENS, QuestionError, count_tokens, select_page


def test_a_short_answer_is_one_page_without_a_footer() -> None:
    assert select_page("one\ntwo\n", 1) == "one\ntwo\n"


def test_names_of_pods_count_several_tokens() -> None:
    assert count_tokens("web-7f4b9c-x2m4q") == 14
    assert count_tokens("web") == 1
    assert count_tokens("  web") == 2
    assert count_tokens("ü€") == 5


def test_all_lines_are_on_some_page_and_each_page_says_how_to_get_the_next() -> None:
    lines = [f"default/pod-{number} on node-{number}" for number in range(2000)]
    answer = "\n".join(lines) + "\n"
    first = select_page(answer, 1)
    count = int(first.rpartition(" of ")[2].partition(";")[0])
    pages = [select_page(answer, number) for number in range(1, count + 1)]
    assert count > 10
    assert first.endswith(f"\n(page 1 of {count}; call the tool again with page=2 for more)\n")
    assert pages[-1].endswith(f"\n(page {count} of {count})\n")
    assert [line for page in pages for line in page.splitlines() if line.startswith("default/")] == lines
    assert max(map(count_tokens, pages)) <= MAX_TOKENS


@pytest.mark.parametrize("line", ["x" * 50_000, "a-" * 20_000, "€" * 9_000, " " * 40_000 + "end"])
def test_a_long_line_is_divided(line: str) -> None:
    first = select_page(line, 1)
    assert count_tokens(first) <= MAX_TOKENS
    assert first[0] == line[0]


@pytest.mark.parametrize("page", [0, -1, 2])
def test_a_page_that_does_not_exist_is_an_error(page: int) -> None:
    with pytest.raises(QuestionError, match=f"page {page}: the answer has 1 page; want 1 to 1"):
        select_page("short", page)
