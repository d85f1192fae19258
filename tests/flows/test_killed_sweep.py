"""A sweep that is killed in the middle continues where its results end."""

import json
import signal
import subprocess
import sys
from pathlib import Path

from tests.unit.planning.clusters import as_list, node, pod

NODES = 60

KILLED_PROGRAM = """
import os, signal
from extender.cli.main import main
from extender.cli.planning.result_file import ResultFile

append, lines = ResultFile.append, []

def append_until_the_third(file, line):
    lines.append(line)
    append(file, line if len(lines) < 3 else line[:10])
    if len(lines) == 3:
        os.kill(os.getpid(), signal.SIGKILL)

ResultFile.append = append_until_the_third
main()
"""
"""The command, which is killed when it has written a part of its third result."""


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
    process = subprocess.run([sys.executable, "-c", KILLED_PROGRAM, *make_arguments(killed)], cwd=tmp_path, check=False)
    assert process.returncode == -signal.SIGKILL
    assert killed.read_bytes().count(b"\n") == 3
    assert not killed.read_bytes().endswith(b"\n")
    for file in (killed, whole):
        command = [sys.executable, "-m", "extender", *make_arguments(file)]
        result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
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


def make_arguments(results: Path) -> list[str]:
    return ["what-if", "-f", "c.json", "--sweep", "s.yaml", "--results", str(results)]
