"""Installed plugins on the command line: slow ones are reported, failing ones named, invalid ones rejected."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = """
from time import perf_counter
from extender.plugin import filter_plugin

@filter_plugin("Slow")
def slow(pod, node):
    end = perf_counter() + 0.11
    while perf_counter() < end:
        pass

@filter_plugin("Fails")
def fails(pod, node):
    return None if node.labels["zone"] else "never"
"""
PRINTING_SOURCE = """
from extender.plugin import filter_plugin

print("imported")

@filter_plugin("Prints")
def prints(pod, node):
    print("called for", pod.metadata.name)
"""
CLUSTER = """
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: one}, status: {allocatable: {cpu: "4", pods: "110"}}}
- {apiVersion: v1, kind: Pod, metadata: {name: web, namespace: default}, spec: {containers: [{name: a, image: a}]}}
- {apiVersion: v1, kind: Pod, metadata: {name: job, namespace: default}, spec: {containers: [{name: a, image: b}]}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "trial_module.py").write_text(SOURCE)
    info = tmp_path / "trial-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: trial\nVersion: 1.0\n")
    entries = "[extender.plugins]\nSlow = trial_module:slow\nFails = trial_module:fails\n"
    (info / "entry_points.txt").write_text(entries)
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    return tmp_path


def explain(folder: Path, plugin: str, *flags: str, command: str = "explain") -> subprocess.CompletedProcess[str]:
    (folder / "profile.yaml").write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        f"profiles: [{{plugins: {{multiPoint: {{enabled: [{{name: {plugin}}}]}}}}}}]\n"
    )
    arguments = ["-f", "cluster.yaml", "--config", "profile.yaml", *flags]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(folder), str(ROOT)))}
    words = [sys.executable, "-m", "extender", command, *arguments]
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_a_slow_plugin_is_reported_once_and_used(folder: Path) -> None:
    process = explain(folder, "Slow")
    assert process.returncode == 0
    want = r'extender: plugin "Slow" is slow: one call of Filter took \d{3,} ms, want at most 100 ms\n'
    assert re.fullmatch(want, process.stderr)
    assert process.stdout.count("fits on 1 of 1 node") == 2


def test_a_plugin_that_raises_fails_only_its_pods(folder: Path) -> None:
    process = explain(folder, "Fails")
    assert process.returncode == 0
    message = "running \"Fails\" filter plugin: node one: KeyError: 'zone' (trial_module.py:13)"
    assert process.stdout.count(message) >= 2
    assert "Traceback" not in process.stderr


@pytest.mark.parametrize("command", ["explain", "simulate"])
def test_the_flag_v_prints_the_traceback_of_a_plugin_once(folder: Path, command: str) -> None:
    process = explain(folder, "Fails", "-v", command=command)
    assert process.returncode == 0
    message = "running \"Fails\" filter plugin: node one: KeyError: 'zone' (trial_module.py:13)"
    assert f"extender: {message}\nTraceback (most recent call last):\n" in process.stderr
    assert process.stderr.count('trial_module.py", line 13, in fails\n') == 1
    assert "Traceback" not in process.stdout


@pytest.mark.parametrize("command", ["explain", "simulate"])
def test_what_a_plugin_prints_goes_to_standard_error(folder: Path, command: str) -> None:
    (folder / "printing_module.py").write_text(PRINTING_SOURCE)
    with (folder / "trial-1.0.dist-info" / "entry_points.txt").open("a") as file:
        file.write("Prints = printing_module:prints\n")
    process = explain(folder, "Prints", "-o", "json", command=command)
    assert process.returncode == 0
    assert json.loads(process.stdout)
    lines = process.stderr.splitlines()
    assert lines[0] == "imported"
    assert {"called for web", "called for job"} <= set(lines[1:])


@pytest.mark.parametrize("arguments", [("config", "check", "profile.yaml", "--show"), ("config", "defaults")])
def test_what_a_plugin_prints_is_not_in_a_printed_configuration(folder: Path, arguments: tuple[str, ...]) -> None:
    explain(folder, "Slow")  # writes the profile
    (folder / "trial_module.py").write_text(SOURCE + 'print("imported")\n')
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(folder), str(ROOT)))}
    words = [sys.executable, "-m", "extender", *arguments]
    process = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert (process.returncode, process.stderr) == (0, "imported\n")
    assert process.stdout.startswith("apiVersion: kubescheduler.config.k8s.io/v1\n")


def test_a_misspelled_plugin_is_rejected_with_a_suggestion(folder: Path) -> None:
    process = explain(folder, "Sloww")
    assert process.returncode == 2
    assert 'PreFilterPlugin "Sloww" does not exist; did you mean "Slow"?' in process.stderr


def test_an_invalid_plugin_is_rejected_with_its_package(folder: Path) -> None:
    (folder / "trial_module.py").write_text(SOURCE.replace("def fails(pod, node)", "def fails(pod)"))
    process = explain(folder, "Slow")
    assert process.returncode == 2
    want = 'plugin "Fails" of trial (trial_module:fails): plugin "Fails": fails takes (pod), want (pod, node)'
    assert want in process.stderr
