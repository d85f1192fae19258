"""The kubectl plugin: its commands, its help and its completions."""

import sys
from pathlib import Path

import pytest

from extender.cli.live import kubectl_plugin
from extender.cli.live.completion import COMPLETE_VARIABLE
from extender.cli.main import COMMANDS

DEMO = str(Path(__file__).parents[4] / "docs" / "examples" / "demo" / "cluster.yaml")
CLUSTER = """\
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: 2, memory: 4Gi, pods: 10}}
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: a}]}
"""


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["kubectl-placement", *arguments])
    with pytest.raises(SystemExit) as caught:
        kubectl_plugin.main()
    return int(caught.value.code or 0)


def install_kubectl(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    program = folder / "kubectl"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")


def test_why_explains_a_pod(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(CLUSTER)
    assert run(monkeypatch, "why", "pod/web", "-f", str(file)) == 0
    assert capsys.readouterr().out.startswith("Pod default/web\n  fits on 1 of 1 node\n")


def test_without_a_command_the_usage_lists_all_commands(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch) == 2
    usage = capsys.readouterr().out
    assert all(f"\n  {name} " in usage for name in kubectl_plugin.COMMANDS)
    for word in ("--help", "-h", "help"):
        assert run(monkeypatch, word) == 0
        assert capsys.readouterr().out == usage


@pytest.mark.parametrize("name", kubectl_plugin.COMMANDS)
def test_the_help_of_a_command_has_the_name_by_which_kubectl_runs_it(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert run(monkeypatch, name, "--help") == 0
    out = capsys.readouterr().out
    assert out.startswith(f"Usage: kubectl placement {name} [OPTIONS]")
    examples = out.partition("Examples:")[2]
    assert f"\n    kubectl placement {name} " in examples
    assert "extender " not in examples


@pytest.mark.parametrize(("word", "command"), [("explain", "why"), ("simulat", "simulate")])
def test_a_command_of_extender_and_a_misspelled_one_are_corrected(
    word: str, command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, word) == 2
    assert capsys.readouterr().err == (
        f'extender: "{word}" is no command of kubectl placement; did you mean "{command}"?\n'
    )


def test_an_unknown_command_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "serve") == 2
    assert capsys.readouterr().err == (
        'extender: "serve" is no command of kubectl placement; see kubectl placement --help\n'
    )


def test_every_command_of_the_plugin_is_a_command_of_extender() -> None:
    assert set(kubectl_plugin.COMMANDS.values()) <= set(COMMANDS)


@pytest.fixture(autouse=True)
def keep_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restore the variables that `list_completions` sets."""
    for name in (COMPLETE_VARIABLE, "COMP_WORDS", "COMP_CWORD"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


@pytest.mark.parametrize(
    ("words", "completions"),
    [
        ([], ["why", "simulate", "what-if", "fits", "rebalance", "compare", "record", ":4"]),
        (["w"], ["why", "what-if", ":4"]),
        (["why", "--kubec"], ["--kubeconfig", ":4"]),
        (["why", "-f", "clu"], [":0"]),
        (["unknown", "x"], [":0"]),
        (["simulate", "x"], [":4"]),
        (["why", "--feature-gates", "GenericW"], ["GenericWorkload=true", ":4"]),
        (["why", "-o", ""], ["table", "json", "yaml", ":4"]),
        (["why", "-f", DEMO, "shop/frontend-5d8c-k"], ["shop/frontend-5d8c-k7wzd", ":4"]),
        (["why", f"--file={DEMO}", "--namespace=s"], ["shop", ":4"]),
        (["rebalance", "-f", DEMO, "--for", "batch/i"], ["batch/import", ":4"]),
        (["what-if", "-f", DEMO, "--drain", "gpu"], ["gpu-a1", "gpu-b1", ":4"]),
    ],
)
def test_commands_and_flags_are_completed(words: list[str], completions: list[str]) -> None:
    assert list(kubectl_plugin.list_completions(words)) == completions


def test_pods_are_completed_by_kubectl_with_the_flags_of_the_namespace(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    install_kubectl(tmp_path, monkeypatch, f'echo "$@" > "{tmp_path}/flags"; echo pod/web-1; echo pod/db-0')
    assert list(kubectl_plugin.list_completions(["why", "-n", "shop", "--context=test", "we"])) == ["web-1", ":4"]
    assert (tmp_path / "flags").read_text().endswith(" --request-timeout=3s --context=test --namespace=shop\n")


def test_if_kubectl_fails_there_are_no_completions(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install_kubectl(tmp_path, monkeypatch, "exit 1")
    assert list(kubectl_plugin.list_completions(["why", "we"])) == [":4"]


def test_the_completion_executable_prints_a_line_for_each(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["kubectl_complete-placement", "reco"])
    kubectl_plugin.complete()
    assert capsys.readouterr().out == "record\n:4\n"
