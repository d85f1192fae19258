"""The command `extender`, run in this process."""

import io
import sys
from collections.abc import Callable

import pytest

from extender.cli import app


@pytest.fixture
def extender(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Runs the command with some arguments and standard input: exit status, standard output, standard error."""

    def run(*arguments: str, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["extender", *arguments])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        with pytest.raises(SystemExit) as ended:
            app.main()
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return run
