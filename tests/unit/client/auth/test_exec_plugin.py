"""Exec plugins that hang, print without an end, or return invalid credentials."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from extender.client.auth import exec_plugin
from extender.client.auth.exec_plugin import run_exec_plugin
from extender.client.errors import CredentialsError

VERSION = "client.authentication.k8s.io/v1"


def write_plugin(folder: Path, script: str, **settings: Any) -> dict[str, Any]:
    file = folder / "plugin.sh"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return {"apiVersion": VERSION, "command": "./plugin.sh", **settings}


def print_credential(status: str) -> str:
    return f'echo \'{{"apiVersion":"{VERSION}","kind":"ExecCredential","status":{status}}}\''


def error_of(folder: Path, script: str, **settings: Any) -> str:
    with pytest.raises(CredentialsError) as caught:
        run_exec_plugin(write_plugin(folder, script, **settings), folder, {})
    return str(caught.value)


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """Return the list of the processes that are started."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*args: Any, **options: Any) -> subprocess.Popen[bytes]:
        started.append(original(*args, **options))
        return started[-1]

    original = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", start)
    return started


def test_a_plugin_that_does_not_end_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processes: list[subprocess.Popen[bytes]]
) -> None:
    assert exec_plugin.EXEC_PLUGIN_SECONDS == 60
    monkeypatch.setattr(exec_plugin, "EXEC_PLUGIN_SECONDS", 0)
    assert error_of(tmp_path, "sleep 1000") == "exec plugin ./plugin.sh: it did not end within 0 s"
    assert [process.returncode for process in processes] == [-signal.SIGKILL]


def test_a_plugin_that_closes_its_output_and_does_not_end_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processes: list[subprocess.Popen[bytes]]
) -> None:
    monkeypatch.setattr(exec_plugin, "EXEC_PLUGIN_SECONDS", 0.2)
    message = error_of(tmp_path, "exec >&- 2>&-; exec sleep 1000")
    assert message == "exec plugin ./plugin.sh: it did not end within 0.2 s"
    assert [process.returncode for process in processes] == [-signal.SIGKILL]


def test_a_plugin_with_a_terminal_has_another_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processes: list[subprocess.Popen[bytes]]
) -> None:
    assert exec_plugin.INTERACTIVE_SECONDS == 600
    monkeypatch.setattr(exec_plugin, "INTERACTIVE_SECONDS", 0)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert error_of(tmp_path, "exec sleep 1000") == "exec plugin ./plugin.sh: it did not end within 0 s"
    assert [process.returncode for process in processes] == [-signal.SIGKILL]


@pytest.fixture
def standard_input() -> Iterator[None]:
    """Have standard input contain a line."""
    original = os.dup(0)
    read_end, write_end = os.pipe()
    os.write(write_end, b"for the command\n")
    os.close(write_end)
    os.dup2(read_end, 0)
    os.close(read_end)
    yield
    os.dup2(original, 0)
    os.close(original)


