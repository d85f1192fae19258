"""Codes of reasons: each text of kube-scheduler has one, and no code is removed."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from extender.answers.reason_codes import ReasonCode, get_reason_code, list_reason_codes
from tests.parity import golden

PACKAGE = Path(__file__).resolve().parents[3] / "extender"
CODES_OF_1_0 = Path(__file__).resolve().parents[2] / "cases" / "answers" / "1.0" / "reason_codes.txt"
REJECTION_FUNCTIONS = {"Reason", "unschedulable_status", "unresolvable_status", "unresolvable_reason"}


def iterate_reasons(value: Any, *, is_error: bool = False) -> Iterator[str]:
    """Yield the reasons in a result of kube-scheduler, except those of errors."""
    if isinstance(value, dict):
        error = is_error or value.get("code") == "Error"
        for key, inner in value.items():
            if key == "reasons" and not error:
                yield from inner
            else:
                yield from iterate_reasons(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from iterate_reasons(inner)


def list_written_reasons() -> dict[str, str]:
    """Return the constant reasons in the code of the plugins, with the file of each; names in texts become `x`."""
    found: dict[str, str] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text())):
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
                continue
            is_error = any(isinstance(part, ast.Attribute) and part.attr == "ERROR" for part in ast.walk(call))
            if call.func.id in REJECTION_FUNCTIONS and not is_error:
                found.update({text: path.name for argument in call.args if (text := read_text(argument))})
    return found


def read_text(node: ast.expr) -> str:
    """Return the text of a string or of an f-string that starts with text; else an empty text."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr) and isinstance(node.values[0], ast.Constant):
        parts = [part.value if isinstance(part, ast.Constant) else "x" for part in node.values]
        return "".join(map(str, parts))
    return ""


CASES = {
    "too little of an extended resource": ("Insufficient nvidia.com/gpu", "InsufficientExtendedResource"),
    "huge pages": ("Insufficient hugepages-2Mi", "InsufficientHugePages"),
    "a missing claim": ('persistentvolumeclaim "data" not found', "ClaimNotFound"),
    "a missing claim among others": ('a, persistentvolumeclaim "data" not found', "ClaimNotFound"),
    "a gate": ("waiting for scheduling gates: [a b]", "SchedulingGated"),
    "a gate in a simulation": (
        "not enqueued because of SchedulingGates: waiting for scheduling gates: [a]", "SchedulingGated"
    ),
    "nodes that PreFilter excludes": ("node(s) didn't satisfy plugin(s) [NodeAffinity]", "NodeExcluded"),
    "a missing driver": ("ebs.csi.aws.com CSI driver is not installed on the node", "CSIDriverMissing"),
    "a priority that may not preempt": (
        "preemption: not eligible due to preemptionPolicy=Never.", "PreemptionNotAllowed"
    ),
    "a preemption without candidates": (
        "preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod.", "PreemptionNotHelpful"
    ),
    "a plugin of another package": ("node(s) smell of smoke", "Other"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "code"), CASES.values(), ids=CASES)
def test_a_text_has_a_code(text: str, code: str) -> None:
    assert get_reason_code(text) == code


def test_an_unknown_text_of_an_error_is_an_error() -> None:
    assert get_reason_code("not found", is_error=True) == "Error"
    assert get_reason_code("Insufficient cpu", is_error=True) == "InsufficientCPU"


def test_there_is_one_code_for_each_text_in_the_same_order() -> None:
    codes = list_reason_codes(["Too many pods", "Insufficient cpu", "Insufficient memory"])
    assert codes == ["TooManyPods", "InsufficientCPU", "InsufficientMemory"]
    assert json.dumps(codes) == '["TooManyPods", "InsufficientCPU", "InsufficientMemory"]'


@pytest.mark.parametrize("version", ["1.36", "1.37"])
def test_each_recorded_reason_of_kube_scheduler_has_a_code(version: str) -> None:
    texts = {
        text for name in golden.list_all_scenarios() for text in iterate_reasons(golden.read_results(name, version))
    }
    assert len(texts) > 30
    assert [text for text in sorted(texts) if get_reason_code(text) is ReasonCode.OTHER] == []


def test_each_reason_in_the_code_of_the_plugins_has_a_code() -> None:
    reasons = list_written_reasons()
    assert len(reasons) > 60
    assert {text: file for text, file in reasons.items() if get_reason_code(text) is ReasonCode.OTHER} == {}


def test_the_codes_of_version_1_0_remain() -> None:
    codes = CODES_OF_1_0.read_text().split()
    assert len(codes) == 66
    assert set(codes) <= {code.value for code in ReasonCode}


def test_each_code_has_a_meaning() -> None:
    assert all(code.meaning.endswith(".") for code in ReasonCode)
