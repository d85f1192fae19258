"""The command `extender`, run in this process."""

import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from extender.cli import main


@pytest.fixture
def extender(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Return a function that runs the command; it returns exit status, standard output and standard error."""

    def run(*arguments: str, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["extender", *arguments])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        with pytest.raises(SystemExit) as caught:
            main.main()
        out, err = capsys.readouterr()
        return int(caught.value.code or 0), out, err

    return run


@pytest.fixture
def no_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Run the command without a kubeconfig, and not in a pod."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
