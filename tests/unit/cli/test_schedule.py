"""`extender schedule`: every error is one line with status 1; help, version and the written configuration."""

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from extender.app.options import ScheduleOptions
from extender.cli.schedule import run_command

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


async def _never(_: ScheduleOptions) -> int:
    raise AssertionError("nothing should start")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("--nope", "unknown flag: --nope"),
        (
            "--policy_config_file=p",
            "unknown flag: --policy_config_file; --config reads the file of a Policy or its ConfigMap too",
        ),
        (
            "--port=0",
            "unknown flag: --port; there is no port without TLS; --bind-address and --secure-port serve HTTPS",
        ),
        ("--config=missing.yaml", "missing.yaml: no such file; check the path, or write - to read standard input"),
        ("--feature-gates=Nope=true", "--feature-gates: unrecognized feature gate: Nope"),
        ("--version=v9", 'invalid argument "v9" for "--version" flag: want --version or --version=raw'),
    ],
)
def test_bad_input_is_one_line_and_status_1(words: str, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(words.split(), _never) == 1
    assert capsys.readouterr() == ("", f"extender: {line}\n")


def test_a_bad_profile_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "scheduler.yaml"
    config.write_text(HEAD + "profiles:\n- schedulerName: x\n  plugins:\n    score:\n      enabled: [{name: Nope}]\n")
    assert run_command([f"--config={config}"], _never) == 1
    message = 'profiles[0].plugins.score.enabled: ScorePlugin "Nope" does not exist; is its package installed?'
    assert capsys.readouterr().err == f"extender: {config}: {message}\n"


def test_an_error_is_a_message_of_a_json_log(capsys: pytest.CaptureFixture[str], logs: None) -> None:
    assert run_command(["--logging-format=json", "--config=missing.yaml"], _never) == 1
    message = json.loads(capsys.readouterr().err)
    assert message["msg"] == "command failed"
    assert message["err"] == "missing.yaml: no such file; check the path, or write - to read standard input"


def test_the_written_configuration_includes_the_changes_of_flags(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "full.yaml"
    assert run_command([f"--write-config-to={file}", "--leader-elect=false"], _never) == 0
    assert "leaderElect: false" in file.read_text()
    assert "name: NodeResourcesFit" in file.read_text()
    assert run_command([f"--write-config-to={tmp_path}/no/x"], _never) == 1
    assert capsys.readouterr().err.endswith("/no/x: No such file or directory\n")


def test_a_failure_to_write_the_configuration_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "full.yaml").write_text("old")

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "replace", fail)
    assert run_command([f"--write-config-to={tmp_path}/full.yaml"], _never) == 1
    assert capsys.readouterr().err.endswith("/full.yaml: No space left on device\n")
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {"full.yaml": "old"}


def test_help_shows_groups_types_defaults_and_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["-h"], _never) == 0
    out = capsys.readouterr().out
    assert "\nLeader election flags:\n" in out
    assert "--leader-elect-lease-duration duration" in out
    assert "(default 15s)" in out
    assert "Exit status: 0 after a signal" in out
    assert max(map(len, out.splitlines())) <= 120


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["--version"], _never) == 0
    assert capsys.readouterr().out.startswith("extender ")
