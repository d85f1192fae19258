"""Log lines: JSON keys of component-base, klog text, verbosity by number and by file."""

import io
import json
import logging
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from extender.api.codec import from_builtins
from extender.api.kinds.pod import Pod
from extender.logs.klog import LoggingOptions, configure_logging, verbosity

log = logging.getLogger("extender.test")
POD = from_builtins({"metadata": {"namespace": "shop", "name": "web"}}, Pod)


@pytest.fixture(autouse=True)
def _restore_root_logger() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def captured_log(options: LoggingOptions, emit: Callable[[], None]) -> str:
    stream = io.StringIO()
    configure_logging(options, stream)
    emit()
    return stream.getvalue()


def json_line(emit: Callable[[], None], v: int = 0) -> dict[str, Any]:
    line: dict[str, Any] = json.loads(captured_log(LoggingOptions("json", v), emit))
    return line


def test_a_json_line_has_the_keys_of_component_base() -> None:
    line = json_line(lambda: log.info("bound", extra={"pod": POD, "node": "n1", "tries": 2}))
    assert isinstance(line.pop("ts"), float)
    assert re.fullmatch(r"logs/test_klog\.py:\d+", line.pop("caller"))
    assert line == {
        "logger": "extender.test",
        "msg": "bound",
        "v": 0,
        "pod": {"name": "web", "namespace": "shop"},
        "node": "n1",
        "tries": 2,
    }


def test_time_is_in_milliseconds() -> None:
    record = logging.makeLogRecord({"created": 1795231915.959784, "msg": "x", "levelno": logging.INFO})
    stream = io.StringIO()
    configure_logging(LoggingOptions("json"), stream)
    logging.getLogger().handle(record)
    assert json.loads(stream.getvalue())["ts"] == 1795231915959.784


def test_an_error_has_the_key_err_instead_of_v() -> None:
    line = json_line(lambda: log.error("failed", extra={"err": "no such node"}))
    assert line["err"] == "no such node"
    assert "v" not in line


def test_an_exception_has_its_stack_trace_on_the_same_line() -> None:
    def emit() -> None:
        try:
            int("bad\nvalue")
        except ValueError:
            log.exception("broke")

    line = json_line(emit)
    assert line["err"] == "ValueError: invalid literal for int() with base 10: 'bad\\nvalue'"
    assert line["stacktrace"].startswith("Traceback")


def test_text_has_klogs_format_and_quotes_line_breaks() -> None:
    text = captured_log(LoggingOptions(), lambda: log.warning('a "b"\nI0101 forged', extra={"pod": POD, "wait": 1.5}))
    pattern = (
        r'W\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ test_klog\.py:\d+\] "a \\"b\\"\\nI0101 forged" pod="shop/web" wait=1\.5\n'
    )
    assert re.fullmatch(pattern, text)


def test_text_has_no_characters_that_a_terminal_interprets() -> None:
    text = captured_log(LoggingOptions(), lambda: log.warning("\x1b[2J", extra={"err": "\x7f \u009b31m \u202e"}))
    assert text.endswith('] "\\u001b[2J" err="\\x7f \\x9b31m \\u202e"\n')


def test_json_has_no_characters_that_a_terminal_interprets() -> None:
    text = captured_log(LoggingOptions("json"), lambda: log.warning("\x1b[2J", extra={"err": "\x7f \u009b31m \u202e"}))
    assert r'"msg":"\u001b[2J","v":0,"err":"\u007f \u009b31m \u202e"' in text
    assert json.loads(text)["err"] == "\x7f \u009b31m \u202e"
    assert '"größer"' in captured_log(LoggingOptions("json"), lambda: log.warning("größer"))


@pytest.mark.parametrize(("v", "levels"), [(0, [0]), (1, [0, 1]), (4, [0, 1, 4]), (10, [0, 1, 4, 10])])
def test_messages_are_written_from_their_verbosity_on(v: int, levels: list[int]) -> None:
    def emit() -> None:
        for level in (0, 1, 4, 10):
            log.log(verbosity(level), "message", extra={"level": level})

    lines = [json.loads(line) for line in captured_log(LoggingOptions("json", v), emit).splitlines()]
    assert [line["level"] for line in lines] == levels
    assert [line["v"] for line in lines] == levels


def test_a_file_pattern_overrides_the_verbosity() -> None:
    options = LoggingOptions("text", 0, (("test_k*", 5), ("other", 9)))
    assert '"deep"' in captured_log(options, lambda: log.log(verbosity(5), "deep"))
    assert captured_log(options, lambda: log.log(verbosity(6), "deeper")) == ""


def test_values_without_a_json_type_are_written_as_text() -> None:
    line = json_line(lambda: log.info("x", extra={"wait": float("inf"), "names": {"b"}, "other": object}))
    assert (line["wait"], line["names"], line["other"]) == ("inf", ["b"], "<class 'object'>")
