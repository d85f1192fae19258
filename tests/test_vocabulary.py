"""Words of the code base: no private words in names and prose, no fact codes, and a test file for each module."""

import ast
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.test_house_rules import ROOT, sources, tracked, tree

RULES = yaml.safe_load((ROOT / "tests" / "vocabulary.yaml").read_text())
FORBIDDEN_IN_NAMES = frozenset(RULES["forbidden in names"])
FORBIDDEN_IN_PROSE = re.compile(rf"\b(?:{'|'.join(RULES['forbidden in prose'])})\b", re.IGNORECASE)
TESTED_ELSEWHERE: dict[str, str | list[str]] = RULES["modules without a test file of their name"]
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
FACT_CODE = re.compile(r"(?:Source:|\(|, | and | to )\s?[A-I]\d{3}\b(?!\])|\bfault row \d|\breference [A-I]\b")


def words(identifier: str) -> frozenset[str]:
    """Return the lower-case words of an identifier in snake case or camel case."""
    return frozenset(word.lower() for word in WORD.findall(identifier))


def defined_names(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and name of every class, function, parameter and variable that a module defines."""
    for node in ast.walk(module):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr


def forbidden_names(module: ast.Module) -> list[str]:
    found = ((line, name) for line, name in defined_names(module) if words(name) & FORBIDDEN_IN_NAMES)
    return [f"{line}: {name}" for line, name in sorted(set(found))]


def prose(name: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of the comments and docstrings of a file."""
    with (ROOT / name).open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value


def forbidden_prose(name: str) -> list[str]:
    return [f"{line}: {match.group(0)}" for line, text in prose(name) for match in FORBIDDEN_IN_PROSE.finditer(text)]


def unit_test_path(name: str) -> str:
    """Return the path of the test file of a module: extender/cycle/score.py has tests/unit/cycle/test_score.py."""
    path = Path(name).relative_to("extender")
    return (Path("tests/unit") / path.parent / f"test_{path.name}").as_posix()


def modules() -> list[str]:
    return [name for name in sources("extender") if Path(name).stem not in {"__init__", "__main__"}]


def test_no_name_has_a_private_word() -> None:
    found = {name: forbidden_names(tree(name)) for name in sources("extender", "tests")}
    assert {name: names for name, names in found.items() if names} == {}


def test_no_module_has_a_private_word_in_its_name() -> None:
    found = {name: set().union(*map(words, Path(name).with_suffix("").parts)) for name in sources("extender", "tests")}
    assert [name for name, parts in found.items() if parts & FORBIDDEN_IN_NAMES] == []


def test_no_comment_or_docstring_has_a_private_word() -> None:
    found = {name: forbidden_prose(name) for name in sources("extender", "tests")}
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_sources_name_upstream_files_and_no_codes() -> None:
    found = {name: FACT_CODE.findall((ROOT / name).read_text()) for name in sources("extender", "tests")}
    assert {name: codes for name, codes in found.items() if codes} == {}


def test_every_module_has_a_test_file_of_its_name_or_a_named_exception() -> None:
    files = set(tracked())
    untested = {name for name in modules() if unit_test_path(name) not in files}
    assert {name: f"needs {unit_test_path(name)}" for name in untested - set(TESTED_ELSEWHERE)} == {}


def test_every_named_exception_is_needed_and_names_a_test_that_exists() -> None:
    files = set(tracked())
    needless = [name for name in TESTED_ELSEWHERE if name not in files or unit_test_path(name) in files]
    assert needless == []
    named = {name: [tests] if isinstance(tests, str) else tests for name, tests in TESTED_ELSEWHERE.items()}
    assert {name: tests for name, tests in named.items() if tests != ["data only"] and not set(tests) <= files} == {}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("def told(): ...", ["1: told"]),
        ("class KeptAnswers: ...", ["1: KeptAnswers"]),
        ("def add(somebody_else): ...", ["1: somebody_else"]),
        ("for crowd in x: self.kin = crowd", ["1: crowd", "1: kin"]),
        ("def keep_alive(cached): skin = cached.akin", []),
    ],
    ids=["a function", "a class", "a parameter", "variables and attributes", "words that only contain one"],
)
def test_a_private_word_in_a_name_is_seen(source: str, found: list[str]) -> None:
    assert forbidden_names(ast.parse(source)) == found


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("Source: " + "A016.", True),
        ("other extenders (" + "F031)", True),
        ("Source: pkg/scheduler/schedule_one.go, schedulePod (1.36).", False),
        ("a node with an A100 GPU", False),
    ],
    ids=["a source", "in brackets", "an upstream file", "a product"],
)
def test_a_fact_code_is_seen(text: str, seen: bool) -> None:
    assert bool(FACT_CODE.search(text)) is seen
