"""Recorded scenarios with the answers of kube-scheduler 1.36 itself: 14 categories, six scenarios each."""

import json
import re
import tarfile
from functools import cache
from pathlib import Path
from typing import Any

ARCHIVE = Path(__file__).parent / "data" / "kube-scheduler-1.36.tar.xz"


@cache
def _members() -> dict[str, bytes]:
    with tarfile.open(ARCHIVE) as archive:
        return {
            member.name: stream.read()
            for member in archive.getmembers()
            if (stream := archive.extractfile(member)) is not None
        }


def names(*categories: str) -> list[str]:
    """The scenarios of *categories*, such as `spread-3`, in order."""
    found = [name.removesuffix(".scenario.json") for name in _members() if name.endswith(".scenario.json")]
    return sorted(name for name in found if name.rpartition("-")[0] in categories)


def scenario(name: str) -> bytes:
    """The cluster of one scenario, as JSON."""
    return _members()[f"{name}.scenario.json"]


def answers(name: str) -> dict[str, Any]:
    """What kube-scheduler says about every waiting pod of it."""
    pods: dict[str, Any] = json.loads(_members()[f"{name}.golden.json"])["pods"]
    return pods


def comparable(result: dict[str, Any]) -> dict[str, Any]:
    """*result* with what carries no meaning taken out: the order of reasons, and the text of internal errors."""
    return {key: _neutral(value) for key, value in result.items()}


def _neutral(value: Any) -> Any:
    if isinstance(value, str) and value.startswith('running "'):
        return value.partition(":")[0]
    if isinstance(value, dict):
        if value.get("code") == "Error":
            return {key: value[key] for key in value if key != "reasons"}
        return {key: _neutral(inner) for key, inner in value.items()}
    if isinstance(value, list) and all(isinstance(inner, str) for inner in value):
        return sorted(value)
    return value


def differences(want: Any, got: Any, path: str = "") -> list[str]:
    """Where *got* differs from *want*: one line a place, `nodes.node-1.filters.NodePorts: want ..., got ...`."""
    if isinstance(want, dict) and isinstance(got, dict):
        found: list[str] = []
        for key in sorted(want.keys() | got.keys()):
            found += differences(want.get(key, "(absent)"), got.get(key, "(absent)"), f"{path}.{key}".lstrip("."))
        return found
    if want == got and type(want) is type(got):
        return []
    return [f"{re.sub(chr(10), ' ', path)}: want {want!r}, got {got!r}"]
