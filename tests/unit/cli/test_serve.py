"""`extender serve`: the help, and errors as one line."""

import json

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


@pytest.mark.parametrize(
    ("words", "status", "error"),
    [
        (["--config=missing.yaml"], 2, "missing.yaml: no such file; check the path, or write - to read standard input"),
        (["--kubeconfig=/missing", "--port=0"], 1, "kubeconfig /missing does not exist or is not a regular file; "),
    ],
)
def test_an_error_is_a_message_of_a_json_log(
    words: list[str], status: int, error: str, capsys: pytest.CaptureFixture[str], logs: None
) -> None:
    assert run_command(["--logging-format=json", *words], run) == status
    message = json.loads(capsys.readouterr().err)
    assert message["msg"] == "command failed"
    assert message["err"].startswith(error)


def test_help_lists_every_flag(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["--help"], run) == 0
    page = capsys.readouterr().out
    assert all(f"--{flag.name}" in page for flags in GROUPS.values() for flag in flags)
