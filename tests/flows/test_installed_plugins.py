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
EXITING_SOURCE = """
import sys
from extender.plugin import filter_plugin

@filter_plugin("Exits")
def exits(pod, node):
    sys.exit(3)

@filter_plugin("ExitsInKey", cacheable=lambda pod: sys.exit(3))
def exits_in_key(pod, node):
    return None

class PanicException(BaseException):
    pass

@filter_plugin("Panics")
def panics(pod, node):
    raise PanicException("unwrap on None")

class ExitsInPermit:
    name = "ExitsInPermit"
    def permit(self, pod, node_name, snapshot, state):
        sys.exit(3)

class ExitsInConstructor:
    name = "ExitsInConstructor"
    def __init__(self):
        sys.exit(3)
    def filter(self, pod, nodes, state):
        return ()

class SortsByTeam:
    name = "SortsByTeam"
    def sort_key(self, entry):
        return entry.pod.pod.metadata.labels["team"],
"""
EXITING_ENTRIES = """
Exits = exiting_module:exits
Panics = exiting_module:panics
ExitsInKey = exiting_module:exits_in_key
ExitsInPermit = exiting_module:ExitsInPermit
ExitsInConstructor = exiting_module:ExitsInConstructor
SortsByTeam = exiting_module:SortsByTeam
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


def explain(
    folder: Path, plugin: str, *flags: str, command: str = "explain", enabled_at: str = "multiPoint"
) -> subprocess.CompletedProcess[str]:
    disabled = ", disabled: [{name: '*'}]" if enabled_at == "queueSort" else ""
    (folder / "profile.yaml").write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        f"profiles: [{{plugins: {{{enabled_at}: {{enabled: [{{name: {plugin}}}]{disabled}}}}}}}]\n"
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


ENDLESS_SOURCE = """
import os
import signal
from extender.plugin import filter_plugin

@filter_plugin("Slow")
def slow(pod, node):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it in jobs in the background
    os.kill(os.getpid(), signal.SIGINT)  # the user ends the command
    while True:
        pass

fails = filter_plugin("Fails")(lambda pod, node: None)
"""


def test_ctrl_c_names_the_plugin_that_did_not_end(folder: Path) -> None:
    (folder / "trial_module.py").write_text(ENDLESS_SOURCE)
    process = explain(folder, "Slow")
    want = r'extender: note: stopped in Filter of plugin "Slow" \(trial_module\.py:\d+\)\n'
    assert re.fullmatch(want, process.stderr)
    assert (process.returncode, process.stdout) == (130, "")


def test_a_plugin_that_raises_fails_only_its_pods(folder: Path) -> None:
    process = explain(folder, "Fails")
    assert process.returncode == 0
    message = "running \"Fails\" filter plugin: node one: KeyError: 'zone' (trial_module.py:13)"
    assert process.stdout.count(message) >= 2
    assert "Traceback" not in process.stderr


def install_exiting_plugins(folder: Path) -> None:
    (folder / "exiting_module.py").write_text(EXITING_SOURCE)
    with (folder / "trial-1.0.dist-info" / "entry_points.txt").open("a") as file:
        file.write(EXITING_ENTRIES)


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        ("Exits", 'running "Exits" filter plugin: node one: SystemExit: 3 (exiting_module.py:7)'),
        ("ExitsInKey", 'running "ExitsInKey" filter plugin: filter_cache_key: SystemExit: 3 (exiting_module.py:9)'),
        ("Panics", 'running "Panics" filter plugin: node one: PanicException: unwrap on None (exiting_module.py:18)'),
        ("ExitsInPermit", 'running Permit plugin "ExitsInPermit": SystemExit: 3 (exiting_module.py:23)'),
    ],
)
def test_a_plugin_that_exits_fails_only_its_pods(folder: Path, plugin: str, message: str) -> None:
    install_exiting_plugins(folder)
    process = explain(folder, plugin, command="simulate")
    assert process.returncode == 0
    assert "2 pods waiting, 0 placed, 2 not placed" in process.stdout
    assert message in process.stdout


def test_a_plugin_that_exits_in_its_constructor_is_an_error_of_the_configuration(folder: Path) -> None:
    install_exiting_plugins(folder)
    process = explain(folder, "ExitsInConstructor")
    assert process.returncode == 2
    want = 'profiles[0]: initializing plugin "ExitsInConstructor": SystemExit: 3 (exiting_module.py:28)'
    assert want in process.stderr


def test_a_queue_sort_plugin_that_raises_is_named(folder: Path) -> None:
    install_exiting_plugins(folder)
    process = explain(folder, "SortsByTeam", command="simulate", enabled_at="queueSort")
    assert process.returncode == 1
    want = "extender: running QueueSort plugin \"SortsByTeam\": KeyError: 'team' (exiting_module.py:35)\n"
    assert process.stderr == want


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
    process = explain(folder, "Fails")
    assert process.returncode == 2
    want = (
        'plugin "Fails", "Slow" of trial (trial_module): plugin "Fails": fails takes (pod), want (pod, node); '
        "pip uninstall trial removes it"
    )
    assert want in process.stderr


def install_copy(folder: Path, source: str) -> None:
    """Install another package, `copy`, whose entry point `Twin` is the function `fails` of *source*."""
    info = folder / "copy-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: copy\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[extender.plugins]\nTwin = copy_module:fails\n")
    (folder / "copy_module.py").write_text(source)


def test_an_invalid_plugin_that_no_profile_names_is_a_note(folder: Path) -> None:
    install_copy(folder, "1 / 0")
    process = explain(folder, "Slow", "-o", "json")
    assert process.returncode == 0
    assert process.stderr.splitlines()[0] == (
        'extender: note: plugin "Twin" of copy (copy_module:fails): cannot be imported: '
        "ZeroDivisionError: division by zero (copy_module.py:1); pip uninstall copy removes it"
    )
    assert sorted(json.loads(process.stdout)["pods"]) == ["default/job", "default/web"]


def test_no_plugin_of_two_packages_with_one_name_is_used(folder: Path) -> None:
    install_copy(folder, SOURCE)
    process = explain(folder, "Fails")
    assert process.returncode == 2
    assert "a plugin named Fails already exists; pip uninstall copy removes it" in process.stderr
    assert 'PreFilterPlugin "Fails" is installed, but invalid' in process.stderr