@pytest.mark.usefixtures("standard_input")
@pytest.mark.parametrize(
    ("mode", "has_terminal", "seen"),
    [
        ("Never", True, ("", False)),
        ("Never", False, ("", False)),
        ("IfAvailable", True, ("for the command", True)),
        ("IfAvailable", False, ("", False)),
        (None, True, ("for the command", True)),
        (None, False, ("", False)),
        ("Always", True, ("for the command", True)),
    ],
)
def test_only_an_interactive_plugin_reads_standard_input_and_only_from_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str | None, has_terminal: bool, seen: tuple[str, bool]
) -> None:
    """The terminal of standard output does not count."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(os, "isatty", lambda descriptor: has_terminal and descriptor == 0)
    script = f'cat > line\necho "$KUBERNETES_EXEC_INFO" > info\n{print_credential(json.dumps({"token": "x"}))}'
    run_exec_plugin(write_plugin(tmp_path, script, **({"interactiveMode": mode} if mode else {})), tmp_path, {})
    info = json.loads((tmp_path / "info").read_text())
    assert ((tmp_path / "line").read_text().strip(), info["spec"]["interactive"]) == seen


def test_a_plugin_that_needs_a_terminal_does_not_run_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "isatty", lambda _: False)
    message = error_of(tmp_path, "echo > runs", interactiveMode="Always")
    assert message == "exec plugin ./plugin.sh: interactiveMode is Always, and standard input is not a terminal"
    message = error_of(tmp_path, "echo > runs", interactiveMode="Sometimes")
    assert message == "exec plugin ./plugin.sh: unknown interactiveMode: Sometimes"
    assert not (tmp_path / "runs").exists()


def is_running(pid: int) -> bool:
    """Return whether a process exists and has not ended."""
    try:
        return Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the state of a process is read from Linux's /proc")
def test_the_processes_of_a_plugin_are_killed_with_it(tmp_path: Path) -> None:
    script = "sleep 1000 >/dev/null 2>&1 &\necho $! > child\nexec cat /dev/zero"
    assert error_of(tmp_path, script) == "exec plugin ./plugin.sh: its output has more than 1 MiB"
    child = int((tmp_path / "child").read_text())
    deadline = monotonic() + 20.0
    while is_running(child):
        assert monotonic() < deadline


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the state of a process is read from Linux's /proc")
def test_a_process_that_holds_the_output_of_an_ended_plugin_open_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wait_for_plugin(process: subprocess.Popen[bytes], _: float) -> tuple[bytes, bytes]:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        raise TimeoutError

    monkeypatch.setattr(exec_plugin, "_read_output", wait_for_plugin)
    message = error_of(tmp_path, "sleep 1000 &\necho $! > child")
    assert message == "exec plugin ./plugin.sh: it did not end within 60 s"
    child = int((tmp_path / "child").read_text())
    deadline = monotonic() + 20.0
    while is_running(child):
        assert monotonic() < deadline


@pytest.mark.parametrize("redirection", ["", ">&2"], ids=["standard output", "standard error"])
def test_a_plugin_that_prints_without_an_end_is_killed(
    tmp_path: Path, processes: list[subprocess.Popen[bytes]], redirection: str
) -> None:
    message = error_of(tmp_path, f"exec cat /dev/zero {redirection}")
    assert message == "exec plugin ./plugin.sh: its output has more than 1 MiB"
    assert [process.returncode for process in processes] == [-signal.SIGKILL]


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo broken >&2; exit 3", "the process returned 3. broken"),
        ("echo nothing", "its output is no JSON: Expecting value: line 1 column 1 (char 0)"),
        ("echo []", "its output is no ExecCredential"),
        ('echo \'{"kind":"ExecCredential","apiVersion":"v2"}\'', f"its apiVersion v2 does not match {VERSION}"),
        (print_credential("[]"), "its output has no status"),
        (print_credential('{"token":1}'), "status.token: want text"),
        ("head -c 500000 /dev/zero | tr '\\0' '['", "its output is nested too deeply"),
    ],
    ids=["a failure", "no JSON", "a list", "another version", "no status", "a number as a token", "deep nesting"],
)
def test_an_invalid_result_is_one_line(tmp_path: Path, script: str, message: str) -> None:
    line = error_of(tmp_path, script)
    assert line.startswith(f"exec plugin ./plugin.sh: {message}")
    assert "\n" not in line
    assert len(line) < 600


def test_a_long_message_of_a_failing_plugin_is_shortened(tmp_path: Path) -> None:
    line = error_of(tmp_path, "head -c 100000 /dev/zero | tr '\\0' x >&2; exit 1")
    assert line == f"exec plugin ./plugin.sh: the process returned 1. {'x' * 500}... (100000 characters)"


def test_a_plugin_gets_its_arguments_its_variables_and_the_cluster(tmp_path: Path) -> None:
    script = f'echo "$1 $WHO $KUBERNETES_EXEC_INFO" > seen\n{print_credential(json.dumps({"token": "fresh"}))}'
    settings = write_plugin(
        tmp_path, script, args=["one"], env=[{"name": "WHO", "value": "me"}], provideClusterInfo=True
    )
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}
    cluster = {
        "server": "https://s",
        "tls-server-name": "",
        "insecure-skip-tls-verify": True,
        "extensions": [extension],
    }
    status = run_exec_plugin(settings, tmp_path, cluster)
    assert status == {"token": "fresh"}
    argument, variable, info = (tmp_path / "seen").read_text().split(" ", 2)
    assert (argument, variable) == ("one", "me")
    # Written out from the environment that kubectl 1.32 gives to such a plugin.
    assert json.loads(info) == {
        "apiVersion": VERSION,
        "kind": "ExecCredential",
        "spec": {
            "cluster": {"server": "https://s", "insecure-skip-tls-verify": True, "config": {"audience": "x"}},
            "interactive": False,
        },
    }


def test_a_plugin_gets_a_ca_in_a_file_as_data(tmp_path: Path) -> None:
    script = f'echo "$KUBERNETES_EXEC_INFO" > seen\n{print_credential(json.dumps({"token": "fresh"}))}'
    (tmp_path / "ca.crt").write_text("the CA")
    cluster = {"server": "https://s", "certificate-authority": str(tmp_path / "ca.crt")}
    run_exec_plugin(write_plugin(tmp_path, script, provideClusterInfo=True), tmp_path, cluster)
    assert json.loads((tmp_path / "seen").read_text())["spec"]["cluster"] == {
        "server": "https://s",
        "certificate-authority-data": "dGhlIENB",
        "config": None,
    }


def test_a_ca_that_cannot_be_given_to_a_plugin_is_one_line(tmp_path: Path) -> None:
    settings = write_plugin(tmp_path, "true", provideClusterInfo=True)
    for file, message in (("/dev/zero", "/dev/zero: is a device"), ("/", "Is a directory")):
        with pytest.raises(CredentialsError, match=message):
            run_exec_plugin(settings, tmp_path, {"server": "https://s", "certificate-authority": file})


def test_settings_without_a_command_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(CredentialsError, match="want a command and an apiVersion"):
        run_exec_plugin({"apiVersion": VERSION}, tmp_path, {})
