"""The house rules no linter knows: sizes, names, rooms, imports, first lines, fragments, top level, forbidden words."""

import ast
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.parallel import FIRST

ROOT = Path(__file__).resolve().parent.parent
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 50
MAX_MODULES_IN_A_FOLDER = 20
BANNED_NAMES = {"base", "common", "core", "helper", "helpers", "lib", "manager", "misc", "shared", "util", "utils"}
TOP_LEVEL = {
    "pyproject.toml", "extender", "chart", "tests", "scheduler-config", "Dockerfile", "README.md", "LICENSE",
    "SECURITY.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs", "Makefile",
}  # fmt: skip
FRAGMENT = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*\.(added|changed|fixed|removed|security)\.md")
NOT_FRAGMENTS = {"template.md.j2"}
GENERATED = re.compile(
    r"(^|/)(\.git|\.?venv(-demo)?|\.\w+_cache|__pycache__|\.hypothesis)(/|$)|^(build|dist)/|^\.coverage|\.pyc$"
)
LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)")
# A path of one machine, or the host of a package index: the tree must work anywhere.
FORBIDDEN = {
    "a machine's own path": re.compile(r"(?<![\w.*{}$-])/(?:work|root|home|Users|tmp)/\w"),
    "a package index": re.compile(
        r"pypi\.(?:org|python)|python[h]osted|registry\.npm[j]s|\bdev[p]i\b|arti[f]actory|jfro[g]|--(?:extra-)?index-ur[l]"
    ),
}

Function = ast.FunctionDef | ast.AsyncFunctionDef
Import = ast.Import | ast.ImportFrom


@cache
def tracked() -> tuple[str, ...]:
    """Files that are or would be committed, relative to the top, with forward slashes.

    Without a usable repository, as in an unpacked archive, all files but those that are built or cached.
    """
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")
    except (OSError, subprocess.CalledProcessError):
        found = (path.relative_to(ROOT) for path in ROOT.rglob("*"))
        names = [path.as_posix() for path in found if not GENERATED.search(path.as_posix())]
    return tuple(sorted(name for name in set(names) if name and (ROOT / name).is_file()))


@cache
def sources(*folders: str) -> tuple[str, ...]:
    """The Python files below these folders."""
    return tuple(name for name in tracked() if name.endswith(".py") and name.split("/")[0] in folders)


@cache
def tree(name: str) -> ast.Module:
    """A source file, parsed once."""
    return ast.parse((ROOT / name).read_text(), filename=name)


def functions(module: ast.Module) -> Iterator[Function]:
    return (node for node in ast.walk(module) if isinstance(node, Function))


def is_own(node: ast.AST) -> bool:
    """Whether a node imports something of this package."""
    if isinstance(node, ast.Import):
        return any(alias.name.split(".")[0] == "extender" for alias in node.names)
    return isinstance(node, ast.ImportFrom) and (node.level > 0 or (node.module or "").split(".")[0] == "extender")


def own_imports_in_functions(module: ast.Module) -> list[int]:
    return [node.lineno for function in functions(module) for node in ast.walk(function) if is_own(node)]  # type: ignore[attr-defined]


def own_imports_for_types_only(module: ast.Module) -> list[int]:
    guarded = (
        node for node in ast.walk(module) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
    )
    return [node.lineno for guard in guarded for node in ast.walk(guard) if is_own(node)]  # type: ignore[attr-defined]


def long_functions(module: ast.Module) -> list[str]:
    """Functions over the limit; decorators are not counted, the docstring is."""
    return [
        f"{node.name}: {(node.end_lineno or 0) - node.lineno + 1} lines"
        for node in functions(module)
        if (node.end_lineno or 0) - node.lineno + 1 > MAX_FUNCTION_LINES
    ]


def first_line(module: ast.Module) -> str:
    return (ast.get_docstring(module) or "").partition("\n")[0].strip()


def says_something(line: str) -> bool:
    """A sentence of some length that ends like one."""
    return len(line.split()) >= 4 and line.endswith((".", ":", "?"))


def test_the_names_in_the_list_of_first_tests_exist() -> None:
    assert [start for start in FIRST if not (ROOT / start).exists()] == []


def test_there_are_files_to_check() -> None:
    assert len(sources("extender")) > 10
    assert "pyproject.toml" in tracked()


def test_no_file_is_longer_than_400_lines() -> None:
    lengths = {name: len((ROOT / name).read_text().splitlines()) for name in sources("extender", "tests")}
    assert {name: count for name, count in lengths.items() if count > MAX_FILE_LINES} == {}


def test_no_function_is_longer_than_50_lines() -> None:
    found = {name: long_functions(tree(name)) for name in sources("extender", "tests")}
    assert {name: long for name, long in found.items() if long} == {}


def test_no_folder_has_more_than_20_modules() -> None:
    folders = Counter(Path(name).parent.as_posix() for name in sources("extender") if not name.endswith("__init__.py"))
    assert {folder: count for folder, count in folders.items() if count > MAX_MODULES_IN_A_FOLDER} == {}


