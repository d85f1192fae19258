"""Moves of pods that let waiting pods fit: each move is proven, the number is limited, failures are undone."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from extender.api.kinds.pod import Pod
from extender.cli.experiment import app
from extender.experiments import defragmentation
from extender.experiments.defragmentation import defragment
from extender.experiments.policies import Policy
from extender.experiments.report import format_defragmentation
from extender.planning.rebalance.plan import Action
from extender.planning.rebalance.report import make_rebalance_values
from tests.unit.experiments.small_trace import small_trace, small_trace_text


def test_moves_place_waiting_pods_and_the_plan_can_be_followed() -> None:
    """Random spreads the pods, so that moves can free whole GPUs."""
    result = defragment(small_trace(), Policy("Random"), 3, 50.0)
    steps = result.plan.proof.steps
    assert result.after > result.before
    assert 0 < result.plan.proof.moves <= result.pod_count // 2
    cordoned = ""
    for step in steps:
        if step.change.action is Action.CORDON:
            cordoned = step.change.name
        elif step.change.action is Action.EVICT:
            assert step.source == cordoned
            assert step.target not in {"", cordoned}
        else:
            assert step.change.name == cordoned
            assert step.placed[0].pod in result.plan.pods
    placed = {entry.pod for step in steps for entry in step.placed}
    assert placed.isdisjoint(pod for pod, _ in result.plan.unplaced)
    assert placed | {pod for pod, _ in result.plan.unplaced} == set(result.plan.pods)


def test_the_number_of_moves_is_limited() -> None:
    result = defragment(small_trace(), Policy("Random"), 3, 100 / result_pod_count())
    assert result.plan.proof.moves == 1
    none = defragment(small_trace(), Policy("Random"), 3, 1.0)
    assert (none.plan.proof.moves, none.after) == (0, none.before)


def result_pod_count() -> int:
    """Return the number of placed pods before the moves."""
    return defragment(small_trace(), Policy("Random"), 3, 0.0).pod_count


def test_the_reported_progress_does_not_count_a_pod_before_its_search_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The search for the last pod may take long, and a bar that is full is erased."""
    parts, parts_at_search = [0.0], list[float]()
    make_room = defragmentation._Search.make_room

    def record_part(search: Any, pod: Pod) -> bool:
        parts_at_search.append(parts[-1])
        return make_room(search, pod)

    monkeypatch.setattr(defragmentation._Search, "make_room", record_part)
    defragment(small_trace(), Policy("Random"), 3, 50.0, parts.append)
    assert (parts_at_search[0], parts[-1]) == (0.5, 1.0)
    assert parts_at_search[-1] < 1.0


def test_the_plan_has_the_fields_of_rebalance() -> None:
    values = make_rebalance_values(defragment(small_trace(), Policy("Random"), 3, 50.0).plan)
    assert values["question"] == "for"
    assert {"pods", "unplaced", "steps", "moves", "placedBefore"} <= values.keys()
    assert values["steps"][0]["action"] == "cordon"


def test_the_command_prints_a_line_and_writes_a_plan(tmp_path: Path) -> None:
    file, plans = tmp_path / "trace.json", tmp_path / "plans"
    file.write_text(small_trace_text())
    arguments = [
        f"--trace={file}",
        "--policy=Random",
        "--seeds=3",
        "-o",
        "jsonl",
        "--moves=50",
        f"--plans={plans}",
    ]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    expected = format_defragmentation(defragment(small_trace(), Policy("Random"), 3, 50.0))
    assert expected in result.stderr
    assert json.loads((plans / "Random-3.json").read_text())["question"] == "for"
