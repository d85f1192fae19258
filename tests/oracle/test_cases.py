"""Scenarios in which the oracle once found a difference; the results are kube-scheduler's."""

import json
from pathlib import Path

import pytest

from tests.oracle.answers import ask_extender, find_answer_differences

CASES = Path(__file__).parent / "cases"
FILES = sorted(CASES.glob("*/*.scenario.json"))


def test_there_are_cases() -> None:
    assert FILES


@pytest.mark.parametrize(
    "file", FILES, ids=lambda file: f"{file.parent.name}-{file.name.removesuffix('.scenario.json')}"
)
def test_extender_agrees_with_kube_scheduler(file: Path) -> None:
    """Compare with the results of the minor that names the folder."""
    scenario = json.loads(file.read_text())
    want = json.loads(file.with_name(file.name.replace(".scenario.", ".golden.")).read_text())
    assert find_answer_differences(want, ask_extender(scenario, file.parent.name))[:10] == []
