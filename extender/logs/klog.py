"""Log formats of Kubernetes components: klog text, or JSON with the keys of component-base. Levels follow klog.

V(0) is level INFO, and V(n) is level INFO - n: `log.log(verbosity(4), ...)` is written with `-v=4` or higher. The items
of `extra` become key-value pairs. API objects are written as `{"namespace", "name"}`. All text is quoted, so a message
is always one line.

Source: component-base/logs/json/json.go, NewJSONLogger; component-base/logs/api/v1/options.go, apply (1.36).
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

from extender.basics.visible_text import make_visible

MAX_VERBOSITY: Final = 10
"""The highest verbosity that has a log level of its own."""

_SEVERITY_LETTERS: Final = {logging.WARNING: "W", logging.ERROR: "E", logging.CRITICAL: "F"}
_RECORD_ATTRIBUTES: Final = frozenset(vars(logging.makeLogRecord({}))) | {
    "message",
    "asctime",
    "taskName",
    "color_message",
}


def verbosity(v: int) -> int:
    """Return the log level of V(*v*), whose messages are written with `-v=`*v* or higher."""
    return logging.INFO - min(max(v, 0), MAX_VERBOSITY)


@dataclass(frozen=True, slots=True)
class LoggingOptions:
    """Logging options.

    Attributes:
        format: `text` or `json`.
        v: verbosity.
        modules: (file name pattern, verbosity) pairs, as in `--vmodule`; the first matching pattern applies.
    """

    format: str = "text"
    v: int = 0
    modules: tuple[tuple[str, int], ...] = ()


def configure_logging(options: LoggingOptions, stream: TextIO | None = None) -> None:
    """Configure the root logger to write to *stream* (default: standard error) with these options."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if options.format == "json" else TextFormatter())
    handler.addFilter(_build_verbosity_filter(options))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(verbosity(max((options.v, *(v for _, v in options.modules)))))
    # These loggers write about every connection, so their messages below WARNING need -v=6.
    for logger_name in ("asyncio", "uvicorn", "aiohttp"):
        logging.getLogger(logger_name).setLevel(root.level if options.v >= 6 else logging.WARNING)


def _build_verbosity_filter(options: LoggingOptions) -> Callable[[logging.LogRecord], bool]:
    def is_enabled(record: logging.LogRecord) -> bool:
        for pattern, v in options.modules:
            if fnmatchcase(record.module, pattern):
                return record.levelno >= verbosity(v)
        return record.levelno >= verbosity(options.v)

    return is_enabled


def _format_caller(record: logging.LogRecord) -> str:
    folder = os.path.basename(os.path.dirname(record.pathname))  # noqa: PTH119, PTH120  pathlib is too slow for every message
    return f"{folder}/{record.filename}:{record.lineno}" if folder else f"{record.filename}:{record.lineno}"


def _get_key_values(record: logging.LogRecord) -> dict[str, Any]:
    """Return the items of `extra` and, if there is one, the exception."""
    key_values = {key: _to_json_value(value) for key, value in vars(record).items() if key not in _RECORD_ATTRIBUTES}
    if record.exc_info and record.exc_info[1] is not None:
        error = record.exc_info[1]
        key_values.setdefault("err", f"{type(error).__name__}: {error}")
        key_values["stacktrace"] = logging.Formatter().formatException(record.exc_info)
    return key_values


def _to_json_value(value: Any) -> Any:
    """Convert *value* to a JSON value; an API object becomes its namespace and name."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if value is None or isinstance(value, str | int | bool):
        return value
    metadata = getattr(value, "metadata", None)
    if metadata is not None and hasattr(metadata, "name"):
        namespace = getattr(metadata, "namespace", "")
        return {"name": metadata.name, **({"namespace": namespace} if namespace else {})}
    if isinstance(value, Mapping):
        return {str(key): _to_json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_to_json_value(item) for item in value]
    return str(value)


class JsonFormatter(logging.Formatter):
    """Formats a record as a JSON object: `ts` in milliseconds, `caller`, `logger`, `msg`, `v` and key-value pairs."""

    def format(self, record: logging.LogRecord) -> str:
        """Format *record*."""
        line: dict[str, Any] = {"ts": round(record.created * 1000, 4), "caller": _format_caller(record)}
        if record.name != "root":
            line["logger"] = record.name
        line["msg"] = record.getMessage()
        if record.levelno < logging.ERROR:
            line["v"] = max(0, logging.INFO - record.levelno)
        line.update((key, value) for key, value in _get_key_values(record).items() if key not in line)
        text = json.dumps(line, ensure_ascii=False, separators=(",", ":"))
        # A terminal must not get the control characters that JSON allows, such as U+009B.
        return text if text.isprintable() else json.dumps(line, separators=(",", ":")).replace("\x7f", r"\u007f")


class TextFormatter(logging.Formatter):
    """Formats a record as klog does: `I1121 03:29:31.049958   19694 file.py:411] "message" key="value"`."""

    def format(self, record: logging.LogRecord) -> str:
        """Format *record*."""
        time = datetime.fromtimestamp(record.created).astimezone()
        letter = _SEVERITY_LETTERS.get(record.levelno, "I")
        header = f"{letter}{time:%m%d %H:%M:%S.%f} {record.process:>7} {record.filename}:{record.lineno}]"
        line = " ".join([header, _quote(record.getMessage()), *map(_format_pair, _get_key_values(record).items())])
        return make_visible(line)


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _format_pair(item: tuple[str, Any]) -> str:
    key, value = item
    if isinstance(value, dict) and set(value) <= {"name", "namespace"}:
        value = "/".join(str(value[field]) for field in ("namespace", "name") if field in value)
    return f"{key}={_quote(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
