"""Log lines: component-base's keys, klog's text, verbosity by number and by file."""

import io
import json
import logging
import re
from collections.abc import Iterator
from typing import Any

import pytest

from extender.objects.codec import from_builtins
from extender.objects.pod import Pod
from extender.observe.logs import Logging, configure, verbosity

log = logging.getLogger("extender.test")
POD = from_builtins({"metadata": {"namespace": "shop", "name": "web"}}, Pod)


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def written(settings: Logging, tell: Any) -> str:
    stream = io.StringIO()
    configure(settings, stream)
    tell()
    return stream.getvalue()


def as_json(tell: Any, v: int = 0) -> dict[str, Any]:
    line: dict[str, Any] = json.loads(written(Logging("json", v), tell))
    return line


def test_a_json_line_has_component_base_s_keys() -> None:
    line = as_json(lambda: log.info("bound", extra={"pod": POD, "node": "n1", "tries": 2}))
    assert isinstance(line.pop("ts"), float)
    assert re.fullmatch(r"observe/test_logs\.py:\d+", line.pop("caller"))
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
    configure(Logging("json"), stream)
    logging.getLogger().handle(record)
    assert json.loads(stream.getvalue())["ts"] == 1795231915959.784


def test_an_error_has_its_cause_in_place_of_a_verbosity() -> None:
    line = as_json(lambda: log.error("failed", extra={"err": "no such node"}))
    assert line["err"] == "no such node"
    assert "v" not in line


def test_an_exception_is_told_with_its_trace_on_the_same_line() -> None:
    def tell() -> None:
        try:
            int("bad\nvalue")
        except ValueError:
            log.exception("broke")

    line = as_json(tell)
    assert line["err"] == "ValueError: invalid literal for int() with base 10: 'bad\\nvalue'"
    assert line["stacktrace"].startswith("Traceback")


def test_text_is_klog_s_and_nobody_can_break_a_line() -> None:
    text = written(Logging(), lambda: log.warning('a "b"\nI0101 forged', extra={"pod": POD, "wait": 1.5}))
    pattern = (
        r'W\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ test_logs\.py:\d+\] "a \\"b\\"\\nI0101 forged" pod="shop/web" wait=1\.5\n'
    )
    assert re.fullmatch(pattern, text)


@pytest.mark.parametrize(("v", "heard"), [(0, [0]), (1, [0, 1]), (4, [0, 1, 4]), (10, [0, 1, 4, 10])])
def test_messages_are_written_from_their_verbosity_on(v: int, heard: list[int]) -> None:
    def tell() -> None:
        for level in (0, 1, 4, 10):
            log.log(verbosity(level), "message", extra={"level": level})

    lines = [json.loads(line) for line in written(Logging("json", v), tell).splitlines()]
    assert [line["level"] for line in lines] == heard
    assert [line["v"] for line in lines] == heard


def test_a_file_may_have_a_verbosity_of_its_own() -> None:
    settings = Logging("text", 0, (("test_l*", 5), ("other", 9)))
    assert '"deep"' in written(settings, lambda: log.log(verbosity(5), "deep"))
    assert written(settings, lambda: log.log(verbosity(6), "deeper")) == ""


def test_values_that_json_cannot_hold_are_told_as_text() -> None:
    line = as_json(lambda: log.info("x", extra={"wait": float("inf"), "names": {"b"}, "other": object}))
    assert (line["wait"], line["names"], line["other"]) == ("inf", ["b"], "<class 'object'>")
