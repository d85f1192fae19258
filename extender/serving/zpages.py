"""Build the contents of the zpages `/statusz` and `/flagz`, and negotiate their format.

Source: component-base/configz/configz.go, InstallHandler; cmd/kube-scheduler/app/server.go, newEndpointsHandler
(1.36).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from extender.api.timestamps import format_time
from extender.config.documents import dump_yaml

COMPONENT: Final = "kube-scheduler"
"""kube-scheduler's component name, which clients of these pages expect."""

_WARNING: Final = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is "
    "for debugging purposes only."
)
_VERSIONS: Final = ("v1beta1", "v1alpha1")
_GROUP: Final = "config.k8s.io"
NOT_ACCEPTABLE_MESSAGE: Final = (
    "only the following media types are accepted: application/json, application/yaml, text/plain"
)


@dataclass(frozen=True, slots=True)
class ProcessInfo:
    """The properties of the process in `/statusz`.

    Attributes:
        start_time: the start time in seconds since 1970.
        runtime: the language runtime, such as `python3.11.9`.
        emulation_version: the Kubernetes release with the same behavior, such as `1.36`.
    """

    start_time: float
    runtime: str
    version: str
    emulation_version: str


@dataclass(frozen=True, slots=True)
class PageFormat:
    """The format of a page.

    Attributes:
        media_type: `text/plain`, `application/json` or `application/yaml`.
        version: the API version of JSON or YAML, such as `v1beta1`; empty for text.
    """

    media_type: str = "text/plain"
    version: str = ""


def negotiate_format(accept: str, kind: str) -> PageFormat | None:
    """Return the first supported format in the Accept header *accept* for a page of *kind*; None if there is none.

    JSON and YAML are supported only with parameters, as in `application/json;v=v1beta1;g=config.k8s.io;as=Statusz`.
    """
    if not accept.strip():
        return PageFormat()
    for item in accept.split(","):
        media, *parameters = (part.strip() for part in item.split(";"))
        values = dict(part.split("=", 1) for part in parameters if "=" in part)
        if media in {"*/*", "text/*", "text/plain"}:
            return PageFormat()
        has_type = values.get("g") == _GROUP and values.get("as") == kind and values.get("v") in _VERSIONS
        if media in {"application/json", "application/yaml"} and has_type:
            return PageFormat(media, values["v"])
    return None


def format_content_type(page_format: PageFormat, kind: str) -> str:
    """Return the Content-Type header of a page."""
    if not page_format.version:
        return "text/plain; charset=utf-8"
    return f"{page_format.media_type};g={_GROUP};v={page_format.version};as={kind}"


def encode_page(page_format: PageFormat, kind: str, values: Mapping[str, Any]) -> bytes:
    """Encode a page as an object in JSON or YAML."""
    header = {"kind": kind, "apiVersion": f"{_GROUP}/{page_format.version}", "metadata": {"name": COMPONENT}}
    page = {**header, **values}
    return (
        dump_yaml(page).encode() if page_format.media_type == "application/yaml" else msgspec.json.encode(page) + b"\n"
    )


def build_status_values(process_info: ProcessInfo, paths: Sequence[str], now: float) -> dict[str, Any]:
    """Return `/statusz` as an object."""
    return {
        "startTime": format_time(process_info.start_time),
        "uptimeSeconds": max(0, int(now - process_info.start_time)),
        "goVersion": process_info.runtime,
        "binaryVersion": process_info.version,
        "emulationVersion": process_info.emulation_version,
        "paths": list(paths),
    }


def format_status(process_info: ProcessInfo, paths: Sequence[str], now: float) -> str:
    """Return `/statusz` as text."""
    uptime = max(0, int(now - process_info.start_time))
    start = datetime.fromtimestamp(process_info.start_time, UTC)
    return "\n".join(
        [
            f"\n{COMPONENT} statusz",
            _WARNING,
            "",
            f"Started: {start:%a %b} {start.day:2d} {start:%H:%M:%S} UTC {start.year}",
            f"Up: {uptime // 3600} hr {uptime // 60 % 60:02d} min {uptime % 60:02d} sec",
            f"Runtime version: {process_info.runtime}",
            f"Binary version: {process_info.version}",
            f"Emulation version: {process_info.emulation_version}",
            f"Paths: {' '.join(paths)}",
            "",
        ]
    )


def format_flags(flags: Mapping[str, str]) -> str:
    """Return `/flagz` as text."""
    lines = [f"{name}={value}" for name, value in sorted(flags.items())]
    return "\n".join([f"\n{COMPONENT} flagz", _WARNING, *lines, ""])
