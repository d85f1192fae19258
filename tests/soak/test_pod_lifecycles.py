"""A short soak on a real control plane, and the limits of its figures."""

import os
from typing import Any

import pytest

from tests.controlplane import programs
from tests.soak.pod_lifecycles import find_failures, parse_arguments, run

GOOD = {
    "created": 100,
    "deleted": 100,
    "unbound": 0,
    "rss_mb_per_hour": 0.9,
    "fds_start": 30,
    "fds_end": 45,
    "tasks_start": 30,
    "tasks_end": 28,
}


@pytest.fixture
def short_soak() -> dict[str, Any]:
    """Create, bind and delete pods for some seconds."""
    found = programs.find()
    if isinstance(found, str):
        (pytest.fail if os.environ.get("CONTROL_PLANE") == "required" else pytest.skip)(found)
    return run(parse_arguments(["--seconds", "6", "--rate", "10", "--nodes", "5", "--interval", "0.5"]))


def test_every_pod_of_a_short_soak_is_bound_and_deleted(short_soak: dict[str, Any]) -> None:
    assert short_soak["created"] == short_soak["deleted"] > 10
    assert short_soak["unbound"] == 0
    assert short_soak["rss_start_mb"] > 50
    assert short_soak["tasks_start"] > 5
    assert short_soak["blocks_end"] > 100_000
    assert short_soak["fds_start"] > 10
    assert short_soak["samples"] >= 5


@pytest.mark.parametrize(
    ("change", "failure"),
    [
        ({}, ""),
        ({"unbound": 2, "deleted": 98}, "2 pods were not bound and deleted; 98 were"),
        ({"created": 0, "deleted": 0}, "0 pods were not bound and deleted; 0 were"),
        ({"rss_mb_per_hour": 1.1}, "the memory grew by 1.1 MB an hour; the limit is 1.0"),
        ({"fds_end": 51}, "the file descriptors grew from 30 to 51; the limit is 20 more"),
        ({"tasks_end": 51}, "the tasks grew from 30 to 51; the limit is 20 more"),
    ],
    ids=["within the limits", "pods without a node", "no pods", "memory", "file descriptors", "tasks"],
)
def test_a_soak_beyond_a_limit_fails(change: dict[str, Any], failure: str) -> None:
    assert find_failures({**GOOD, **change}, 1.0, 20) == ([failure] if failure else [])
