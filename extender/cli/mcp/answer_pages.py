"""Divide an answer into pages of at most 2,000 tokens."""

import re
from typing import Final

from extender.analysis.text_table import format_count

MAX_TOKENS: Final = 2_000
"""The maximum number of tokens of a page, with its last line."""

_MAX_LINE_TOKENS: Final = 400
_FOOTER_TOKENS: Final = 40
_TOKEN: Final = re.compile(r"[A-Za-z]{1,4}|[0-9]{1,2}|\s+|[^\sA-Za-z0-9]")


class QuestionError(Exception):
    """The exception for a question that does not fit the cluster; its text says which question to ask instead."""


def count_tokens(text: str) -> int:
    """Return an upper estimate of the number of tokens: tokenizers of language models seldom use shorter pieces.

    Four letters, two digits, a run of spaces, and any other character count as one token. A character that UTF-8
    encodes in several bytes counts as that many tokens.
    """
    return sum(len(token.encode()) if not token.isascii() else 1 for token in _TOKEN.findall(text))


def select_page(text: str, page: int) -> str:
    """Return one page of an answer; its last line says how to get the next one. A long line is divided.

    The first page has the number 1.

    Raises:
        QuestionError: there is no such page.
    """
    pages = _divide(text)
    footer = format_footer(page, len(pages))
    return f"{pages[page - 1].rstrip()}\n{footer}" if footer else pages[0]


def format_footer(page: int, page_count: int) -> str:
    """Return the last line of *page*, which says how to get the next one; empty if there is only one page.

    Raises:
        QuestionError: there is no such page.
    """
    if not 1 <= page <= page_count:
        raise QuestionError(f"page {page}: the answer has {format_count(page_count, 'page')}; want 1 to {page_count}")
    following = f"; call the tool again with page={page + 1} for more" if page < page_count else ""
    return f"\n(page {page} of {page_count}{following})\n" if page_count > 1 else ""


def _divide(text: str) -> list[str]:
    pages: list[str] = [""]
    tokens = 0
    for line in text.splitlines(keepends=True) or [""]:
        for part in _divide_line(line):
            part_tokens = count_tokens(part)
            if tokens + part_tokens > MAX_TOKENS - _FOOTER_TOKENS and pages[-1]:
                pages.append("")
                tokens = 0
            pages[-1] += part
            tokens += part_tokens
    return pages


def _divide_line(line: str) -> list[str]:
    """Return *line* in parts of at most `_MAX_LINE_TOKENS` tokens; most lines have one part."""
    if len(line) <= _MAX_LINE_TOKENS // 4:  # even if each character had four bytes
        return [line]
    parts, start, tokens = [], 0, 0
    for match in _TOKEN.finditer(line):
        tokens += count_tokens(match.group())
        if tokens > _MAX_LINE_TOKENS:
            parts.append(line[start : match.start()])
            start, tokens = match.start(), count_tokens(match.group())
    return [*parts, line[start:]]