def test_no_module_or_folder_has_a_name_that_says_nothing() -> None:
    words = {name: set(Path(name).with_suffix("").parts) & BANNED_NAMES for name in sources("extender")}
    assert {name: bad for name, bad in words.items() if bad} == {}


def test_a_room_s_init_is_a_docstring_and_nothing_else() -> None:
    inits = [name for name in sources("extender") if name.endswith("/__init__.py") and name != "extender/__init__.py"]
    assert [name for name in inits if len(tree(name).body) != 1 or not first_line(tree(name))] == []


def test_every_folder_with_modules_is_a_package() -> None:
    folders = {str(Path(name).parent) for name in sources("extender")}
    assert {folder for folder in folders if f"{folder}/__init__.py" not in tracked()} == set()


def test_own_modules_are_imported_at_the_top() -> None:
    found = {name: own_imports_in_functions(tree(name)) for name in sources("extender")}
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_nothing_own_is_imported_for_types_only() -> None:
    found = {name: own_imports_for_types_only(tree(name)) for name in sources("extender", "tests")}
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_every_module_says_in_its_first_line_what_it_is_for() -> None:
    silent = {name: first_line(tree(name)) for name in sources("extender", "tests")}
    assert {name: line for name, line in silent.items() if not says_something(line)} == {}


def test_every_changelog_fragment_has_a_legal_name_and_a_sentence() -> None:
    folder = ROOT / "docs" / "changelog.d"
    files = [path for path in sorted(folder.iterdir()) if path.name not in NOT_FRAGMENTS and path.name[0] != "."]
    assert [path.name for path in files if not FRAGMENT.fullmatch(path.name)] == []
    assert [path.name for path in files if not path.read_text().strip().endswith(".")] == []


def test_the_top_level_holds_only_what_belongs_there() -> None:
    tops = {name.split("/")[0] for name in tracked()}
    assert {
        top for top in tops if top not in TOP_LEVEL and not top.startswith(".") and not top.endswith(".lock")
    } == set()


def test_every_link_between_our_pages_leads_somewhere() -> None:
    pages = [name for name in tracked() if name.endswith(".md")]
    links = [(name, link) for name in pages for link in LINK.findall((ROOT / name).read_text())]
    assert [(name, link) for name, link in links if not (ROOT / name).parent.joinpath(link).exists()] == []


def test_the_architecture_page_names_every_room_and_no_file_that_is_gone() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    tops = {name.split("/")[1].removesuffix(".py") for name in sources("extender")}
    files = {Path(name).name for name in sources("extender", "tests")}
    assert {top for top in tops if not re.search(rf"(?m)^  {top}\b", page)} == set()
    assert set(re.findall(r"\b(\w+\.py)\b", page)) - files == set()


def test_no_file_names_a_machine_s_path_or_a_package_index() -> None:
    found = []
    for name in tracked():
        try:
            text = (ROOT / name).read_text()
        except UnicodeDecodeError:
            continue
        for what, pattern in FORBIDDEN.items():
            found += [f"{name}:{text.count(chr(10), 0, hit.start()) + 1}: {what}" for hit in pattern.finditer(text)]
    assert found == []


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("see /ho" + "me/ann/notes", "a machine's own path"),
        ("open('/t" + "mp/x')", "a machine's own path"),
        ("--index-u" + "rl https://x", "a package index"),
        ("https://py" + "pi.org/simple", "a package index"),
    ],
    ids=["a home folder", "a scratch file", "an index option", "an index host"],
)
def test_a_forbidden_word_is_seen(text: str, what: str) -> None:
    assert [name for name, pattern in FORBIDDEN.items() if pattern.search(text)] == [what]


@pytest.mark.parametrize(
    "text",
    ["#!/usr/bin/env bash", "example.com/tmp/x", "metadata/work/x"],
    ids=["an interpreter", "an address", "a path within"],
)
def test_an_allowed_path_is_left_alone(text: str) -> None:
    assert not any(pattern.search(text) for pattern in FORBIDDEN.values())


def test_the_rules_on_code_see_what_they_forbid() -> None:
    late = ast.parse("def f():\n    from extender.api import pod\n    import json\n")
    typed = ast.parse("if TYPE_CHECKING:\n    import extender.api.kinds.pod\nimport extender.basics\n")
    long = ast.parse("def f():\n" + "    x = 1\n" * 50 + "def g():\n" + "    x = 1\n" * 49)
    assert own_imports_in_functions(late) == [2]
    assert own_imports_for_types_only(typed) == [2]
    assert long_functions(long) == ["f: 51 lines"]
    assert not says_something("Utilities.")


def test_no_code_compares_releases() -> None:
    """Differences between Kubernetes releases are rows of tables and fields of `Release`."""
    pattern = re.compile(r"release\.(version|minor_version|patch_version)\b *(==|!=|<|>|in\b)|is (not )?RELEASE_1")
    files = (name for name in sources("extender") if name != "extender/config/releases.py")
    found = [name for name in files if pattern.search((ROOT / name).read_text())]
    assert found == []
