"""The completion scripts, and the completions that they show."""

from collections.abc import Callable

import pytest

from extender.cli.live.completion import COMPLETE_VARIABLE

Command = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize(
    ("shell", "line"),
    [
        ("bash", "complete -o default -F _extender_completion extender"),
        ("zsh", "compdef _extender_completion extender"),
        ("fish", "complete --command extender"),
    ],
)
def test_each_shell_has_a_script(extender: Command, shell: str, line: str) -> None:
    status, out, err = extender("completion", shell)
    assert (status, err) == (0, "")
    assert line in out
    assert COMPLETE_VARIABLE in out


@pytest.mark.parametrize(
    ("words", "position", "completion"),
    [("extender expl", "1", "explain"), ("extender explain --kubec", "2", "--kubeconfig")],
)
def test_commands_and_options_are_completed(
    extender: Command, monkeypatch: pytest.MonkeyPatch, words: str, position: str, completion: str
) -> None:
    monkeypatch.setenv(COMPLETE_VARIABLE, "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", position)
    assert extender()[1].split() == [completion]
