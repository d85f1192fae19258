"""Policies on the command line: `config convert`, `config check`, `simulate` and `explain`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "tests" / "cases" / "policy"
CLUSTER = ROOT / "docs" / "examples" / "demo" / "cluster.yaml"


def extender(*arguments: object, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "extender", *map(str, arguments)]
    return subprocess.run(command, check=False, capture_output=True, text=True, input=stdin, cwd=ROOT)


def test_a_converted_policy_passes_the_check_and_gives_the_same_placements(tmp_path: Path) -> None:
    policy = SAMPLES / "release-1.9.json"
    converted = extender("config", "convert", policy)
    assert converted.returncode == 0
    assert "extender: note: BalancedResourceAllocation: " in converted.stderr
    (tmp_path / "scheduler.yaml").write_text(converted.stdout)
    assert extender("config", "check", tmp_path / "scheduler.yaml").stdout.endswith(
        "fine; decides for default-scheduler\n"
    )
    by_policy, by_conversion = (
        extender("simulate", "-f", CLUSTER, "--config", config, "-o", "json")
        for config in (policy, tmp_path / "scheduler.yaml")
    )
    assert by_policy.returncode == 0
    assert json.loads(by_policy.stdout) == json.loads(by_conversion.stdout)


@pytest.mark.parametrize("command", ["simulate", "explain"])
def test_a_policy_with_every_name_can_be_used(command: str) -> None:
    result = extender(command, "-f", CLUSTER, "--config", SAMPLES / "every-name.yaml")
    assert (result.returncode, "internal error" in result.stderr) == (0, False)
    assert "node(s) didn't have the requested labels" in result.stdout


def test_a_config_map_can_be_piped_in() -> None:
    result = extender("config", "convert", "-", stdin=(SAMPLES / "release-1.14.yaml").read_text())
    assert result.returncode == 0
    assert "hardPodAffinityWeight: 10" in result.stdout


def test_a_provider_can_be_converted() -> None:
    result = extender("config", "convert", "--provider", "ClusterAutoscalerProvider")
    assert result.returncode == 0
    assert "name: NodeResourcesMostAllocated" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "stdin", "message"),
    [
        (("config", "convert"), "", "want a file, or --provider with a name"),
        (("config", "convert", "--provider", "Best"), "", 'algorithm provider "Best" is not registered'),
        (
            ("config", "check", "-"),
            '{"kind": "Policy", "apiVersion": "v1", "priorities": [{"name": "EqualPriority", "weight": 0}]}',
            "priorities[0].weight: Priority EqualPriority should have a positive weight applied to it or it has",
        ),
        (
            ("config", "convert", "-"),
            '{"predicates": [{"name": "PodFits"}]}',
            'predicates[0].name: predicate type not found for "PodFits"',
        ),
    ],
    ids=["neither file nor provider", "an unknown provider", "a weight of 0", "an unknown predicate"],
)
def test_invalid_input_is_a_message_and_status_2(arguments: tuple[str, ...], stdin: str, message: str) -> None:
    result = extender(*arguments, stdin=stdin)
    assert (result.returncode, result.stdout) == (2, "")
    assert message in " ".join(result.stderr.replace("│", " ").split())
