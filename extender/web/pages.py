"""What the pages `/statusz`, `/flagz` and `/configz` say, and in which form a caller wants it. Source: H047, H049."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from extender.config.documents import write
from extender.objects.times import stamp

COMPONENT: Final = "kube-scheduler"
"""As kube-scheduler calls itself there; what reads these pages looks for it."""

_WARNING: Final = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is "
    "for debugging purposes only."
)
_VERSIONS: Final = ("v1beta1", "v1alpha1")
_GROUP: Final = "config.k8s.io"
ACCEPTED: Final = "only the following media types are accepted: application/json, application/yaml, text/plain"


@dataclass(frozen=True, slots=True)
class Facts:
    """What the process says of itself.

    Attributes:
        started: seconds since 1970.
        runtime: such as `python3.11.9`.
        version: of this program.
        behaves_as: the release of Kubernetes it behaves as, such as `1.36`.
    """

    started: float
    runtime: str
    version: str
    behaves_as: str


@dataclass(frozen=True, slots=True)
class Form:
    """How a page is written: `text/plain`, or JSON or YAML of some version of its type."""

    media: str = "text/plain"
    version: str = ""


def wanted_form(accept: str, kind: str) -> Form | None:
    """The first form of those that *accept* lists (a header) in which a *kind* can be written; None if there is none.

    JSON and YAML are to be asked for by type: `application/json;v=v1beta1;g=config.k8s.io;as=Statusz`.
    """
    if not accept.strip():
        return Form()
    for item in accept.split(","):
        media, *parameters = (part.strip() for part in item.split(";"))
        given = dict(part.split("=", 1) for part in parameters if "=" in part)
        if media in {"*/*", "text/*", "text/plain"}:
            return Form()
        typed = given.get("g") == _GROUP and given.get("as") == kind and given.get("v") in _VERSIONS
        if media in {"application/json", "application/yaml"} and typed:
            return Form(media, given["v"])
    return None


def content_type(form: Form, kind: str) -> str:
    """The header that goes with *form*."""
    if not form.version:
        return "text/plain; charset=utf-8"
    return f"{form.media};g={_GROUP};v={form.version};as={kind}"


def encoded(form: Form, kind: str, values: Mapping[str, Any]) -> bytes:
    """An object of that type in JSON or YAML."""
    head = {"kind": kind, "apiVersion": f"{_GROUP}/{form.version}", "metadata": {"name": COMPONENT}}
    thing = {**head, **values}
    return write(thing).encode() if form.media == "application/yaml" else msgspec.json.encode(thing) + b"\n"


def status_values(facts: Facts, paths: Sequence[str], now: float) -> dict[str, Any]:
    """What `/statusz` says, as an object."""
    return {
        "startTime": stamp(facts.started),
        "uptimeSeconds": max(0, int(now - facts.started)),
        "goVersion": facts.runtime,
        "binaryVersion": facts.version,
        "emulationVersion": facts.behaves_as,
        "paths": list(paths),
    }


def status_text(facts: Facts, paths: Sequence[str], now: float) -> str:
    """What `/statusz` says, as text."""
    up = max(0, int(now - facts.started))
    started = datetime.fromtimestamp(facts.started, UTC)
    return "\n".join(
        [
            f"\n{COMPONENT} statusz",
            _WARNING,
            "",
            f"Started: {started:%a %b} {started.day:2d} {started:%H:%M:%S} UTC {started.year}",
            f"Up: {up // 3600} hr {up // 60 % 60:02d} min {up % 60:02d} sec",
            f"Runtime version: {facts.runtime}",
            f"Binary version: {facts.version}",
            f"Emulation version: {facts.behaves_as}",
            f"Paths: {' '.join(paths)}",
            "",
        ]
    )


def flags_text(flags: Mapping[str, str]) -> str:
    """What `/flagz` says, as text."""
    lines = [f"{name}={value}" for name, value in sorted(flags.items())]
    return "\n".join([f"\n{COMPONENT} flagz", _WARNING, *lines, ""])
