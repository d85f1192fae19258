"""Logs as Kubernetes components write them: klog's text, or JSON with component-base's keys; verbosity by number.

V(0) is INFO; V(n) is n below it, so `log.log(verbosity(4), ...)` is written from `-v=4` on. What is passed in `extra`
becomes keys; objects of the API are written as `{"namespace", "name"}`. Nobody's text can break a line: everything is
quoted. Source: H069, design of component-base's JSON format.
"""

import json
import logging
import math
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any, Final, TextIO

MOST: Final = 10
"""The greatest verbosity that differs from the one below."""

_LETTERS: Final = {logging.WARNING: "W", logging.ERROR: "E", logging.CRITICAL: "F"}
_OWN: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}


def verbosity(v: int) -> int:
    """The level of messages that are written from `-v=`*v* on."""
    return logging.INFO - min(max(v, 0), MOST)


@dataclass(frozen=True, slots=True)
class Logging:
    """How to log.

    Attributes:
        form: `text` or `json`.
        v: verbosity.
        modules: patterns of file names, and the verbosity of each file that matches; the first that matches holds.
    """

    form: str = "text"
    v: int = 0
    modules: tuple[tuple[str, int], ...] = ()


def configure(settings: Logging, stream: TextIO | None = None) -> None:
    """Have every logger of the process write to *stream* (standard error) as *settings* say."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if settings.form == "json" else TextFormatter())
    handler.addFilter(_by_module(settings))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(verbosity(max((settings.v, *(v for _, v in settings.modules)))))
    # These tell of every connection; they are heard only if somebody wants to know a lot.
    for chatty in ("asyncio", "uvicorn", "aiohttp"):
        logging.getLogger(chatty).setLevel(root.level if settings.v >= 6 else logging.WARNING)


def _by_module(settings: Logging) -> Callable[[logging.LogRecord], bool]:
    def passes(record: logging.LogRecord) -> bool:
        for pattern, v in settings.modules:
            if fnmatchcase(record.module, pattern):
                return record.levelno >= verbosity(v)
        return record.levelno >= verbosity(settings.v)

    return passes


def _v(record: logging.LogRecord) -> int:
    return max(0, logging.INFO - record.levelno)


def _caller(record: logging.LogRecord) -> str:
    folder = os.path.basename(os.path.dirname(record.pathname))  # noqa: PTH119, PTH120  a label, on every message
    return f"{folder}/{record.filename}:{record.lineno}" if folder else f"{record.filename}:{record.lineno}"


def _keys(record: logging.LogRecord) -> dict[str, Any]:
    """What was passed in `extra`, and the exception if there is one."""
    found = {key: _plain(value) for key, value in vars(record).items() if key not in _OWN}
    if record.exc_info and record.exc_info[1] is not None:
        wrong = record.exc_info[1]
        found.setdefault("err", f"{type(wrong).__name__}: {wrong}")
        found["stacktrace"] = logging.Formatter().formatException(record.exc_info)
    return found


def _plain(value: Any) -> Any:
    """*value* as JSON can hold it; an object of the API by its names."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if value is None or isinstance(value, str | int | bool):
        return value
    metadata = getattr(value, "metadata", None)
    if metadata is not None and hasattr(metadata, "name"):
        namespace = getattr(metadata, "namespace", "")
        return {"name": metadata.name, **({"namespace": namespace} if namespace else {})}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    return str(value)


class JsonFormatter(logging.Formatter):
    """One JSON object a line: `ts` (milliseconds since 1970), `caller`, `logger`, `msg`, `v` or `err`, other keys."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line: dict[str, Any] = {"ts": round(record.created * 1000, 4), "caller": _caller(record)}
        if record.name != "root":
            line["logger"] = record.name
        line["msg"] = record.getMessage()
        if record.levelno < logging.ERROR:
            line["v"] = _v(record)
        line.update((key, value) for key, value in _keys(record).items() if key not in line)
        return json.dumps(line, ensure_ascii=False, separators=(",", ":"))


class TextFormatter(logging.Formatter):
    """klog's lines: `I1121 03:29:31.049958   19694 file.py:411] "message" key="value"`."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        when = datetime.fromtimestamp(record.created).astimezone()
        letter = _LETTERS.get(record.levelno, "I")
        head = f"{letter}{when:%m%d %H:%M:%S.%f} {record.process:>7} {record.filename}:{record.lineno}]"
        return " ".join([head, _quoted(record.getMessage()), *map(_pair, _keys(record).items())])


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _pair(item: tuple[str, Any]) -> str:
    key, value = item
    if isinstance(value, dict) and set(value) <= {"name", "namespace"}:
        value = "/".join(str(value[part]) for part in ("namespace", "name") if part in value)
    return f"{key}={_quoted(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
