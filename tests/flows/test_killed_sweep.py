"""A sweep that is killed in the middle continues where its results end."""

import json
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep

from tests.unit.planning.clusters import as_list, node, pod

NODES = 60


def test_a_killed_sweep_continues_and_gives_the_same_results(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(
        as_list(
            [
                *(node(f"n{number:02}") for number in range(NODES)),
                *(pod(f"p{number:03}", "500m", on=f"n{number % NODES:02}") for number in range(NODES * 5)),
            ]
        )
    )
    (tmp_path / "s.yaml").write_text('scenarios: [{drain: "*"}]\n')
    killed, whole = tmp_path / "killed.jsonl", tmp_path / "whole.jsonl"
    process = subprocess.Popen(make_command(killed), cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = monotonic() + 60
    while process.poll() is None and monotonic() < deadline and count_lines(killed) < 3:
        sleep(0.001)
    process.kill()
    assert process.wait() == -9, "the sweep ended before it was killed"
    assert count_lines(killed) < NODES
    for file in (killed, whole):
        result = subprocess.run(make_command(file), cwd=tmp_path, capture_output=True, text=True, check=True)
        assert len(result.stdout.splitlines()) > 1
        # The cluster has no budgets. There is no other line.
        assert [line.partition(";")[0] for line in result.stderr.splitlines()] == [
            "extender: not recorded: poddisruptionbudgets"
        ]
    results, expected = read_results(killed), read_results(whole)
    assert len(expected) == NODES
    assert sorted(results) == sorted(expected)


def read_results(file: Path) -> list[str]:
    """Return the lines after the first one, which identifies the sweep."""
    lines = file.read_text().splitlines()
    assert json.loads(lines[0]).keys() == {"scenarios", "files", "flags", "plugins", "version"}
    return lines[1:]


def make_command(results: Path) -> list[str]:
    command = [sys.executable, "-m", "extender", "what-if", "-f", "c.json", "--sweep", "s.yaml"]
    return [*command, "--results", str(results)]


def count_lines(file: Path) -> int:
    return file.read_bytes().count(b"\n") if file.exists() else 0
