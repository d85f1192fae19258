"""`extender serve`: the help, and missing credentials as one line."""

import pytest

from extender.app.serve import run
from extender.cli.serve import run_command
from extender.cli.serve_flags import GROUPS


def test_missing_credentials_are_one_line_with_alternatives(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], logs: None
) -> None:
    for name in ("KUBECONFIG", "HOME", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    assert run_command(["--port=0"], run) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("extender: no kubeconfig: none given with --kubeconfig")
    assert line.endswith("; or pass a recorded cluster with -f, or --without-cluster")


def test_help_lists_every_flag(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["--help"], run) == 0
    page = capsys.readouterr().out
    assert all(f"--{flag.name}" in page for flags in GROUPS.values() for flag in flags)
