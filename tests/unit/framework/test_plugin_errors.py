"""The message of a plugin's exception has the file and the line in the author's package, in one line."""

import json
from types import ModuleType
from typing import Any

import pytest

from extender.framework.plugin_errors import (
    SortKeyError,
    check_sort_key,
    describe_value,
    find_source_location,
    format_exception,
    get_defining_module,
    is_own_module,
)
from extender.plugins.node_name import NodeName

SOURCE = """
import json

def fail():
    raise KeyError("zone")

def read():
    return json.loads("no json")

def fail_in_two_lines():
    raise ValueError("one\\n  two")

def fail_without_text():
    raise RuntimeError

class Unprintable(Exception):
    def __str__(self):
        return self.response.text

    __repr__ = __str__

def fail_without_message():
    raise Unprintable
"""


QUEUE_SORT_SOURCE = """
import sys

def exit_with_text(self, entry):
    sys.exit("no queue")

def fail(self, entry):
    raise KeyError("team")

def return_nothing(self, entry):
    return None

def return_nan(self, entry):
    return 1.0, float("nan")

def return_text(self, entry):
    return ("high",)

def close(self, entry):
    raise GeneratorExit
"""


class QueueSort:
    name = "ByTeam"
    defining_module = "sorting"


def load(name: str, file: str, source: str = SOURCE) -> ModuleType:
    """Return the module *name* with *source*, as if it came from *file*."""
    module = ModuleType(name)
    exec(compile(source, file, "exec"), vars(module))  # noqa: S102
    return module


def catch(function: Any) -> Exception:
    try:
        function()
    except Exception as error:  # noqa: BLE001
        return error
    raise AssertionError


PLUGIN = load("prices.rules.zones", "/srv/site-packages/prices/rules/zones.py")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (PLUGIN.fail, "KeyError: 'zone' (prices/rules/zones.py:5)"),
        (PLUGIN.fail_in_two_lines, "ValueError: one two (prices/rules/zones.py:11)"),
        (PLUGIN.fail_without_text, "RuntimeError (prices/rules/zones.py:14)"),
        (PLUGIN.fail_without_message, "Unprintable (prices/rules/zones.py:23)"),
        (PLUGIN.read, "JSONDecodeError: Expecting value: line 1 column 1 (char 0) (prices/rules/zones.py:8)"),
    ],
    ids=["a key", "two lines", "no text", "a message that raises", "an exception of a library"],
)
def test_the_message_names_the_last_line_in_the_author_s_package(function: Any, message: str) -> None:
    assert format_exception(catch(function), "prices.rules.zones") == message


def test_a_value_that_cannot_be_shown_is_described_by_its_type() -> None:
    assert describe_value(PLUGIN.Unprintable()) == "Unprintable"
    assert describe_value(5) == "int 5"


@pytest.mark.parametrize(
    ("name", "file", "place"),
    [
        ("zones", "/srv/zones.py", "zones.py:5"),
        ("prices", "/srv/prices/__init__.py", "prices/__init__.py:5"),
        ("__main__", "trial.py", "trial.py:5"),
    ],
    ids=["a module", "a package", "a script"],
)
def test_the_file_starts_at_the_top_level_package(name: str, file: str, place: str) -> None:
    error = catch(load(name, file).fail)
    assert find_source_location(error.__traceback__, name) == place


def test_another_module_of_the_package_can_be_the_place() -> None:
    inner = load("prices.tables", "/srv/prices/tables.py")
    outer = load("prices.zones", "/srv/prices/zones.py")
    vars(outer)["json"] = ModuleType("stand-in")
    vars(outer)["json"].loads = lambda _: inner.fail()
    assert format_exception(catch(outer.read), "prices.zones") == "KeyError: 'zone' (prices/tables.py:5)"


def test_the_message_of_a_built_in_plugin_has_no_place() -> None:
    assert format_exception(catch(lambda: json.loads("x"))) == (
        "JSONDecodeError: Expecting value: line 1 column 1 (char 0)"
    )
    assert find_source_location(catch(PLUGIN.fail).__traceback__, "extender.plugins.node_name") == ""
    assert get_defining_module(NodeName) == "extender"


def test_an_exception_without_a_line_of_the_author_has_no_place() -> None:
    assert format_exception(catch(lambda: json.loads("x")), "prices.zones") == (
        "JSONDecodeError: Expecting value: line 1 column 1 (char 0)"
    )


@pytest.mark.parametrize(("module", "own"), [("extender", True), ("extender.plugins", True), ("extender_gpu", False)])
def test_only_modules_of_this_package_are_its_own(module: str, own: bool) -> None:
    assert is_own_module(module) is own


SORTING = load("sorting", "/srv/site-packages/sorting.py", QUEUE_SORT_SOURCE)


@pytest.mark.parametrize(
    ("sort_key", "message"),
    [
        (SORTING.exit_with_text, "SystemExit: no queue (sorting.py:5)"),
        (SORTING.fail, "KeyError: 'team' (sorting.py:8)"),
        (SORTING.return_nothing, "returned None, want a tuple of numbers"),
        (SORTING.return_nan, "returned (1.0, nan), want a tuple of numbers"),
        (SORTING.return_text, "returned ('high',), want a tuple of numbers"),
        (SORTING.close, "GeneratorExit (sorting.py:20)"),
    ],
    ids=["it exits", "it raises", "it returns nothing", "a part is no number", "a part is text", "it raises no error"],
)
def test_an_invalid_sort_key_names_the_plugin(sort_key: Any, message: str) -> None:
    with pytest.raises(SortKeyError) as caught:
        check_sort_key(sort_key)(QueueSort(), object())
    assert str(caught.value) == f'running QueueSort plugin "ByTeam": {message}'


def test_a_valid_sort_key_is_unchanged() -> None:
    assert check_sort_key(lambda _self, _entry: (-1, 2.5))(QueueSort(), object()) == (-1, 2.5)
