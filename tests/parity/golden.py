"""Recorded scenarios with the results of kube-scheduler 1.36 and 1.37: 14 categories, six scenarios each.

The archive of 1.36 has the scenarios and its results; the archive of 1.37 has only its results.
"""

import json
import re
import tarfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from extender.config.releases import RELEASE_1_36

DATA = Path(__file__).parent / "data"


@cache
def _members(version: str = "1.36") -> dict[str, bytes]:
    with tarfile.open(DATA / f"kube-scheduler-{version}.tar.xz") as archive:
        return {
            member.name: stream.read()
            for member in archive.getmembers()
            if (stream := archive.extractfile(member)) is not None
        }


def list_all_scenarios() -> list[str]:
    """Return the names of all scenarios, such as `spread-3`, sorted."""
    return sorted(name.removesuffix(".scenario.json") for name in _members() if name.endswith(".scenario.json"))


def scenario_names(*categories: str) -> list[str]:
    """Return the names of the scenarios of *categories*, sorted."""
    return [name for name in list_all_scenarios() if name.rpartition("-")[0] in categories]


def make_scenario_parameters(*categories: str) -> list[Any]:
    """Return the names as parameters of a test; the fast lane runs the first scenario of each category only.

    For tests that send through a server what test_kube_scheduler.py compares for all scenarios.
    """
    names = scenario_names(*categories)
    return [pytest.param(name, marks=() if name.endswith("-1") else pytest.mark.slow) for name in names]


def read_scenario(name: str) -> bytes:
    """Return the recorded cluster of one scenario, as JSON."""
    return _members()[f"{name}.scenario.json"]


def read_results(name: str, version: str = RELEASE_1_36.version) -> dict[str, Any]:
    """Return the results of kube-scheduler of a minor release for every pending pod of one scenario."""
    pods: dict[str, Any] = json.loads(_members(version)[f"{name}.golden.json"])["pods"]
    return pods


def normalize(result: dict[str, Any]) -> dict[str, Any]:
    """Return *result* without meaningless differences: the order of reasons, and the text of internal errors.

    The codes of reasons, which kube-scheduler does not have, are left out.
    """
    return {key: _normalize_value(value) for key, value in result.items()}


def _normalize_value(value: Any) -> Any:
    if isinstance(value, str) and value.startswith('running "'):
        return value.partition(":")[0]
    if isinstance(value, dict):
        left_out = {"reasons", "reasonCodes"} if value.get("code") == "Error" else {"reasonCodes"}
        return {key: _normalize_value(inner) for key, inner in value.items() if key not in left_out}
    if isinstance(value, list) and all(isinstance(inner, str) for inner in value):
        return sorted(value)
    return value


def remove_reason_codes(value: Any) -> Any:
    """Return *value* without the codes of reasons, which the pages do not show."""
    if isinstance(value, dict):
        return {key: remove_reason_codes(inner) for key, inner in value.items() if key != "reasonCodes"}
    return value


def find_differences(want: Any, got: Any, path: str = "") -> list[str]:
    """Return one line per difference, such as `nodes.node-1.filters.NodePorts: want ..., got ...`."""
    if isinstance(want, dict) and isinstance(got, dict):
        lines: list[str] = []
        for key in sorted(want.keys() | got.keys()):
            lines += find_differences(want.get(key, "(absent)"), got.get(key, "(absent)"), f"{path}.{key}".lstrip("."))
        return lines
    if want == got and type(want) is type(got):
        return []
    return [f"{re.sub(chr(10), ' ', path)}: want {want!r}, got {got!r}"]
